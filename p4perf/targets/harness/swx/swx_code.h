/* SPDX-License-Identifier: Apache-2.0 */
/* The C that SWX generates of a specification, by public functions of librte_pipeline, and what it reports. */
#ifndef P4PERF_SWX_CODE_H
#define P4PERF_SWX_CODE_H

#include <stdint.h>
#include <stdio.h>

/* In the library of a pipeline: what swx_code_instructions() said of its code, an unsigned int. */
#define SWX_CODE_INSTRUCTIONS "p4perf_instructions"

/* The C, which the caller frees. NULL: line, message (never NULL) and errno say what is wrong. */
char *swx_code(FILE *specification, uint32_t *line, const char **message);

/*
 * Instructions of the pipeline and of its actions, as SWX left them when it had merged some.
 *
 * 0 if the code does not tell: SWX writes down those of the pipeline only if it compiles any of them.
 */
unsigned int swx_code_instructions(const char *code);

#endif
