"""Reads the pages of the book: finds their fenced blocks and the commands in them, and runs them.

A `console` block is a session: a line that starts with `$ ` is a command, and the lines below it
are its output, with `...` for text that may differ. A `python` block runs in the namespace of its
page; a `pycon` block is a Python session with its output. Blocks in other languages are not run.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from conekg.cli.main import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOT_RUN = re.compile(r"^\*Not run by the tests: (.+)\*$")
"""The line above a block that the tests only parse; it gives readers the reason."""
_GENERATED = "cli.md"
"""A page made from the commands, whose usage lines are indented."""
_FENCE = re.compile(r"^```(\S*)$")
_OTHER_CODE = re.compile(r"^\s*(```|~~~)|^(    |\t)(?!\s*[-*|] )")
"""Other forms of code in Markdown, which the book may not use: `blocks_of` does not read them."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """The line of its opening fence, counted from 1."""
    language: str
    body: str
    not_run: str | None
    """Why the tests do not run it; None if the page gives no reason."""

    @property
    def place(self) -> str:
        """Its page and line, in the form that editors open."""
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Step:
    """One command of a session, and the output that the page shows; empty if it shows none."""

    command: str
    printed: str


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    language, reason, last_text = "", None, ""
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if start is not None:
            if line == "```":
                body = "\n".join(lines[start + 1 : number]) + "\n"
                found.append(Block(page, start + 1, language, body, reason))
                start, last_text = None, ""
        elif fence:
            start, language = number, fence[1]
            marked = NOT_RUN.match(last_text)
            reason = marked[1] if marked else None
        elif line.strip():
            assert not _OTHER_CODE.match(line) or page.name == _GENERATED, (
                f"{page.name}:{number + 1}: start a block with ``` and a language, unindented"
            )
            last_text = line
    assert start is None, f"{page.name}: the block of line {(start or 0) + 1} is not closed"
    return found


def steps_of(body: str) -> list[Step]:
    """The commands of a session; a line that ends in a backslash is joined with the next."""
    steps: list[Step] = []
    lines = iter(body.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            steps.append(Step(command, ""))
        else:
            assert steps, f"a session starts with a command, not with {line!r}"
            steps[-1] = Step(steps[-1].command, steps[-1].printed + line + "\n")
    return steps


def shell_commands(block: Block) -> list[str]:
    """The commands of a session or of a shell script, without comments."""
    if block.language == "console":
        return [step.command for step in steps_of(block.body)]
    joined = re.sub(r"\\\n\s*", " ", block.body)
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def words_of(command: str) -> list[list[str]]:
    """The words of each program that a command line starts, without variables set before it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    programs: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;<>"):
            programs.append([])
        elif programs[-1] or not re.match(r"^[A-Z_]+=", word):
            programs[-1].append(word)
    return [words for words in programs if words]


def check_conekg(words: list[str]) -> None:
    """Parse the arguments of `conekg` without running the command; an error if they are wrong."""
    import typer

    command: Any = typer.main.get_command(app)
    name, *rest = words
    while hasattr(command, "commands"):
        assert rest, f"{name} needs a sub-command"
        assert rest[0] in command.commands, f"{name} has no command {rest[0]!r}"
        command, name, rest = command.commands[rest[0]], f"{name} {rest[0]}", rest[1:]
    command.make_context(name, list(rest))


def inline_commands(page: Path) -> list[str]:
    """The calls of conekg in a page's running text, as inline code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`(conekg [^`]+)`", text)


def check_options(words: list[str]) -> None:
    """Check that a command exists and has the options named; its arguments may be left out."""
    import typer

    command: Any = typer.main.get_command(app)
    name, *rest = words
    while rest and hasattr(command, "commands"):
        assert rest[0] in command.commands, f"{name} has no command {rest[0]!r}"
        command, name, rest = command.commands[rest[0]], f"{name} {rest[0]}", rest[1:]
    known = {spelling for each in command.params for spelling in (*each.opts, *each.secondary_opts)}
    for word in rest:
        if word.startswith("--"):
            assert word in {*known, "--help"}, f"{name} has no option {word}"


class Session:
    """Runs the blocks of pages in one folder, each page with a Python namespace of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, page: Path) -> Iterator[Block]:
        """Run the blocks of a page that can be run and are not marked; yield each that was."""
        names: dict[str, Any] = {"__name__": "__main__"}
        for block in blocks_of(page):
            if block.not_run is None and self._run(block, names):
                yield block

    def _run(self, block: Block, names: dict[str, Any]) -> bool:
        match block.language:
            case "console":
                self._run_session(block)
            case "python":
                source = "\n" * block.line + block.body  # so that errors name the page's line
                exec(compile(source, str(block.page), "exec"), names)
            case "pycon":
                parser, runner = (
                    doctest.DocTestParser(),
                    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS),
                )
                test = parser.get_doctest(block.body, names, block.place, str(block.page), 0)
                reported: list[str] = []
                outcome = runner.run(test, out=reported.append, clear_globs=False)
                names.update(test.globs)
                assert outcome.failed == 0, f"{block.place}\n" + "".join(reported)
            case _:
                return False
        return True

    def _run_session(self, block: Block) -> None:
        steps = steps_of(block.body)
        if all(_is_plain(step.command) for step in steps):
            for step in steps:
                result = CliRunner().invoke(app, shlex.split(step.command)[1:])
                expected_code = 2 if step.printed.startswith("error:") else 0
                where = f"{block.place}: {step.command}\n{result.output}"
                assert result.exit_code == expected_code, f"{where}{result.exception!r}"
                _compare(step.printed, result.output, where)
            return
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        }
        script = "\n".join([_END_SERVERS, *(step.command for step in steps)])
        for port in re.findall(r"--port (\d+)", script):
            script = script.replace(port, str(_free_port()))
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=environment,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )
        where = f"{block.place}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, where
        _compare("".join(step.printed for step in steps), done.stdout, where)


_END_SERVERS = "trap 'jobs -p | xargs -r kill' EXIT"
"""End servers also if a command fails before the one that would end them."""


def _free_port() -> int:
    """A free port, in place of the one on a page: several test runs may share a machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_plain(command: str) -> bool:
    """Whether a command is a single call of conekg, which needs neither shell nor process."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words = list(lexer)
    return words[0] == "conekg" and not any(set(word) <= set("|&;<>") for word in words)


def _compare(printed: str, output: str, where: str) -> None:
    if printed:
        want, got = (
            "".join(f"{line.rstrip()}\n" for line in text.splitlines())
            for text in (printed, output)
        )
        checker = doctest.OutputChecker()
        assert checker.check_output(want, got, doctest.ELLIPSIS), f"{where}\nthe page has\n{want}"
