"""The checks of claims by name.

A check takes the arguments of a claim and returns quantities by name; those of :data:`SHAPES` take a measured run
first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from p4perf.evaluation.reproduction.checks import baldi2018, gebert2016, ren2025, scholz2021, shapes, takeya2024
from p4perf.evaluation.reproduction.schema import Quantity

Check = Callable[..., Mapping[str, Quantity]]


def _named(*checks: Check) -> Mapping[str, Check]:
    """Checks by their names, words joined by hyphens."""
    return MappingProxyType({check.__name__.replace("_", "-"): check for check in checks})


CHECKS = _named(
    scholz2021.working_set_bytes,
    scholz2021.working_set_entries,
    scholz2021.working_set_explains,
    scholz2021.error_over_points,
    scholz2021.capped_parameters,
    scholz2021.simpler_within_margin,
    scholz2021.winners_over_orders,
    scholz2021.function_templates,
    scholz2021.rank_of_polynomial,
    scholz2021.margins,
    scholz2021.piecewise_at_split,
    scholz2021.combined_error,
    scholz2021.fittings_of_brute_force,
    scholz2021.derived_parts,
    scholz2021.fit_time,
    scholz2021.passes_on_the_line,
    scholz2021.lossless_frame_bytes,
    scholz2021.overfitting,
    scholz2021.outlier_sensitivity,
    baldi2018.operation_cost,
    baldi2018.function_cost,
    baldi2018.frame_independence,
    baldi2018.share_of_links,
    baldi2018.cache_for_tables,
    baldi2018.cache_latencies,
    baldi2018.published_operations,
    baldi2018.prefix_lookups,
    baldi2018.memory_rate,
    baldi2018.memory_ratio,
    baldi2018.gateway_rate,
    baldi2018.remote_packets,
    baldi2018.cost_ratio,
    gebert2016.queue_point,
    gebert2016.queue_ratio,
    gebert2016.queue_spread,
    gebert2016.queue_loss,
    gebert2016.loss_gap,
    gebert2016.queue_distance,
    gebert2016.queue_nearer,
    gebert2016.queue_convergence,
    gebert2016.queue_over_means,
    gebert2016.arrival_shape,
    gebert2016.geometric_is_negative_binomial,
    gebert2016.buffer_limit,
    gebert2016.service_time,
    gebert2016.packets_per_second,
    gebert2016.load_approximation,
    gebert2016.overhead_effect,
    gebert2016.largest_accepted_work,
    gebert2016.conservation,
    ren2025.delta_cost,
    ren2025.operator_row,
    ren2025.operator_quadrant,
    ren2025.quadrants_of,
    ren2025.shifted_operators,
    ren2025.operators_in,
    ren2025.accelerating_operators,
    ren2025.accelerating_share,
    ren2025.cost_contrast,
    ren2025.platform_ratio,
    ren2025.dearest_operator,
    ren2025.goodness_of_fits,
    ren2025.threshold_of_table,
    ren2025.burst_in_cache,
    takeya2024.study_claim,
    takeya2024.study_number,
    takeya2024.throughput,
    takeya2024.throughput_gain,
    takeya2024.dpdk_range,
    takeya2024.counts,
    takeya2024.factor_effects,
    takeya2024.loads_per_packet,
    takeya2024.model_parameters,
    takeya2024.model_throughput,
    takeya2024.model_hit_ratio,
    takeya2024.model_tipping_point,
    takeya2024.model_levels,
)
"""Checks that need nothing but what ships with p4perf."""

SHAPES = _named(
    shapes.curve_parts,
    shapes.curve_ratio,
    shapes.curve_order,
    shapes.curve_line,
    shapes.cost_per_step,
    shapes.operator_law,
    shapes.operator_exponents,
    shapes.operator_ratio,
    shapes.operator_dearest,
    shapes.cell_ratio,
    shapes.cell_synergy,
    shapes.largest_loss_of,
)
"""Checks of a run that was measured for the claim."""
