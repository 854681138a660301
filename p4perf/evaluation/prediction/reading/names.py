"""Names of what the steps of a program have in common with no program."""

SENT, LOST = "sent", "dropped"

DROPPED, PORT, RESUBMITTED = "$dropped", "$port", "$resubmitted"
"""Fields in which is remembered whether a packet was dropped, whether it is deparsed because it has a port by which to
leave or goes through the program again, and whether it comes again as it came."""
SWX = "dpdk-swx"
XDP = "xdp"
"""The target whose programs that were read work on a copy of their headers, and search prefixes in tries."""
STACK_FULL = "stack full"
"""Label of the edge of a parser state that extracts an element that a header stack does not have."""
