// SPDX-License-Identifier: Apache-2.0
// An endpoint of segment routing over IPv6: where the destination is a segment of its own, the next one of the list
// becomes the destination; then the packet is routed.
// Main path: the second of two segments becomes the destination.
// The routing header has two segments: p4c-dpdk has no header stacks in the control, and compares no 128 bit.
#include "../include/architecture.p4"
#include "../include/headers.p4"

const bit<8> ROUTING_HEADER = 43;

header routing_t {
    bit<8> next_header;
    bit<8> length;
    bit<8> type;
    bit<8> segments_left;
    bit<8> last_entry;
    bit<8> flags;
    bit<16> tag;
}

header segment_t {
    bit<128> address;
}

struct headers_t {
    ethernet_t ethernet;
    ipv6_t ipv6;
    routing_t routing;
    segment_t last_segment;
    segment_t first_segment;
}

struct metadata_t {
    bit<32> next_hop;
    bit<8> routed;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            ROUTING_HEADER: routing;
            default: accept;
        }
    }
    state routing {
        packet.extract(hdr.routing);
        transition select(hdr.routing.last_entry) {
            1: segments;
            default: accept;
        }
    }
    state segments {
        packet.extract(hdr.last_segment);
        packet.extract(hdr.first_segment);
        transition accept;
    }
}

CONTROL {
    action end() {
        hdr.ipv6.dst = hdr.last_segment.address;
        hdr.routing.segments_left = hdr.routing.segments_left - 1;
    }

    action transit() {
    }

    action set_next_hop(bit<32> next_hop) {
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        meta.next_hop = next_hop;
        meta.routed = 1;
    }

    action no_route() {
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

    table own_segments {
        key = {
            hdr.ipv6.dst: exact;
        }
        actions = {
            end;
            transit;
        }
        default_action = transit();
        size = 256;
    }

    table routes {
        key = {
            hdr.ipv6.dst: lpm;
        }
        actions = {
            set_next_hop;
            no_route;
        }
        default_action = no_route();
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
        if (hdr.ipv6.isValid() && hdr.ipv6.hop_limit > 1) {
            if (hdr.last_segment.isValid() && hdr.routing.segments_left == 1) {
                own_segments.apply();
            }
            routes.apply();
            if (meta.routed == 1) {
                next_hops.apply();
            }
        } else {
            DROP;
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.routing);
        packet.emit(hdr.last_segment);
        packet.emit(hdr.first_segment);
    }
}

#include "../include/package.p4"
