"""The flame graph of a cost breakdown, and rates over frame sizes: what is drawn; equal numbers give equal bytes."""

import pytest
from support.pricing import PRICES, FlatPricing, router

from p4perf.evaluation.plots.prediction import flame_boxes, flame_figure, rate_figure, shortened
from p4perf.evaluation.plots.style import save_figure
from p4perf.evaluation.prediction.answer import Conditions, TargetModel, predict


def found(**more):
    return predict(router(), TargetModel(FlatPricing(**more), "bench", 2e9, "test"), Conditions(offered=None))


@pytest.mark.parametrize("interaction", [0.0, 8.0, -8.0])
def test_boxes_are_as_wide_as_their_cycles_and_lie_below_one_another(interaction):
    each = found(interaction=interaction)
    boxes = flame_boxes(each.expected, "router")
    levels = {level: [b for b in boxes if b.level == level] for level in range(4)}
    assert levels[0][0].width == pytest.approx(90 + max(interaction, 0))
    assert sum(b.width for b in levels[1]) == pytest.approx(90 + max(interaction, 0))
    assert sum(b.width for b in levels[2]) == pytest.approx(sum(b.width for b in levels[3])) == pytest.approx(70)
    for level in (2, 3):
        for box in levels[level]:
            assert any(
                up.start - 1e-9 <= box.start and box.start + box.width <= up.start + up.width + 1e-9
                for up in levels[level - 1]
            )


def test_boxes_of_what_is_not_measured_are_hatched():
    each = predict(
        router(), TargetModel(FlatPricing(prices={**PRICES}), "bench", 2e9, "test"), Conditions(offered=None)
    )
    assert not any(box.hatch for box in flame_boxes(each.expected, "router"))
    from p4perf.evaluation.prediction.programs import changed, parse_change

    far = predict(changed(router(), [parse_change("fib.entries=2e6")]), each.model, Conditions(offered=None))
    hatched = [box.text for box in flame_boxes(far.expected, "router") if box.hatch]
    assert len(hatched) == 1
    assert "2000000" in hatched[0] or "2e+06" in hatched[0]


def test_text_is_as_long_as_there_is_room():
    assert shortened("ingress.fib", 20) == "ingress.fib"
    assert shortened("ingress.fib", 6) == "ingre…"
    assert shortened("ingress.fib", 3) == ""


def test_figures_are_the_same_bytes_each_time(tmp_path):
    each = found()
    for name, draw in (("breakdown", flame_figure), ("rates", lambda p: rate_figure([p, p]))):
        for n in (1, 2):
            save_figure(draw(each), tmp_path / f"{name}{n}.svg")
        one, two = ((tmp_path / f"{name}{n}.svg").read_bytes() for n in (1, 2))
        assert one == two
    assert "ingress.fib" in (tmp_path / "breakdown1.svg").read_text()
