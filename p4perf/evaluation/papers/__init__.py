"""The claims of published papers, and whether they are reproduced. Each paper has a folder with its checks."""

from p4perf.evaluation.papers.claims import Claim as Claim
from p4perf.evaluation.papers.claims import Expectation as Expectation
from p4perf.evaluation.papers.claims import Finding as Finding
from p4perf.evaluation.papers.claims import Kind as Kind
from p4perf.evaluation.papers.claims import Quantity as Quantity
from p4perf.evaluation.papers.claims import impossible as impossible
from p4perf.evaluation.papers.claims import judge as judge
from p4perf.evaluation.papers.loading import PaperClaims as PaperClaims
from p4perf.evaluation.papers.loading import chosen_claims as chosen_claims
from p4perf.evaluation.papers.loading import parse_paper as parse_paper
from p4perf.evaluation.papers.loading import shipped_papers as shipped_papers
