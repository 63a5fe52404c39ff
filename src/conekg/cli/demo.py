"""`conekg demo`: fit the built-in graph, then ask it a few questions.

Answers that follow from the training facts are known; the model predicts the others.
With `--exact` nothing is trained: the questions are answered from the facts alone.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from conekg.cli.console import print_json, print_text, say
from conekg.cli.options import JsonOption
from conekg.errors import ConfigError
from conekg.graph.geography import load_geography

QUESTIONS = (
    (
        "Provinces of countries that border France and do not use the euro",
        "(France.borders & !Euro.^uses_currency).has_province",
    ),
    (
        "Countries that border both Germany and Italy",
        "Germany.borders & Italy.borders",
    ),
    (
        "Capitals of South American countries where Spanish is not spoken",
        '("South America".^in_subregion & !Spanish.^speaks).capital',
    ),
    (
        "Languages of the countries that use the US dollar or the euro, English aside",
        '("US Dollar" | Euro).^uses_currency.speaks & !English',
    ),
)
"""Questions in words and in the query language."""

ASKED = (
    (
        "Which countries border Austria and do not speak German?",
        "Austria.borders & !German.^speaks",
    ),
    (
        "Which countries speak Dutch or border Belgium?",
        "Dutch.^speaks | Belgium.borders",
    ),
    (
        "Which currencies are used by the countries that border both Germany and Italy?",
        "(Germany.borders & Italy.borders).uses_currency",
    ),
)
"""Questions to the trained model: a negation, a union, and an intersection with a hop."""

RUN = Path("demo-run")
"""The run folder that the demonstration writes by default."""

TOLD = 7
"""How many answers of a trained model are printed, each with its reason."""

SHOWN = 12
"""How many answers of a question are printed."""


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help=f"The run folder, {RUN} by default; an existing run is used again.",
            show_default=False,
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Train nothing: answer from the facts alone.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train on the built-in graph of the world (a minute or two) and ask it three questions."""
    if exact:
        if out is not None:
            raise ConfigError("--out is for a run, but --exact trains nothing and writes no run")
        _answer_exactly(as_json)
        return
    if as_json:
        raise ConfigError(
            "--json needs --exact; `conekg ask --json` prints a run's answers as JSON"
        )
    from conekg.cli.ask import ask
    from conekg.cli.fit import check_same_graph, fit
    from conekg.cli.training_report import in_shell
    from conekg.training.run import is_run

    out = out or RUN
    begun = is_run(out)
    if begun:
        check_same_graph(out, "geography")
        say(f"{out} already exists and is used; remove it to train again")
    fit("geography", out, recipe="small", resume=begun)
    for words, text in ASKED:
        asked = f"conekg ask {in_shell(out)} {in_shell(text)} --top-k {TOLD} --explain"
        print_text(f"\n{words}\n$ {asked}")
        ask(out, text, top_k=TOLD, explain=True)


def _answer_exactly(as_json: bool) -> None:
    from conekg.query.parse import parse_query
    from conekg.symbolic.engine import answer

    graph = load_geography()
    say(
        f"{graph.name}: {graph.num_entities:,} entities, "
        f"{sum(len(graph.triples(split)) for split in ('train', 'valid', 'test')):,} facts, "
        "a tenth of them held out"
    )
    entities = graph.vocabulary.entities
    told: list[dict[str, object]] = []
    for words, text in QUESTIONS:
        started = time.perf_counter()
        query = parse_query(text, graph.vocabulary)
        known = set(answer(graph.adjacency("train"), query).tolist())
        true = answer(graph.adjacency("test"), query).tolist()
        spent_ms = 1000 * (time.perf_counter() - started)
        names = [(entities.label(index), index in known) for index in true]
        told.append(
            {
                "question": words,
                "query": text,
                "answers": [{"name": name, "known": is_known} for name, is_known in names],
                "milliseconds": round(spent_ms, 3),
            }
        )
        if not as_json:
            _print_answers(words, text, names)
    if as_json:
        print_json(told)


def _print_answers(words: str, text: str, names: list[tuple[str, bool]]) -> None:
    print_text(f"\n{words}\n  {text}")
    for name, is_known in names[:SHOWN]:
        print_text(f"    {name}" if is_known else f"    {name}  (held out: to be predicted)")
    if len(names) > SHOWN:
        print_text(f"    and {len(names) - SHOWN:,} more")
