"""`conekg demo`: a few questions over the embedded graph, asked and answered.

Answers that the training facts give are known; those that only the held-out facts give
are what a model has to predict.
"""

from __future__ import annotations

import time

from conekg.cli.console import JsonOption, print_json, print_text, say
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

SHOWN = 12
"""How many answers of a question are printed."""


def demo(as_json: JsonOption = False) -> None:
    """Ask the embedded graph of the world a few questions, and answer them exactly."""
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
