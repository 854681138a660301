// SPDX-License-Identifier: Apache-2.0
// A VXLAN gateway: what comes from an access port is put into a tunnel to the endpoint of its destination, what comes
// from a tunnel is taken out and forwarded.
// Main path: a frame from an access port, encapsulated.
// The source port of the outer UDP is a constant: RFC 7348 recommends a hash of the inner frame.
#include "../include/architecture.p4"
#include "../include/headers.p4"

const bit<16> VXLAN_PORT = 4789;

header vxlan_t {
    bit<8> flags;
    bit<24> reserved;
    bit<24> vni;
    bit<8> reserved_too;
}

struct headers_t {
    ethernet_t outer_ethernet;
    ipv4_t outer_ipv4;
    udp_t outer_udp;
    vxlan_t vxlan;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t {
    bit<32> input_port;
    bit<32> vni;
    bit<16> length;
    bit<8> segment_known;
    bit<48> src;
    bit<48> dst;
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
            PROTOCOL_UDP: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            VXLAN_PORT: vxlan;
            default: accept;
        }
    }
    // In a tunnel, what was taken for the frame is the tunnel, and the frame follows.
    state vxlan {
        packet.extract(hdr.vxlan);
        packet.extract(hdr.outer_ethernet);
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT

    action set_segment(bit<32> vni) {
        meta.vni = vni;
        meta.segment_known = 1;
    }

    action no_segment() {
        DROP;
    }

    action encapsulate(bit<48> src, bit<48> dst, bit<32> local, bit<32> remote, PORT port) {
        hdr.outer_ethernet.setValid();
        hdr.outer_ethernet.src = src;
        hdr.outer_ethernet.dst = dst;
        hdr.outer_ethernet.type = ETHERTYPE_IPV4;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version_ihl = 0x45;
        hdr.outer_ipv4.tos = 0;
        hdr.outer_ipv4.length = meta.length + 50;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.fragment = 0x4000;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.protocol = PROTOCOL_UDP;
        hdr.outer_ipv4.checksum = 0;
        hdr.outer_ipv4.src = local;
        hdr.outer_ipv4.dst = remote;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src_port = 0xc000;
        hdr.outer_udp.dst_port = VXLAN_PORT;
        hdr.outer_udp.length = meta.length + 30;
        hdr.outer_udp.checksum = 0;
        hdr.vxlan.setValid();
        hdr.vxlan.flags = 8;
        hdr.vxlan.reserved = 0;
        hdr.vxlan.vni = (bit<24>)meta.vni;
        hdr.vxlan.reserved_too = 0;
        SEND(port);
    }

    action no_endpoint() {
        DROP;
    }

    action to_access(PORT port) {
        hdr.vxlan.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.udp.setInvalid();
        hdr.ethernet.setInvalid();
        SEND(port);
    }

    action no_station() {
        DROP;
    }

    table segments {
        key = {
            meta.input_port: exact;
        }
        actions = {
            set_segment;
            no_segment;
        }
        default_action = no_segment();
        size = 4096;
    }

    table endpoints {
        key = {
            meta.vni: exact;
            meta.dst: exact;
        }
        actions = {
            encapsulate;
            no_endpoint;
        }
        default_action = no_endpoint();
        size = 16384;
    }

    table stations {
        key = {
            meta.vni: exact;
            meta.dst: exact;
        }
        actions = {
            to_access;
            no_station;
        }
        default_action = no_station();
        size = 16384;
    }

    apply {
        meta.input_port = INPUT_PORT;
        meta.vni = 0;
        meta.segment_known = 0;
        meta.length = 0;
        if (hdr.vxlan.isValid()) {
            meta.vni = (bit<32>)hdr.vxlan.vni;
            meta.dst = hdr.outer_ethernet.dst;
            stations.apply();
        } else if (hdr.ipv4.isValid()) {
            meta.length = hdr.ipv4.length;
            meta.dst = hdr.ethernet.dst;
            segments.apply();
            if (meta.segment_known == 1) {
                endpoints.apply();
                UPDATE_IPV4_CHECKSUM(hdr.outer_ipv4)
            }
        } else {
            DROP;
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.outer_ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.vxlan);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

#define IPV4_CHECKSUM hdr.outer_ipv4
#include "../include/package.p4"
