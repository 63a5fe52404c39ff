"""Writes docs/cli.md, the reference of every command and option, from the commands themselves.

    python docs/make_cli.py

A test fails if the page does not match the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from conekg.cli.main import app

PAGE = Path(__file__).with_name("cli.md")

HEAD = """# Commands

Made by `python docs/make_cli.py` from the commands; do not edit. Every command prints the same
with `--help`. Results go to standard output, everything else to standard error. Wrong input is
reported in one message, with exit code 2.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [HEAD]
    for words, command in commands(typer.main.get_command(app), ("conekg",)):
        parts.append(_section(words, command))
    return "\n".join(parts)


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The command and, if it is a group, all commands below it, each with the words to call it."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from commands(below, (*words, name))


def visible_parameters(command: Any) -> tuple[list[Any], list[Any]]:
    """The arguments and the options of a command, without hidden ones and those like `--help`."""
    everywhere = {"help", "install_completion", "show_completion"}
    shown = [
        each
        for each in command.params
        if each.name not in everywhere and not getattr(each, "hidden", False)
    ]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    return arguments, [each for each in shown if each.param_type_name == "option"]


def _section(words: tuple[str, ...], command: Any) -> str:
    level = "##" if len(words) <= 2 else "###"
    arguments, options = visible_parameters(command)
    is_group = hasattr(command, "commands")
    usage = [*words, "COMMAND"] if is_group else [*words, *map(_metavar, arguments)]
    usage += ["[OPTIONS]"] if options and not is_group else []
    lines = [f"{level} {' '.join(words)}", "", f"    {' '.join(usage)}", ""]
    lines += [_plain(command.help or ""), ""]
    if arguments or options:
        lines += ["| argument or option | default | what it does |", "|---|---|---|"]
        lines += [_row(f"`{each.name.upper()}`", each) for each in arguments]
        kinds = get_type_hints(command.callback)
        lines += [_row(_spelling(each, kinds[each.name]), each) for each in options]
        lines.append("")
    return "\n".join(lines)


def _metavar(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _spelling(option: Any, kind: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag:
        return names
    return f"{names} {option.metavar or _values(kind)}"


def _values(kind: Any) -> str:
    """The values of an option of a Python type, as the table shows them."""
    kinds = [each for each in get_args(kind) if each is not type(None)]
    if get_origin(kind) is Literal:
        return r" \| ".join(f"`{choice}`" for choice in kinds)
    if kinds:  # the option is optional or repeatable
        return _values(kinds[0])
    return {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH"}[kind]


def _row(name: str, parameter: Any) -> str:
    if parameter.required:
        default = "required"
    elif parameter.default is None or parameter.default is False or parameter.multiple:
        default = ""
    else:
        default = f"`{parameter.default}`"
    help_text = _plain(parameter.help or "").replace("|", "\\|")
    variable = getattr(parameter, "envvar", None)
    if variable:
        help_text += f" Also read from the environment variable `{variable}`."
    return f"| {name} | {default} | {help_text} |"


def _plain(text: str) -> str:
    """Help text without line breaks inside its paragraphs."""
    paragraphs = text.replace("\b", "").strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
