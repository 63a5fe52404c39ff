"""Result files: what is refused before the work, and that what is written is whole."""

import os
from pathlib import Path

import pytest

from conekg.cli.output_file import check_files, refuse_part_of_run, write_file
from conekg.errors import ConfigError


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    for part in ("graph", "queries", "checkpoints/best"):
        (folder / part).mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    "name",
    ["run.json", "recipe.toml", "metrics.jsonl", "calibration.json", "graph", "queries/test.arrow",
     "checkpoints/best/model.safetensors"],
)  # fmt: skip
def test_what_a_run_consists_of_is_not_written_over(run, name):
    for check in (lambda path: check_files([path]), refuse_part_of_run):
        with pytest.raises(ConfigError, match="it is a part of the run"):
            check(run / name)


def test_other_files_may_lie_in_a_run(run):
    check_files([run / "results.md", run / "graph.svg"])
    assert not (run / "results.md").exists(), "what was tried is not left behind"


def test_files_of_these_names_elsewhere_are_nobodys(tmp_path):
    check_files([tmp_path / "recipe.toml", tmp_path / "metrics.jsonl"])


def test_what_is_read_is_not_written_over(tmp_path):
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tb\tc\n")
    (tmp_path / "link").symlink_to(facts)
    for path in (facts, tmp_path / "link", tmp_path / "x" / ".." / "facts.tsv"):
        with pytest.raises(ConfigError, match="it is what is read"):
            check_files([None, path], ["geography", str(facts)])
    assert facts.read_text() == "a\tb\tc\n"


def test_two_results_need_two_files(tmp_path):
    with pytest.raises(ConfigError, match="another result goes there"):
        check_files([tmp_path / "a", None, tmp_path / "b", tmp_path / "a"])


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        check_files([tmp_path / "none" / "a.md"])
    with pytest.raises(ConfigError, match="it is a folder"):
        check_files([tmp_path])
    with pytest.raises(ConfigError, match=r"cannot write /proc/a\.md"):
        check_files([Path("/proc/a.md")])


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    check_files([tmp_path / "pipe"])


def test_what_is_written_replaces_all_or_nothing(tmp_path, capsys):
    path = tmp_path / "a.md"
    path.write_text("before")
    write_file(path, "after ∧")
    assert path.read_text(encoding="utf-8") == "after ∧"
    assert f"wrote {path}" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]
    write_file(Path("/dev/null"), "gone", "drew")
    assert "drew /dev/null" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="cannot write /dev/full: No space left"):
        write_file(Path("/dev/full"), "gone")
