// SPDX-License-Identifier: Apache-2.0
// The user plane of a mobile core: what comes up in a GTP-U tunnel is taken out and routed, what comes down gets the
// tunnel of its subscriber.
// Main path: downlink, an IPv4 packet to a known subscriber.
#include "../include/architecture.p4"
#include "../include/headers.p4"

const bit<16> GTPU_PORT = 2152;
const bit<8> GTPU_DATA = 255;

header gtpu_t {
    bit<8> flags;
    bit<8> message;
    bit<16> length;
    bit<32> teid;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t outer_ipv4;
    udp_t outer_udp;
    gtpu_t gtpu;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t {
    bit<16> length;
    bit<32> dst;
    bit<8> routed;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: outermost;
            default: accept;
        }
    }
    state outermost {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_UDP: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            GTPU_PORT: gtpu;
            default: accept;
        }
    }
    // In a tunnel, what was taken for the packet is the tunnel, and the packet follows.
    state gtpu {
        packet.extract(hdr.gtpu);
        transition select(hdr.gtpu.message) {
            GTPU_DATA: subscriber;
            default: accept;
        }
    }
    state subscriber {
        packet.extract(hdr.outer_ipv4);
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT
    COUNTER(sessions, 65536)

    action decapsulate(bit<32> session) {
        COUNT(sessions, session);
        hdr.gtpu.setInvalid();
        hdr.udp.setInvalid();
        hdr.ipv4.setInvalid();
        meta.dst = hdr.outer_ipv4.dst;
        meta.routed = 1;
    }

    action unknown_tunnel() {
        DROP;
    }

    action encapsulate(bit<32> session, bit<32> teid, bit<32> local, bit<32> station) {
        COUNT(sessions, session);
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version_ihl = 0x45;
        hdr.outer_ipv4.tos = 0;
        hdr.outer_ipv4.length = meta.length + 36;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.fragment = 0x4000;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.protocol = PROTOCOL_UDP;
        hdr.outer_ipv4.checksum = 0;
        hdr.outer_ipv4.src = local;
        hdr.outer_ipv4.dst = station;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src_port = GTPU_PORT;
        hdr.outer_udp.dst_port = GTPU_PORT;
        hdr.outer_udp.length = meta.length + 16;
        hdr.outer_udp.checksum = 0;
        hdr.gtpu.setValid();
        hdr.gtpu.flags = 0x30;
        hdr.gtpu.message = GTPU_DATA;
        hdr.gtpu.length = meta.length;
        hdr.gtpu.teid = teid;
        meta.dst = station;
        meta.routed = 1;
    }

    action unknown_subscriber() {
        DROP;
    }

    action forward(bit<48> src, bit<48> dst, PORT port) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        SEND(port);
    }

    action no_route() {
        DROP;
    }

    table tunnels {
        key = {
            hdr.gtpu.teid: exact;
        }
        actions = {
            decapsulate;
            unknown_tunnel;
        }
        default_action = unknown_tunnel();
        size = 65536;
    }

    table subscribers {
        key = {
            hdr.ipv4.dst: exact;
        }
        actions = {
            encapsulate;
            unknown_subscriber;
        }
        default_action = unknown_subscriber();
        size = 65536;
    }

    table routes {
        key = {
            meta.dst: lpm;
        }
        actions = {
            forward;
            no_route;
        }
        default_action = no_route();
        size = 1024;
    }

    apply {
        meta.length = 0;
        meta.dst = 0;
        meta.routed = 0;
        if (hdr.gtpu.isValid()) {
            tunnels.apply();
        } else if (hdr.ipv4.isValid()) {
            meta.length = hdr.ipv4.length;
            subscribers.apply();
        } else {
            DROP;
        }
        if (meta.routed == 1) {
            routes.apply();
            UPDATE_IPV4_CHECKSUM(hdr.outer_ipv4)
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.gtpu);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

#define IPV4_CHECKSUM hdr.outer_ipv4
#include "../include/package.p4"
