/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functional check: packets with their expected outcomes, computed by the reference interpreter.
 *
 * File, in host byte order: "P4PVRFY2", u32 packets, u32 tables, u32 states, u32 masks. Per packet u16 length, u16
 * outputs, its bytes; per output, by ascending port, u16 port, u16 length, its bytes and, if masks is 1, as many bytes
 * whose zero bits are not compared. At the end u64 hits of each table and u64 sum of each state or UNKNOWN_SUM.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "words.h"

uint64_t given;

#define MAX_PACKET (2048 + PACKET_HEADROOM)

struct expectation {
	uint16_t port;
	uint16_t length;
	uint8_t data[MAX_PACKET];
	uint8_t mask[MAX_PACKET];
};

static bool
read_all(FILE *file, void *destination, size_t size)
{
	return fread(destination, 1, size, file) == size;
}

/* Put a packet behind those that leave by the same port or a lower one. */
static void
insert(struct rte_mbuf **outputs, unsigned int n, struct rte_mbuf *packet)
{
	for (; n > 0 && outputs[n - 1]->port > packet->port; n--)
		outputs[n] = outputs[n - 1];
	outputs[n] = packet;
}

/*
 * Outputs of packet i of a burst by ascending port, of one port in the order in which they were sent: copies, then the
 * packet itself. Returns how many there are.
 */
static unsigned int
outputs_of(struct rte_mbuf **burst, unsigned int i, struct rte_mbuf **outputs)
{
	unsigned int c, n = 0;

	for (c = 0; c < copies.n && n < MAX_COPIES; c++)
		if (copies.origin[c] == i)
			insert(outputs, n++, copies.packets[c]);
	if (burst[i]->port != PORT_DROP)
		insert(outputs, n++, burst[i]);
	return n;
}

static int
check_output(const struct expectation *expected, const struct rte_mbuf *mbuf, bool masks, uint64_t number, char *error,
	     size_t error_size)
{
	const uint8_t *data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	unsigned int i;

	if (mbuf->port != expected->port) {
		snprintf(error, error_size, "packet %lu left by port %u, expected %u", number, mbuf->port,
			 expected->port);
		return -EBADMSG;
	}
	if (mbuf->data_len != expected->length) {
		snprintf(error, error_size, "packet %lu has %u bytes, expected %u", number, mbuf->data_len,
			 expected->length);
		return -EBADMSG;
	}
	for (i = 0; i < expected->length; i++) {
		const uint8_t mask = masks ? expected->mask[i] : 0xff;

		if (((data[i] ^ expected->data[i]) & mask) != 0) {
			snprintf(error, error_size, "packet %lu differs at byte %u: %02x, expected %02x", number, i,
				 data[i], expected->data[i]);
			return -EBADMSG;
		}
	}
	return 0;
}

static bool
read_expectation(FILE *file, struct expectation *expected, bool masks)
{
	return read_all(file, &expected->port, 2) && read_all(file, &expected->length, 2) &&
	       expected->length <= MAX_PACKET && read_all(file, expected->data, expected->length) &&
	       (!masks || read_all(file, expected->mask, expected->length));
}

static void
free_burst(struct rte_mbuf **mbufs, unsigned int n)
{
	rte_pktmbuf_free_bulk(mbufs, n);
	rte_pktmbuf_free_bulk(copies.packets, copies.n);
	copies.n = 0;
}

/* Check one burst; the expectations of all of its packets stand in the file one after another. */
static int
verify_burst(const struct program *program, struct rte_mbuf **mbufs, unsigned int n, FILE *file, bool masks,
	     uint64_t done, const char *path, char *error, size_t error_size)
{
	static struct expectation expected[BURST_PACKETS * MAX_COPIES];
	struct rte_mbuf *outputs[MAX_COPIES + 1];
	uint16_t lengths[2], n_outputs[BURST_PACKETS];
	unsigned int i, k, total = 0, at = 0;

	for (i = 0; i < n; i++) {
		mbufs[i]->data_off = PACKET_HEADROOM;
		if (!read_all(file, lengths, sizeof(lengths)) || lengths[0] > MAX_PACKET - PACKET_HEADROOM ||
		    total + lengths[1] > BURST_PACKETS * MAX_COPIES ||
		    !read_all(file, rte_pktmbuf_mtod(mbufs[i], void *), lengths[0])) {
			snprintf(error, error_size, "%s ends early or is damaged", path);
			return -EBADMSG;
		}
		mbufs[i]->data_len = lengths[0];
		mbufs[i]->pkt_len = lengths[0];
		n_outputs[i] = lengths[1];
		for (k = 0; k < n_outputs[i]; k++) {
			if (!read_expectation(file, &expected[total++], masks)) {
				snprintf(error, error_size, "%s ends early or is damaged", path);
				return -EBADMSG;
			}
		}
	}
	given = given_to(done);
	program->run(mbufs, n);
	given = 0;
	for (i = 0; i < n; i++) {
		const unsigned int sent = outputs_of(mbufs, i, outputs);

		if (sent != n_outputs[i]) {
			snprintf(error, error_size, "packet %lu left %u times, expected %u", done + i, sent,
				 n_outputs[i]);
			return -EBADMSG;
		}
		for (k = 0; k < sent; k++)
			if (check_output(&expected[at++], outputs[k], masks, done + i, error, error_size) != 0)
				return -EBADMSG;
	}
	return 0;
}

int
verify_file(const struct program *program, struct rte_mempool *pool, const char *path, char *error, size_t error_size,
	    uint64_t *packets)
{
	static uint64_t hits[MAX_TABLES];
	struct rte_mbuf *mbufs[BURST_PACKETS];
	uint64_t wanted, done = 0;
	uint32_t counts[4];
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
	if (!read_all(file, magic, sizeof(magic)) || memcmp(magic, "P4PVRFY2", 8) != 0 ||
	    !read_all(file, counts, sizeof(counts)) || counts[1] != program->n_tables ||
	    counts[2] != program->n_states) {
		snprintf(error, error_size, "%s is not a verification file of this program", path);
		goto out;
	}
	program->take_hits(hits);
	while (done < counts[0]) {
		n = counts[0] - done < BURST_PACKETS ? (unsigned int)(counts[0] - done) : BURST_PACKETS;
		if (rte_pktmbuf_alloc_bulk(pool, mbufs, n) != 0) {
			snprintf(error, error_size, "the packet pool is empty");
			goto out;
		}
		result = verify_burst(program, mbufs, n, file, counts[3] != 0, done, path, error, error_size);
		free_burst(mbufs, n);
		if (result != 0)
			goto out;
		done += n;
	}
	result = -EBADMSG;
	program->take_hits(hits);
	for (i = 0; i < program->n_tables + program->n_states; i++) {
		const bool table = i < program->n_tables;
		const unsigned int state = i - program->n_tables;
		const uint64_t got = table ? hits[i] : program->state_sum(state);

		if (!read_all(file, &wanted, sizeof(wanted))) {
			snprintf(error, error_size, "%s ends early or is damaged", path);
			goto out;
		}
		if (wanted != got && (table || wanted != UNKNOWN_SUM)) {
			snprintf(error, error_size, table ? "table %s counted %lu hits, expected %lu" :
							    "state %s sums up to %lu, expected %lu",
				 table ? program->table_names[i] : program->state_names[state], got, wanted);
			goto out;
		}
	}
	*packets = done;
	result = 0;
out:
	fclose(file);
	return result;
}
