/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A specification becomes a pipeline by the public functions of librte_pipeline.
 *
 * Of the instructions of an action or of the pipeline these say only that they are wrong. So each is tried alone then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "swx_spec.h"
#include "words.h"

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

/* An instruction without its label, with what it needs to be all there is of an action or of the pipeline. */
static bool
is_taken(const struct spec *spec, struct rte_swx_pipeline *p, const struct spec_instance *action, const char *text)
{
	const char *const first = spec->apply.items[0], *const colon = strstr(text, " : ");
	const char *const instruction = colon == NULL ? text : colon + 3, *items[3];
	char name[RTE_SWX_NAME_SIZE], last[2 * RTE_SWX_NAME_SIZE + 8] = "", label[RTE_SWX_NAME_SIZE];
	const bool ends = strcmp(instruction, "return") == 0 || strncmp(instruction, "tx ", 3) == 0;
	static unsigned int number;
	unsigned int n = 0;

	if (sscanf(instruction, "jmp%*s %63s", label) == 1 || sscanf(instruction, "jmp %63s", label) == 1)
		snprintf(last, sizeof(last), "%s : ", label);
	strcat(last, action == NULL ? "tx 0" : "return");
	if (action == NULL && strncmp(instruction, "rx ", 3) != 0)
		items[n++] = first;
	items[n++] = instruction;
	if (!ends)
		items[n++] = last;
	snprintf(name, sizeof(name), "tried_%u", number++);
	return action == NULL ? rte_swx_pipeline_instructions_config(p, items, n) == 0 :
				rte_swx_pipeline_action_config(p, name, action->type, items, n) == 0;
}

/* Give up because of the first instruction that is not taken alone. */
static __attribute__((noreturn)) void
reject(const struct spec *spec, struct rte_swx_pipeline *p, const struct spec_instance *action,
       const struct spec_list *list, const char **items)
{
	unsigned int i;

	if (action == NULL && strncmp(items[0], "rx ", 3) != 0)
		spec_fail(spec, list->lines[0], items[0], "the first instruction of a pipeline has to be rx");
	for (i = 0; i < list->n; i++)
		if (!is_taken(spec, p, action, items[i]))
			spec_fail(spec, list->lines[i], list->items[i], "DPDK does not take this instruction");
	spec_fail(spec, list->lines[0], action == NULL ? "apply" : action->name,
		  action == NULL ? "DPDK takes each instruction, but not all together: the last has to be tx, drop or jmp, "
				   "and labels have to differ" :
				   "DPDK takes each instruction, but not all together: the last has to be return, tx, drop or "
				   "jmp, and labels have to differ");
}

void
spec_configure(const struct spec *spec, struct rte_swx_pipeline *p, unsigned int drop_port)
{
	const struct spec_instance *instance;
	const struct spec_table *table;
	const char **items;
	unsigned int i;
	int result;

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
		items = with_drop_port(&instance->instructions, drop_port);
		result = rte_swx_pipeline_action_config(p, instance->name, instance->type, items, instance->instructions.n);
		if (result == -EINVAL)
			reject(spec, p, instance, &instance->instructions, items);
		need(spec, instance->line, instance->name, result);
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
	items = with_drop_port(&spec->apply, drop_port);
	result = rte_swx_pipeline_instructions_config(p, items, spec->apply.n);
	if (result == -EINVAL)
		reject(spec, p, NULL, &spec->apply, items);
	need(spec, spec->apply.lines[0], "apply", result);
}
