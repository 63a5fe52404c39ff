"""Asking: from a query to ranked answers, each known or predicted, with its probability.

`Answerer` combines exact search, which finds what the known facts say about the answers, with
the model, which ranks all entities. Questions are answered in batches of mixed shapes; a single
question is a batch of one. What the ranks and scores mean is left to `writing`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray

from conekg.answering.answer import Answer, Only, Question, RankedAnswer, question_of
from conekg.answering.batch import EmbeddedQueries, embed_grounded
from conekg.answering.calibration import Calibration, calibration_of, region_sizes
from conekg.answering.empty_parts import without_empty_parts
from conekg.answering.facts import Asked, Facts, facts_of
from conekg.answering.index import EntityIndex
from conekg.answering.ranking import Ranking, merge_rankings
from conekg.answering.understand import (
    Understood,
    check_count,
    check_entity_id,
    shortened,
    understand,
)
from conekg.answering.writing import AnswerWriter, Draft
from conekg.errors import ConfigError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.model.interface import MAJORITY, QueryModel, Region
from conekg.model.kernels.few_rows import lay_out_for_few_rows
from conekg.query.branches import DEFAULT_BRANCH_CAP, UnionForm
from conekg.query.tree import Query
from conekg.training.loop import pick_device
from conekg.training.run import Run, Which, open_run


class Answerer:
    """Answers questions over one graph with one model.

    It works on a copy of the model, so that further training does not change its answers. With
    `copy=False` it uses the model itself, which must then not be changed. `max_branches` caps the
    union-free branches of a query.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        model: QueryModel,
        calibration: Calibration | None = None,
        *,
        max_branches: int = DEFAULT_BRANCH_CAP,
        copy: bool = True,
    ) -> None:
        check_count("max_branches", max_branches)
        _check_fits(model, graph)
        self.graph = graph
        self.model = (deepcopy(model) if copy else model).eval()
        self.calibration = calibration
        self.max_branches = max_branches
        self.index = EntityIndex(self.model)

    def __repr__(self) -> str:
        odds = "without" if self.calibration is None else "with"
        return f"<Answerer by {self.model.name!r} of {self.graph!r}, {odds} probabilities>"

    @classmethod
    def open(
        cls,
        folder: str | Path | Run,
        *,
        which: Which = "best",
        device: str = "auto",
        max_branches: int = DEFAULT_BRANCH_CAP,
    ) -> Answerer:
        """The answerer of a run folder, with its checkpoint `best` or `last`.

        `auto` uses a GPU if there is one. Without a calibration of the checkpoint, answers have no
        probabilities.
        """
        run = folder if isinstance(folder, Run) else open_run(folder)
        place = pick_device(device)
        model = run.load_model(which, place)
        lay_out_for_few_rows(model)
        calibration = calibration_of(run, which)
        # The model was loaded for this answerer alone, so no copy is needed.
        return cls(run.graph, model, calibration, max_branches=max_branches, copy=False)

    def understand(self, question: Question) -> Understood:
        """The question with its query parsed and all its options checked.

        Cheap, and safe to call from any thread.
        """
        return understand(question, self.graph, self.model, self.max_branches)

    def ask(
        self,
        query: Query | str | Question,
        *,
        top_k: int = 10,
        only: Only | None = None,
        exclude: Sequence[str | int] = (),
        known_graph: Split = "train",
        union: UnionForm = "dnf",
        keep_contradicted: bool = False,
    ) -> Answer:
        """The ranked answers of one query, or of a `Question`, which brings its own options."""
        options = Question("", top_k, only, exclude, known_graph, union, keep_contradicted)
        return self.ask_batch([question_of(query, options)])[0]

    def ask_batch(self, questions: Iterable[Question | Understood]) -> list[Answer]:
        """The answers of many questions, embedded and scored together, in the order asked.

        Raises the first error found. To keep one bad question from failing the others, call
        `understand` for each and pass the results.
        """
        if isinstance(questions, str | Query | Question) or not isinstance(questions, Iterable):
            raise ConfigError(
                f"{questions!r} is asked of ask_batch, which takes a list of Questions; ask takes "
                "one",
                key="questions",
            )
        all_questions = list(questions)
        return next(self.ask_in_parts(all_questions, max(1, len(all_questions))), [])

    def ask_in_parts(
        self, questions: Sequence[Question | Understood], most: int
    ) -> Iterator[list[Answer]]:
        """The answers of `ask_batch` in parts of at most `most`, each as soon as it is ready.

        All questions are embedded together, then searched part by part.
        """
        check_count("most", most)
        started = time.perf_counter()
        understood = self.without_empty_parts(
            [item if isinstance(item, Understood) else self.understand(item) for item in questions]
        )
        facts = self._facts(understood)
        embedded = self._embed(understood)
        for start in range(0, len(understood), most):
            part = slice(start, start + most)
            drafts = self._rank(understood[part], facts[part], embedded.some(start, start + most))
            seconds = time.perf_counter() - started
            yield [
                self._writer.answer(
                    item,
                    draft,
                    own_facts,
                    model=self.model.name,
                    recall=self.index.recall,
                    seconds=seconds,
                )
                for item, draft, own_facts in zip(
                    understood[part], drafts, facts[part], strict=True
                )
            ]

    def judge(
        self, question: Question | Understood, entity_ids: Sequence[int]
    ) -> tuple[RankedAnswer, ...]:
        """The given entities as answers, in the order given, each with its rank among all entities.

        Entities that facts rule out count in these ranks. The question's `top_k`, `only` and
        `exclude` are ignored.
        """
        item = question if isinstance(question, Understood) else self.understand(question)
        for entity_id in entity_ids:
            check_entity_id(entity_id, self.graph)
        (item,) = self.without_empty_parts([item])
        ids = np.array(entity_ids, dtype=np.int64)
        form = item.ranked_by
        embedded = embed_grounded(
            self.model, [form.grounded], item.question.union, self.max_branches
        )
        with torch.inference_mode():
            logits = self.index.table.logits(embedded.region)
            allowed = form.allowed(np.arange(self.graph.num_entities))
            if allowed is not None:
                barred = torch.from_numpy(~allowed).to(logits.device)
                logits = logits.masked_fill(barred, -torch.inf)
            best = logits.max(dim=0)
            scores = best.values.double().cpu().numpy()
            branches = best.indices.cpu().numpy()[ids]
        members = self._members(embedded, [Ranking(ids, scores[ids])] * len(embedded.region[0]))
        inside = None
        if members is not None:
            pairs = zip(branches.tolist(), ids.tolist(), strict=True)
            inside = [members[branch][entity_id] for branch, entity_id in pairs]
        backgrounds = self._backgrounds([item], embedded)[branches]
        draft = Draft(Ranking(ids, scores[ids]), inside, backgrounds, None)
        all_ids = np.arange(len(scores))
        ranks = [
            1 + int(((scores > scores[i]) | ((scores == scores[i]) & (all_ids < i))).sum())
            for i in ids
        ]
        judged = self._writer.ranked(item, draft, self._facts([item])[0])
        return tuple(replace(answer, rank=rank) for answer, rank in zip(judged, ranks, strict=True))

    def without_empty_parts(self, questions: Sequence[Understood]) -> list[Understood]:
        """The questions without the parts that are empty whatever facts their known graphs lack.

        They are answered in this form.
        """
        left = without_empty_parts(self.graph, _asked(questions))
        return [
            shortened(item, query, self.model, self.max_branches)
            for item, query in zip(questions, left, strict=True)
        ]

    @property
    def _writer(self) -> AnswerWriter:
        """The writer of answers by the present calibration, which may be replaced."""
        return AnswerWriter(self.graph, self.calibration, self.max_branches)

    def _facts(self, questions: Sequence[Understood]) -> list[Facts]:
        """What each question's known graph says about its answers."""
        return facts_of(self.graph, _asked(questions))

    def _embed(self, questions: Sequence[Understood]) -> EmbeddedQueries:
        """The regions of the questions, embedded together per form of union."""
        rows: list[tuple[int, ...]] = [()] * len(questions)
        regions: list[Region] = []
        start = 0
        for union in get_args(UnionForm):
            places = [i for i, item in enumerate(questions) if item.question.union == union]
            if places:
                queries = [questions[place].ranked_by.grounded for place in places]
                found = embed_grounded(self.model, queries, union, self.max_branches)
                for place, own in zip(places, found.rows, strict=True):
                    rows[place] = tuple(start + row for row in own)
                regions.append(found.region)
                start += len(found.region[0])
        columns = zip(*regions, strict=True)
        return EmbeddedQueries(tuple(torch.cat(column) for column in columns), tuple(rows))

    def _rank(
        self, questions: Sequence[Understood], facts: Sequence[Facts], embedded: EmbeddedQueries
    ) -> list[Draft]:
        """The best entities of each question, with what its regions say about them."""
        counts = [0] * len(embedded.region[0])
        skip: list[IntArray] = [np.empty(0, dtype=np.int32)] * len(counts)
        for item, own_facts, rows in zip(questions, facts, embedded.rows, strict=True):
            unwanted = self._unwanted(item, own_facts)
            barred = item.ranked_by.barred(self.graph.num_entities)
            for place, row in enumerate(rows):
                counts[row] = min(item.question.top_k, self.graph.num_entities)
                skip[row] = np.union1d(unwanted, barred[place]) if barred else unwanted
        rankings = self.index.top(embedded.region, counts, skip)
        members = self._members(embedded, rankings)
        sizes = region_sizes(self.model, embedded.region)
        backgrounds = self._backgrounds(questions, embedded)
        writer = self._writer
        drafts = []
        for item, own_facts, rows in zip(questions, facts, embedded.rows, strict=True):
            ranking, origin = merge_rankings([rankings[row] for row in rows], item.question.top_k)
            inside = None
            if members is not None:
                inside = [
                    members[rows[branch]][int(entity_id)]
                    for branch, entity_id in zip(origin, ranking.entity_ids, strict=True)
                ]
            own_sizes = sizes[list(rows)] if len(sizes) else sizes
            missing = writer.missing(item, own_sizes, own_facts)
            drafts.append(Draft(ranking, inside, backgrounds[np.array(rows)[origin]], missing))
        return drafts

    def _backgrounds(
        self, questions: Sequence[Understood], embedded: EmbeddedQueries
    ) -> NDArray[np.float64]:
        """[rows] the mean score of arbitrary entities; zeros if no probability depends on it."""
        calibration = self.calibration
        if calibration is None or not any(
            calibration.scores(self._writer.outlines(item)).relative for item in questions
        ):
            return np.zeros(len(embedded.region[0]))
        return self.index.background(embedded.region)

    def _unwanted(self, item: Understood, facts: Facts) -> IntArray:
        """The sorted ids that no branch of the question may return."""
        unwanted = item.exclude
        if len(facts.contradicted) and not item.question.keep_contradicted:
            unwanted = np.union1d(unwanted, facts.contradicted).astype(np.int32)
        match item.question.only:
            case None:
                return unwanted
            case "predicted":
                return np.union1d(unwanted, facts.known).astype(np.int32)
            case "known":
                all_ids = np.arange(self.graph.num_entities, dtype=np.int32)
                others = np.setdiff1d(all_ids, facts.known, assume_unique=True)
                return np.union1d(unwanted, others).astype(np.int32)

    def _members(
        self, embedded: EmbeddedQueries, rankings: Sequence[Ranking]
    ) -> list[dict[int, bool]] | None:
        """For each row, whether its ranked entities are inside, by majority of dimensions.

        None for models whose regions have no inside.
        """
        if not self.model.has_extent:
            return None
        width = max(len(ranking.entity_ids) for ranking in rankings)
        ids = np.zeros((len(rankings), width), dtype=np.int64)  # padded by entity 0, cut off below
        for row, ranking in enumerate(rankings):
            ids[row, : len(ranking.entity_ids)] = ranking.entity_ids
        with torch.inference_mode():
            device = embedded.region[0].device
            share = self.model.inside_fraction(
                embedded.region, torch.as_tensor(ids, device=device)
            ).cpu()
        inside = (share >= MAJORITY).numpy()
        return [
            dict(zip(ranking.entity_ids.tolist(), inside[row].tolist(), strict=False))
            for row, ranking in enumerate(rankings)
        ]


def ask(
    run: str | Path | Run | Answerer,
    query: Query | str | Question,
    *,
    top_k: int = 10,
    only: Only | None = None,
    exclude: Sequence[str | int] = (),
    known_graph: Split = "train",
    union: UnionForm = "dnf",
    keep_contradicted: bool = False,
) -> Answer:
    """The ranked answers of one query, by a run or by an open `Answerer`.

    Opening a run loads its graph and model: to ask more than one question, pass an `Answerer`.
    """
    answerer = run if isinstance(run, Answerer) else Answerer.open(run)
    return answerer.ask(
        query,
        top_k=top_k,
        only=only,
        exclude=exclude,
        known_graph=known_graph,
        union=union,
        keep_contradicted=keep_contradicted,
    )


def _asked(questions: Sequence[Understood]) -> list[Asked]:
    """The settled queries with their known graphs."""
    return [(item.grounded, item.question.known_graph) for item in questions]


def _check_fits(model: QueryModel, graph: KnowledgeGraph) -> None:
    """Raise `ConfigError` unless a model has as many entities and relations as a graph."""
    have = (model.num_entities, model.num_relations)
    if have != (graph.num_entities, graph.num_relations):
        raise ConfigError(
            f"the model has {model.num_entities:,} entities and {model.num_relations:,} relations, "
            f"inverses included, and the graph {graph.num_entities:,} and "
            f"{graph.num_relations:,}; give the graph that the model was trained on",
            key="graph",
        )
