"""NUMBERS, in wings that know each other through their front doors only."""
