"""The published measurements of EIVU (Takeya 2024), and what they say of the claims that were made with them."""

from p4perf.evaluation.papers.takeya2024.eivu import SERVERS, Claim, Study, check_claims, read_study

__all__ = ["SERVERS", "Claim", "Study", "check_claims", "read_study"]
