"""Gebert et al. 2016: Performance Modeling of Softwarized Network Functions Using Discrete-Time Analysis."""
