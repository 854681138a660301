/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a specification, line by line. Nothing is ever freed: a trial reads two files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "swx_lines.h"

/* Blocks, and blocks in blocks. */
enum block { TOP, STRUCT, ACTION, TABLE, KEY, ACTIONS, FIELDS, TIMEOUT, APPLY };

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
	line_count(line, 2, "a field has the form bit<N> NAME or varbit<N> NAME");
	if (s->variable)
		line_fail(line, 1, "no field can follow one of variable width");
	for (i = 0; i < s->n_fields; i++)
		if (strcmp(s->fields[i].name, line->tokens[1]) == 0)
			line_fail(line, 1, "the structure has a field of that name already");
	field = GROW(s->fields, s->n_fields);
	field->name = line_copy(line->tokens[1]);
	field->n_bits = bits;
	s->variable = variable;
}

/* default_action NAME args none | ARGUMENT VALUE ... [ const ] */
static void
read_default(struct spec_table *t, const struct line *line)
{
	static const char *const form = "default_action has the form NAME args none | ARGUMENT VALUE ... [ const ]";
	const bool constant = line->n > 4 && line_is(line, line->n - 1, "const");
	char text[LINE_ROOM] = "";
	unsigned int i;

	if (t->default_action != NULL)
		line_fail(line, 0, "there is one already");
	if (line->n < 4)
		line_fail(line, line->n - 1, form);
	line_word(line, 2, "args", form);
	t->default_action = line_copy(line->tokens[1]);
	t->default_is_const = constant;
	if (line_is(line, 3, "none")) {
		line_count(line, constant ? 5 : 4, form);
		return;
	}
	for (i = 3; i < line->n - constant; i++) {
		strcat(text, i > 3 ? " " : "");
		strcat(text, line->tokens[i]);
	}
	t->default_arguments = line_copy(text);
}

static void
read_name(const struct line *line, const char **name)
{
	line_count(line, 2, "one value is expected");
	if (*name != NULL)
		line_fail(line, 0, "there is one already");
	*name = line_copy(line->tokens[1]);
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
		if (!line_is(line, 0, blocks[i].name) || t->kind < blocks[i].first || t->kind > blocks[i].last)
			continue;
		line_word(line, 1, "{", "a block begins with {");
		line_count(line, 2, "nothing can follow {");
		return blocks[i].block;
	}
	if (t->kind != SPEC_SELECTOR && line_is(line, 0, "default_action"))
		read_default(t, line);
	else if (t->kind != SPEC_SELECTOR && line_is(line, 0, "hash"))
		read_name(line, &t->hash);
	else if (t->kind == SPEC_TABLE && line_is(line, 0, "instanceof"))
		read_name(line, &t->type);
	else if (t->kind == SPEC_TABLE && line_is(line, 0, "pragma"))
		read_name(line, &t->pragma);
	else if (t->kind == SPEC_SELECTOR && line_is(line, 0, "group_id"))
		read_name(line, &t->group_id);
	else if (t->kind == SPEC_SELECTOR && line_is(line, 0, "member_id"))
		read_name(line, &t->member_id);
	else if (line->n != 2)
		line_fail(line, 0, "no statement of this block");
	else if (t->kind != SPEC_SELECTOR && line_is(line, 0, "size"))
		t->size = (uint32_t)line_number(line, 1, UINT32_MAX);
	else if (t->kind == SPEC_SELECTOR && line_is(line, 0, "n_groups_max"))
		t->n_groups = (uint32_t)line_number(line, 1, UINT32_MAX);
	else if (t->kind == SPEC_SELECTOR && line_is(line, 0, "n_members_per_group_max"))
		t->n_members = (uint32_t)line_number(line, 1, UINT32_MAX);
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
		line_count(line, 2, "a key has the form FIELD exact | wildcard | lpm");
		for (kind = 0; kind < RTE_DIM(kinds) && !line_is(line, 1, kinds[kind]); kind++)
			;
		if (kind == RTE_DIM(kinds))
			line_fail(line, 1, "a key is exact, wildcard or lpm");
	} else {
		line_count(line, 1, "one field is expected");
	}
	line_append(&t->keys, line->tokens[0], line->number);
	*GROW(t->matches, n) = kind;
}

static void
read_action_name(struct spec_table *t, const struct line *line)
{
	unsigned int entries = t->actions.n, defaults = t->actions.n;

	if (line->n > 1 && !line_is(line, 1, "@tableonly") && !line_is(line, 1, "@defaultonly"))
		line_fail(line, 1, "an action can be @tableonly or @defaultonly");
	if (line->n > 2)
		line_fail(line, 2, "nothing can follow here");
	line_append(&t->actions, line->tokens[0], line->number);
	*GROW(t->for_entries, entries) = !line_is(line, 1, "@defaultonly");
	*GROW(t->for_default, defaults) = !line_is(line, 1, "@tableonly");
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
	line_append(list, text, line->number);
}

static void
read_array(struct spec_array *array, const struct line *line, bool registers)
{
	static const char *const forms[] = {"metarray has the form NAME size N", "regarray has the form NAME size N initval V"};
	const char *const form = forms[registers];

	line_count(line, registers ? 6 : 4, form);
	line_word(line, 2, "size", form);
	array->name = line_copy(line->tokens[1]);
	array->line = line->number;
	array->size = (uint32_t)line_number(line, 3, UINT32_MAX);
	if (array->size == 0)
		line_fail(line, 3, "an array has at least one cell");
	if (registers) {
		line_word(line, 4, "initval", form);
		array->initial = line_number(line, 5, UINT64_MAX);
	}
}

static void
read_instance(struct spec_instance *instance, const struct line *line, const char *form)
{
	line_word(line, 2, "instanceof", form);
	if (line->n < 4)
		line_fail(line, line->n - 1, form);
	instance->name = line_copy(line->tokens[1]);
	instance->type = line_copy(line->tokens[3]);
	instance->line = line->number;
}

static enum block
read_action(struct spec *spec, const struct line *line)
{
	static const char *const form = "action has the form NAME args none | instanceof STRUCT {";
	struct spec_instance *const action = GROW(spec->actions, spec->n_actions);
	const bool none = line_is(line, 3, "none");

	line_word(line, 2, "args", form);
	if (!none)
		line_word(line, 3, "instanceof", form);
	line_count(line, none ? 5 : 6, form);
	line_word(line, none ? 4 : 5, "{", form);
	action->name = line_copy(line->tokens[1]);
	action->type = none ? NULL : line_copy(line->tokens[4]);
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

	if (line_is(line, 0, "struct")) {
		line_word(line, 2, "{", "struct has the form NAME {");
		line_count(line, 3, "struct has the form NAME {");
		GROW(spec->structs, spec->n_structs)->name = line_copy(line->tokens[1]);
		return STRUCT;
	}
	if (line_is(line, 0, "action"))
		return read_action(spec, line);
	for (kind = 0; kind < RTE_DIM(tables); kind++) {
		if (!line_is(line, 0, tables[kind]))
			continue;
		line_word(line, 2, "{", "the form is NAME {");
		line_count(line, 3, "the form is NAME {");
		table = GROW(spec->tables, spec->n_tables);
		table->kind = kind;
		table->name = line_copy(line->tokens[1]);
		table->line = line->number;
		return TABLE;
	}
	if (line_is(line, 0, "apply")) {
		line_word(line, 1, "{", "apply has the form {");
		line_count(line, 2, "apply has the form {");
		if (spec->apply.n != 0)
			line_fail(line, 0, "there is one already");
		return APPLY;
	}
	if (line_is(line, 0, "header")) {
		line_count(line, 4, "header has the form NAME instanceof STRUCT");
		read_instance(GROW(spec->headers, spec->n_headers), line, "header has the form NAME instanceof STRUCT");
	} else if (line_is(line, 0, "extobj")) {
		if (line->n > 4) {
			line_word(line, 4, "pragma", "extobj has the form NAME instanceof TYPE [ pragma ARGUMENTS ]");
			line_count(line, 6, "extobj has the form NAME instanceof TYPE [ pragma ARGUMENTS ]");
		}
		read_instance(GROW(spec->objects, spec->n_objects), line, "extobj has the form NAME instanceof TYPE");
		spec->objects[spec->n_objects - 1].pragma = line->n > 4 ? line_copy(line->tokens[5]) : NULL;
	} else if (line_is(line, 0, "metadata")) {
		line_count(line, 3, "metadata has the form instanceof STRUCT");
		line_word(line, 1, "instanceof", "metadata has the form instanceof STRUCT");
		if (spec->metadata != NULL)
			line_fail(line, 0, "there is one already");
		spec->metadata = line_copy(line->tokens[2]);
	} else if (line_is(line, 0, "regarray")) {
		read_array(GROW(spec->registers, spec->n_registers), line, true);
	} else if (line_is(line, 0, "metarray")) {
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

	if (line->n == 1 && line_is(line, 0, "}"))
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
		line_count(line, 1, "one number is expected");
		*GROW(table->timeouts, table->n_timeouts) = (uint32_t)line_number(line, 0, UINT32_MAX);
		break;
	default:
		read_instruction(&spec->apply, line);
		break;
	}
	return block;
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
		line_split(&line, text);
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
