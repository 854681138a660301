// SPDX-License-Identifier: Apache-2.0
// A detector of heavy hitters: a count-min sketch of three rows counts the packets of every flow; flows above a threshold
// are marked in the DSCP and counted. The threshold is an entry, so that it can be changed.
// Main path: a flow below the threshold.
// The rows hash the same fields with salts: p4c-dpdk has one hash function that is right to use, see architecture.p4.
#include "../include/architecture.p4"
#include "../include/headers.p4"

const bit<32> CELLS_MASK = 0x3fff;

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
}

struct metadata_t {
    bit<32> src;
    bit<32> dst;
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> protocol;
    bit<32> salt;
    bit<32> cell;
    bit<32> count;
    bit<32> least;
    bit<32> threshold;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_TCP: ports;
            PROTOCOL_UDP: ports;
            default: accept;
        }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT
    REGISTER(row_a, 16384)
    REGISTER(row_b, 16384)
    REGISTER(row_c, 16384)
    HASH(hash_a)
    HASH(hash_b)
    HASH(hash_c)
    COUNTER(heavy, 1)

    action set_threshold(bit<32> threshold) {
        meta.threshold = threshold;
    }

    action no_threshold() {
        meta.threshold = 0xffffffff;
    }

    action forward(PORT port) {
        SEND(port);
    }

    action unknown_destination() {
        DROP;
    }

    table thresholds {
        key = {
            hdr.ipv4.protocol: exact;
        }
        actions = {
            set_threshold;
            no_threshold;
        }
        default_action = no_threshold();
        size = 256;
    }

    table destinations {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            forward;
            unknown_destination;
        }
        default_action = unknown_destination();
        size = 4096;
    }

    apply {
        meta.threshold = 0xffffffff;
        meta.least = 0;
        if (hdr.ports.isValid()) {
            meta.src = hdr.ipv4.src;
            meta.dst = hdr.ipv4.dst;
            meta.src_port = hdr.ports.src;
            meta.dst_port = hdr.ports.dst;
            meta.protocol = (bit<32>)hdr.ipv4.protocol;
            thresholds.apply();

            meta.salt = 0x1b873593;
            CALCULATE(meta.cell, hash_a, meta.salt, meta.src, meta.dst, meta.src_port, meta.dst_port, meta.protocol);
            meta.cell = meta.cell & CELLS_MASK;
            READ(meta.count, row_a, meta.cell);
            meta.count = meta.count + 1;
            WRITE(row_a, meta.cell, meta.count);
            meta.least = meta.count;

            meta.salt = 0x85ebca6b;
            CALCULATE(meta.cell, hash_b, meta.salt, meta.src, meta.dst, meta.src_port, meta.dst_port, meta.protocol);
            meta.cell = meta.cell & CELLS_MASK;
            READ(meta.count, row_b, meta.cell);
            meta.count = meta.count + 1;
            WRITE(row_b, meta.cell, meta.count);
            if (meta.count < meta.least) {
                meta.least = meta.count;
            }

            meta.salt = 0xc2b2ae35;
            CALCULATE(meta.cell, hash_c, meta.salt, meta.src, meta.dst, meta.src_port, meta.dst_port, meta.protocol);
            meta.cell = meta.cell & CELLS_MASK;
            READ(meta.count, row_c, meta.cell);
            meta.count = meta.count + 1;
            WRITE(row_c, meta.cell, meta.count);
            if (meta.count < meta.least) {
                meta.least = meta.count;
            }
        }
        if (hdr.ipv4.isValid()) {
            if (meta.least > meta.threshold) {
                COUNT(heavy, 0);
                hdr.ipv4.tos = (hdr.ipv4.tos & 3) | 0x20;
                UPDATE_IPV4_CHECKSUM(hdr.ipv4)
            }
            destinations.apply();
        } else {
            DROP;
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

#define IPV4_CHECKSUM hdr.ipv4
#include "../include/package.p4"
