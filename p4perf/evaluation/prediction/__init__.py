"""What whole programs cost: from what was measured of their parts."""
