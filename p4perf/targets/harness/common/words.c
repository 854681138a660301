/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

void
fail(const char *kind, const char *format, ...)
{
	va_list arguments;
	char text[1024], *c;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (c = text; *c != '\0'; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
			*c = '\'';
	printf("{\"error\": \"%s\", \"kind\": \"%s\"}\n", text, kind);
	fflush(stdout);
	_Exit(1);
}

double
number(const char *name, const char *text, double low, double high)
{
	char *end;
	const double value = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !(value >= low && value <= high))
		fail("usage", "--%s: %s is not a number from %g to %g", name, text, low, high);
	return value;
}

unsigned int
hexadecimal_frame(const char *text, uint8_t *frame, unsigned int room)
{
	const size_t digits = strlen(text);
	unsigned int byte;
	size_t i;

	if (digits % 2 != 0 || digits / 2 > room)
		fail("usage", "--frame: %zu hexadecimal digits are no frame", digits);
	for (i = 0; i < digits / 2; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			fail("usage", "--frame: not hexadecimal at digit %zu", 2 * i);
		frame[i] = (uint8_t)byte;
	}
	return (unsigned int)(digits / 2);
}

unsigned int
distribution(const char *text)
{
	static const char *const names[] = {"uniform", "sequential", "single", "zipf"};
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	fail("usage", "--distribution: %s is not uniform, sequential, single or zipf", text);
}

static void
apply(const struct rule *rule, char *options, char *text)
{
	void *const field = options + rule->offset;

	switch (rule->kind) {
	case RULE_ON:
	case RULE_OFF:
		*(bool *)field = rule->kind == RULE_ON;
		break;
	case RULE_TEXT:
		*(const char **)field = text;
		break;
	case RULE_INT:
		*(int *)field = (int)number(rule->name, text, rule->low, rule->high);
		break;
	case RULE_UINT:
		*(unsigned int *)field = (unsigned int)number(rule->name, text, rule->low, rule->high);
		break;
	case RULE_UINT64:
		*(uint64_t *)field = (uint64_t)number(rule->name, text, rule->low, rule->high);
		break;
	case RULE_REAL:
		*(double *)field = number(rule->name, text, rule->low, rule->high);
		break;
	case RULE_CALL:
		rule->call(options, rule->name, text);
		break;
	}
}

void
read_options(const struct rule *rules, void *options, int argc, char **argv)
{
	struct option known[64] = {{0}};
	unsigned int n;
	int code, index;

	for (n = 0; rules[n].name != NULL && n < 63; n++) {
		known[n].name = rules[n].name;
		known[n].has_arg = rules[n].kind > RULE_OFF ? required_argument : no_argument;
	}
	optind = 1;
	while ((code = getopt_long(argc, argv, "", known, &index)) != -1) {
		if (code != 0)
			fail("usage", "unknown option");
		apply(&rules[index], options, optarg);
	}
	if (optind != argc)
		fail("usage", "unexpected argument %s", argv[optind]);
}

void
print_columns(const struct column *columns, const void *windows, size_t size, unsigned int n)
{
	unsigned int i;

	for (; columns->key != NULL; columns++) {
		printf(", \"%s\": [", columns->key);
		for (i = 0; i < n; i++) {
			fputs(i == 0 ? "" : ",", stdout);
			printf(columns->format, columns->value((const char *)windows + i * size));
		}
		printf("]");
	}
}
