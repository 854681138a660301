/* SPDX-License-Identifier: Apache-2.0 */
/* From the specification of a pipeline to C, by SWX itself: swx_translate program.spec program.c */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "swx_code.h"
#include "swx_spec.h"

int
main(int argc, char **argv)
{
	struct rte_swx_pipeline *pipeline = NULL;
	static struct spec spec;
	FILE *specification, *file;
	const char *message;
	uint32_t line;
	char *code;

	if (argc != 3) {
		fprintf(stderr, "usage: %s program.spec program.c\n", argv[0]);
		return 2;
	}
	specification = fopen(argv[1], "r");
	file = fopen(argv[2], "w");
	if (specification == NULL || file == NULL) {
		fprintf(stderr, "cannot open %s or %s\n", argv[1], argv[2]);
		return 1;
	}
	/* Some mistakes SWX would not survive. */
	spec_read(&spec, argv[1]);
	spec_check(&spec);
	code = swx_code(specification, &line, &message);
	if (code == NULL) {
		/* What SWX says has a line only where it cannot read the text. */
		if (line == 0 && rte_swx_pipeline_config(&pipeline, NULL, 0) == 0)
			spec_configure(&spec, pipeline, 0);
		fprintf(stderr, "%s:%u: %s (%s)\n", argv[1], line, message, strerror(errno));
		return 1;
	}
	fputs(code, file);
	fprintf(file, "\n/* Elements of the arrays of instructions above. */\nconst unsigned int %s = %u;\n",
		SWX_CODE_INSTRUCTIONS, swx_code_instructions(code));
	return fclose(file) == 0 ? 0 : 1;
}
