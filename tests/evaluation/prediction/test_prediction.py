"""Programs that are drawn to check predictions."""

from _drawn_programs import FRAME_BYTES, draw_programs

from p4perf.programs.component import build_workload


def test_drawn_programs_repeat_themselves_and_fit():
    programs = draw_programs(3, 50)
    assert programs == draw_programs(3, 50)
    assert programs != draw_programs(4, 50)
    assert len({repr(p) for p in programs}) == 50
    assert {len(p) for p in programs} == set(range(3, 9))
    for components in programs[:5]:
        build_workload(components, frame_size_bytes=FRAME_BYTES)
    kinds = [name for p in programs for name, _ in p]
    assert 0.4 < kinds.count("match_action_table") / len(kinds) < 0.6
