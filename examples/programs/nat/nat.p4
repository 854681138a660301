// SPDX-License-Identifier: Apache-2.0
// Source NAT for TCP and UDP: address and port of the source are replaced, as the table of connections says, and both
// checksums are brought up to date. That of TCP or UDP follows from the old one and what changed (RFC 1624), in
// additions that both architectures have; a UDP checksum of zero stays.
// Main path: a TCP segment from inside, of a known connection, and a known route.
#include "../include/architecture.p4"
#include "../include/headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tcp_t tcp;
    udp_t udp;
}

struct metadata_t {
    bit<16> src_port;
    bit<16> new_port;
    bit<32> sum;
    bit<16> checksum;
    bit<8> translated;
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
            PROTOCOL_TCP: tcp;
            PROTOCOL_UDP: udp;
            default: accept;
        }
    }
    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT

    // The sum of ~m and m' of RFC 1624, HC' = ~(~HC + ~m + m'), without the ports, and the new address and port.
    action translate(bit<32> address, bit<16> port) {
        // One expression: p4c writes out what stands in a variable of an action wherever it is used.
        meta.sum = ((hdr.ipv4.src >> 16) ^ 0xffff) + ((hdr.ipv4.src & 0xffff) ^ 0xffff) + (address >> 16) +
                   (address & 0xffff);
        meta.new_port = port;
        meta.translated = 1;
        hdr.ipv4.src = address;
    }

    action no_connection() {
        DROP;
    }

    action forward(bit<48> dst, PORT port) {
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        SEND(port);
    }

    action no_route() {
        DROP;
    }

    table connections {
        key = {
            hdr.ipv4.src: exact;
            meta.src_port: exact;
            hdr.ipv4.protocol: exact;
        }
        actions = {
            translate;
            no_connection;
        }
        default_action = no_connection();
        size = 65536;
    }

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            forward;
            no_route;
        }
        default_action = no_route();
        size = 1024;
    }

    apply {
        meta.src_port = 0;
        meta.new_port = 0;
        meta.sum = 0;
        meta.checksum = 0;
        meta.translated = 0;
        if (hdr.tcp.isValid()) {
            meta.src_port = hdr.tcp.src_port;
            meta.checksum = hdr.tcp.checksum;
        } else if (hdr.udp.isValid()) {
            meta.src_port = hdr.udp.src_port;
            meta.checksum = hdr.udp.checksum;
        } else {
            DROP;
        }
        connections.apply();
        if (meta.translated == 1) {
            meta.sum = meta.sum + (bit<32>)(meta.checksum ^ 0xffff);
            meta.sum = meta.sum + ((bit<32>)meta.src_port ^ 0xffff);
            meta.sum = meta.sum + (bit<32>)meta.new_port;
            // The carries are added in again, twice at most. The branches keep p4c from writing the sum out in each use.
            if (meta.sum > 0xffff) {
                meta.sum = (meta.sum & 0xffff) + (meta.sum >> 16);
            }
            if (meta.sum > 0xffff) {
                meta.sum = (meta.sum & 0xffff) + (meta.sum >> 16);
            }
            meta.checksum = (bit<16>)meta.sum ^ 0xffff;
            if (hdr.tcp.isValid()) {
                hdr.tcp.src_port = meta.new_port;
                hdr.tcp.checksum = meta.checksum;
            } else {
                hdr.udp.src_port = meta.new_port;
                if (hdr.udp.checksum != 0) {
                    hdr.udp.checksum = meta.checksum;
                }
            }
            routes.apply();
            UPDATE_IPV4_CHECKSUM(hdr.ipv4)
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#define IPV4_CHECKSUM hdr.ipv4
#include "../include/package.p4"
