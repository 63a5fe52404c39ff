"""`conekg ask`: answers of a trained run to questions, as a table, as JSON or as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from conekg.cli.answer_csv import answer_rows, header
from conekg.cli.console import (
    listed,
    print_csv,
    print_error,
    print_json,
    print_table,
    print_text,
    say,
)
from conekg.cli.graph_source import hint_if_swapped
from conekg.cli.options import CheckpointOption, DeviceOption, RunArgument, UnionOption
from conekg.cli.training_report import why_no_probabilities
from conekg.cli.wrong_way import wrong_way_notes
from conekg.errors import ConeKGError, ConfigError, DataError
from conekg.lines import one_line
from conekg.query.render import render_query

if TYPE_CHECKING:
    from conekg.answering.answer import Answer, Question
    from conekg.answering.engine import Answerer
    from conekg.answering.explanation import Explanation, Witness
    from conekg.answering.understand import Understood
    from conekg.graph.vocabulary import Vocabulary

_BATCH = 64
"""How many questions of a file are answered together."""
_EXPLAINED = ("explained", "variables", "witnesses")
"""What `--explain` adds to JSON."""


def ask(
    run: RunArgument,
    question: Annotated[
        str | None, typer.Argument(help="The question: a path, a first-order formula or SPARQL.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="A file with a question per line; - is stdin."),
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="How many answers to show.")] = 10,
    only: Annotated[
        Literal["known", "predicted"] | None,
        typer.Option("--only", help="Only answers that follow from the facts, or only the others."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", "-x", help="Leave out this entity; may be repeated."),
    ] = None,
    known: Annotated[
        Literal["train", "valid", "test"],
        typer.Option(
            "--known",
            help="Which facts count as known: train, those the model learnt from; valid, also the "
            "validation facts; test, all facts.",
        ),
    ] = "train",
    union: UnionOption = "dnf",
    keep_contradicted: Annotated[
        bool,
        typer.Option("--keep-contradicted", help="Also rank entities that known facts rule out."),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", "-e", help="Show the facts and guesses that lead to each answer."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per question, on one line.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV in UTF-8: a header, then a row per answer.")
    ] = False,
    checkpoint: CheckpointOption = "best",
    device: DeviceOption = "auto",
) -> None:
    """Ask a trained run a question: ranked answers, known or predicted, with probabilities.

    With --file, every line is a question; empty lines and lines that start with # are
    skipped. A bad line is reported with its number, the other lines are answered, and the
    exit code is 2.
    """
    if (question is None) == (file is None):
        raise ConfigError("give one question, or a file of questions with --file")
    form = _form(as_json, as_csv, explain)
    from conekg.answering.answer import Question
    from conekg.answering.engine import Answerer
    from conekg.answering.understand import excluded_by

    lines = [(1, question or "")] if file is None else list(_read_lines(file))
    if not lines:
        raise DataError("contains no question", path=str(file), hint="write one per line")
    with hint_if_swapped(run, question, "conekg ask {place} {other}"):
        answerer = Answerer.open(run, which=checkpoint, device=device)
    settings = Question("", top_k, only, tuple(exclude or ()), known, union, keep_contradicted)
    excluded_by(settings, answerer.graph)  # an error in an option is not the fault of a line
    no_probabilities = partial(why_no_probabilities, run, checkpoint)
    session = _Session(no_probabilities, answerer, settings, explain, form, file)
    for start in range(0, len(lines), _BATCH):
        session.answer(lines[start : start + _BATCH])
    if session.failures:
        if file is not None:
            say(f"{session.failures:,} of {len(lines):,} questions could not be answered")
        raise typer.Exit(2)


Form: TypeAlias = Literal["table", "json", "csv"]
"""How answers are printed."""


def _form(as_json: bool, as_csv: bool, explain: bool) -> Form:
    """The form that the options ask for; ConfigError if they contradict each other."""
    if as_json and as_csv:
        raise ConfigError("--json and --csv are two forms of the same answers; choose one")
    if as_csv and explain:
        raise ConfigError(
            "--explain does not fit into CSV, where a row is an answer; use --json or the table"
        )
    return "json" if as_json else "csv" if as_csv else "table"


class _Session:
    """Answers lines of questions in batches and prints them in order."""

    def __init__(
        self,
        no_probabilities: Callable[[], str],
        answerer: Answerer,
        settings: Question,
        explain: bool,
        form: Form,
        file: Path | None,
    ) -> None:
        self._no_probabilities = no_probabilities
        self._answerer = answerer
        self._settings = settings
        self._explain = explain
        self._form = form
        self._file = file
        self._has_header = False
        self.failures = 0

    def answer(self, lines: list[tuple[int, str]]) -> None:
        """Print the answers of some lines; those that cannot be answered are counted."""
        understood = [(number, text, self._understand(text)) for number, text in lines]
        good = [item for _, _, item in understood if not isinstance(item, ConeKGError)]
        answers = iter(self._answerer.ask_batch(good))
        for number, text, item in understood:
            if isinstance(item, ConeKGError):
                self._report(number, text, item)
            else:
                self._print(number, text, item, next(answers))

    def _understand(self, text: str) -> Understood | ConeKGError:
        try:
            return self._answerer.understand(replace(self._settings, query=text))
        except ConeKGError as error:
            return error

    def _report(self, number: int, text: str, error: ConeKGError) -> None:
        self.failures += 1
        if self._form == "json" and self._file is not None:
            content = {"line": number, "question": text, "error": error.message, "hint": error.hint}
            print_json(content, indent=None)
        if self._file is None:
            print_error(error)
        else:
            print_error(
                DataError(error.message, path=str(self._file), line=number, hint=error.hint)
            )

    def _print(self, number: int, text: str, item: Understood, answer: Answer) -> None:
        explanation = self._explanation(item, answer) if self._explain else None
        if self._form == "csv":
            self._print_csv(number, text, answer)
        elif self._form == "json":
            content = answer.to_json()
            if self._file is not None:
                content = {"line": number, **content}
            if explanation is not None:
                explained = explanation.to_json()
                content |= {key: explained[key] for key in _EXPLAINED}
            print_json(content, indent=None)
        else:
            vocabulary = self._answerer.graph.vocabulary
            asked = render_query(item.query, vocabulary, labels=True)
            _print_answer(answer, asked, vocabulary.entities.title, self._why_none(answer))
            print_text(_summary(answer, self._no_probabilities))
            for note in wrong_way_notes(item.query, self._answerer.graph, answer.known_graph):
                say(note)
            if explanation is not None:
                _print_explanation(explanation, answer, vocabulary)

    def _print_csv(self, number: int, text: str, answer: Answer) -> None:
        """Print the rows of an answer, the first below a header; without rows, print a message."""
        line = None if self._file is None else number
        if not self._has_header:
            print_csv([header(from_file=line is not None)])
            self._has_header = True
        print_csv(answer_rows(text, answer, line))
        if not answer.answers:
            place = "" if line is None else f"{self._file}:{line}: "
            say(f"{place}{self._why_none(answer)}")

    def _why_none(self, answer: Answer) -> str:
        """What to say instead of answers."""
        if answer.num_contradicted == self._answerer.graph.num_entities:
            return "nothing can be an answer, whatever facts are missing"
        return "no entity is left to answer with"

    def _explanation(self, item: Understood, answer: Answer) -> Explanation:
        from conekg.answering.explain import explain

        return explain(
            self._answerer, item, entities=[ranked.entity_id for ranked in answer.answers]
        )


def _read_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The numbered questions of a file; `-` is standard input."""
    try:
        content = typer.get_binary_stream("stdin").read() if str(file) == "-" else file.read_bytes()
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            "not UTF-8 text", path=str(file), line=number, hint="convert the file to UTF-8"
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=str(file)) from error
    # Not `splitlines`, which also splits at characters that names may contain.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


Title: TypeAlias = Callable[[int], str]
"""The title of an entity id: its label, with its name if other entities share the label."""


def _print_answer(answer: Answer, asked: str, title: Title, why_none: str) -> None:
    from conekg.answering.answer_table import HEADINGS, answer_rows

    print_text(one_line(answer.reading))
    print_text(f"  {one_line(asked)}")
    if answer.answers:
        rows = answer_rows(answer, lambda ranked: title(ranked.entity_id))
        print_table("", HEADINGS, rows)
    else:
        print_text(f"  {why_none}")


_KNOWN_FACTS = {
    "train": "the training facts",
    "valid": "the training and validation facts",
    "test": "all facts",
}


def _within(factor: float) -> str:
    """The factor that half of the estimates are within, in words; `within 1.0x` would be wrong.

    >>> _within(1.3), _within(1.02), _within(1.0)
    ('within 1.3x', 'within 5%', 'within 5%')
    """
    return f"within {factor:.1f}x" if factor >= 1.05 else "within 5%"


def _summary(answer: Answer, no_probabilities: Callable[[], str]) -> str:
    parts = [f"{answer.num_known:,} known from {_KNOWN_FACTS[answer.known_graph]}"]
    if answer.num_contradicted:
        parts.append(f"{answer.num_contradicted:,} ruled out by them")
    if answer.estimated_count is not None:
        count = f"{answer.estimated_count:,.0f}"
        expected = f"about {count} answer{'' if count == '1' else 's'} in all if any is missing"
        if answer.estimated_count_factor is not None:
            expected += f" (half of such estimates are {_within(answer.estimated_count_factor)})"
        parts.append(expected)
    if answer.calibration_error is not None:
        parts.append(f"probabilities off by {100 * answer.calibration_error:.1f} points on average")
    else:
        parts.append(no_probabilities())
    if answer.recall < 1:
        parts.append(f"approximate search, recall {answer.recall:.3f}")
    parts.append(f"{1000 * answer.seconds:.0f} ms")
    return "; ".join(parts)


def _print_explanation(explanation: Explanation, answer: Answer, vocabulary: Vocabulary) -> None:
    from conekg.answering.explanation import shortened_lines

    title = vocabulary.entities.title
    for line in shortened_lines(explanation):
        print_text(line)
    # Use the ranks of the list above. A witness has its rank among all entities, also those that
    # the facts rule out.
    ranks = {ranked.entity_id: ranked.rank for ranked in answer.answers}
    for variable in explanation.variables:
        print_text(f"{variable.name}: {one_line(variable.reading)}")
        candidates = listed(title(each.entity_id) for each in variable.candidates)
        print_text(f"  {candidates or 'none'}")
    for witness in explanation.witnesses:
        entity_id = witness.answer.entity_id
        print_text(f"{ranks[entity_id]}. {one_line(title(entity_id))}")
        _print_witness(witness, vocabulary)


def _print_witness(witness: Witness, vocabulary: Vocabulary) -> None:
    from conekg.answering.explanation import witness_lines

    lines = witness_lines(
        witness,
        lambda entity: vocabulary.entities.title(entity.entity_id),
        lambda edge: vocabulary.relation_title(vocabulary.relation_id(edge.relation)),
    )
    for line in lines:
        print_text(line)
    if witness.weakest is not None and not witness.facts_only:
        print_text(f"  weakest: {one_line(witness.weakest.reading)}")
