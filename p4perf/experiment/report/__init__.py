"""A static site of runs, comparisons, predictions and claims."""
