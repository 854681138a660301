// SPDX-License-Identifier: Apache-2.0
// A learning switch: the source address is looked up to be learned, the destination to be forwarded to.
// Main path: both addresses are known.
// v1model: an unknown source is told to the control plane by a digest, an unknown destination goes to multicast group 1.
// p4c-dpdk has no digest and no multicast: an unknown source is counted, an unknown destination goes to port 0, where a
// control plane would take both from.
#include "../include/architecture.p4"
#include "../include/headers.p4"

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bit<32> input_port;
}

struct learned_t {
    bit<48> src;
    bit<32> port;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

CONTROL {
    COUNTER(unknown_sources, 256)

    action known() {
    }

    action learn() {
#ifdef PNA
        COUNT(unknown_sources, meta.input_port);
#else
        COUNT(unknown_sources, meta.input_port);
        digest<learned_t>(1, {hdr.ethernet.src, meta.input_port});
#endif
    }

    action forward(PORT port) {
        SEND(port);
    }

    action flood() {
#ifdef PNA
        SEND((PortId_t)0);
#else
        standard_metadata.mcast_grp = 1;
#endif
    }

    table sources {
        key = {
            hdr.ethernet.src: exact;
        }
        actions = {
            known;
            learn;
        }
        default_action = learn();
        size = 65536;
    }

    table destinations {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            forward;
            flood;
        }
        default_action = flood();
        size = 65536;
    }

    apply {
        meta.input_port = INPUT_PORT;
        sources.apply();
        destinations.apply();
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
    }
}

#include "../include/package.p4"
