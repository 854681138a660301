"""C for DPDK and XDP."""
