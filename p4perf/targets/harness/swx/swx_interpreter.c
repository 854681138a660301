/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline that SWX interprets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "swx.h"
#include "swx_code.h"
#include "swx_spec.h"

void
swx_create(struct swx *swx, const char *name)
{
	static char in[] = "harness_in", out[] = "harness_out";
	struct rte_swx_pipeline_mirroring_params mirroring = swx_mirroring(swx->config);
	struct rte_swx_pipeline *p = NULL;
	struct spec *const spec = calloc(1, sizeof(*spec));
	unsigned int port;
	int result;

	if (spec == NULL)
		fail("memory", "no memory for a specification");
	spec_read(spec, swx->config->specification);
	spec_check(spec);
	result = rte_swx_pipeline_config(&p, name, 0);
	if (result != 0 || rte_swx_pipeline_mirroring_config(p, &mirroring) != 0 ||
	    rte_swx_pipeline_port_in_type_register(p, in, &swx_port_in_ops) != 0 ||
	    rte_swx_pipeline_port_out_type_register(p, out, &swx_port_out_ops) != 0 ||
	    rte_swx_pipeline_port_in_config(p, 0, in, swx) != 0)
		fail("memory", "the pipeline %s cannot be created", name);
	for (port = 0; port < swx->config->n_ports; port++)
		if (rte_swx_pipeline_port_out_config(p, port, out, &swx->ports[port]) != 0)
			fail("memory", "port %u of pipeline %s cannot be created", port, name);
	spec_configure(spec, p, swx->config->n_ports - 1);
	result = rte_swx_pipeline_build(p);
	if (result != 0)
		fail("spec", "%s: DPDK cannot build the pipeline: %s", spec->path, strerror(-result));
	swx->pipeline = p;
}

/* The C that SWX would generate of the same instructions shows what it made of them. */
struct swx_size
swx_size(const struct swx *swx)
{
	FILE *const specification = fopen(swx->config->specification, "r");
	struct swx_size size = {0};
	const char *message;
	uint32_t line;
	char *code;

	if (specification == NULL)
		return size;
	code = swx_code(specification, &line, &message);
	fclose(specification);
	if (code != NULL)
		size.instructions = swx_code_instructions(code);
	free(code);
	return size;
}
