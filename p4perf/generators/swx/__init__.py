"""Specifications of the SWX pipeline of DPDK."""
