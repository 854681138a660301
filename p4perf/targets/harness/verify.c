/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functional check: packets with their expected outcomes, computed by the reference interpreter.
 *
 * File, in host byte order: "P4PVRFY1", u32 packets, u32 tables; per packet u16 length in, u16 length out, i32 port
 * (-1: dropped), then the bytes in and the bytes out; at the end u64 hits of each table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

struct record {
	uint16_t length_in;
	uint16_t length_out;
	int32_t port;
};

static bool
read_all(FILE *file, void *destination, size_t size)
{
	return fread(destination, 1, size, file) == size;
}

static int
check_packet(const struct record *record, const uint8_t *expected, const struct rte_mbuf *mbuf, uint64_t number,
	     char *error, size_t error_size)
{
	const int32_t port = mbuf->port == PORT_DROP ? -1 : mbuf->port;
	const uint8_t *data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	unsigned int i;

	if (port != record->port) {
		snprintf(error, error_size, "packet %lu left by port %d, expected %d (-1: dropped)", number, port,
			 record->port);
		return -EBADMSG;
	}
	if (port < 0)
		return 0;
	if (mbuf->data_len != record->length_out) {
		snprintf(error, error_size, "packet %lu has %u bytes, expected %u", number, mbuf->data_len,
			 record->length_out);
		return -EBADMSG;
	}
	for (i = 0; i < record->length_out; i++) {
		if (data[i] != expected[i]) {
			snprintf(error, error_size, "packet %lu differs at byte %u: %02x, expected %02x", number, i,
				 data[i], expected[i]);
			return -EBADMSG;
		}
	}
	return 0;
}

int
verify_file(const struct program *program, struct rte_mempool *pool, const char *path, char *error, size_t error_size,
	    uint64_t *packets)
{
	uint8_t expected[BURST_PACKETS][2048];
	struct record records[BURST_PACKETS];
	struct rte_mbuf *mbufs[BURST_PACKETS];
	uint64_t hits[MAX_TABLES] = {0}, wanted, done = 0;
	uint32_t counts[2];
	char magic[8];
	unsigned int i, n;
	int result = -EBADMSG;
	FILE *file;

	*packets = 0;
	file = fopen(path, "rb");
	if (file == NULL) {
		snprintf(error, error_size, "cannot open %s: %s", path, strerror(errno));
		return -errno;
	}
	if (!read_all(file, magic, sizeof(magic)) || memcmp(magic, "P4PVRFY1", 8) != 0 ||
	    !read_all(file, counts, sizeof(counts)) || counts[1] != program->n_tables) {
		snprintf(error, error_size, "%s is not a verification file of this program", path);
		goto out;
	}
	program->take_hits(hits);
	memset(hits, 0, sizeof(hits));
	while (done < counts[0]) {
		n = counts[0] - done < BURST_PACKETS ? (unsigned int)(counts[0] - done) : BURST_PACKETS;
		if (rte_pktmbuf_alloc_bulk(pool, mbufs, n) != 0) {
			snprintf(error, error_size, "the packet pool is empty");
			goto out;
		}
		for (i = 0; i < n; i++) {
			if (!read_all(file, &records[i], sizeof(records[i])) || records[i].length_in > 2048 ||
			    records[i].length_out > 2048 ||
			    !read_all(file, rte_pktmbuf_mtod(mbufs[i], void *), records[i].length_in) ||
			    !read_all(file, expected[i], records[i].length_out)) {
				snprintf(error, error_size, "%s ends early or is damaged", path);
				rte_pktmbuf_free_bulk(mbufs, n);
				goto out;
			}
			mbufs[i]->data_len = records[i].length_in;
			mbufs[i]->pkt_len = records[i].length_in;
		}
		program->run(mbufs, n);
		for (i = 0; i < n; i++) {
			if (check_packet(&records[i], expected[i], mbufs[i], done + i, error, error_size) != 0) {
				rte_pktmbuf_free_bulk(mbufs, n);
				goto out;
			}
		}
		rte_pktmbuf_free_bulk(mbufs, n);
		done += n;
	}
	program->take_hits(hits);
	for (i = 0; i < program->n_tables; i++) {
		if (!read_all(file, &wanted, sizeof(wanted))) {
			snprintf(error, error_size, "%s ends early or is damaged", path);
			goto out;
		}
		if (wanted != hits[i]) {
			snprintf(error, error_size, "table %s counted %lu hits, expected %lu", program->table_names[i],
				 hits[i], wanted);
			goto out;
		}
	}
	*packets = done;
	result = 0;
out:
	fclose(file);
	return result;
}
