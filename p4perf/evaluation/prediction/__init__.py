"""What a program will cost on a target: cycles, rates, latency and loss, and the cost breakdown that says why."""
