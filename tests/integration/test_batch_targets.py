"""A real target in batches: a tiny sweep through the fake of pos, compared with that of this machine."""

import json

import pytest
from support.command import p4perf
from support.pos import FakePos

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

SPEC = ("mat/exact-entries", "--points", 6, "--set", "entries=[100, 1000]", "--set", "trials.repetitions=1")


def only(folder):
    (run,) = [p for p in folder.glob("[!.]*") if (p / "manifest.json").exists()]
    return run


def manifest(run):
    return json.loads((run / "manifest.json").read_text())


def test_dpdk_c_on_pos(tmp_path):
    pos = FakePos(tmp_path / "pos")
    words = ("--target", "dpdk-c", "--quiet")
    there = p4perf("run", *SPEC, *words, "--testbed", f"pos:{pos.site()}", "-o", tmp_path / "there", timeout=300)
    here = p4perf("run", *SPEC, *words, "-o", tmp_path / "here", timeout=300)
    # A machine that others disturb may accept no trial.
    assert there.code in (0, 4), there.err
    assert here.code in (0, 4), here.err
    run, local = only(tmp_path / "there"), only(tmp_path / "here")
    entries = [json.loads(line) for p in run.glob("points/*/raw.jsonl") for line in p.read_text().splitlines()]
    assert len(entries) >= 2
    assert all(entry["record"]["verified_packets"] > 1000 for entry in entries)
    assert manifest(run)["planned_points"] == manifest(local)["planned_points"]
    assert manifest(run)["calibrations"][0]["cpus"]
    assert (run / "spec.yaml").read_bytes() == (local / "spec.yaml").read_bytes()
    assert pos.freed
    if there.code == here.code == 0:
        compared = p4perf("compare", run, local, "--format", "json", "--output", tmp_path / "comparison")
        assert compared.code == 0, compared.err
        assert json.loads(compared.out)["kind"]
