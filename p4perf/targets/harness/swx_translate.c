/* SPDX-License-Identifier: Apache-2.0 */
/* From the specification of a pipeline to C, by SWX itself: swx_translate program.spec program.c */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_swx_pipeline.h>

int
main(int argc, char **argv)
{
	FILE *specification, *code;
	const char *message = NULL;
	uint32_t line = 0;
	int result;

	if (argc != 3) {
		fprintf(stderr, "usage: %s program.spec program.c\n", argv[0]);
		return 2;
	}
	specification = fopen(argv[1], "r");
	code = fopen(argv[2], "w");
	if (specification == NULL || code == NULL) {
		fprintf(stderr, "cannot open %s or %s\n", argv[1], argv[2]);
		return 1;
	}
	result = rte_swx_pipeline_codegen(specification, code, &line, &message);
	if (result != 0) {
		fprintf(stderr, "%s:%u: %s (%s)\n", argv[1], line, message != NULL ? message : "error", strerror(-result));
		return 1;
	}
	return fclose(code) == 0 ? 0 : 1;
}
