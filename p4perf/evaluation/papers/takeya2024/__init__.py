"""Takeya et al. 2024, "Understanding Roadblocks in Virtual Network I/O": its measurements (EIVU) and its model."""
