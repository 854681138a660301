"""Every key of the JSON that the commands print, and of the files of a run, is on the page, and the other way round."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from docs_pages import DOCS
from support.command import p4perf
from support.cost_models import write_model
from support.operators import CURVES, make_operator_run
from support.runs import make_run
from test_docs_reference import reference

from p4perf.cli.inspect import documents
from p4perf.targets.builds import HARNESS_FILES, LOAD_FILES, harness_text

SWEEP = ["mat/exact-entries", "--set", "entries={log: [1, 1e6], points_per_decade: 3}"]
CAMPAIGN = ["--set", "trials.repetitions=1", "-t", "fake", "-t", "fake-small", "-t", "fake-absent"]
VARIABLE = "entries"
NEED_A_DEVICE = {"cost-model", "measure", "operator"}
"""Documents of commands that measure on real targets only; their schemas are checked where these commands are."""

COMMON = {"schema_version": "integer", "kind": "string"}
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "scalar": (bool, int, float, str),
    "mapping": dict,
    "null": type(None),
    "interval": dict,
    "any": object,
}


ITEM = re.compile(r"(?:^|; )`([^`]+(?:`, `[^`]+)*)`(?: \(([^)]*)\))? ")
"""A key or several with their type, in front of what they mean."""


def listed(title):
    """Key -> type and unit, of each list below a title of the page; items begin with the object that has their keys."""
    found, text = [], (DOCS / "json.md").read_text()
    below = re.split(r"^#", text.partition(f"# {title}\n")[2], flags=re.MULTILINE)[0]
    for items in re.findall(r"(?:^- .*\n(?:  .*\n)*)+", below, re.MULTILINE):
        found.append({})
        for item in re.split(r"^- ", items, flags=re.MULTILINE)[1:]:
            place, _, keys = re.fullmatch(r"(?:`([^`]+)`(:) )?(.*)", " ".join(item.split())).groups()
            every = [(key, kind) for names, kind in ITEM.findall(keys) for key in names.split("`, `")]
            found[-1] |= {f"{place}.{key}" if place else key: kind for key, kind in every}
    return found


def section(title):
    """Key -> type, of the record that the page is made from, else of the first list below a title of the page."""
    if record := documents().get(title):
        return {row.key: row.type for row in reference().key_table(record)}
    return {key: kind_of(said) for key, said in listed(title)[0].items()}


def kind_of(said):
    """The type of a key, from what stands in brackets behind it: nothing for a string, else type, unit and so on."""
    first = said.partition(", ")[0]
    kind = first.replace("?", " or null") if first not in ("", "optional") else "string"
    return kind + (", optional" if "optional" in said.split(", ") else "")


def fits(value, kind):
    """Whether a value is of the type that a cell names."""
    kind = kind.removesuffix(", optional")
    if " or " in kind:
        return any(fits(value, part) for part in kind.split(" or "))
    if kind.startswith("list of "):
        return isinstance(value, list) and all(fits(item, kind.removeprefix("list of ")) for item in value)
    return isinstance(value, TYPES[kind]) and (kind in ("boolean", "scalar") or not isinstance(value, bool))


def walk(value, said, key=""):
    """Keys with their values, as the page writes them; a key of the page without any below it ends the walk."""
    below = any(each.startswith((f"{key}.", f"{key}[]")) for each in said)
    if key and key in said:
        yield key, value
    if key and key in said and not below:
        return
    if isinstance(value, dict):
        for name, child in value.items():
            place = f"{key}.{name}" if key else name
            if place not in said and not any(each.startswith((f"{place}.", f"{place}[]")) for each in said):
                free = [each for each in said if re.fullmatch(re.escape(f"{key}." if key else "") + "<.*>", each)]
                place = free[0] if free else place
            yield from walk(child, said, place)
    elif isinstance(value, list):
        for child in value:
            yield from walk(child, said, f"{key}[]")
    elif key not in said:
        yield key, value


def compare(said, *values):
    """The keys of all values together are those of the page, and every value has the type that the page names."""
    seen = set()
    for value in values:
        for key, item in walk(value, said):
            assert key in said, f"{key} is not on the page"
            assert fits(item, said[key]), f"{key} is {item!r}, not {said[key]}"
            seen.add(key)
    assert seen >= {key for key, kind in said.items() if not kind.endswith(", optional")}


def compilers(folder):
    """A path with a compiler that takes everything and another that is missing."""
    folder.mkdir()
    tool = folder / "p4test"
    tool.write_text("#!/bin/sh\necho a message\n")
    tool.chmod(0o755)
    return f"{folder}:/bin:/usr/bin"


def printed(*arguments, code=0, cwd=None, **env):
    done = p4perf(*arguments, "--format", "json", cwd=cwd, **env)
    assert done.code == code, done.err
    return json.loads(done.out)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run on the stand-in target, and what the command printed."""
    folder = tmp_path_factory.mktemp("runs")
    model = printed("run", *SWEEP, "--target", "fake", "-o", folder)
    (path,) = folder.iterdir()
    return path, model


def commands(run, tmp_path):
    """Kind -> what the commands of that kind print."""
    path, model = run
    data = tmp_path / "data.csv"
    data.write_text("x,y\n" + "\n".join(f"{n},{3 * n + 2}" for n in range(1, 20)))
    yield "list.runs", [printed("list", "runs", "--in", path.parent)]
    plain = (
        "experiments",
        "targets",
        "testbeds",
        "components",
        "generators",
        "load-generators",
        "searches",
        "importers",
        "metrics",
        "functions",
        "hardware",
        "operations",
        "models",
        "published-models",
        "eivu",
        "eivu-cells",
    )
    for what in plain:
        yield f"list.{what}", [printed("list", what)]
    for what in ("targets", "generators"):
        yield f"list.{what}.components", [printed("list", what, "--components")]
        yield f"list.{what}.limits", [printed("list", what, "--limits")]
    yield "status", [printed("status", path)]
    yield "check", [printed("check", *SWEEP)]
    yield "plan", [printed("run", *SWEEP, "--target", "fake-small", "--dry-run")]
    sweep = ["--set", "entries=[10, 2000]", "-g", "v1model", "-g", "t4p4s"]
    yield "generate", [printed("generate", "mat/exact-entries", *sweep, "-o", tmp_path)]
    yield "generate.all", [printed("generate", "--all", "--points", "1", "-g", "t4p4s", "-o", tmp_path / "all")]
    tools = compilers(tmp_path / "tools")
    options = [*sweep, "--verify", "-o", tmp_path]
    yield "generate.verify", [printed("generate", "mat/exact-entries", *options, PATH=tools)]
    yield "show", [printed("show", path)]
    yield "import", [imported(tmp_path)]
    yield "import.plan", [imported(tmp_path, "--dry-run")]
    fitted = printed("fit", data, "--x", "x", "--y", "y", "-o", tmp_path)
    yield "model", [model, printed("fit", path), printed("resume", path), fitted]
    campaign = printed("run", *SWEEP, *CAMPAIGN, "-o", tmp_path / "campaigns", code=3)
    yield "campaign", [campaign, printed("status", campaign["campaign"])]
    many = tmp_path / "many.csv"
    many.write_text("table,x,y\n" + "".join(f"{t},{n},{3 * n + 2}\n" for t in "ab" for n in range(1, 9)) + "c,1,?\n")
    answer = printed("fit", many, "--x", "x", "--y", "y", "--by", "table", "-o", tmp_path / "m.jsonl", code=6)
    yield "models", [answer]
    yield "comparison", [printed("compare", *compared(tmp_path), "-o", tmp_path / "comparison")]
    old, new, slow = gated(tmp_path / "gated")
    failed = printed("gate", "--baseline", old, slow, code=1)
    yield "gate", [printed("gate", "--baseline", old, new), failed]
    again = ("--baseline", old, "--baseline", slow, new, "--margin", "0.9")
    yield "gate.history", [printed("gate", *again, code=6) and printed("gate", "--history")]
    yield "pack", [printed("pack", old, cwd=tmp_path)]
    yield "curves", [curves(tmp_path)]
    yield "report", [printed("report", path, "-o", tmp_path / "site")]
    yield (
        "cesim",
        [
            printed("estimate", "cesim"),
            printed("estimate", "cesim", "--inverse", "100mpps", "--fit", cache_data(tmp_path)),
        ],
    )
    yield "factors", [printed("analyse", "factors", factor_data(tmp_path), "--metric", "y", "-o", tmp_path / "factors")]
    yield "reproduce.eivu", [printed("reproduce", "eivu")]
    yield from estimated()
    yield from queues(tmp_path)
    yield "predict", predictions(tmp_path)
    yield "opq", operators(tmp_path)
    yield "reproduction", [printed("reproduce", "baldi2018:basic-total", "-o", tmp_path / "claims")]
    yield "reproduction.claims", [printed("reproduce", "--list")]
    yield "reproduction.papers", [printed("reproduce")]
    yield "doctor", [printed("doctor")]


def curves(folder):
    """A published curve beside a fitted one in another unit, and one that crosses it."""
    for name, base, slope in (("a", 100.0, 0.05), ("b", 60.0, 2.0)):
        run = make_run(folder / name, lambda x, b=base, s=slope: b + s * x, noise=0.001)
        printed("fit", run, "--segments", "1")
        run.rename(folder / f"{name}-run")
    names = (folder / "a-run", folder / "b-run", "t4p4s@scholz2021")
    return printed("compare", "--component", "mat/exact-entries", *names)


def estimated():
    """What white-box models print."""
    machine = ("--hardware", "xeon-e5-2690v2")
    one = printed("estimate", "eo", "parser/headers", "--points", "1", *machine)
    yield (
        "eo",
        [
            printed("estimate", "eo", "switch/basic", *machine),
            printed("estimate", "eo", "bng/core", "switch/mpls", *machine),
            one,
        ],
    )
    yield "eo.sweep", [printed("estimate", "eo", "mat/exact-entries", "--points", "2", *machine)]
    host = ("--host", "xeon-e5-2690v2")
    answers = [
        printed("estimate", "place", "switch/basic=1Mpps", *host),
        printed("estimate", "place", "bng/core=9Gpps", *host, code=1),
    ]
    yield "place", answers


def queues(folder):
    """What queue models print: with a buffer, compared and simulated; in poll mode; tuned."""
    seen = folder / "measured.csv"
    seen.write_text("rate_mpps,mean_us,p50_us,p99_us,loss\n0.1,80,75,150,0\n0.1,82,76,155,0\n")
    common = ("estimate", "queue", "--service", "det:7us", "--rate", "0.1Mpps")
    options = ("--buffer", "300us", "--check", "--simulate", "20000", "--measured", seen, "-o", folder / "queue")
    yield (
        "queue",
        [printed(*common, *options), printed("estimate", "queue", "--service", "det:1us", "--rate", "0.1mpps", *POLL)],
    )
    yield "queue.tune", [printed(*common, "--tune", "mean", "--moderation", "50us")]


POLL = ("--mode", "poll", "--ring", "64")


def predictions(folder):
    """Of points, one of which a target refuses and the others are measured; and of changes."""
    models = folder / "models"
    models.mkdir()
    for target in ("fake", "fake-small"):
        write_model(models / f"{target}.json", target=target)
    given = ("--model", models / "fake.json", "--model", models / "fake-small.json", "-o", folder / "predicted")
    point = ("mat/exact-entries", "--set")
    changed = ("--set", "entries=[1000]", "--without", "match_action_table", "--rate", "1Mpps", *given[:2])
    resized = ("--set", "entries=[1000]", "--set", "key_bits=32", *given[:2])
    measured = (*point, "entries=[50, 1000]", *given, "--measure", "--runs", folder / "measured")
    return [
        printed("predict", *measured),
        printed("predict", point[0], *changed),
        printed("predict", point[0], *resized),
    ]


def operators(folder):
    """The published platforms beside two runs that hold a pair and an operator below the resolution."""
    curves = {**CURVES, "checksum+hash_lookup": lambda s: 100.0 + s}
    runs = [make_operator_run(folder, curves, seed=seed) for seed in range(2)]
    found = printed("analyse", "opq", *runs, "--with", "ren2025", "--agree", "-o", folder / "opq")
    return [found, printed("analyse", "opq", runs[0], "-o", folder / "opq")]


def imported(folder, *arguments):
    """What an import prints; one cell is empty, and left out."""
    table = folder / "table.csv"
    table.write_text("entries,cycles_per_packet,cache_misses,machine\n1,2,3,a\n2,3,,a\n")
    options = ("--x", "entries", "--set", "cores=1", "-o", folder / "imported")
    return printed("import", table, *options, *arguments)


def cache_data(folder):
    """Hit ratios and throughputs."""
    path = folder / "cache.csv"
    path.write_text("hit_ratio,throughput_mpps\n0.99,9.6\n0.999,57\n0.9995,86\n0.9999,143\n1,172\n")
    return path


def factor_data(folder):
    """Repetitions of all combinations of two factors."""
    path = folder / "factors.csv"
    path.write_text(
        "a,b,y\n" + "".join(f"{a},{b},{1 + a + 2 * b + n}\n" for a in (0, 1) for b in (0, 1) for n in (0, 1))
    )
    return path


def compared(folder):
    """Runs of two experiments on two targets; the models cross."""
    for spec in ("mat/exact-entries", "parser/headers"):
        sweep = [("entries", "[1, 4, 16, 64, 256]")] if spec == "mat/exact-entries" else []
        for target, slope in (("a", 1), ("b", 2)):
            curve = lambda x, slope=slope: 50 - 4 * slope + slope * x  # noqa: E731
            yield make_run(folder, curve, spec=spec, overrides=sweep, target=target, node={"cpu_model": target})


def gated(folder):
    """A run, one that is the same on another machine, and one that is slower on that."""
    curve = {"baseline_cycles_per_packet": lambda _: 20.0}
    sweep = [("entries", "[1, 10, 100, 1000]")]
    yield make_run(folder, lambda x: 50 + x, overrides=sweep, metrics=curve)
    for seed, factor in ((1, 1.0), (2, 1.5)):
        yield make_run(
            folder, lambda x, f=factor: (50 + x) * f, overrides=sweep, metrics=curve, seed=seed, node={"kernel": "7"}
        )


@pytest.mark.thorough  # minutes of commands; all commands of tests that print JSON are held against its schema
def test_commands_print_what_the_page_says(run, tmp_path):
    common = COMMON
    kinds = set()
    for kind, answers in commands(run, tmp_path):
        assert all(answer["kind"] == kind for answer in answers)
        compare(common | section(kind), *answers)
        kinds.add(kind)
    assert kinds | NEED_A_DEVICE == documents().keys()


def test_a_point_without_accepted_trials_has_null(tmp_path):
    spec = tmp_path / "noisy.yaml"
    spec.write_text("name: noisy\nextends: mat/exact-entries\nsweep: {entries: [10, 20]}\nmodel: null\n")
    assert p4perf("run", spec, "--target", "fake-noisy", "-o", tmp_path / "runs").code == 4
    (path,) = (tmp_path / "runs").iterdir()
    shown = printed("show", path)
    compare(COMMON | section("show"), shown)
    assert shown["rows"][0]["median"] is None
    assert shown["rows"][0]["n"] == 0


def test_files_of_a_run(run, tmp_path):
    path, _ = run
    compare(section("manifest.json"), json.loads((path / "manifest.json").read_text()))
    compare(section("model.json"), json.loads((path / "model.json").read_text()))
    for point in (path / "points").iterdir():
        compare(section("raw.jsonl"), *map(json.loads, (point / "raw.jsonl").read_text().splitlines()))
        compare(section("finished.json"), json.loads((point / "finished.json").read_text()))


def test_the_record_of_a_failure(tmp_path):
    done = p4perf("run", "mat/exact-entries", "--points", "2", "--target", "fake-wrong", "-o", tmp_path)
    assert done.code == 4
    for journal in tmp_path.glob("*/points/*/raw.jsonl"):
        compare(section("raw.jsonl"), *map(json.loads, journal.read_text().splitlines()))


def between(said, first, last):
    """The keys of a section from one to another."""
    keys = list(said)
    return keys[keys.index(first) : keys.index(last) + 1]


@pytest.mark.thorough
def test_files_of_a_campaign(tmp_path):
    found = printed("run", *SWEEP, *CAMPAIGN, "--budget", "10m", "-o", tmp_path, code=3)
    row = section("campaign")
    reported = {key.replace("rows[]", "cells[]"): row[key] for key in row if key != "campaign"}
    some = {*between(reported, "cells[].experiment", "cells[].error"), "cells[].run"} - {"cells[].what"}
    for name, keys in (
        ("campaign.json", section("campaign.json") | {k: reported[k] for k in some}),
        ("report.json", reported),
    ):
        compare(keys, json.loads((Path(found["campaign"]) / name).read_text()))


def test_files_of_an_import(tmp_path):
    path = Path(imported(tmp_path)["run"])
    known = section("manifest.json")
    shared = {*between(known, "schema_version", "spec_hash"), "planned_points", "node", "versions", "command"}
    said = {key: kind for key, kind in known.items() if key in shared or key.startswith("points[].")}
    said |= {"hugepages": "null"} | section("manifest.json of an import")
    compare(said, json.loads((path / "manifest.json").read_text()))
    for journal in path.glob("points/*/raw.jsonl"):
        compare(section("raw.jsonl of an import"), *map(json.loads, journal.read_text().splitlines()))


@pytest.mark.thorough
def test_refused_points_of_a_manifest(tmp_path):
    printed("run", *SWEEP, "--target", "fake-small", "-o", tmp_path)
    (path,) = tmp_path.iterdir()
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["refused"]
    compare(section("manifest.json"), manifest)


@pytest.mark.thorough
def test_files_of_a_reproduction(tmp_path):
    printed("reproduce", "baldi2018:basic-total", "-o", tmp_path / "claims")
    printed_keys = section("reproduction")
    shared = {key: printed_keys[key] for key in between(printed_keys, "checked", "exit_code")}
    found = json.loads((tmp_path / "claims" / "reproduction.json").read_text())
    compare(section("reproduction.json") | shared, found)


def test_columns_of_the_measurements(run):
    table = pd.read_parquet(run[0] / "measurements.parquet")
    said = section("measurements.parquet")
    assert [("<variable>" if c == VARIABLE else c) for c in table.columns] == list(said)
    for column, kind in zip(table.columns, said.values(), strict=True):
        assert all(fits(value, kind) for value in table[column].tolist()[:20])


def test_keys_of_the_record_of_dpdk_c():
    said = listed("raw.jsonl")[1]
    text = "\n".join(harness_text(name for name in HARNESS_FILES if name not in LOAD_FILES).values())
    printed_keys = set(re.findall(r'\\"(\w+)\\": ', text)) - {"error", "kind", "windows", "n"}
    arrays = set(re.findall(r'\{"(\w+)", "%', text)) | {"n"}
    assert set(said) == printed_keys | {f"windows.{key}" for key in arrays}
