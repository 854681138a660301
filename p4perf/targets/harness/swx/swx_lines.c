/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a line, and memory that grows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "swx_lines.h"

void
spec_fail(const struct spec *spec, unsigned int line, const char *token, const char *what)
{
	if (token == NULL)
		fail("spec", "%s:%u: %s", spec->path, line, what);
	fail("spec", "%s:%u: %s: %s", spec->path, line, token, what);
}

void
line_fail(const struct line *line, unsigned int token, const char *what)
{
	spec_fail(line->spec, line->number, token < line->n ? line->tokens[token] : NULL, what);
}

/* Room for one more item. */
void *
line_grow(void *items, unsigned int n, size_t size)
{
	char *const grown = realloc(items, (n + 1) * size);

	if (grown == NULL)
		fail("memory", "no memory for a specification");
	memset(grown + n * size, 0, size);
	return grown;
}

const char *
line_copy(const char *text)
{
	char *const copied = strdup(text);

	if (copied == NULL)
		fail("memory", "no memory for a specification");
	return copied;
}

void
line_append(struct spec_list *list, const char *item, unsigned int line)
{
	list->items = line_grow(list->items, list->n, sizeof(*list->items));
	list->lines = line_grow(list->lines, list->n, sizeof(*list->lines));
	list->items[list->n] = line_copy(item);
	list->lines[list->n++] = line;
}

bool
line_is(const struct line *line, unsigned int token, const char *text)
{
	return token < line->n && strcmp(line->tokens[token], text) == 0;
}

void
line_count(const struct line *line, unsigned int n, const char *form)
{
	if (line->n < n)
		line_fail(line, line->n - 1, form);
	if (line->n > n)
		line_fail(line, n, form);
}

void
line_word(const struct line *line, unsigned int token, const char *expected, const char *form)
{
	if (!line_is(line, token, expected))
		line_fail(line, token < line->n ? token : line->n - 1, form);
}

uint64_t
line_number(const struct line *line, unsigned int token, uint64_t high)
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

void
line_split(struct line *line, char *text)
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
