/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of a specification, checked one by one: librte_pipeline says of a whole block only that it is wrong.
 *
 * Operands are named by letters: D field that can be written (header, metadata), F any field, V field or number, M metadata
 * field, N metadata field or number, H header, h header field, C header or header field, R register array, P meter array,
 * T table, A action, L label, U hash function, X what belongs to an extern. A ? makes the operands behind it optional.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "swx_spec.h"

#define INSTRUCTION_ROOM 2048
#define MAX_WORDS 16

static const struct {
	const char *name;
	const char *operands;
} instructions[] = {
	{"rx", "M"},         {"tx", "N"},          {"drop", ""},         {"mirror", "FF"},     {"recirculate", ""},
	{"recircid", "M"},   {"extract", "H?M"},   {"lookahead", "H"},   {"emit", "H"},        {"validate", "H"},
	{"invalidate", "H"}, {"mov", "DV"},        {"add", "DV"},        {"sub", "DV"},        {"and", "DV"},
	{"or", "DV"},        {"xor", "DV"},        {"shl", "DV"},        {"shr", "DV"},        {"ckadd", "hC"},
	{"cksub", "hh"},     {"regprefetch", "RV"}, {"regrd", "DRV"},    {"regwr", "RVV"},     {"regadd", "RVV"},
	{"metprefetch", "PV"}, {"meter", "PVFVD"}, {"table", "T"},       {"learn", "AM?M"},    {"rearm", "?M"},
	{"forget", ""},      {"entryid", "M"},     {"extern", "X"},      {"hash", "UMFF"},     {"jmp", "L"},
	{"jmpv", "LH"},      {"jmpnv", "LH"},      {"jmph", "L"},        {"jmpnh", "L"},       {"jmpa", "LA"},
	{"jmpna", "LA"},     {"jmpeq", "LFV"},     {"jmpneq", "LFV"},    {"jmplt", "LFV"},     {"jmpgt", "LFV"},
	{"return", ""},
};

/* The list of instructions that is being checked. */
struct scope {
	const struct spec *spec;
	const struct spec_list *list;
	const struct spec_instance *action; /* NULL: the pipeline itself */
};

static const struct spec_struct *
find_struct(const struct spec *spec, const char *name)
{
	unsigned int i;

	for (i = 0; name != NULL && i < spec->n_structs; i++)
		if (strcmp(spec->structs[i].name, name) == 0)
			return &spec->structs[i];
	return NULL;
}

/* Where a field of a structure begins, in bytes; -1: it has none of that name. */
static long
field_offset(const struct spec *spec, const char *structure, const char *field)
{
	const struct spec_struct *const s = find_struct(spec, structure);
	long bits = 0;
	unsigned int i;

	for (i = 0; s != NULL && i < s->n_fields; i++) {
		if (strcmp(s->fields[i].name, field) == 0)
			return bits / 8;
		bits += s->fields[i].n_bits;
	}
	return -1;
}

static bool
has_field(const struct spec *spec, const char *structure, const char *field)
{
	return field_offset(spec, structure, field) >= 0;
}

static const struct spec_instance *
find(const struct spec_instance *instances, unsigned int n, const char *name, size_t length)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (strlen(instances[i].name) == length && strncmp(instances[i].name, name, length) == 0)
			return &instances[i];
	return NULL;
}

static bool
has_array(const struct spec_array *arrays, unsigned int n, const char *name)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (strcmp(arrays[i].name, name) == 0)
			return true;
	return false;
}

static bool
is_number(const char *text)
{
	char *end;

	strtoull(text, &end, 0);
	return *text != '\0' && *end == '\0';
}

static bool
is_header(const struct spec *spec, const char *text)
{
	return strncmp(text, "h.", 2) == 0 && find(spec->headers, spec->n_headers, text + 2, strlen(text + 2)) != NULL;
}

static bool
is_header_field(const struct spec *spec, const char *text)
{
	const char *const dot = strncmp(text, "h.", 2) == 0 ? strchr(text + 2, '.') : NULL;
	const struct spec_instance *const header =
		dot == NULL ? NULL : find(spec->headers, spec->n_headers, text + 2, (size_t)(dot - text - 2));

	return header != NULL && has_field(spec, header->type, dot + 1);
}

static bool
is_metadata(const struct spec *spec, const char *text)
{
	return strncmp(text, "m.", 2) == 0 && has_field(spec, spec->metadata, text + 2);
}

static bool
is_argument(const struct scope *scope, const char *text)
{
	return strncmp(text, "t.", 2) == 0 && scope->action != NULL &&
	       has_field(scope->spec, scope->action->type, text + 2);
}

/* Instructions of librte_pipeline 22.11 hold the offset of a field in 8 bit, and lose the rest. */
static bool
is_beyond(const struct scope *scope, const char *text)
{
	const struct spec *const spec = scope->spec;
	const char *structure = NULL;

	if (is_metadata(spec, text))
		structure = spec->metadata;
	else if (is_argument(scope, text))
		structure = scope->action->type;
	return structure != NULL && field_offset(spec, structure, text + 2) > UINT8_MAX;
}

/* Mailboxes of externs are left to librte_pipeline. */
static bool
is_extern(const char *text)
{
	return strncmp(text, "e.", 2) == 0 || strncmp(text, "f.", 2) == 0;
}

static bool
is_label(const struct scope *scope, const char *text)
{
	const size_t length = strlen(text);
	unsigned int i;

	for (i = 0; i < scope->list->n; i++)
		if (strncmp(scope->list->items[i], text, length) == 0 &&
		    strncmp(scope->list->items[i] + length, " : ", 3) == 0)
			return true;
	return false;
}

static bool
is_table(const struct spec *spec, const char *text)
{
	unsigned int i;

	for (i = 0; i < spec->n_tables; i++)
		if (strcmp(spec->tables[i].name, text) == 0)
			return true;
	return false;
}

/* What a wrong operand should have been; NULL: it is right. */
static const char *
operand_error(const struct scope *scope, char kind, const char *text)
{
	const struct spec *const spec = scope->spec;
	const bool written = is_header_field(spec, text) || is_metadata(spec, text) || is_extern(text);
	const bool field = written || is_argument(scope, text);

	if (is_beyond(scope, text))
		return "beyond the first 256 bytes of its structure, which SWX cannot address";
	switch (kind) {
	case 'D':
		return written ? NULL : "no field of a header or of the metadata";
	case 'F':
		return field ? NULL : "no field that is known here";
	case 'V':
		return field || is_number(text) ? NULL : "neither a field that is known here nor a number";
	case 'M':
		return is_metadata(spec, text) ? NULL : "no field of the metadata";
	case 'N':
		return is_metadata(spec, text) || is_number(text) ? NULL : "neither a field of the metadata nor a number";
	case 'H':
		return is_header(spec, text) ? NULL : "no header";
	case 'h':
		return is_header_field(spec, text) ? NULL : "no field of a header";
	case 'C':
		return is_header(spec, text) || is_header_field(spec, text) ? NULL : "neither a header nor a field of one";
	case 'R':
		return has_array(spec->registers, spec->n_registers, text) ? NULL : "no register array";
	case 'P':
		return has_array(spec->meters, spec->n_meters, text) ? NULL : "no meter array";
	case 'T':
		return is_table(spec, text) ? NULL : "no table, selector or learner";
	case 'A':
		return find(spec->actions, spec->n_actions, text, strlen(text)) != NULL ? NULL : "no action";
	case 'L':
		return is_label(scope, text) ? NULL : "no label of this block";
	case 'U':
		return strcmp(text, "crc16") == 0 || strcmp(text, "crc32") == 0 || strcmp(text, "jhash") == 0 ?
			       NULL :
			       "no hash function: crc16, crc32, jhash";
	default:
		return is_extern(text) ? NULL : "no extern";
	}
}

static void
check_instruction(const struct scope *scope, const char *text, unsigned int line)
{
	char room[INSTRUCTION_ROOM], *rest = room, *words[MAX_WORDS], *word;
	unsigned int n = 0, at, i;
	const char *operands, *error;

	snprintf(room, sizeof(room), "%s", text);
	while ((word = strtok_r(rest, " ", &rest)) != NULL) {
		if (n == MAX_WORDS)
			spec_fail(scope->spec, line, word, "the instruction has too many words");
		words[n++] = word;
	}
	at = n >= 2 && strcmp(words[1], ":") == 0 ? 2 : 0;
	if (at == n)
		spec_fail(scope->spec, line, words[0], "no instruction behind the label");
	for (i = 0; i < RTE_DIM(instructions) && strcmp(instructions[i].name, words[at]) != 0; i++)
		;
	if (i == RTE_DIM(instructions))
		spec_fail(scope->spec, line, words[at], "no instruction");
	operands = instructions[i].operands;
	word = words[at];
	for (at++; at < n; at++) {
		operands += *operands == '?';
		if (*operands == '\0')
			spec_fail(scope->spec, line, words[at], "one operand too many");
		error = operand_error(scope, *operands++, words[at]);
		if (error != NULL)
			spec_fail(scope->spec, line, words[at], error);
	}
	if (*operands != '\0' && *operands != '?')
		spec_fail(scope->spec, line, word, "an operand is missing");
}

static void
check_list(const struct scope *scope, unsigned int line)
{
	unsigned int i;

	if (scope->list->n == 0)
		spec_fail(scope->spec, line, NULL, "there are no instructions");
	for (i = 0; i < scope->list->n; i++)
		check_instruction(scope, scope->list->items[i], scope->list->lines[i]);
}

void
spec_check(const struct spec *spec)
{
	const struct scope apply = {spec, &spec->apply, NULL};
	unsigned int i, k;

	for (i = 0; i < spec->n_headers; i++)
		if (find_struct(spec, spec->headers[i].type) == NULL)
			spec_fail(spec, spec->headers[i].line, spec->headers[i].type, "no structure");
	if (find_struct(spec, spec->metadata) == NULL)
		fail("spec", "%s: %s: no structure of the metadata", spec->path, spec->metadata);
	for (i = 0; i < spec->n_actions; i++) {
		const struct spec_instance *const action = &spec->actions[i];
		const struct scope scope = {spec, &action->instructions, action};

		if (action->type != NULL && find_struct(spec, action->type) == NULL)
			spec_fail(spec, action->line, action->type, "no structure");
		check_list(&scope, action->line);
	}
	for (i = 0; i < spec->n_tables; i++) {
		const struct spec_table *const table = &spec->tables[i];

		for (k = 0; k < table->keys.n; k++)
			if (!is_metadata(spec, table->keys.items[k]) && !is_header_field(spec, table->keys.items[k]))
				spec_fail(spec, table->keys.lines[k], table->keys.items[k], "no field to match");
		for (k = 0; k < table->actions.n; k++)
			if (operand_error(&apply, 'A', table->actions.items[k]) != NULL)
				spec_fail(spec, table->actions.lines[k], table->actions.items[k], "no action");
		if (table->kind != SPEC_SELECTOR && table->default_action == NULL)
			spec_fail(spec, table->line, table->name, "there is no default_action");
		for (k = 0; k < table->actions.n && table->default_action != NULL; k++)
			if (strcmp(table->actions.items[k], table->default_action) == 0)
				break;
		/* librte_pipeline looks for it beyond the end of the list. */
		if (table->kind != SPEC_SELECTOR && k == table->actions.n)
			spec_fail(spec, table->line, table->default_action, "the default action is none of the table's actions");
	}
	check_list(&apply, 0);
}
