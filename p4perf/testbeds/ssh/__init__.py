"""Testbed ssh: nodes that are reached by the system's OpenSSH."""
