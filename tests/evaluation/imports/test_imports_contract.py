"""What every importer has to do, ours and other people's."""

import contextlib
import json

import pytest
from support.imports import csit_test, histogram, make_pos, trex_stats

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.imports import Importer, ImportOptions, Named
from p4perf.plugins import load_plugin, plugin_names
from p4perf.specs.metrics import metric_named

NAMES = plugin_names("p4perf.importers")


@pytest.fixture
def examples(tmp_path):
    """A source for each importer."""
    texts = {"csit": json.dumps(csit_test()), "trex": trex_stats(), "moongen": histogram({5: 100})}
    texts["csv"] = "size,cycles_per_packet\n1,2\n"
    paths = {"pos": make_pos(tmp_path, [({"size": 1}, 2.0)])}
    for name, text in texts.items():
        paths[name] = tmp_path / f"{name}.data"
        paths[name].write_text(text)
    return paths


@pytest.mark.parametrize("name", NAMES)
def test_contract(name, examples):
    kind = load_plugin("p4perf.importers", name)
    assert issubclass(kind, Importer)
    assert kind.name == name
    assert 0 < len(kind.summary) <= 120
    reader = kind()
    assert reader.recognises(examples[name])
    variables = (Named("size"),) if name == "csv" else ()
    reading = reader.read(examples[name], ImportOptions(variables=variables))
    assert reading.trials
    assert reading == reader.read(examples[name], ImportOptions(variables=variables))
    for trial in reading.trials:
        for value in trial.values:
            assert value.place.file in reading.files
            assert metric_named(value.metric) if value.metric else value.why


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_recognised_and_read_by_chance(name, tmp_path):
    reader = load_plugin("p4perf.importers", name)()
    for number, data in enumerate((b"", b"\0\1", b"\xff\xfe", b"{", b"[[[", b"a" * 5000, b"\x1f\x8b")):
        path = tmp_path / str(number)
        path.write_bytes(data)
        assert not reader.recognises(path)
        with contextlib.suppress(DataError, UsageError):
            assert reader.read(path, ImportOptions(variables=(Named("a"),))).trials == ()
