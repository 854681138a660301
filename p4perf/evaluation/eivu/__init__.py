"""The published measurements of EIVU (Takeya 2024), and what they say of the claims that were made with them."""

from p4perf.evaluation.eivu.claims import Claim, check_claims
from p4perf.evaluation.eivu.study import SERVERS, Study, read_study

__all__ = ["SERVERS", "Claim", "Study", "check_claims", "read_study"]
