"""THE PROGRAM, made or read: what it is, what it means, and the components that make one."""
