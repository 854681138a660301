/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a specification and their words. Whatever is wrong with one ends in fail(). */
#ifndef P4PERF_SWX_LINES_H
#define P4PERF_SWX_LINES_H

#include <stdint.h>

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

/* Give up because of a word of a line. */
__attribute__((noreturn)) void line_fail(const struct line *line, unsigned int token, const char *what);

/* Split a text into words, up to a comment. */
void line_split(struct line *line, char *text);

/* Whether a word is there and is that one. */
bool line_is(const struct line *line, unsigned int token, const char *text);

/* Give up unless the line has this number of words, or unless a word is that one; form shows the expected line. */
void line_count(const struct line *line, unsigned int n, const char *form);
void line_word(const struct line *line, unsigned int token, const char *expected, const char *form);

/* The number that a word is. */
uint64_t line_number(const struct line *line, unsigned int token, uint64_t high);

/* A copy of a text, room for one more item, and one more item of a list; nothing of it is ever freed. */
const char *line_copy(const char *text);
void *line_grow(void *items, unsigned int n, size_t size);
void line_append(struct spec_list *list, const char *item, unsigned int line);

#define GROW(items, n) ((items) = line_grow(items, n, sizeof(*(items))), &(items)[(n)++])

#endif
