from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from conekg.cli.main import app

runner = CliRunner()


def test_the_help_page_says_what_conekg_is_and_where_to_start() -> None:
    page = runner.invoke(app, ["--help"])
    assert page.exit_code == 0
    for words in ("Answer logical questions", "Start here", "demo", "graph", "geography"):
        assert words in page.output


def test_no_arguments_show_the_help_page() -> None:
    assert "Usage" in runner.invoke(app, []).output


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_printed(option: str) -> None:
    told = runner.invoke(app, [option])
    assert told.exit_code == 0
    assert told.output.startswith("conekg 0.")


def test_failures_are_one_message_on_standard_error_and_exit_2() -> None:
    command = [sys.executable, "-m", "conekg", "graph", "info", "geografy"]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.startswith("error: no graph, folder or file named 'geografy'\n")
    assert "did you mean 'geography'?" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("words", [("entities", "-n", "5000"), ("info", "--json"), ("relations",)])
def test_a_full_disk_is_one_message_and_exit_code_2(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "conekg", "graph", *words]
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert failed.returncode == 2
    assert failed.stderr == "error: there is no space left\nfree some space and try again\n"


def test_other_file_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("conekg.cli.demo.load_geography", fail)
    assert isinstance(runner.invoke(app, ["demo", "--exact"]).exception, OSError)


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (
            RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported"),
            ": CUDA error: out of memory\n",
        ),
        (
            RuntimeError("Triton Error [CUDA]: out of memory"),
            ": Triton Error [CUDA]: out of memory\n",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore"),
            ": CUDA out ",
        ),
        (
            RuntimeError("[enforce] DefaultCPUAllocator: can't allocate memory"),
            ": [enforce] Default",
        ),
        (MemoryError("Unable to allocate 2 GiB"), ": Unable to allocate 2 GiB\n"),
        (MemoryError(), "\nend other programs"),
    ],
)
def test_a_lack_of_memory_is_one_message_and_exit_code_2(
    error: Exception, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("conekg.cli.demo.load_geography", fail)
    failed = runner.invoke(app, ["demo", "--exact"])
    assert failed.exit_code == 2
    assert failed.stderr.startswith(f"error: there is not enough memory{detail}")
    assert ("CUDA_VISIBLE_DEVICES=" in failed.stderr) == ("CUDA" in str(error))


def test_other_errors_are_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("conekg.cli.demo.load_geography", fail)
    assert str(runner.invoke(app, ["demo", "--exact"]).exception) == "a bug"


def test_unknown_commands_and_options_exit_2() -> None:
    assert runner.invoke(app, ["grpah"]).exit_code == 2
    assert runner.invoke(app, ["graph", "info", "--jsno"]).exit_code == 2


def command_names() -> list[list[str]]:
    """Every command of the program, as the words that call it."""
    names = [[command.name or command.callback.__name__] for command in app.registered_commands]  # type: ignore[union-attr]
    for group in app.registered_groups:
        assert group.name is not None
        assert group.typer_instance is not None
        names += [
            [group.name, command.name or command.callback.__name__]  # type: ignore[union-attr]
            for command in group.typer_instance.registered_commands
        ]
    return names


@pytest.mark.parametrize("words", command_names(), ids=" ".join)
def test_every_command_explains_itself(words: list[str]) -> None:
    page = runner.invoke(app, [*words, "--help"])
    assert page.exit_code == 0, page.output
    assert "Usage" in page.output


def test_a_path_that_the_system_refuses_is_one_message_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "a" * 300
    for words in (["graph", "info", long], ["graph", "build", "geography", "--out", long]):
        told = runner.invoke(app, words)
        assert told.exit_code == 2
        assert told.stderr.replace("\n", "").endswith(f"{long}: File name too long")

    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refused)
    told = runner.invoke(app, ["graph", "info", "secret/facts.tsv"])
    assert told.exit_code == 2
    assert told.stderr == "error: secret/facts.tsv: Permission denied\n"


def test_other_system_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> bool:
        raise OSError(9, "Bad file descriptor", str(path))

    monkeypatch.setattr(Path, "is_dir", broken)
    assert isinstance(runner.invoke(app, ["graph", "info", "facts.tsv"]).exception, OSError)


def test_ctrl_c_while_the_command_is_loaded_leaves_no_traceback() -> None:
    program = """
import sys
from conekg.__main__ import run

class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "conekg.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
run()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
