// SPDX-License-Identifier: Apache-2.0
// The package. Before it is included, a program may define IPV4_CHECKSUM as the IPv4 header whose checksum is calculated.
#ifdef PNA
control NoPreControl(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
                     inout pna_pre_output_metadata_t ostd) {
    apply { }
}

PNA_NIC(FrameParser(), NoPreControl(), MainControl(), FrameDeparser()) main;
#else
control NoVerification(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control Checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
#ifdef IPV4_CHECKSUM
        update_checksum(IPV4_CHECKSUM.isValid(),
                        {IPV4_CHECKSUM.version_ihl, IPV4_CHECKSUM.tos, IPV4_CHECKSUM.length,
                         IPV4_CHECKSUM.identification, IPV4_CHECKSUM.fragment, IPV4_CHECKSUM.ttl,
                         IPV4_CHECKSUM.protocol, IPV4_CHECKSUM.src, IPV4_CHECKSUM.dst},
                        IPV4_CHECKSUM.checksum, HashAlgorithm.csum16);
#endif
    }
}

V1Switch(FrameParser(), NoVerification(), MainControl(), NoEgress(), Checksums(), FrameDeparser()) main;
#endif
