"""THE PLACE. One module an environment: facts, builds and jobs on its nodes."""
