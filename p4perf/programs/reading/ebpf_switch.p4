
struct p4perf_metadata_t {
}

parser P4perfParser(packet_in packet, out $headers hdr, inout p4perf_metadata_t meta, inout standard_metadata_t sm) {
    $parser() filter_parser;
    state start {
        filter_parser.apply(packet, hdr);
        transition accept;
    }
}

control P4perfIngress(inout $headers hdr, inout p4perf_metadata_t meta, inout standard_metadata_t sm) {
    $control() filter;
    apply {
        $headers copy = hdr;
        bool accepted = false;
        if (sm.parser_error == error.NoError) {
            filter.apply(copy, accepted);
        }
        if (accepted) {
            sm.egress_spec = $port;
        } else {
            mark_to_drop(sm);
        }
    }
}

control P4perfSums(inout $headers hdr, inout p4perf_metadata_t meta) {
    apply {
    }
}

control P4perfEgress(inout $headers hdr, inout p4perf_metadata_t meta, inout standard_metadata_t sm) {
    apply {
    }
}

control P4perfDeparser(packet_out packet, in $headers hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P4perfParser(), P4perfSums(), P4perfIngress(), P4perfEgress(), P4perfSums(), P4perfDeparser()) main;
