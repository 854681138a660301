"""Fitting: from medians to piecewise models, with intervals."""
