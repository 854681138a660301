/* SPDX-License-Identifier: Apache-2.0 */
/* Links between generator and device, and the buffers of their packets. */
#include <errno.h>
#include <time.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "load.h"

#define CACHE 256
#define LINK_UP_MS 10000

struct rte_mempool *
load_pool(const char *name, unsigned int n)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = PACKET_HEADROOM + 2048};
	const unsigned int size = sizeof(struct rte_mbuf) + private.mbuf_data_room_size;
	struct rte_mempool *pool;

	/* Without the demand for contiguous bus addresses. */
	pool = rte_mempool_create_empty(name, n, size, CACHE, sizeof(private), SOCKET_ID_ANY,
					RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool == NULL)
		return NULL;
	rte_pktmbuf_pool_init(pool, &private);
	if (rte_mempool_populate_default(pool) < 0) {
		rte_mempool_free(pool);
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

static int
start(uint16_t port, unsigned int slots, struct rte_mempool *pool)
{
	const struct rte_eth_conf configuration = {0};
	int result;

	result = rte_eth_dev_configure(port, 1, 1, &configuration);
	if (result == 0)
		result = rte_eth_rx_queue_setup(port, 0, (uint16_t)slots, SOCKET_ID_ANY, NULL, pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(port, 0, (uint16_t)slots, SOCKET_ID_ANY, NULL);
	if (result == 0)
		result = rte_eth_dev_start(port);
	return result;
}

int
link_rings(unsigned int slots, struct rte_mempool *pool, uint16_t *generator_port, uint16_t *device_port)
{
	/* One slot of a ring of DPDK stays free unless it has an exact size. */
	const unsigned int flags = RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ;
	struct rte_ring *there = rte_ring_create("there", slots, SOCKET_ID_ANY, flags);
	struct rte_ring *back = rte_ring_create("back", slots, SOCKET_ID_ANY, flags);
	int generator, device, result;

	if (there == NULL || back == NULL)
		return -ENOMEM;
	generator = rte_eth_from_rings("generator", &back, 1, &there, 1, 0);
	device = rte_eth_from_rings("device", &there, 1, &back, 1, 0);
	if (generator < 0 || device < 0)
		return -EIO;
	*generator_port = (uint16_t)generator;
	*device_port = (uint16_t)device;
	result = start(*generator_port, slots, pool);
	return result == 0 ? start(*device_port, slots, pool) : result;
}

int
link_port(const char *name, unsigned int slots, struct rte_mempool *pool, uint16_t *port)
{
	const int result = rte_eth_dev_get_port_by_name(name, port);

	return result == 0 ? start(*port, slots, pool) : result;
}

int
link_await_up(uint16_t port)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	struct rte_eth_link link;
	unsigned int ms;

	for (ms = 0; ms < LINK_UP_MS; ms++) {
		if (rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP)
			return 0;
		nanosleep(&moment, NULL);
	}
	return -ENOLINK;
}
