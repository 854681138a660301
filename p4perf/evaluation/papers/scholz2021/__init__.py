"""Scholz et al. 2021: A Framework for Reproducible Data Plane Performance Modeling."""
