/* SPDX-License-Identifier: Apache-2.0 */
/* From object files to programs in the kernel, and from the rule of the entries to maps. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "xdp.h"

#define BATCH 4096
#define ENTRY_MULTIPLIER 0x9E3779B1u
#define LOG_BYTES (1 << 20)

static char verifier_log[LOG_BYTES];
static char last_warning[256];
static double load_start_ms;

static double
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + ts.tv_nsec * 1e-6;
}

/* libbpf talks a lot; keep the first warning of a load. */
static int
keep_warning(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN && last_warning[0] == '\0')
		vsnprintf(last_warning, sizeof(last_warning), format, arguments);
	return 0;
}

/* Called right before a program is given to the kernel. */
static int
before_load(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
	(void)program;
	(void)options;
	(void)cookie;
	load_start_ms = now_ms();
	return 0;
}

/* The last lines of the verifier's log that say something: the statistics at its end do not. */
static const char *
complaint(void)
{
	static const char *const tail[] = {"processed ", "verification time", "stack depth", "max_states"};
	size_t length = strlen(verifier_log);
	unsigned int lines = 0, i;
	char *line;

	while (length > 0) {
		bool idle = false;

		while (length > 0 && verifier_log[length - 1] == '\n')
			verifier_log[--length] = '\0';
		line = strrchr(verifier_log, '\n');
		line = line == NULL ? verifier_log : line + 1;
		for (i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
			idle |= strncmp(line, tail[i], strlen(tail[i])) == 0;
		if (!idle)
			break;
		*line = '\0';
		length = strlen(verifier_log);
	}
	for (line = verifier_log + length; line > verifier_log; line--)
		if (line[-1] == '\n' && ++lines == 3)
			break;
	return line;
}

static uint32_t
table_entries(const struct table_layout *table, const struct options *options)
{
	return table->rows != NULL ? table->n_rows : options->entries[table->index];
}

static void
set_up_object(struct loaded *loaded, const struct options *options, const struct p4perf_config *config,
	      const struct loaded *other)
{
	const struct table_layout *table;
	struct bpf_map *map;

	for (table = table_layouts; table->name != NULL; table++) {
		map = bpf_object__find_map_by_name(loaded->object, table->map);
		if (map != NULL)
			bpf_map__set_max_entries(map, table_entries(table, options) ?: 1);
	}
	if (other != NULL) {
		bpf_object__for_each_map(map, loaded->object) {
			const struct bpf_map *same = NULL;

			if (!bpf_map__is_internal(map))
				same = bpf_object__find_map_by_name(other->object, bpf_map__name(map));
			if (same != NULL && bpf_map__reuse_fd(map, bpf_map__fd(same)) != 0)
				fail("load", "map %s cannot be shared: %s", bpf_map__name(map), strerror(errno));
		}
	}
	map = bpf_object__find_map_by_name(loaded->object, ".rodata.config");
	if (map == NULL || bpf_map__set_initial_value(map, config, sizeof(*config)) != 0)
		fail("load", "the program has no configuration");
}

void
load_program(struct loaded *loaded, const struct options *options, const char *file, const char *program,
	     const struct p4perf_config *config, const struct loaded *other)
{
	static bool registered;
	struct bpf_program *each, *chosen;
	struct bpf_prog_info info = {0};
	uint32_t info_bytes = sizeof(info);
	char path[4096];
	int result;

	if (!registered) {
		LIBBPF_OPTS(libbpf_prog_handler_opts, handler, .prog_prepare_load_fn = before_load);

		registered = true;
		libbpf_set_print(keep_warning);
		libbpf_register_prog_handler("xdp", BPF_PROG_TYPE_XDP, 0, &handler);
	}
	last_warning[0] = verifier_log[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", options->folder, file);
	loaded->name = program;
	loaded->object = bpf_object__open_file(path, NULL);
	if (loaded->object == NULL)
		fail("load", "libbpf does not open %s: %s (%s)", file, strerror(errno), last_warning);
	set_up_object(loaded, options, config, other);
	chosen = bpf_object__find_program_by_name(loaded->object, program);
	if (chosen == NULL)
		fail("load", "%s has no program %s", file, program);
	bpf_object__for_each_program(each, loaded->object)
		bpf_program__set_autoload(each, each == chosen);
	bpf_program__set_log_buf(chosen, verifier_log, sizeof(verifier_log));
	load_start_ms = 0;
	result = bpf_object__load(loaded->object);
	loaded->load_ms = now_ms() - load_start_ms;
	if (result != 0 && strstr(verifier_log, "program is too large") != NULL)
		fail("refused", "%s has too many paths for xdp: the verifier of the kernel gives up after a million instructions",
		     program);
	if (result != 0 && verifier_log[0] != '\0')
		fail("verifier", "the verifier of the kernel refuses %s of %s: %s", program, path, complaint());
	if (result != 0 && (result == -ENOMEM || result == -E2BIG || result == -ENOSPC))
		fail("memory", "the kernel has no memory for the maps: %s (%s)", strerror(-result), last_warning);
	if (result != 0)
		fail("load", "the kernel refuses %s: %s (%s)", path, strerror(-result), last_warning);
	loaded->fd = bpf_program__fd(chosen);
	loaded->shared = mmap(NULL, sizeof(*loaded->shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			      bpf_map__fd(bpf_object__find_map_by_name(loaded->object, ".bss")), 0);
	if (loaded->shared == MAP_FAILED)
		fail("load", "the data of the program cannot be mapped: %s", strerror(errno));
	if (bpf_obj_get_info_by_fd(loaded->fd, &info, &info_bytes) == 0) {
		loaded->instructions = info.xlated_prog_len / 8;
		loaded->code_bytes = info.jited_prog_len;
	}
}

/* Bits lowest .. lowest+7 of (entry << free_bits). */
static uint8_t
key_byte(uint64_t entry, uint32_t free_bits, uint32_t lowest)
{
	if (lowest + 8 <= free_bits)
		return 0;
	if (lowest < free_bits)
		return (uint8_t)(entry << (free_bits - lowest));
	return lowest - free_bits >= 64 ? 0 : (uint8_t)(entry >> (lowest - free_bits));
}

/* The key bytes of an entry; with ones instead of a number: the mask of its bits. */
static void
write_key(const struct table_layout *table, uint8_t *key, uint64_t entry, bool ones)
{
	uint32_t above = 0; /* number of bits of the keys behind this one */
	unsigned int k, byte, bit;

	for (k = table->n_keys; k-- > 0;) {
		const struct key_part *part = &table->keys[k];

		for (byte = 0; byte < part->bytes; byte++) {
			uint8_t inside = 0, *at = key + part->offset + part->bytes - 1 - byte;

			for (bit = 0; bit < 8; bit++)
				if (8 * byte + bit < part->bits &&
				    (!ones || above + 8 * byte + bit >= table->free_bits))
					inside |= (uint8_t)(1u << bit);
			*at = ones ? inside : inside & key_byte(entry, table->free_bits, above + 8 * byte);
		}
		above += part->bits;
	}
}

static void
write_data(const struct table_layout *table, uint8_t *data, uint64_t entry)
{
	unsigned int j;

	for (j = 0; j < table->n_data; j++) {
		const struct data_part *part = &table->data[j];
		uint64_t word = j == 0 ? table->port : (uint32_t)(entry * ENTRY_MULTIPLIER + j);

		if (part->bits < 64)
			word &= (UINT64_C(1) << part->bits) - 1;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		memcpy(data + part->offset, &word, part->bytes);
#else
		memcpy(data + part->offset, (uint8_t *)&word + 8 - part->bytes, part->bytes);
#endif
	}
}

/* Where the parts of an element lie in what the map takes as key and as value. */
struct element {
	uint32_t key_size, key_at, value_size, data_at, words;
};

static void
write_element(const struct table_layout *table, const struct element *e, uint8_t *key, uint8_t *value, uint64_t entry)
{
	const uint32_t index = (uint32_t)entry;

	switch (table->kind) {
	case TABLE_TERNARY:
		memcpy(key, &index, sizeof(index));
		write_key(table, value, entry, false);
		write_key(table, value + 8 * e->words, entry, true);
		break;
	case TABLE_LPM:
		memcpy(key, &table->prefix_bits, 4);
		/* fall through */
	default:
		write_key(table, key + e->key_at, entry, false);
		break;
	}
	write_data(table, value + e->data_at, entry);
}

static void
write_listed(const struct table_layout *table, const struct element *e, uint8_t *key, uint8_t *value, uint64_t index)
{
	const struct listed_row *row = &table->rows[index];
	const uint32_t number = (uint32_t)index;

	if (table->kind == TABLE_TERNARY) {
		memcpy(key, &number, sizeof(number));
		memcpy(value, row->key, table->key_bytes);
		memcpy(value + 8 * e->words, row->mask, table->key_bytes);
	} else {
		if (table->kind == TABLE_LPM)
			memcpy(key, &row->prefix_bits, 4);
		memcpy(key + e->key_at, row->key, table->key_bytes);
	}
	memcpy(value + e->data_at, (const uint8_t *)table->found + (size_t)row->entry * table->data_bytes,
	       table->data_bytes);
}

static void
fill_table(const struct table_layout *table, int map, uint32_t entries)
{
	const struct element e = {
		.key_size = table->kind == TABLE_TERNARY ? 4 : table->key_bytes + 4 * (table->kind == TABLE_LPM),
		.key_at = table->kind == TABLE_LPM ? 4 : 0,
		.words = (table->key_bytes + 7) / 8,
		.data_at = table->kind == TABLE_TERNARY ? 2 * 8 * ((table->key_bytes + 7) / 8) : 0,
		.value_size = table->kind == TABLE_TERNARY
				      ? (2 * 8 * ((table->key_bytes + 7) / 8) + table->data_bytes + 7) / 8 * 8
				      : table->data_bytes,
	};
	uint8_t *keys = calloc(BATCH, e.key_size), *values = calloc(BATCH, e.value_size);
	uint32_t first, i, n;

	if (keys == NULL || values == NULL)
		fail("memory", "no memory for the entries of %s", table->name);
	for (first = 0; first < entries; first += n) {
		LIBBPF_OPTS(bpf_map_batch_opts, batch);
		uint32_t count;

		n = entries - first < BATCH ? entries - first : BATCH;
		for (i = 0; i < n; i++)
			(table->rows != NULL ? write_listed : write_element)(
				table, &e, keys + (size_t)i * e.key_size, values + (size_t)i * e.value_size, first + i);
		count = n;
		if (bpf_map_update_batch(map, keys, values, &count, &batch) != 0)
			fail("memory", "entry %u of table %s cannot be added: %s", first + count, table->name,
			     strerror(errno));
	}
	free(keys);
	free(values);
}

void
fill_tables(const struct loaded *loaded, const struct options *options)
{
	const struct table_layout *table;

	for (table = table_layouts; table->name != NULL; table++)
		fill_table(table, bpf_map__fd(bpf_object__find_map_by_name(loaded->object, table->map)),
			   table_entries(table, options));
}

uint64_t
tables_bytes(const struct loaded *loaded)
{
	const struct table_layout *table;
	uint64_t sum = 0, bytes;
	char path[64], line[128];
	FILE *file;

	for (table = table_layouts; table->name != NULL; table++) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d",
			 bpf_map__fd(bpf_object__find_map_by_name(loaded->object, table->map)));
		file = fopen(path, "r");
		while (file != NULL && fgets(line, sizeof(line), file) != NULL)
			if (sscanf(line, "memlock: %lu", &bytes) == 1)
				sum += bytes;
		if (file != NULL)
			fclose(file);
	}
	return sum;
}
