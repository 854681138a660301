"""Testbed pos: nodes that the orchestrator pos allocates, boots and runs scripts on."""
