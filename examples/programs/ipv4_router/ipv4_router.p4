// SPDX-License-Identifier: Apache-2.0
// An IPv4 router: longest prefix to next hop, next hop to addresses and port, TTL and checksum.
// Main path: IPv4 with a TTL of 2 or more, a route and its next hop are known.
#include "../include/architecture.p4"
#include "../include/headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<32> next_hop;
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
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT

    action set_next_hop(bit<32> next_hop) {
        meta.next_hop = next_hop;
    }

    action no_route() {
        DROP;
    }

    action rewrite(bit<48> src, bit<48> dst, PORT port) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        SEND(port);
    }

    action no_neighbour() {
        DROP;
    }

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            set_next_hop;
            no_route;
        }
        default_action = no_route();
        size = 65536;
    }

    table next_hops {
        key = {
            meta.next_hop: exact;
        }
        actions = {
            rewrite;
            no_neighbour;
        }
        default_action = no_neighbour();
        size = 1024;
    }

    apply {
        meta.next_hop = 0;
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            if (routes.apply().hit) {
                next_hops.apply();
                UPDATE_IPV4_CHECKSUM(hdr.ipv4)
            }
        } else {
            DROP;
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

#define IPV4_CHECKSUM hdr.ipv4
#include "../include/package.p4"
