"""Programs of your own, read."""
