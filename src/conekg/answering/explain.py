"""Explains answers: the best entities of each variable of a query, and a witness for each answer.

The query is explained as it is answered, without parts that change no answer, such as those that
known facts leave empty, and with its negations pushed inward: it has the same answers, and only
single projections and entities are negated, for which no witness is needed. `witness` searches;
this file puts names to what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch

from conekg.answering.answer import Only, Question, RankedAnswer, question_of
from conekg.answering.batch import embed_grounded
from conekg.answering.engine import Answerer
from conekg.answering.explanation import (
    Edge,
    EntityName,
    Explanation,
    Part,
    PartKind,
    SectorCone,
    Variable,
    Witness,
)
from conekg.answering.reading import read_parts
from conekg.answering.understand import (
    Understood,
    Words,
    check_count,
    check_entity_id,
    check_ids,
    check_names,
    entity_id_of,
    is_whole,
    understand_part,
)
from conekg.answering.witness import Cell, Step, WitnessSearch, walk
from conekg.errors import ConfigError
from conekg.graph.knowledge_graph import Split
from conekg.graph.vocabulary import Vocabulary
from conekg.model.cone import Cone
from conekg.model.interface import QueryModel
from conekg.query.branches import UnionForm
from conekg.query.render import render_parts
from conekg.query.rewrite import NOTHING, push_negation, settle, simplify
from conekg.query.shape import grounded
from conekg.query.tree import Anchor, Not, Project, Query, Universe, fold, fold_each, subtrees
from conekg.training.run import Run


def explain(
    run: str | Path | Run | Answerer,
    question: Query | str | Question | Understood,
    *,
    entities: Sequence[str | int] | None = None,
    candidates: int = 5,
    top_k: int = 10,
    only: Only | None = None,
    exclude: Sequence[str | int] = (),
    known_graph: Split = "train",
    union: UnionForm = "dnf",
    keep_contradicted: bool = False,
) -> Explanation:
    """The variables of a question's query and a witness for each of its top answers.

    `run` is a run or an open `Answerer`. With `entities`, given by name, label or id, those are
    explained instead of the top answers. `candidates` is how many entities each variable lists.
    The other options are those of `ask`.
    """
    check_count("candidates", candidates)
    if entities is not None:
        check_names("entities", entities)
    answerer = run if isinstance(run, Answerer) else Answerer.open(run)
    options = Question("", top_k, only, exclude, known_graph, union, keep_contradicted)
    if isinstance(question, Understood):
        question_of(question.question, options)  # refuses options beside those it has
        asked = question
    else:
        asked = answerer.understand(question_of(question, options))
    (answered,) = answerer.without_empty_parts([asked])
    answers = (
        answerer.ask_batch([answered])[0].answers
        if entities is None
        else answerer.judge(answered, [entity_id_of(entity, answerer.graph) for entity in entities])
    )
    query = _explained(answered.query, answerer.model)
    words = _words_of_parts(query, answerer.graph.vocabulary)
    return Explanation(
        query=asked.text,
        reading=asked.reading,
        variables=_variables(answerer, asked.question, query, words, candidates),
        witnesses=_witnesses(answerer, asked.question, query, words, answers),
        explained=words[id(query)].reading if _is_shorter(query, asked.query) else None,
    )


_PartWords: TypeAlias = dict[int, Words]
"""The words of the nodes of a query, by `id`, since comparing nodes compares whole subtrees."""


def _words_of_parts(query: Query, vocabulary: Vocabulary) -> _PartWords:
    """The words of every part of the query, found by one walk."""
    texts, readings = render_parts(query, vocabulary), read_parts(query, vocabulary)
    parts = zip(subtrees(query), texts, readings, strict=True)
    return {id(node): Words(text, reading) for node, text, reading in parts}


def _explained(query: Query, model: QueryModel) -> Query:
    """The query settled, with negations pushed inward.

    It is not settled, before or after that, if this would leave `!*`, which says nothing of what
    was asked, or an operator that the model lacks.
    """
    pushed = simplify(push_negation(_settled(query, model)))
    return _settled(pushed, model)


def _settled(query: Query, model: QueryModel) -> Query:
    """The settled query if it is not `!*` and the model has its operators, else the query."""
    shorter = settle(query)
    return query if shorter == NOTHING or _lacks(model, shorter) else shorter


def _is_shorter(explained: Query, asked: Query) -> bool:
    """Whether the explained form of a query lacks parts of it, beside repeated ones."""
    return len(subtrees(explained)) < len(subtrees(simplify(push_negation(asked))))


def _lacks(model: QueryModel, query: Query) -> bool:
    """Whether the query has a negation or `*`, and the model cannot embed it."""
    kinds = set(map(type, subtrees(query)))
    lacks_negation = Not in kinds and not model.can_negate
    return lacks_negation or (Universe in kinds and not model.can_embed_universe)


def sector_cones(
    answerer: Answerer,
    query: Query,
    entity_id: int,
    *,
    dimensions: Sequence[int],
    known_graph: Split = "train",
    union: UnionForm = "dnf",
) -> tuple[SectorCone, ...]:
    """The query's cones with the entity's angles in the given dimensions; empty unless ConE.

    They are the cones that the answers of a question with these options are ranked by; of several
    branches, those of the branch in which the entity scores best.
    """
    check_ids(grounded(query), answerer.graph)
    check_entity_id(entity_id, answerer.graph)
    model = answerer.model
    if not isinstance(model, Cone):
        return ()
    for dimension in dimensions:
        if not is_whole(dimension) or not 0 <= dimension < model.dim:
            raise ConfigError(
                f"{dimension!r} among the dimensions is none of the model's; "
                f"it has 0 to {model.dim - 1}",
                key="dimensions",
            )
    asked = answerer.understand(Question(query, known_graph=known_graph, union=union))
    form = answerer.without_empty_parts([asked])[0].ranked_by
    embedded = embed_grounded(model, [form.grounded], union, answerer.max_branches)
    allowed = form.allowed(np.array([entity_id]))
    with torch.inference_mode():
        ids = torch.tensor([[entity_id]], device=embedded.region[0].device)
        scores = model.logits(embedded.region, ids)[:, 0].cpu().numpy()
        best = int(np.where(True if allowed is None else allowed[:, 0], scores, -np.inf).argmax())
        axis, half_aperture = (part[best].double().cpu().numpy() for part in embedded.region)
        angle = model.points(ids)[0, 0].double().cpu().numpy()
    inside = np.abs(np.sin((angle - axis) / 2)) <= np.sin(half_aperture / 2)
    return tuple(
        SectorCone(
            dimension=int(dimension),
            axis=float(axis[dimension]),
            half_aperture=float(half_aperture[dimension]),
            entity_angle=float(angle[dimension]),
            inside=bool(inside[dimension]),
        )
        for dimension in dimensions
    )


def variables_of(query: Query) -> tuple[Query, ...]:
    """The sub-queries that are variables `x1`, `x2`, ..., in order from the anchors to the answer.

    A variable is the operand of a projection, unless that is a named entity. Equal
    sub-queries in two places are two variables, which may stand for different entities.
    """
    found: list[Query] = []

    def collect(node: Query, _: tuple[None, ...]) -> None:
        if isinstance(node, Project) and not isinstance(node.operand, Anchor):
            found.append(node.operand)

    fold(query, collect)
    return tuple(found)


def _variables(
    answerer: Answerer, question: Question, query: Query, words: _PartWords, candidates: int
) -> tuple[Variable, ...]:
    is_settled = settle(query) == query
    questions = [
        understand_part(
            replace(question, query=node, top_k=candidates, only=None, exclude=()),
            node,
            words[id(node)],
            answerer.model,
            answerer.max_branches,
            is_settled=is_settled,
        )
        for node in variables_of(query)
    ]
    answers = answerer.ask_batch(questions) if questions else []
    return tuple(
        Variable(f"x{place}", answer.query, answer.reading, answer.answers)
        for place, answer in enumerate(answers, start=1)
    )


def _witnesses(
    answerer: Answerer, question: Question, query: Query, words: _PartWords,
    answers: Sequence[RankedAnswer],
) -> tuple[Witness, ...]:  # fmt: skip
    if not answers:
        return ()
    adjacency = answerer.graph.adjacency(question.known_graph)
    search = WitnessSearch(
        answerer.model, answerer.index, adjacency, query, question.union, answerer.max_branches
    )
    cell = search.search([answer.entity_id for answer in answers])
    writer = _Writer(answerer, cell, words)
    return tuple(writer.witness(place, answer) for place, answer in enumerate(answers))


class _Writer:
    """Turns the witnesses found by a search into `Witness` values, with names and words."""

    def __init__(self, answerer: Answerer, cell: Cell, words: _PartWords) -> None:
        self._vocabulary = answerer.graph.vocabulary
        self._cell = cell
        self._words = words
        self._variable = _variable_of_cells(cell)

    def witness(self, candidate: int, answer: RankedAnswer) -> Witness:
        steps = list(walk(self._cell, candidate))
        edges = self._edges(steps)
        parts = tuple(self._part(step) for step in steps)
        assignment = {
            edge.head_variable: edge.head for edge in edges if edge.head_variable is not None
        }
        return Witness(
            answer=answer,
            edges=edges,
            assignment=assignment,
            parts=parts,
            weakest=min(parts, key=_strength, default=None),
            facts_only=all(part.kind in ("fact", "absent") for part in parts),
        )

    def _edges(self, steps: Sequence[Step]) -> tuple[Edge, ...]:
        edges = []
        for step in steps:
            node, origin_id = step.cell.query, step.origin_id
            if not isinstance(node, Project) or origin_id is None:
                continue
            edges.append(
                Edge(
                    head=self._entity(origin_id),
                    relation=self._vocabulary.relation_name(node.relation_id),
                    relation_label=self._vocabulary.relation_label(node.relation_id),
                    tail=self._entity(step.entity_id),
                    kind="fact" if step.holds else "guess",
                    score=step.score,
                    head_variable=self._variable[id(step.cell.operands[0])],
                    tail_variable=self._variable[id(step.cell)] or "answer",
                )
            )
        return tuple(edges)

    def _part(self, step: Step) -> Part:
        node = step.cell.query
        kind: PartKind
        match node:
            case Project():
                kind = "fact" if step.holds else "guess"
            case Not():
                kind = "absent" if step.holds else "contradicted"
            case _:
                kind = "fact" if step.holds else "contradicted"
        words = self._words[id(node)]
        return Part(query=words.text, reading=words.reading, kind=kind, score=step.score)

    def _entity(self, entity_id: int) -> EntityName:
        table = self._vocabulary.entities
        return EntityName(entity_id, table.name(entity_id), table.label(entity_id))


def _variable_of_cells(root: Cell) -> dict[int, str | None]:
    """The variable that each cell's entities stand for, by the cell's `id`.

    "answer" for the root; None for named entities.
    """
    found: dict[int, str | None] = {}
    counts = _numbers_of_variables(root.query)
    # Each cell with its variable, and with the number of variables before it in the query.
    pending: list[tuple[Cell, str | None, int]] = [(root, "answer", 0)]
    while pending:
        cell, variable, before = pending.pop()
        found[id(cell)] = variable
        for operand in cell.operands:
            number = before + counts[id(operand.query)]
            if isinstance(cell.query, Project):
                variable = None if isinstance(operand.query, Anchor) else f"x{number + 1}"
            pending.append((operand, variable, before))
            before = number
    return found


def _numbers_of_variables(query: Query) -> dict[int, int]:
    """How many variables `variables_of` finds in each node, by the node's `id`."""

    def count(node: Query, below: tuple[int, ...]) -> int:
        starts = isinstance(node, Project) and not isinstance(node.operand, Anchor)
        return sum(below) + starts

    numbers = fold_each(query, count)
    return {id(node): number for node, number in zip(subtrees(query), numbers, strict=True)}


def _strength(part: Part) -> tuple[int, float]:
    """The sort key of a witness's parts, weakest first; parts of the same rank go by score.

    As facts are missing, that none is against a condition proves it no more than a guess is proved.
    """
    order: dict[PartKind, int] = {"contradicted": 0, "guess": 1, "absent": 1, "fact": 2}
    return order[part.kind], part.score
