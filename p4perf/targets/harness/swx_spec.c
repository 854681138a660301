/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a specification, line by line. Nothing is ever freed: a trial reads two files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "swx_spec.h"

#define LINE_ROOM 2048
#define MAX_TOKENS 256

/* The line that is being read. */
struct line {
	const struct spec *spec;
	unsigned int number;
	unsigned int n;
	char *tokens[MAX_TOKENS];
};

/* Blocks, and blocks in blocks. */
enum block { TOP, STRUCT, ACTION, TABLE, KEY, ACTIONS, FIELDS, TIMEOUT, APPLY };

void
spec_fail(const struct spec *spec, unsigned int line, const char *token, const char *what)
{
	if (token == NULL)
		fail("spec", "%s:%u: %s", spec->path, line, what);
	fail("spec", "%s:%u: %s: %s", spec->path, line, token, what);
}

static _Noreturn void
line_fail(const struct line *line, unsigned int token, const char *what)
{
	spec_fail(line->spec, line->number, token < line->n ? line->tokens[token] : NULL, what);
}

/* Room for one more item. */
static void *
grow(void *items, unsigned int n, size_t size)
{
	char *const grown = realloc(items, (n + 1) * size);

	if (grown == NULL)
		fail("memory", "no memory for a specification");
	memset(grown + n * size, 0, size);
	return grown;
}

#define GROW(items, n) ((items) = grow(items, n, sizeof(*(items))), &(items)[(n)++])

static const char *
copy(const char *text)
{
	char *const copied = strdup(text);

	if (copied == NULL)
		fail("memory", "no memory for a specification");
	return copied;
}

static void
append(struct spec_list *list, const char *item, unsigned int line)
{
	list->items = grow(list->items, list->n, sizeof(*list->items));
	list->lines = grow(list->lines, list->n, sizeof(*list->lines));
	list->items[list->n] = copy(item);
	list->lines[list->n++] = line;
}

static bool
is(const struct line *line, unsigned int token, const char *text)
{
	return token < line->n && strcmp(line->tokens[token], text) == 0;
}

static void
count(const struct line *line, unsigned int n, const char *form)
{
	if (line->n < n)
		line_fail(line, line->n - 1, form);
	if (line->n > n)
		line_fail(line, n, form);
}

static void
word(const struct line *line, unsigned int token, const char *expected, const char *form)
{
	if (!is(line, token, expected))
		line_fail(line, token < line->n ? token : line->n - 1, form);
}

static uint64_t
number(const struct line *line, unsigned int token, uint64_t high)
{
	const char *const text = line->tokens[token];
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (*text == '-' || *text == '\0' || *end != '\0' || errno != 0 || value > high)
		line_fail(line, token, "not a number that fits");
	return value;
}

/* bit<N> or varbit<N>: N. */
static uint32_t
width(const struct line *line, bool *variable)
{
	const char *text = line->tokens[0];
	unsigned long bits;
	char *end;

	*variable = strncmp(text, "varbit<", 7) == 0;
	if (!*variable && strncmp(text, "bit<", 4) != 0)
		line_fail(line, 0, "a field has the form bit<N> NAME or varbit<N> NAME");
	text = strchr(text, '<') + 1;
	bits = strtoul(text, &end, 0);
	if (end == text || strcmp(end, ">") != 0 || bits == 0 || bits % 8 != 0 || bits > 8 * 65536)
		line_fail(line, 0, "the width of a field is a multiple of 8 bit");
	return (uint32_t)bits;
}

static void
read_field(struct spec_struct *s, const struct line *line)
{
	struct rte_swx_field_params *field;
	bool variable;
	uint32_t bits;
	unsigned int i;

	bits = width(line, &variable);
	count(line, 2, "a field has the form bit<N> NAME or varbit<N> NAME");
	if (s->variable)
		line_fail(line, 1, "no field can follow one of variable width");
	for (i = 0; i < s->n_fields; i++)
		if (strcmp(s->fields[i].name, line->tokens[1]) == 0)
			line_fail(line, 1, "the structure has a field of that name already");
	field = GROW(s->fields, s->n_fields);
	field->name = copy(line->tokens[1]);
	field->n_bits = bits;
	s->variable = variable;
}

/* default_action NAME args none | ARGUMENT VALUE ... [ const ] */
static void
read_default(struct spec_table *t, const struct line *line)
{
	static const char *const form = "default_action has the form NAME args none | ARGUMENT VALUE ... [ const ]";
	const bool constant = line->n > 4 && is(line, line->n - 1, "const");
	char text[LINE_ROOM] = "";
	unsigned int i;

	if (t->default_action != NULL)
		line_fail(line, 0, "there is one already");
	if (line->n < 4)
		line_fail(line, line->n - 1, form);
	word(line, 2, "args", form);
	t->default_action = copy(line->tokens[1]);
	t->default_is_const = constant;
	if (is(line, 3, "none")) {
		count(line, constant ? 5 : 4, form);
		return;
	}
	for (i = 3; i < line->n - constant; i++) {
		strcat(text, i > 3 ? " " : "");
		strcat(text, line->tokens[i]);
	}
	t->default_arguments = copy(text);
}

static void
read_name(const struct line *line, const char **name)
{
	count(line, 2, "one value is expected");
	if (*name != NULL)
		line_fail(line, 0, "there is one already");
	*name = copy(line->tokens[1]);
}

/* A statement or the beginning of a block inside of a table, selector or learner. */
static enum block
read_table(struct spec_table *t, const struct line *line)
{
	static const struct {
		const char *name;
		enum block block;
		enum spec_kind first, last;
	} blocks[] = {
		{"key", KEY, SPEC_TABLE, SPEC_TABLE},          {"key", KEY, SPEC_LEARNER, SPEC_LEARNER},
		{"actions", ACTIONS, SPEC_TABLE, SPEC_TABLE},  {"actions", ACTIONS, SPEC_LEARNER, SPEC_LEARNER},
		{"selector", FIELDS, SPEC_SELECTOR, SPEC_SELECTOR}, {"timeout", TIMEOUT, SPEC_LEARNER, SPEC_LEARNER},
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(blocks); i++) {
		if (!is(line, 0, blocks[i].name) || t->kind < blocks[i].first || t->kind > blocks[i].last)
			continue;
		word(line, 1, "{", "a block begins with {");
		count(line, 2, "nothing can follow {");
		return blocks[i].block;
	}
	if (t->kind != SPEC_SELECTOR && is(line, 0, "default_action"))
		read_default(t, line);
	else if (t->kind != SPEC_SELECTOR && is(line, 0, "hash"))
		read_name(line, &t->hash);
	else if (t->kind == SPEC_TABLE && is(line, 0, "instanceof"))
		read_name(line, &t->type);
	else if (t->kind == SPEC_TABLE && is(line, 0, "pragma"))
		read_name(line, &t->pragma);
	else if (t->kind == SPEC_SELECTOR && is(line, 0, "group_id"))
		read_name(line, &t->group_id);
	else if (t->kind == SPEC_SELECTOR && is(line, 0, "member_id"))
		read_name(line, &t->member_id);
	else if (line->n != 2)
		line_fail(line, 0, "no statement of this block");
	else if (t->kind != SPEC_SELECTOR && is(line, 0, "size"))
		t->size = (uint32_t)number(line, 1, UINT32_MAX);
	else if (t->kind == SPEC_SELECTOR && is(line, 0, "n_groups_max"))
		t->n_groups = (uint32_t)number(line, 1, UINT32_MAX);
	else if (t->kind == SPEC_SELECTOR && is(line, 0, "n_members_per_group_max"))
		t->n_members = (uint32_t)number(line, 1, UINT32_MAX);
	else
		line_fail(line, 0, "no statement of this block");
	return TABLE;
}

static void
read_key(struct spec_table *t, const struct line *line)
{
	static const char *const kinds[] = {"wildcard", "lpm", "exact"};
	unsigned int kind = RTE_SWX_TABLE_MATCH_EXACT, n = t->keys.n;

	if (t->kind == SPEC_TABLE) {
		count(line, 2, "a key has the form FIELD exact | wildcard | lpm");
		for (kind = 0; kind < RTE_DIM(kinds) && !is(line, 1, kinds[kind]); kind++)
			;
		if (kind == RTE_DIM(kinds))
			line_fail(line, 1, "a key is exact, wildcard or lpm");
	} else {
		count(line, 1, "one field is expected");
	}
	append(&t->keys, line->tokens[0], line->number);
	*GROW(t->matches, n) = kind;
}

static void
read_action_name(struct spec_table *t, const struct line *line)
{
	unsigned int entries = t->actions.n, defaults = t->actions.n;

	if (line->n > 1 && !is(line, 1, "@tableonly") && !is(line, 1, "@defaultonly"))
		line_fail(line, 1, "an action can be @tableonly or @defaultonly");
	if (line->n > 2)
		line_fail(line, 2, "nothing can follow here");
	append(&t->actions, line->tokens[0], line->number);
	*GROW(t->for_entries, entries) = !is(line, 1, "@defaultonly");
	*GROW(t->for_default, defaults) = !is(line, 1, "@tableonly");
}

static void
read_instruction(struct spec_list *list, const struct line *line)
{
	char text[LINE_ROOM] = "";
	unsigned int i;

	for (i = 0; i < line->n; i++) {
		strcat(text, i > 0 ? " " : "");
		strcat(text, line->tokens[i]);
	}
	append(list, text, line->number);
}

static void
read_array(struct spec_array *array, const struct line *line, bool registers)
{
	static const char *const forms[] = {"metarray has the form NAME size N", "regarray has the form NAME size N initval V"};
	const char *const form = forms[registers];

	count(line, registers ? 6 : 4, form);
	word(line, 2, "size", form);
	array->name = copy(line->tokens[1]);
	array->line = line->number;
	array->size = (uint32_t)number(line, 3, UINT32_MAX);
	if (array->size == 0)
		line_fail(line, 3, "an array has at least one cell");
	if (registers) {
		word(line, 4, "initval", form);
		array->initial = number(line, 5, UINT64_MAX);
	}
}

static void
read_instance(struct spec_instance *instance, const struct line *line, const char *form)
{
	word(line, 2, "instanceof", form);
	if (line->n < 4)
		line_fail(line, line->n - 1, form);
	instance->name = copy(line->tokens[1]);
	instance->type = copy(line->tokens[3]);
	instance->line = line->number;
}

static enum block
read_action(struct spec *spec, const struct line *line)
{
	static const char *const form = "action has the form NAME args none | instanceof STRUCT {";
	struct spec_instance *const action = GROW(spec->actions, spec->n_actions);
	const bool none = is(line, 3, "none");

	word(line, 2, "args", form);
	if (!none)
		word(line, 3, "instanceof", form);
	count(line, none ? 5 : 6, form);
	word(line, none ? 4 : 5, "{", form);
	action->name = copy(line->tokens[1]);
	action->type = none ? NULL : copy(line->tokens[4]);
	action->line = line->number;
	return ACTION;
}

/* A statement outside of all blocks; the block that it begins, or TOP. */
static enum block
read_top(struct spec *spec, const struct line *line)
{
	static const char *const tables[] = {"table", "selector", "learner"};
	struct spec_table *table;
	unsigned int kind;

	if (is(line, 0, "struct")) {
		word(line, 2, "{", "struct has the form NAME {");
		count(line, 3, "struct has the form NAME {");
		GROW(spec->structs, spec->n_structs)->name = copy(line->tokens[1]);
		return STRUCT;
	}
	if (is(line, 0, "action"))
		return read_action(spec, line);
	for (kind = 0; kind < RTE_DIM(tables); kind++) {
		if (!is(line, 0, tables[kind]))
			continue;
		word(line, 2, "{", "the form is NAME {");
		count(line, 3, "the form is NAME {");
		table = GROW(spec->tables, spec->n_tables);
		table->kind = kind;
		table->name = copy(line->tokens[1]);
		table->line = line->number;
		return TABLE;
	}
	if (is(line, 0, "apply")) {
		word(line, 1, "{", "apply has the form {");
		count(line, 2, "apply has the form {");
		if (spec->apply.n != 0)
			line_fail(line, 0, "there is one already");
		return APPLY;
	}
	if (is(line, 0, "header")) {
		count(line, 4, "header has the form NAME instanceof STRUCT");
		read_instance(GROW(spec->headers, spec->n_headers), line, "header has the form NAME instanceof STRUCT");
	} else if (is(line, 0, "extobj")) {
		if (line->n > 4) {
			word(line, 4, "pragma", "extobj has the form NAME instanceof TYPE [ pragma ARGUMENTS ]");
			count(line, 6, "extobj has the form NAME instanceof TYPE [ pragma ARGUMENTS ]");
		}
		read_instance(GROW(spec->objects, spec->n_objects), line, "extobj has the form NAME instanceof TYPE");
		spec->objects[spec->n_objects - 1].pragma = line->n > 4 ? copy(line->tokens[5]) : NULL;
	} else if (is(line, 0, "metadata")) {
		count(line, 3, "metadata has the form instanceof STRUCT");
		word(line, 1, "instanceof", "metadata has the form instanceof STRUCT");
		if (spec->metadata != NULL)
			line_fail(line, 0, "there is one already");
		spec->metadata = copy(line->tokens[2]);
	} else if (is(line, 0, "regarray")) {
		read_array(GROW(spec->registers, spec->n_registers), line, true);
	} else if (is(line, 0, "metarray")) {
		read_array(GROW(spec->meters, spec->n_meters), line, false);
	} else {
		line_fail(line, 0, "no statement of a specification");
	}
	return TOP;
}

/* One line inside of a block, or the } that ends it; the block that the next line is in. */
static enum block
read_inside(struct spec *spec, enum block block, const struct line *line)
{
	struct spec_table *const table = spec->n_tables == 0 ? NULL : &spec->tables[spec->n_tables - 1];

	if (line->n == 1 && is(line, 0, "}"))
		return block == KEY || block == ACTIONS || block == FIELDS || block == TIMEOUT ? TABLE : TOP;
	switch (block) {
	case STRUCT:
		read_field(&spec->structs[spec->n_structs - 1], line);
		break;
	case ACTION:
		read_instruction(&spec->actions[spec->n_actions - 1].instructions, line);
		break;
	case TABLE:
		return read_table(table, line);
	case KEY:
	case FIELDS:
		read_key(table, line);
		break;
	case ACTIONS:
		read_action_name(table, line);
		break;
	case TIMEOUT:
		count(line, 1, "one number is expected");
		*GROW(table->timeouts, table->n_timeouts) = (uint32_t)number(line, 0, UINT32_MAX);
		break;
	default:
		read_instruction(&spec->apply, line);
		break;
	}
	return block;
}

static void
split(struct line *line, char *text)
{
	char *rest = text, *token;

	line->n = 0;
	while ((token = strtok_r(rest, " \f\n\r\t\v", &rest)) != NULL) {
		if (*token == '#' || *token == ';' || strncmp(token, "//", 2) == 0)
			break;
		if (line->n == MAX_TOKENS)
			line_fail(line, line->n - 1, "the line has too many words");
		line->tokens[line->n++] = token;
		if (strlen(token) >= RTE_SWX_NAME_SIZE)
			line_fail(line, line->n - 1, "longer than 63 characters");
	}
}

void
spec_read(struct spec *spec, const char *path)
{
	static char text[LINE_ROOM];
	struct line line = {.spec = spec};
	enum block block = TOP;
	FILE *file;

	memset(spec, 0, sizeof(*spec));
	spec->path = path;
	file = fopen(path, "r");
	if (file == NULL)
		fail("spec", "cannot open %s: %s", path, strerror(errno));
	while (fgets(text, sizeof(text), file) != NULL) {
		line.number++;
		if (strlen(text) == sizeof(text) - 1)
			spec_fail(spec, line.number, NULL, "the line is too long");
		split(&line, text);
		if (line.n != 0)
			block = block == TOP ? read_top(spec, &line) : read_inside(spec, block, &line);
	}
	fclose(file);
	if (block != TOP)
		spec_fail(spec, line.number, NULL, "the file ends inside of a block: a } is missing");
	if (spec->apply.n == 0)
		spec_fail(spec, line.number, NULL, "there is no apply block, or an empty one");
	if (spec->metadata == NULL)
		spec_fail(spec, line.number, NULL, "there is no metadata");
}
