// SPDX-License-Identifier: Apache-2.0
// A router for IPv4 and IPv6 with a table of routes for each and next hops for both.
// Main path: IPv6 with a hop limit of 2 or more, a route and its next hop are known.
#include "../include/architecture.p4"
#include "../include/headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv6_t ipv6;
}

struct metadata_t {
    bit<32> next_hop;
    bit<8> routed;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT

    action set_next_hop_v4(bit<32> next_hop) {
        meta.next_hop = next_hop;
        meta.routed = 1;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action no_route_v4() {
        DROP;
    }

    action set_next_hop_v6(bit<32> next_hop) {
        meta.next_hop = next_hop;
        meta.routed = 1;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
    }

    action no_route_v6() {
        DROP;
    }

    action rewrite(bit<48> src, bit<48> dst, PORT port) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        SEND(port);
    }

    action no_neighbour() {
        DROP;
    }

    table routes_v4 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            set_next_hop_v4;
            no_route_v4;
        }
        default_action = no_route_v4();
        size = 65536;
    }

    table routes_v6 {
        key = {
            hdr.ipv6.dst: lpm;
        }
        actions = {
            set_next_hop_v6;
            no_route_v6;
        }
        default_action = no_route_v6();
        size = 16384;
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
        meta.routed = 0;
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            routes_v4.apply();
        } else if (hdr.ipv6.isValid() && hdr.ipv6.hop_limit > 1) {
            routes_v6.apply();
        } else {
            DROP;
        }
        if (meta.routed == 1) {
            next_hops.apply();
            UPDATE_IPV4_CHECKSUM(hdr.ipv4)
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

#define IPV4_CHECKSUM hdr.ipv4
#include "../include/package.p4"
