"""Two cores for two processes that work together."""

from __future__ import annotations

from p4perf.results.facts import NodeFacts, cpu_list


def two_cores(facts: NodeFacts) -> tuple[int, int] | None:
    """Two CPUs that may be used, best first, on two cores if possible; None if there are not two.

    Isolated CPUs come first, then the last ones.
    """
    allowed = facts.cpus
    if len(allowed) < 2:
        return None
    first, others = allowed[0], allowed[1:]
    siblings = next((group for group in _cores(facts) if first in group), [])
    return first, next((cpu for cpu in others if cpu not in siblings), others[0])


def share_a_core(facts: NodeFacts, pair: tuple[int, int]) -> bool:
    """Whether two CPUs are known to be threads of one core."""
    return any(set(pair) <= set(group) for group in _cores(facts))


def _cores(facts: NodeFacts) -> list[list[int]]:
    """The CPUs of each core, as far as the facts list them."""
    return [cpu_list(group) for group in facts.text("thread_siblings").split()]
