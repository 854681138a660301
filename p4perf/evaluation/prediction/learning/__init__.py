"""Prices of what programs are made of, from measured programs."""
