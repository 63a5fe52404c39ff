"""Result files: bad paths are refused before the work, and files are written whole."""

import os
import re
import tempfile
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
    ["run.json", "recipe.toml", "metrics.jsonl", "calibration.json", "calibration-last.json",
     "evaluation.json", "graph", "queries/test.arrow", "tensorboard/events",
     "checkpoints/best/model.safetensors"],
)  # fmt: skip
def test_files_of_a_run_are_not_overwritten(run, name):
    told = re.escape(f"cannot write {run / name}: it is part of the run {run} and would")
    for check in (lambda path: check_files([path]), refuse_part_of_run):
        with pytest.raises(ConfigError, match=told) as caught:
            check(run / name)
        assert caught.value.key == "out"


def test_other_files_may_be_written_into_a_run(run):
    check_files([run / "results.md", run / "graph.svg"])
    assert not (run / "results.md").exists(), "what was tried is not left behind"


def test_files_of_these_names_outside_runs_may_be_written(tmp_path):
    (tmp_path / "graph").mkdir()
    names = ("recipe.toml", "metrics.jsonl", "queries", "graph/results.md")
    check_files([tmp_path / name for name in names])


def test_files_that_are_read_are_not_overwritten(tmp_path):
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tb\tc\n")
    (tmp_path / "link").symlink_to(facts)
    for path in (facts, tmp_path / "link", tmp_path / "x" / ".." / "facts.tsv"):
        with pytest.raises(ConfigError, match="the command reads from there"):
            check_files([None, path], ["geography", str(facts)])
    assert facts.read_text() == "a\tb\tc\n"


def test_files_in_a_folder_that_is_read_are_not_overwritten(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "graph.json").write_text("{}")
    with pytest.raises(ConfigError, match="the command reads from there"):
        check_files([tmp_path / "store" / "graph.json"], [tmp_path / "store"])
    check_files([tmp_path / "store" / "new.svg"], [tmp_path / "store"])


def test_a_link_to_a_file_that_is_not_there_yet_stays_a_link(tmp_path):
    link, target = tmp_path / "link.md", tmp_path / "target.md"
    link.symlink_to(target)
    check_files([link])
    assert link.is_symlink()
    assert not target.exists()
    write_file(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"


def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("before")
    path.chmod(0o664)
    write_file(path, "after")
    assert path.stat().st_mode & 0o777 == 0o664


def test_two_results_need_two_files(tmp_path):
    with pytest.raises(ConfigError, match="another result goes to the same file"):
        check_files([tmp_path / "a", None, tmp_path / "b", tmp_path / "a"])


def test_a_path_that_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        check_files([tmp_path / "none" / "a.md"])
    with pytest.raises(ConfigError, match="it is a folder"):
        check_files([tmp_path])
    with pytest.raises(ConfigError, match=r"cannot write /proc/a\.md"):
        check_files([Path("/proc/a.md")])


def test_a_pipe_is_not_waited_for(tmp_path, monkeypatch):
    """The folder of a pipe or device need not be writable; /dev is not."""

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    os.mkfifo(tmp_path / "pipe")
    check_files([tmp_path / "pipe"])
    with pytest.raises(ConfigError, match=f"cannot write .*: Permission denied in {tmp_path}"):
        check_files([tmp_path / "file"])


def test_a_result_replaces_a_file_completely_or_not_at_all(tmp_path, capsys):
    path = tmp_path / "a.md"
    path.write_text("before")
    write_file(path, "after ∧")
    assert path.read_text(encoding="utf-8") == "after ∧"
    assert f"wrote {path}" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]


def test_a_pipe_is_written_into_and_not_replaced(tmp_path, capsys, monkeypatch):
    """With a pipe of its own: run as root, a mistake here would replace the machine's /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "gone ∧", "drew")
    assert os.read(reader, 99).decode() == "gone ∧"
    os.close(reader)
    assert pipe.is_fifo()
    assert f"drew {pipe}" in capsys.readouterr().err

    def fill(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fill)
    with pytest.raises(ConfigError, match=f"cannot write {pipe}: No space left on device"):
        write_file(pipe, "gone")
    assert pipe.is_fifo()
    assert capsys.readouterr().err == ""
