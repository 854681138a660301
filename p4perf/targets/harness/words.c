/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
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
