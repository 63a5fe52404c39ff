"""Writes answers: names, what facts say of them, probabilities, and how many there are in all.

`engine` finds the entities that rank best; this file says what their scores and the sizes of the
regions mean, by the run's calibration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conekg.answering.answer import Answer, RankedAnswer
from conekg.answering.calibration import Calibration, outlines
from conekg.answering.facts import Facts, contains
from conekg.answering.named import Limit
from conekg.answering.ranking import Ranking
from conekg.answering.understand import Understood
from conekg.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True)
class Estimate:
    """An estimated number of answers."""

    count: float
    factor: float | None
    """Half of such estimates are within this factor of the truth; None if it was not measured."""


@dataclass(frozen=True)
class Draft:
    """The best entities of a question by their ids, with what its regions say about them."""

    ranking: Ranking
    inside: list[bool] | None
    """Whether each entity is inside its region; None for models whose regions have no inside."""
    backgrounds: NDArray[np.float64]
    """[k] the mean score of arbitrary entities in the region that each score is from."""
    missing: Estimate | None
    """How many answers the facts lack; None if that cannot be estimated."""


@dataclass(frozen=True)
class AnswerWriter:
    """Writes answers about one graph by one calibration, for queries of so many branches."""

    graph: KnowledgeGraph
    calibration: Calibration | None
    max_branches: int

    def outlines(self, item: Understood) -> tuple[str, ...]:
        """The outlines of the regions that a question is ranked by."""
        return outlines(item.ranked_by.grounded.shape, item.question.union, self.max_branches)

    def missing(
        self, item: Understood, sizes: NDArray[np.float64], facts: Facts
    ) -> Estimate | None:
        """How many answers the facts lack, estimated from the sizes of the branches' regions.

        The sum over the branches, an upper estimate, since branches may overlap; one that names its
        answers lacks no more than those of them that are not known. None without a calibration, for
        models without sizes, and if a branch has no curve.
        """
        if self.calibration is None or len(sizes) == 0:
            return None
        curves = [self.calibration.sizes(one) for one in self.outlines(item)]
        known = [curve for curve in curves if curve is not None]
        if len(known) < len(curves):
            return None
        limits = item.ranked_by.limits or (Limit(),) * len(known)
        counts = [
            curve.missing(size)
            if limit.among is None
            else min(curve.missing(size), _num_unknown(limit.among, facts))
            for curve, size, limit in zip(known, sizes, limits, strict=True)
        ]
        # The factor of a sum of estimates was not measured.
        return Estimate(sum(counts), known[0].factor if len(known) == 1 else None)

    def answer(
        self,
        item: Understood,
        draft: Draft,
        facts: Facts,
        *,
        model: str,
        recall: float,
        seconds: float,
    ) -> Answer:
        """The answer of a question as it is returned."""
        calibration, expected = self.calibration, self._expected(item, draft, facts)
        return Answer(
            query=item.text,
            reading=item.reading,
            answers=self.ranked(item, draft, facts),
            num_known=len(facts.known),
            num_contradicted=len(facts.contradicted),
            estimated_count=None if expected is None else expected.count,
            estimated_count_factor=None if expected is None else expected.factor,
            calibration_error=None
            if calibration is None
            else calibration.scores(self.outlines(item)).error,
            known_graph=item.question.known_graph,
            recall=recall,
            model=model,
            seconds=seconds,
        )

    def _expected(self, item: Understood, draft: Draft, facts: Facts) -> Estimate | None:
        """How many answers there are in all: the known ones that stay true, and the missing ones.

        At most the number of entities that no fact rules out. None also if facts rule out all
        entities: none is missing then, whatever the regions say.
        """
        possible = self.graph.num_entities - len(facts.contradicted)
        if self.calibration is None or draft.missing is None or not possible:
            return None
        missing, certain = draft.missing, len(facts.certain)
        kept = self.calibration.kept(self.outlines(item))
        known = certain + (len(facts.known) - certain) * kept
        count = float(min(known + missing.count, possible))
        if missing.factor is None or certain < len(facts.known):
            return Estimate(count, None)
        # The factor is that of one plus the missing answers; known ones are not in doubt.
        upper = min(known + (1 + missing.count) * missing.factor - 1, possible)
        return Estimate(count, upper / count if count else missing.factor)

    def ranked(self, item: Understood, draft: Draft, facts: Facts) -> tuple[RankedAnswer, ...]:
        """The entities of a draft with their names, what the facts say, and probabilities."""
        entities = self.graph.vocabulary.entities
        answers = []
        is_known = contains(facts.known, draft.ranking.entity_ids).tolist()
        is_certain = contains(facts.certain, draft.ranking.entity_ids).tolist()
        is_contradicted = contains(facts.contradicted, draft.ranking.entity_ids).tolist()
        ids, scores = draft.ranking.entity_ids.tolist(), draft.ranking.scores.tolist()
        calibration = self.calibration
        regions = self.outlines(item)
        curve = None if calibration is None else calibration.scores(regions)
        for place, (entity_id, score) in enumerate(zip(ids, scores, strict=True)):
            probability = None
            if calibration is not None and curve is not None:
                if is_contradicted[place]:
                    probability = 0.0
                elif is_known[place]:
                    probability = 1.0 if is_certain[place] else calibration.kept(regions)
                else:
                    probability = curve.probability(score, draft.backgrounds[place])
            answers.append(
                RankedAnswer(
                    rank=place + 1,
                    entity_id=entity_id,
                    name=entities.name(entity_id),
                    label=entities.label(entity_id),
                    score=score,
                    probability=probability,
                    known=is_known[place],
                    contradicted=is_contradicted[place],
                    member=None if draft.inside is None else draft.inside[place],
                )
            )
        return tuple(answers)


def _num_unknown(entity_ids: frozenset[int], facts: Facts) -> int:
    """How many of the entities are not known to be answers."""
    ids = np.array(list(entity_ids), dtype=np.int64)
    return int((~contains(facts.known, ids)).sum())
