"""A packet filter for ebpf_model.p4, as p4c-ebpf prints it."""

FILTER = """#include <core.p4>
#include <ebpf_model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<64> first;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> sum;
    bit<32> src;
    bit<32> dst;
}

struct Headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

parser prs(packet_in p, out Headers_t headers) {
    state start {
        p.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            16w0x800: ip;
            default: reject;
        }
    }
    state ip {
        p.extract(headers.ipv4);
        transition accept;
    }
}

control pipe(inout Headers_t headers, out bool pass) {
    action Check(bit<8> ttl) {
        pass = headers.ipv4.ttl > ttl;
    }
    action Pass() {
        pass = true;
    }
    table senders {
        key = {
            headers.ipv4.src     : exact;
            headers.ipv4.protocol: exact;
        }
        actions = {
            Check;
            Pass;
        }
        implementation = hash_table(64);
        const default_action = Pass();
    }
    table routes {
        key = {
            headers.ipv4.dst: lpm;
        }
        actions = {
            Check;
            Pass;
            NoAction;
        }
        implementation = hash_table(64);
        default_action = NoAction();
    }
    apply {
        pass = true;
        senders.apply();
        if (pass) {
            routes.apply();
        }
    }
}

ebpfFilter(prs(), pipe()) main;
"""
