"""The checks of claims by name.

A check takes the arguments of a claim and returns quantities by name; those of :data:`SHAPES` take a measured run
first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from p4perf.evaluation.papers import shapes
from p4perf.evaluation.papers.baldi2018 import checks as baldi2018
from p4perf.evaluation.papers.claims import Quantity
from p4perf.evaluation.papers.gebert2016 import checks as gebert2016
from p4perf.evaluation.papers.ren2025 import checks as ren2025
from p4perf.evaluation.papers.scholz2021 import checks as scholz2021
from p4perf.evaluation.papers.takeya2024 import checks as takeya2024

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
    scholz2021.derived_segments,
    scholz2021.fit_time,
    scholz2021.passes_on_the_line,
    scholz2021.lossless_frame_bytes,
    scholz2021.overfitting,
    scholz2021.outlier_sensitivity,
    scholz2021.aic_and_margin,
    scholz2021.heuristic_breakpoints,
    scholz2021.heuristic_on_figure_2,
    scholz2021.drops_over_loss,
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
    baldi2018.field_cost,
    baldi2018.total_with_access_of_checksum,
    baldi2018.rates_at_clock,
    baldi2018.estimates_over_sizes,
    baldi2018.frame_where_links_bind,
    baldi2018.platform_specific,
    baldi2018.learning_costs,
    baldi2018.encapsulated_bytes,
    baldi2018.figure_3_cycles,
    baldi2018.figure_3_words,
    baldi2018.figure_3_sum,
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
    gebert2016.queue_segments,
    gebert2016.waiting_in_card,
    gebert2016.line_rate,
    gebert2016.interrupt_load,
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
    ren2025.cost_per_byte,
    ren2025.highest_increase,
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
    takeya2024.items_of_servers,
    takeya2024.kinds_of_items,
    takeya2024.changes_of_factor,
    takeya2024.dpdk_bit_rates,
    takeya2024.bits_as_packets,
    takeya2024.gains_over_servers,
    takeya2024.best_items,
    takeya2024.least_of_factors,
    takeya2024.median_miss_percent,
    takeya2024.hit_ratios_of,
    takeya2024.model_machine,
    takeya2024.model_errors,
)
"""Checks that need nothing but what ships with p4perf."""

SHAPES = _named(
    shapes.curve_segments,
    shapes.growth_at_caches,
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
