"""Reports: the result of an evaluation as data, as Markdown and as a table in a terminal.

Numbers are in percent and columns in the order of the paper's tables, so that our rows can be
compared with the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from rich.table import Table

from conekg.evaluation.metrics import AVERAGES, METRICS, Metrics, averages_of
from conekg.query.shape import STRUCTURES, UNION_OF_FORM

_TITLES = {"mrr": "MRR", "hits_at_1": "Hits@1", "hits_at_3": "Hits@3", "hits_at_10": "Hits@10"}
_ABSENT = "–"


@dataclass(frozen=True)
class StructureResult:
    """The metrics of one structure's queries, or the reason why there are none."""

    structure: str
    num_queries: int
    num_answers: int
    """The number of hard answers that were ranked."""
    metrics: Metrics | None
    reason: str | None = None
    """Why there are no metrics."""


@dataclass(frozen=True)
class Report:
    """The result of one evaluation."""

    model: str
    split: str
    ties: str
    """The policy for equal scores."""
    union: str
    """How unions were answered: `dnf` or `demorgan`."""
    seconds: float
    structures: tuple[StructureResult, ...]

    @cached_property
    def measured(self) -> dict[str, Metrics]:
        """The metrics by structure, in the paper's order."""
        known = {r.structure: r.metrics for r in self.structures if r.metrics is not None}
        order = [name for names in AVERAGES.values() for name in names]
        return {name: known[name] for name in (*order, *known) if name in known}

    @cached_property
    def averages(self) -> dict[str, Metrics]:
        """avg_p and avg_n, over those of their structures that were measured."""
        return averages_of(self.measured)

    @property
    def unanswered(self) -> dict[str, str]:
        """By structure, the reason why it has no metrics."""
        return {r.structure: r.reason for r in self.structures if r.reason is not None}

    @property
    def by_reason(self) -> dict[str, list[str]]:
        """By reason, the structures that have no metrics for it."""
        found = dict[str, list[str]]()
        for name, reason in self.unanswered.items():
            found.setdefault(reason, []).append(name)
        return found

    def mean(self, metric: str = "mrr") -> float:
        """The mean over the measured structures: one number to compare models by.

        A De Morgan form does not count beside its union, as it has the same queries.
        """
        values = [
            getattr(metrics, metric)
            for name, metrics in self.measured.items()
            if UNION_OF_FORM.get(name) not in self.measured
        ]
        return sum(values) / len(values) if values else 0.0

    def row(self, metric: str = "mrr") -> dict[str, float]:
        """One metric in percent: the averages and every structure, by name."""
        return {
            name: 100.0 * getattr(metrics, metric)
            for name, metrics in (self.averages | self.measured).items()
        }

    def to_json(self) -> dict[str, Any]:
        """The report as plain data; fractions, not percentages."""
        return {
            "model": self.model,
            "split": self.split,
            "ties": self.ties,
            "union": self.union,
            "seconds": round(self.seconds, 3),
            "averages": {
                name: asdict(metrics) | {"structures": self._covered(name)}
                for name, metrics in self.averages.items()
            },
            "structures": {
                r.structure: {"queries": r.num_queries, "hard_answers": r.num_answers}
                | (asdict(r.metrics) if r.metrics else {"reason": r.reason})
                for r in self.structures
            },
        }

    def to_markdown(
        self,
        beside: Mapping[str, Mapping[str, float]] | None = None,
        about: Sequence[str] = (),
    ) -> str:
        """Markdown: tables of the MRR, of the other metrics and of counts, then notes.

        `beside` adds rows of MRR in percent from other sources, by label, such as the paper's;
        `about` adds notes, such as which run was evaluated.
        """
        parts = [f"# {self.model} on {self.split} queries", ""]
        rows = {self.model: self.row()} | dict(beside or {})
        parts += [comparison_markdown(rows, corner="MRR, percent"), ""]
        others = {_TITLES[metric]: self.row(metric) for metric in METRICS[1:]}
        parts += [comparison_markdown(others, corner=f"{self.model}, percent"), ""]
        counts = {
            "queries": {r.structure: float(r.num_queries) for r in self.structures},
            "hard answers": {r.structure: float(r.num_answers) for r in self.structures},
        }
        parts += [comparison_markdown(counts, digits=0, corner="number"), ""]
        parts += [f"- {note}" for note in (*self.notes(), *about)]
        return "\n".join(parts) + "\n"

    def to_table(self, beside: Mapping[str, Mapping[str, float]] | None = None) -> Table:
        """A table for a terminal: one row per structure, in percent, the averages last."""
        table = Table(title=f"{self.model} on {self.split} queries (filtered, percent)")
        table.add_column("structure")
        for title in ("queries", "hard", *_TITLES.values(), *(beside or {})):
            table.add_column(title, justify="right")
        by_name = {result.structure: result for result in self.structures}
        for name in dict.fromkeys((*self.measured, *by_name)):
            result = by_name[name]
            table.add_row(
                name,
                f"{result.num_queries:,}",
                f"{result.num_answers:,}",
                *_cells(result.metrics),
                *_cells_beside(name, beside),
            )
        table.add_section()
        for name, metrics in self.averages.items():
            table.add_row(name, "", "", *_cells(metrics), *_cells_beside(name, beside))
        table.caption = " ".join(self.notes())
        return table

    def notes(self) -> list[str]:
        """Sentences needed to read the numbers correctly: policies, gaps in the averages."""
        notes = [f"MRR is filtered; equal scores: {self.ties} rank; unions: {self.union}."]
        for name in self.averages:
            covered, all_of = self._covered(name), AVERAGES[name]
            if len(covered) < len(all_of):
                notes.append(f"{name} is over {len(covered)} of {len(all_of)} structures.")
        for reason, names in self.by_reason.items():
            notes.append(f"Not answered: {', '.join(names)} ({reason}).")
        return notes

    def _covered(self, average: str) -> list[str]:
        return [name for name in AVERAGES[average] if name in self.measured]


def comparison_markdown(
    rows: Mapping[str, Mapping[str, float]], digits: int = 1, corner: str = ""
) -> str:
    """A Markdown table: one row per label, one column per structure, in the paper's order.

    `corner` is the heading of the labels' column.
    """
    columns = column_order([name for row in rows.values() for name in row])
    lines = [
        f"| {f'{_in_a_cell(corner)} ' if corner else ''}| "
        + " | ".join(map(_in_a_cell, columns))
        + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for label, row in rows.items():
        cells = [f"{row[name]:.{digits}f}" if name in row else _ABSENT for name in columns]
        lines.append(f"| {_in_a_cell(label)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def column_order(names: Sequence[str]) -> list[str]:
    """The given columns, each average before its structures, and any others last."""
    preferred = [column for average, group in AVERAGES.items() for column in (average, *group)]
    preferred += list(STRUCTURES)
    present = set(names)
    return [name for name in dict.fromkeys((*preferred, *names)) if name in present]


def _in_a_cell(text: str) -> str:
    """Text for a cell of a Markdown table. The bar of a union would end the cell: it is escaped."""
    return text.replace("|", r"\|")


def _cells(metrics: Metrics | None) -> list[str]:
    if metrics is None:
        return [_ABSENT] * len(METRICS)
    return [f"{100.0 * getattr(metrics, name):.1f}" for name in METRICS]


def _cells_beside(name: str, beside: Mapping[str, Mapping[str, float]] | None) -> list[str]:
    return [f"{row[name]:.1f}" if name in row else _ABSENT for row in (beside or {}).values()]
