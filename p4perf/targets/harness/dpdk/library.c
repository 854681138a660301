/* SPDX-License-Identifier: Apache-2.0 */
/* Program and baseline are libraries beside this executable: program.so and baseline.so. */
#include <dlfcn.h>
#include <elf.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "options.h"

_Static_assert(P4PERF_LIBRARY_DROP == PORT_DROP, "library.h says how a packet is dropped");

static const struct p4perf_library *tested, *reference;

/* Bytes that a library may execute: its own machine code, not that of the libraries that it uses. */
static size_t
code_bytes(void *handle)
{
	struct link_map *map;
	const ElfW(Ehdr) *header;
	const ElfW(Phdr) *segments;
	size_t bytes = 0;
	unsigned int i;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
		return 0;
	header = (const ElfW(Ehdr) *)map->l_addr;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	segments = (const ElfW(Phdr) *)(map->l_addr + header->e_phoff);
	for (i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X) != 0)
			bytes += segments[i].p_memsz;
	return bytes;
}

/* Load a library and describe it in a line of its own, before that of the harness. */
static const struct p4perf_library *
load(const char *name)
{
	const struct p4perf_library *library;
	char executable[PATH_MAX], path[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
	void *handle;

	if (length < 0)
		fail("library", "the folder of this program is unknown");
	executable[length] = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s/%s.so", dirname(executable), name) >= sizeof(path))
		fail("library", "the path of %s.so is too long", name);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		fail("library", "the library of the %s cannot be loaded: %s", name, dlerror());
	library = dlsym(handle, P4PERF_LIBRARY_SYMBOL);
	if (library == NULL)
		fail("library", "the library of the %s has no symbol %s", name, P4PERF_LIBRARY_SYMBOL);
	printf("{\"library\": \"%s\", \"code_bytes\": %zu}\n", name, code_bytes(handle));
	return library;
}

static int
setup_tested(const uint64_t *entries)
{
	(void)entries;
	tested = load("program");
	return tested->setup();
}

static int
setup_reference(const uint64_t *entries)
{
	(void)entries;
	reference = load("baseline");
	return reference->setup();
}

static void
run_tested(struct rte_mbuf **packets, unsigned int n)
{
	tested->run(packets, n);
}

static void
run_reference(struct rte_mbuf **packets, unsigned int n)
{
	reference->run(packets, n);
}

/* A library counts no hits: what is verified are the packets. */
static void
take_nothing(uint64_t *hits)
{
	(void)hits;
}

const struct program program_under_test = {
	.name = "program",
	.setup = setup_tested,
	.run = run_tested,
	.take_hits = take_nothing,
};

const struct program program_baseline = {
	.name = "baseline",
	.setup = setup_reference,
	.run = run_reference,
	.take_hits = take_nothing,
};
