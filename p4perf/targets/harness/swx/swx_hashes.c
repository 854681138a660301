/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-16 as a hash function of every pipeline of this program: DPDK 22.11 has crc32 and jhash.
 *
 * Instructions find hash functions by name while a pipeline is configured, and rte_swx_pipeline_codegen() and
 * rte_swx_pipeline_build_from_lib() create and configure a pipeline at once. So the function that creates pipelines is
 * replaced here, for librte_pipeline, too: a shared library calls its public functions by the dynamic linker, which takes
 * those of the program first.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <rte_swx_pipeline.h>

#include "hashes.h"

static uint32_t
crc16(const void *key, uint32_t length, uint32_t seed)
{
	(void)seed;
	return (uint32_t)hash_crc16(key, length);
}

int
rte_swx_pipeline_config(struct rte_swx_pipeline **p, const char *name, int numa_node)
{
	int (*create)(struct rte_swx_pipeline **, const char *, int);
	void *const symbol = dlsym(RTLD_NEXT, "rte_swx_pipeline_config");
	int result;

	if (symbol == NULL)
		return -ENOSYS;
	memcpy(&create, &symbol, sizeof(create));
	result = create(p, name, numa_node);
	return result == 0 ? rte_swx_pipeline_hash_func_register(*p, "crc16", crc16) : result;
}
