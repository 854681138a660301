"""A file of claims: one that is computed, and some about a sweep that is measured."""

PAPER = """\
reproduction_version: 1
paper: mine2026
title: ours
authors: we
published: nowhere
claims:
"""

GROWS = """\
  - id: grows
    source: {section: 3}
    claim: Large tables cost more than small ones.
    kind: re-measured by shape
    command: p4perf run mat/exact-entries
    measure: &run
      experiment: mat/exact-entries
      target: fake
      change: ["sweep.entries=[10, 100, 1000, 10000, 100000, 1000000]", "trials.repetitions=1"]
      quick: ["sweep.entries=[10, 1000, 1000000]"]
    check: {name: curve-ratio, arguments: {low: 10, high: 1000000}}
    expect: {ratio: {at_least: 2}}
"""

RISES = """\
  - id: rises
    source: {section: 3}
    claim: They cost more and more.
    kind: re-measured by shape
    command: p4perf run mat/exact-entries
    measure: *run
    check: {name: curve-order}
    expect: {rank_correlation: {at_least: 0.5}}
"""

COMPUTED = """\
  - id: computed
    source: {equation: 5}
    claim: A table of 1000 entries takes 152 kB.
    kind: analytic
    command: p4perf list
    check: {name: working-set-bytes, arguments: {key_bytes: 16, action_data_bytes: 64, entries: 1000}}
    expect: {bytes: {value: 152128, unit: B}}
"""
