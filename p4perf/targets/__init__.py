"""THE DEVICE under test. One module a target: what it supports, how it is built, run and read."""
