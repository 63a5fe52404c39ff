"""`conekg reproduce all`: every experiment that the runs allow, into one folder.

The result of an experiment is written before the next one begins, so that an interruption loses
only the current one. Experiments that do not apply to these runs are left out, and the index says
why. Results that the index of an earlier call lists do not stay beside those of other runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conekg.cli.console import say
from conekg.cli.measured import Measured, measure
from conekg.cli.output_file import check_files, refuse_part_of_run, write_file
from conekg.errors import ConfigError, DataError, StoreError, UnsupportedOperatorError
from conekg.graph.place import make_folder

if TYPE_CHECKING:
    from conekg.experiments.experiment import Experiment
    from conekg.training.run import Run

ALL = "all"
"""The name that stands for all experiments."""
_INDEX = "index.md"
_ENDINGS = (".json", ".md", ".png")
"""The endings of the files of an experiment, which are named after it."""


def reproduce_all(runs: Sequence[Run], given: Mapping[str, Any]) -> None:
    """Run and write every experiment that the runs allow; options go to those that use them."""
    from conekg.experiments.catalog import EXPERIMENTS

    if not runs:
        raise ConfigError(f"{ALL} needs at least one RUN: a folder from `conekg fit`")
    folder: Path | None = given.get("out")
    if folder is None:
        raise ConfigError(f"{ALL} needs --out FOLDER, the folder to write to", key="out")
    refuse_part_of_run(folder / _INDEX)
    make_folder(folder)
    names = [f"{name}{end}" for name in EXPERIMENTS for end in _ENDINGS]
    read = [given["queries"]] if "queries" in given else []
    check_files([folder / name for name in (_INDEX, *names)], read)
    can_draw = _can_draw(folder)
    earlier = _linked_in(folder / _INDEX)
    _remove([folder / _INDEX])  # it is not about the files that follow
    lines = list[str]()
    for experiment in EXPERIMENTS.values():
        own = {key: value for key, value in given.items() if key in experiment.options}
        if "out" in own:
            own["out"] = folder / experiment.name
        try:
            measured = _measure(experiment, runs, own)
        except StoreError:
            raise  # a damaged file concerns all experiments
        except (ConfigError, DataError, UnsupportedOperatorError) as error:
            say(f"{experiment.name} left out: {error.message}")
            _remove(earlier & {folder / f"{experiment.name}{end}" for end in _ENDINGS})
            lines.append(_line(experiment, f"left out: {error.message}"))
            continue
        measured.print()
        if not can_draw:
            _remove(earlier & {folder / f"{experiment.name}.png"})
        lines.append(_line(experiment, ", ".join(_write(measured, folder, can_draw))))
    write_file(folder / _INDEX, _index(runs, lines))


def _measure(experiment: Experiment, runs: Sequence[Run], own: Mapping[str, Any]) -> Measured:
    if experiment.compares and len(runs) == 1:
        raise ConfigError("it compares runs, and only one is given")
    return measure(experiment, runs if experiment.needs_runs else (), own)


def _write(measured: Measured, folder: Path, can_draw: bool) -> list[str]:
    """Write the files of an experiment; return links to them."""
    name = measured.experiment.name
    measured.write_json(folder / f"{name}.json")
    measured.write_markdown(folder / f"{name}.md")
    links = [f"[tables]({name}.md)", f"[data]({name}.json)"]
    if "out" in measured.experiment.options:
        links.append(f"[files]({name}/)")
    elif can_draw:
        measured.draw(folder / f"{name}.png")
        links.append(f"[picture]({name}.png)")
    return links


def _linked_in(index: Path) -> set[Path]:
    """The files that the index of an earlier call lists; none without one."""
    if not index.is_file():
        return set()
    lines = index.read_text(encoding="utf-8", errors="replace").splitlines()
    links = [link for line in lines for link in re.findall(r"\]\(([\w.-]+)\)", line)]
    return {index.parent / link for link in links}


def _remove(paths: Iterable[Path]) -> None:
    """Remove files of an earlier call, if they are still there."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot remove {path}: {error.strerror}") from error


def _can_draw(folder: Path) -> bool:
    """Whether pictures can be drawn; if not, say so, and go on without them."""
    from conekg.experiments.picture import check_picture

    try:
        check_picture(folder / "any.png")
    except ConfigError as error:
        say(f"no pictures: {error.message}")
        return False
    return True


def _line(experiment: Experiment, result: str) -> str:
    from conekg.experiments.published import place_of

    places = ", ".join(map(place_of, experiment.paper))
    cells = (experiment.name, experiment.summary, places, result.replace("\n", " "))
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _index(runs: Sequence[Run], lines: Sequence[str]) -> str:
    """The page that lists what is in the folder."""
    folders = ", ".join(f"`{run.folder}`" for run in runs)
    head = [f"# conekg reproduce {ALL}", "", f"Of {folders}.", ""]
    head += ["| experiment | what it measures | in the paper | result |", "|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"
