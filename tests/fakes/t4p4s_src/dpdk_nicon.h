/* The data of an lcore, as far as what is in the place of network interfaces uses it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <rte_mbuf.h>
typedef struct rte_mbuf packet;
struct lcore_data {
	const uint64_t drain_tsc;
	struct lcore_conf *conf;
	packet *pkts_burst[32];
	unsigned nb_rx;
	bool is_valid;
};
