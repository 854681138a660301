/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline from the library that was compiled of the code that SWX generated.
 *
 * SWX builds such a pipeline with ports of the types that it knows; they are replaced afterwards, which takes a look into
 * its internals. The header that describes them comes from the source package of DPDK, of exactly the same version.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_ring.h>

#include "options.h"
#include "rte_swx_pipeline_internal.h"
#include "swx.h"
#include "swx_code.h"

/* The library lies beside this program. */
static void
library_path(char *path, size_t size, const char *library)
{
	char program[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length < 0)
		fail("spec", "the folder of this program is unknown");
	program[length] = '\0';
	if ((size_t)snprintf(path, size, "%s/%s", dirname(program), library) >= size)
		fail("spec", "the path of %s is too long", library);
}

/* Size of all functions in a library, by its table of symbols: what the start files of C add has no size there. */
static size_t
function_bytes(const char *path)
{
	const int file = open(path, O_RDONLY);
	struct stat status;
	const char *image;
	const ElfW(Ehdr) *header;
	const ElfW(Shdr) *sections;
	size_t bytes = 0, i, k;

	if (file < 0 || fstat(file, &status) != 0)
		fail("spec", "cannot open %s", path);
	image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	if (image == MAP_FAILED)
		fail("memory", "no memory to read %s", path);
	header = (const void *)image;
	sections = (const void *)(image + header->e_shoff);
	for (i = 0; i < header->e_shnum; i++) {
		const ElfW(Sym) *const symbols = (const void *)(image + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		for (k = 0; k < sections[i].sh_size / sizeof(*symbols); k++)
			if ((symbols[k].st_info & 0xf) == STT_FUNC && symbols[k].st_shndx != SHN_UNDEF)
				bytes += symbols[k].st_size;
	}
	munmap((void *)(uintptr_t)image, (size_t)status.st_size);
	return bytes;
}

/* Ports as SWX has them: rings that no packet will ever see. */
static FILE *
ports_file(const struct swx_config *config, const char *ring, char **text)
{
	const struct rte_swx_pipeline_mirroring_params mirroring = swx_mirroring(config);
	unsigned int port;
	size_t size;
	FILE *file = open_memstream(text, &size);

	if (file == NULL)
		fail("memory", "no memory for the description of the ports");
	fprintf(file, "mirroring slots %u sessions %u\n", mirroring.n_slots, mirroring.n_sessions);
	fprintf(file, "port in 0 ring %s bsz 32\n", ring);
	for (port = 0; port < config->n_ports; port++)
		fprintf(file, "port out %u ring %s bsz 32\n", port, ring);
	if (fclose(file) != 0)
		fail("memory", "no memory for the description of the ports");
	return fmemopen(*text, size, "r");
}

static void
replace_ports(struct swx *swx)
{
	struct rte_swx_pipeline *const p = swx->pipeline;
	unsigned int port;

	if (p->n_ports_in != 1 || p->n_ports_out != swx->config->n_ports + 1 || !p->build_done)
		fail("spec", "the pipeline looks otherwise than its header says: the headers are not those of this DPDK");
	p->in[0] = (struct port_in_runtime){swx_port_in_ops.pkt_rx, swx};
	for (port = 0; port < p->n_ports_out; port++)
		p->out[port] = (struct port_out_runtime){
			.pkt_tx = swx_port_out_ops.pkt_tx,
			.pkt_fast_clone_tx = swx_port_out_ops.pkt_fast_clone_tx,
			.pkt_clone_tx = swx_port_out_ops.pkt_clone_tx,
			/* The port that SWX adds drops, as our last one does. */
			.obj = &swx->ports[RTE_MIN(port, swx->config->n_ports - 1)],
		};
}

void
swx_create(struct swx *swx, const char *name)
{
	char path[PATH_MAX], ring[RTE_RING_NAMESIZE], *text = NULL;
	FILE *ports;
	int result;

	snprintf(ring, sizeof(ring), "swx_%s", name);
	if (rte_ring_create(ring, 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ) == NULL)
		fail("memory", "no memory for a ring: %s", rte_strerror(rte_errno));
	library_path(path, sizeof(path), swx->config->library);
	if (dlopen(path, RTLD_LAZY) == NULL)
		fail("spec", "%s", dlerror());
	ports = ports_file(swx->config, ring, &text);
	if (ports == NULL)
		fail("memory", "no memory for the description of the ports");
	result = rte_swx_pipeline_build_from_lib(&swx->pipeline, name, path, ports, 0);
	fclose(ports);
	free(text);
	if (result != 0)
		fail("spec", "SWX cannot build a pipeline from %s: %s", swx->config->library, rte_strerror(-result));
	replace_ports(swx);
}

struct swx_size
swx_size(const struct swx *swx)
{
	const unsigned int *const instructions = dlsym(swx->pipeline->lib, SWX_CODE_INSTRUCTIONS);
	char path[PATH_MAX];

	library_path(path, sizeof(path), swx->config->library);
	if (instructions == NULL)
		fail("spec", "%s does not say how many instructions it has", swx->config->library);
	return (struct swx_size){*instructions, function_bytes(path)};
}
