/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline that SWX interprets, made of its specification by the public functions of librte_pipeline. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "swx.h"
#include "swx_code.h"
#include "swx_spec.h"

static void
need(const struct spec *spec, unsigned int line, const char *name, int result)
{
	if (result != 0)
		spec_fail(spec, line, name, result == -EEXIST ? "there is one already" :
					    result == -ENOMEM ? "no memory" :
					    result == -ENOSPC ? "there are too many" :
								"DPDK does not take it");
}

static void
configure_table(const struct spec *spec, const struct spec_table *t, struct rte_swx_pipeline *p)
{
	struct rte_swx_match_field_params *const fields = calloc(t->keys.n + 1, sizeof(*fields));
	struct rte_swx_pipeline_table_params params = {
		.fields = t->keys.n == 0 ? NULL : fields,
		.n_fields = t->keys.n,
		.action_names = t->actions.items,
		.action_is_for_table_entries = t->for_entries,
		.action_is_for_default_entry = t->for_default,
		.n_actions = t->actions.n,
		.default_action_name = t->default_action,
		.default_action_args = t->default_arguments,
		.default_action_is_const = t->default_is_const,
		.hash_func_name = t->hash,
	};
	unsigned int i;

	for (i = 0; i < t->keys.n; i++)
		fields[i] = (struct rte_swx_match_field_params){t->keys.items[i], t->matches[i]};
	need(spec, t->line, t->name, rte_swx_pipeline_table_config(p, t->name, &params, t->type, t->pragma, t->size));
	free(fields);
}

static void
configure_selector(const struct spec *spec, const struct spec_table *t, struct rte_swx_pipeline *p)
{
	struct rte_swx_pipeline_selector_params params = {
		.group_id_field_name = t->group_id,
		.selector_field_names = t->keys.items,
		.n_selector_fields = t->keys.n,
		.member_id_field_name = t->member_id,
		.n_groups_max = t->n_groups,
		.n_members_per_group_max = t->n_members,
	};

	need(spec, t->line, t->name, rte_swx_pipeline_selector_config(p, t->name, &params));
}

static void
configure_learner(const struct spec *spec, const struct spec_table *t, struct rte_swx_pipeline *p)
{
	struct rte_swx_pipeline_learner_params params = {
		.field_names = t->keys.items,
		.n_fields = t->keys.n,
		.action_names = t->actions.items,
		.action_is_for_table_entries = t->for_entries,
		.action_is_for_default_entry = t->for_default,
		.n_actions = t->actions.n,
		.default_action_name = t->default_action,
		.default_action_args = t->default_arguments,
		.default_action_is_const = t->default_is_const,
		.hash_func_name = t->hash,
	};

	need(spec, t->line, t->name,
	     rte_swx_pipeline_learner_config(p, t->name, &params, t->size, t->timeouts, t->n_timeouts));
}

/* SWX drops by a port of its own, which frees the packet; the harness wants it back, by the last of its ports. */
static const char **
with_drop_port(const struct spec_list *list, unsigned int drop_port)
{
	const char **const items = calloc(list->n, sizeof(*items));
	unsigned int i;

	if (items == NULL)
		fail("memory", "no memory for instructions");
	for (i = 0; i < list->n; i++) {
		const char *const item = list->items[i];
		const size_t length = strlen(item);

		items[i] = item;
		if (strcmp(item, "drop") == 0 || (length > 7 && strcmp(item + length - 7, " : drop") == 0)) {
			char text[RTE_SWX_NAME_SIZE + 32];

			snprintf(text, sizeof(text), "%.*stx %u", (int)(length - 4), item, drop_port);
			items[i] = strdup(text);
		}
	}
	return items;
}

void
spec_configure(const struct spec *spec, struct rte_swx_pipeline *p, unsigned int drop_port)
{
	const struct spec_instance *instance;
	const struct spec_table *table;
	unsigned int i;

	for (i = 0; i < spec->n_structs; i++)
		need(spec, 0, spec->structs[i].name,
		     rte_swx_pipeline_struct_type_register(p, spec->structs[i].name, spec->structs[i].fields,
							   spec->structs[i].n_fields, spec->structs[i].variable));
	for (i = 0; i < spec->n_objects; i++) {
		instance = &spec->objects[i];
		need(spec, instance->line, instance->name,
		     rte_swx_pipeline_extern_object_config(p, instance->type, instance->name, instance->pragma));
	}
	for (i = 0; i < spec->n_registers; i++)
		need(spec, spec->registers[i].line, spec->registers[i].name,
		     rte_swx_pipeline_regarray_config(p, spec->registers[i].name, spec->registers[i].size,
						      spec->registers[i].initial));
	for (i = 0; i < spec->n_meters; i++)
		need(spec, spec->meters[i].line, spec->meters[i].name,
		     rte_swx_pipeline_metarray_config(p, spec->meters[i].name, spec->meters[i].size));
	for (i = 0; i < spec->n_headers; i++)
		need(spec, spec->headers[i].line, spec->headers[i].name,
		     rte_swx_pipeline_packet_header_register(p, spec->headers[i].name, spec->headers[i].type));
	need(spec, 0, spec->metadata, rte_swx_pipeline_packet_metadata_register(p, spec->metadata));
	for (i = 0; i < spec->n_actions; i++) {
		instance = &spec->actions[i];
		need(spec, instance->line, instance->name,
		     rte_swx_pipeline_action_config(p, instance->name, instance->type,
						    with_drop_port(&instance->instructions, drop_port),
						    instance->instructions.n));
	}
	for (i = 0; i < spec->n_tables; i++) {
		table = &spec->tables[i];
		if (table->kind == SPEC_TABLE)
			configure_table(spec, table, p);
		else if (table->kind == SPEC_SELECTOR)
			configure_selector(spec, table, p);
		else
			configure_learner(spec, table, p);
	}
	need(spec, spec->apply.lines[0], "apply",
	     rte_swx_pipeline_instructions_config(p, with_drop_port(&spec->apply, drop_port), spec->apply.n));
}

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
