import pytest

from p4perf.errors import ExitCode, SpecError
from p4perf.specs import load_experiment
from p4perf.specs.loader import MAX_EXTENDS, load_tree


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return write


def refused(source):
    with pytest.raises(SpecError) as caught:
        load_tree(source)
    assert caught.value.exit_code == ExitCode.USAGE
    return caught.value


def test_names_and_files(write):
    assert load_tree("mat/exact-entries").child("name").content == "mat/exact-entries"
    assert load_tree(write("x.yaml", "name: x\n")).plain() == {"name": "x"}
    assert load_tree(write("no-suffix", "name: x\n")).plain() == {"name": "x"}


def test_a_file_extends_the_catalogue(write):
    tree = load_tree(write("x.yaml", "extends: mat/exact-entries\nname: x\n"))
    assert tree.child("name").content == "x"
    assert tree.at(("program", "component")).content == "match_action_table"
    assert tree.at(("trials", "repetitions")).content == 3
    assert tree.child("extends") is None


def test_a_file_extends_a_file_of_its_folder(write):
    write("parts/base.yaml", "extends: ./more.yaml\nb: 2\n")
    write("parts/more.yaml", "a: 1\nb: 1\n")
    assert load_tree(write("x.yaml", "extends: parts/base.yaml\nc: 3\n")).plain() == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize("target", ["../out.yaml", "sub/../../out.yaml", "{folder}/out.yaml", "link.yaml"])
def test_extends_stays_in_the_folder(write, tmp_path, target):
    outside = write("out.yaml", "a: 1\n")
    path = write("in/x.yaml", f"extends: {target.format(folder=tmp_path)}\n")
    (tmp_path / "in" / "link.yaml").symlink_to(outside)
    error = refused(path)
    assert "is outside of the folder of this spec" in error.message
    assert (error.location.file, error.location.line, error.location.column) == (path, 1, 10)


def test_former_keys_of_the_model(write):
    former = write("former.yaml", "extends: mat/exact-entries\nmodel: {max_parts: 4, parts: 3}\n")
    now = write("now.yaml", "extends: mat/exact-entries\nmodel: {max_segments: 4, segments: 3}\n")
    found = load_experiment(str(former))
    assert (found.spec.model.max_segments, found.spec.model.segments) == (4, 3)
    assert found.spec_hash == load_experiment(str(now)).spec_hash


def test_circles(write):
    assert "cannot extend itself" in refused(write("x.yaml", "extends: ./x.yaml\n")).message
    write("a.yaml", "extends: ./b.yaml\n")
    assert "cannot extend itself" in refused(write("b.yaml", "extends: ./a.yaml\n")).message


def test_long_chains(write):
    for n in range(MAX_EXTENDS + 1):
        write(f"s{n}.yaml", f"extends: ./s{n + 1}.yaml\n")
    write(f"s{MAX_EXTENDS + 1}.yaml", "a: 1\n")
    assert f"more than {MAX_EXTENDS} specs" in refused(write("s0.yaml", "extends: ./s1.yaml\n")).message
    assert load_tree(write("ok.yaml", f"extends: ./s{MAX_EXTENDS - 5}.yaml\n")).plain() == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: 5\n", "expected the name of a spec, got 5"),
        ("extends: [a]\n", "expected the name of a spec, got a list"),
        ("extends: ''\n", "expected the name of a spec"),
        ("extends: mat/exact-entires\n", "there is no 'mat/exact-entires' in the catalogue"),
        ("extends: ./none.yaml\n", "there is no file './none.yaml' beside this spec"),
        ('extends: "a\\0.yaml"\n', "outside"),
    ],
)
def test_extends_that_lead_nowhere(write, text, message):
    error = refused(write("x.yaml", text))
    assert message in error.message
    assert error.location.line == 1


def test_an_unknown_name_has_the_nearest():
    assert refused("parser/header").hint == "did you mean parser/headers?"
    assert "neither in the catalogue nor a file" in refused("").message
    assert "neither in the catalogue nor a file" in refused("a\0b").message


def test_files_that_do_not_exist(tmp_path):
    assert "there is no such file" in refused(str(tmp_path / "none.yaml")).message
    assert "is a directory" in refused(str(tmp_path)).message


def test_specs_to_extend_cannot_be_run():
    assert refused("base/common").message == "base/common is no experiment"


def test_what_is_not_a_mapping_is_left_to_the_schema(write):
    assert load_tree(write("x.yaml", "- a\n")).plain() == ["a"]
