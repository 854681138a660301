/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load generator: packets at a rate through a link to the device under test and back, every one of them accounted for.
 *
 * The generator has a core of its own, and so has the device, which is one of the programs of the harness behind a port.
 * Both work in segments of some hundred milliseconds, under real-time scheduling where it is granted, and sleep between
 * them, so that the kernel does not throttle them. Counters are read after the traffic has stopped and drained.
 */
#ifndef P4PERF_LOAD_H
#define P4PERF_LOAD_H

#include <rte_cycles.h>

#include "device.h"
#include "harness.h"

#define LOAD_VERSION 1

/* The last bytes of every frame: when it was sent, its number in the segment, and which segment that was. */
struct stamp {
	uint64_t sent_tsc;
	uint32_t number;
	uint32_t tag;
} __attribute__((packed));

/* How packets are spaced. */
struct schedule {
	enum { SPACED_CBR, SPACED_POISSON, SPACED_BURST, SPACED_RECORDED } pattern;
	double rate_pps;           /* 0: as fast as possible */
	uint32_t burst_packets;
	double burst_spacing_ns;   /* between packets of a burst */
	double burst_gap_us;       /* after a burst; 0: what the rate leaves */
	const uint64_t *gaps_ns;   /* recorded gaps, one a frame */
	uint32_t n_gaps;
	uint64_t seed;
};

/* Numbers of a histogram as HdrHistogram has them: lowest 1, three digits, in ns. */
#define HISTOGRAM_HALF 1024
#define HISTOGRAM_BUCKETS 24
#define HISTOGRAM_COUNTS ((HISTOGRAM_BUCKETS + 1) * HISTOGRAM_HALF)
#define HISTOGRAM_HIGHEST_NS UINT64_C(10000000000)

struct histogram {
	uint64_t counts[HISTOGRAM_COUNTS];
	uint64_t overflow; /* above the highest */
	uint64_t min_ns, max_ns;
};

/* One order to the generator. */
struct offer {
	struct schedule schedule;
	double duration_ms;
	double segment_ms;
	double rest_ms;
	bool latency;
	enum device_mode mode;
	struct faults faults;
	double gap_threshold_us;
};

#define MAX_SEGMENTS 4096

struct segment {
	uint64_t planned, sent, received, received_while_sending;
	uint64_t link_full;  /* sent, and not taken by the link: lost in front of the device */
	uint64_t duplicated, reordered, foreign;
	uint64_t sending_tsc;  /* from the first packet to the last */
	uint64_t draining_tsc;
	uint64_t max_lag_tsc;  /* by which a packet was late */
	uint64_t max_gap_tsc, gaps, switches;
	struct stalls stalls;
	bool realtime;
	struct calibration before, after;
	struct device_counters device;
};

/* Frames that are sent in turn instead of one frame that varies. */
struct frames {
	uint32_t n;
	uint16_t *lengths;
	uint8_t **data;
	uint64_t *gaps_ns;
};

struct generator {
	uint16_t port;
	struct source *source;
	struct device *device;
	const struct frames *frames; /* NULL: frames of the source */
	const uint16_t *sizes;       /* lengths in turn, without FCS; NULL: all as the source has them */
	unsigned int n_sizes;
	bool unstamped; /* frames have no room for a stamp: they are counted, and nothing else is known of them */
	int priority;
	uint64_t *seen; /* a bit for each packet of a segment */
	uint64_t seen_bits;
	uint32_t tag;
	unsigned int n_segments;
	struct segment segments[MAX_SEGMENTS];
	struct histogram histogram;
};

/* The conversation; argv[0] stands for the name of the program. */
int load_main(int argc, char **argv);

static inline void
stall_record(struct stalls *s, uint64_t tsc)
{
	const unsigned int bit = 63 - (unsigned int)__builtin_clzll((uint64_t)((double)tsc * 1e9 / (double)rte_get_tsc_hz()) | 1);

	s->number[bit]++;
	s->tsc[bit] += tsc;
}

/* Serve orders until the generator has gone. */
void device_serve(struct device *device);

/* Take packets from the port of the device, and send those of a burst that are not dropped, and their copies. */
uint16_t device_receive(struct device *device, struct rte_mbuf **packets);
void device_send(struct device *device, struct rte_mbuf **packets, uint16_t n);

/* Wait until a device that is a process has its tables and its port. Ends in fail() if that takes longer. */
void device_await_ready(const struct device *device, unsigned int ms);

/* Wake the device and wait until it polls; stop it and wait until it sleeps. Ends in fail() if it does not. */
void device_start(struct device *device, enum device_mode mode, const struct faults *faults, uint64_t gap_tsc);
void device_stop(struct device *device);

/* Room for packets of a segment. 0, or a negative errno. */
int generator_init(struct generator *generator);

/* Offer load, segment by segment. Ends in fail() if the device hangs or has died. */
void generator_offer(struct generator *generator, const struct offer *offer);

/* The result as one line of JSON. */
void generator_print(const struct generator *generator, const struct offer *offer);

/*
 * A pool of packet buffers. With 4 KiB pages the ordinary constructor puts one buffer on each page, all at the same offset,
 * so that their headers share a few cache sets; here they lie back to back. NULL: no memory.
 */
struct rte_mempool *load_pool(const char *name, unsigned int n);

/* Connect generator and device by two rings in this process. 0, or a negative errno. */
int link_rings(unsigned int slots, struct rte_mempool *pool, uint16_t *generator_port, uint16_t *device_port);

/* Start a port of a driver. 0, or a negative errno. */
int link_port(const char *name, unsigned int slots, struct rte_mempool *pool, uint16_t *port);

/* Wait until a port has somebody at its other end. 0, or a negative errno. */
int link_await_up(uint16_t port);

/*
 * A namespace of the network for the device, then one for the generator with a veth pair, the other end of which goes to
 * the device, which then sets it up. Whatever is wrong ends in fail().
 */
void veth_device(void);
void veth_generator(int device_pid, unsigned int mtu);
void veth_device_up(void);

#endif
