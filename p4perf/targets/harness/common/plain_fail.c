/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a tool that a build runs: people read them, on stderr. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "words.h"

void
fail(const char *kind, const char *format, ...)
{
	va_list arguments;

	(void)kind;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}
