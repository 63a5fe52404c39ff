"""`conekg sample`: draw queries with their answers from a graph and write them to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from conekg.cli.console import print_json, print_table, progress, say, warn
from conekg.cli.graph_source import open_and_report
from conekg.cli.options import JsonOption
from conekg.cli.output_file import refuse_part_of_run
from conekg.errors import ConfigError, unknown_choice
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.lines import counted
from conekg.query.parse import parse_shape
from conekg.query.shape import Shape
from conekg.sampling.protocol import LINK, PRESETS, PathEnd, SamplingProtocol, preset_of
from conekg.sampling.query_set import check_replaceable, save_query_set

if TYPE_CHECKING:
    from conekg.sampling.sample import Progress, SampledSet


SplitChoice: TypeAlias = Literal["train", "valid", "test", "all"]
"""Which query sets to sample."""


def sample(
    graph: Annotated[
        str,
        typer.Argument(help="geography, a benchmark's name, a graph folder, or a file of triples."),
    ],
    out: Annotated[Path, typer.Option(help="The Arrow file to write; a folder for --split all.")],
    split: Annotated[SplitChoice, typer.Option(help="Which query sets to sample.")] = "all",
    preset: Annotated[
        str | None,
        typer.Option(
            help=f"The protocol: {', '.join(PRESETS)}. "
            "By default the graph's own if it has one, otherwise small."
        ),
    ] = None,
    shapes: Annotated[
        str | None,
        typer.Option(
            help="Only these query shapes, separated by commas: by name (2in) or spelled out "
            "(e.r.r.r.r)."
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Queries per shape, instead of the preset's number.")
    ] = None,
    cap: Annotated[
        str | None,
        typer.Option(
            help="Largest number of hard answers of a valid or test query, or none for no limit."
        ),
    ] = None,
    train_cap: Annotated[
        str | None,
        typer.Option(
            help="Largest number of answers of a training query of any shape, or none for no limit."
        ),
    ] = None,
    train_paths_from: Annotated[
        PathEnd | None,
        typer.Option(
            help="Draw training paths backwards from an answer, or forwards from an anchor, which "
            "gives fewer answers per query. By default as in the preset."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same queries.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of threads; does not change the result. By default one per core."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sample queries with easy and hard answers, by the protocol of the BetaE benchmarks."""
    from conekg.sampling.sample import sample_query_set  # numba takes a while to load

    _check_out(out, split)
    wanted = None if shapes is None else [parse_shape(text) for text in shapes.split(",")]
    opened = open_and_report(graph)
    protocol = _protocol(opened, preset, cap, train_cap, train_paths_from)
    _refuse_idle_cap(split, cap, train_cap)
    if train_paths_from is not None:
        _refuse_idle_path_end(split, wanted or protocol.shapes("train"))
    splits = [part for part in SPLITS if split in (part, "all")]
    reports = []
    for part in splits:
        with _shown(opened, part, protocol, wanted, count) as shown:
            sampled = sample_query_set(
                opened,
                part,
                protocol,
                seed,
                shapes=wanted,
                count=count,
                workers=workers,
                progress=shown,
            )
        path = out / f"{part}.arrow" if split == "all" else out
        save_query_set(path, sampled.query_set)
        say(f"wrote {path}: {counted(len(sampled.query_set), 'query')}")
        reports.append(_report(part, path, sampled))
        if not as_json:
            _print(part, sampled)
        _warn_of_shortfall(opened, part, sampled)
    if as_json:
        print_json({"graph": opened.fingerprint, "seed": seed, "sets": reports})


def _check_out(out: Path, split: SplitChoice) -> None:
    """Raise ConfigError before the work starts if --out cannot be written."""
    if split == "all" and out.exists() and not out.is_dir():
        raise ConfigError(
            f"--out is {str(out)!r}, a file; --split all writes a folder with a file per split",
            key="out",
        )
    if split != "all" and out.is_dir():
        raise ConfigError(
            f"--out is {str(out)!r}, a folder; a single split is written to a file, such as "
            f"{str(out / split) + '.arrow'!r}",
            key="out",
        )
    files = [out / f"{part}.arrow" for part in SPLITS] if split == "all" else [out]
    for file in files:
        refuse_part_of_run(file)
        check_replaceable(file)


def _protocol(
    graph: KnowledgeGraph,
    preset: str | None,
    cap: str | None,
    train_cap: str | None,
    train_paths_from: PathEnd | None,
) -> SamplingProtocol:
    if preset is None:
        protocol, not_by_name = preset_of(graph)
        if not_by_name is not None:
            warn(f"chose the preset {protocol.name!r}: {not_by_name}")
    elif preset in PRESETS:
        protocol = PRESETS[preset]
    else:
        raise unknown_choice("preset", preset, PRESETS)
    if cap is not None:
        protocol = replace(protocol, cap=_number_or_none(cap, "cap"))
    if train_cap is not None:
        number = _number_or_none(train_cap, "train-cap")
        protocol = replace(protocol, train_cap=number, train_negation_cap=number)
    if train_paths_from is not None:
        protocol = replace(protocol, train_paths_from=train_paths_from)
    return protocol


def _refuse_idle_cap(split: SplitChoice, cap: str | None, train_cap: str | None) -> None:
    """Raise ConfigError if a cap is given for queries that are not sampled."""
    is_training = split == "train"
    if split == "all" or (cap if is_training else train_cap) is None:
        return
    idle, other = ("cap", "train-cap") if is_training else ("train-cap", "cap")
    raise ConfigError(
        f"--{idle} has no effect on {split} queries; their cap is --{other}",
        key=idle,
    )


def _refuse_idle_path_end(split: SplitChoice, shapes: Sequence[Shape]) -> None:
    """Raise ConfigError if no training path is drawn; links are all taken rather than drawn."""
    drawn = [shape for shape in shapes if shape.is_path and shape != LINK]
    if split in ("train", "all") and drawn:
        return
    why = f"no shape of {', '.join(s.name for s in shapes)} is a path of two hops or more"
    if split not in ("train", "all"):
        why = f"the paths of {split} queries are always drawn from an answer"
    raise ConfigError(
        f"--train-paths-from has no effect: {why}; leave it out", key="train-paths-from"
    )


def _number_or_none(text: str, option: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(
            f"--{option} is {text!r}; give a whole number from 1, or none", key=option
        )
    return int(text)


@contextmanager
def _shown(
    graph: KnowledgeGraph,
    split: Split,
    protocol: SamplingProtocol,
    shapes: list[Shape] | None,
    count: int | None,
) -> Iterator[Progress]:
    """Progress over all shapes of a set; a shape counts once its number of queries is known."""
    resolved = protocol.for_graph(graph)
    chosen = resolved.shapes(split) if shapes is None else shapes
    total = sum(count or resolved.count(split, shape) or 0 for shape in chosen)
    found: dict[Shape, int] = {}
    with progress(f"sampling {split} queries", total, "queries") as report:

        def show(shape: Shape, done: int, wanted: int | None) -> None:
            if wanted is not None:
                found[shape] = done
            report.update(sum(found.values()), note=shape.name)

        yield show


def _report(split: Split, path: Path, sampled: SampledSet) -> dict[str, Any]:
    return {
        "split": split,
        "path": str(path),
        "protocol": sampled.query_set.protocol,
        "queries": len(sampled.query_set),
        "shapes": [
            {
                "shape": report.shape.name,
                "wanted": report.wanted,
                "found": report.found,
                "attempts": report.attempts,
                "rejected": report.rejected,
                "mean_easy": report.mean_easy,
                "mean_hard": report.mean_hard,
            }
            for report in sampled.reports
        ],
    }


def _print(split: Split, sampled: SampledSet) -> None:
    rows = [
        [
            report.shape.name,
            f"{report.found:,}",
            f"{report.mean_easy:.2f}",
            f"{report.mean_hard:.2f}",
            f"{report.attempts:,}",
            ", ".join(f"{number:,} {reason}" for reason, number in report.rejected.items()),
        ]
        for report in sampled.reports
    ]
    columns = ["shape", "queries", "easy per query", "hard per query", "attempts", "rejected"]
    print_table(f"{split} queries", columns, rows)


def _warn_of_shortfall(graph: KnowledgeGraph, split: Split, sampled: SampledSet) -> None:
    if split != "train" and not len(graph.edges(split)):
        warn(
            f"there are no {split} queries, because the graph has no {split} facts; "
            f"`conekg graph build --{split}-share` holds some facts of a file out"
        )
        return
    for report in sampled.reports:
        if report.shortfall > 0:
            warn(
                f"only {report.found:,} of {report.wanted:,} queries of shape "
                f"{report.shape.name} were found; the graph has hardly any more"
            )
