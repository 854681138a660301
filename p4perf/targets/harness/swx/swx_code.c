/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_swx_pipeline.h>

#include "swx_code.h"

static const char ARRAY[] = "static const struct instruction ";
static const char PIPELINE[] = "pipeline_instructions[]";
static const char ELEMENT[] = "\t\t.type = INSTR_";
static const char END[] = "};";

char *
swx_code(FILE *specification, uint32_t *line, const char **message)
{
	char *code = NULL;
	size_t size;
	FILE *const file = open_memstream(&code, &size);
	int result;

	*line = 0;
	*message = "no memory";
	if (file == NULL)
		return NULL;
	*message = NULL;
	result = rte_swx_pipeline_codegen(specification, file, line, message);
	if (fclose(file) == 0 && result == 0)
		return code;
	free(code);
	if (*message == NULL)
		*message = "error";
	errno = result != 0 ? -result : ENOMEM;
	return NULL;
}

static int
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

unsigned int
swx_code_instructions(const char *code)
{
	unsigned int n = 0;
	int inside = 0, pipeline = 0;
	const char *line;

	/* Every instruction is an element of an array, and has its type in a line of its own. */
	for (line = code; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
		if (begins(line, ARRAY)) {
			inside = 1;
			pipeline |= begins(line + strlen(ARRAY), PIPELINE);
		} else if (begins(line, END)) {
			inside = 0;
		} else if (inside && begins(line, ELEMENT)) {
			n++;
		}
	}
	return pipeline ? n : 0;
}
