/* SPDX-License-Identifier: Apache-2.0 */
/* From a specification to a pipeline that is ready: ports, mirroring sessions, meters, entries. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "swx.h"

/* The pipeline has run wild. Nothing of stdio may be called here. */
static void
report_crash(int signal)
{
	static const char text[] = "{\"error\": \"the pipeline crashed: SWX does not check that the port of a packet, or a byte "
				   "of it, exists\", \"kind\": \"run\"}\n";

	(void)signal;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static int
set_meters(struct swx *swx)
{
	/* So much that a packet of the harness always conforms: a tenth of what the arithmetic of rte_meter can hold. */
	struct rte_meter_trtcm_params rates = {
		.cir = UINT64_C(1) << 40,
		.pir = UINT64_C(1) << 41,
		.cbs = UINT64_C(1) << 32,
		.pbs = UINT64_C(1) << 33,
	};
	unsigned int m;
	uint64_t cell;
	int result;

	if (swx->config->n_meters == 0)
		return 0;
	result = rte_swx_ctl_meter_profile_add(swx->pipeline, "conform", &rates);
	for (m = 0; m < swx->config->n_meters && result == 0; m++)
		for (cell = 0; cell < swx->config->meters[m].size && result == 0; cell++)
			result = rte_swx_ctl_meter_set(swx->pipeline, swx->config->meters[m].name, (uint32_t)cell, "conform");
	return result;
}

/* A line of its own, before that of the harness. */
static void
describe(const struct swx *swx)
{
	const struct swx_size size = swx_size(swx);

	printf("{\"pipeline\": \"%s\"", swx->name);
	if (size.code_bytes != 0)
		printf(", \"code_bytes\": %zu", size.code_bytes);
	if (size.instructions != 0)
		printf(", \"instructions\": %u", size.instructions);
	printf("}\n");
}

int
swx_setup(struct swx *swx, const struct swx_config *config, const char *name, const uint64_t *counts)
{
	const struct sigaction crash = {.sa_handler = report_crash};
	static const struct swx *program;
	struct rte_swx_ctl_pipeline_info info;
	unsigned int i;
	int result;

	swx->config = config;
	swx->name = name;
	sigaction(SIGSEGV, &crash, NULL);
	sigaction(SIGBUS, &crash, NULL);
	sigaction(SIGILL, &crash, NULL);
	swx->ports = calloc(config->n_ports, sizeof(*swx->ports));
	swx->hits = calloc(config->n_tables + 1, sizeof(*swx->hits));
	if (swx->ports == NULL || swx->hits == NULL)
		return -ENOMEM;
	for (i = 0; i < config->n_ports; i++)
		swx->ports[i] = (struct swx_port_out){swx, i + 1 == config->n_ports ? PORT_DROP : (uint16_t)i};
	swx_create(swx, name);
	result = rte_swx_ctl_pipeline_info_get(swx->pipeline, &info);
	if (result != 0)
		return result;
	swx->action_packets = calloc(info.n_actions + 1, sizeof(*swx->action_packets));
	if (swx->action_packets == NULL)
		return -ENOMEM;
	for (i = 0; i < config->n_mirrors; i++) {
		struct rte_swx_pipeline_mirroring_session_params session = {.port_id = config->mirrors[i]};

		result = rte_swx_ctl_pipeline_mirroring_session_set(swx->pipeline, i, &session);
		if (result != 0)
			return result;
	}
	result = set_meters(swx);
	if (result != 0)
		return result;
	if (config->n_tables != 0 && counts != NULL)
		swx_fill(swx, counts);
	if (config->entries != NULL)
		swx_add_entries(swx);
	/* The baseline comes last, without numbers of entries, and its time does not count: both are described then. */
	if (counts != NULL) {
		program = swx;
		return 0;
	}
	if (program != NULL)
		describe(program);
	describe(swx);
	return 0;
}
