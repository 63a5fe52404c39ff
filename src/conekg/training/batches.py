"""Training data on the device, and the batches drawn from it there.

All queries and answers are kept on the device as flat tensors. Batches have a fixed
composition, so only random numbers change from step to step. The random numbers depend only
on (seed, step, update): a resumed run draws the same batches as one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from conekg.errors import ConfigError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.ragged import Ragged, offsets_of
from conekg.query.branches import union_free_branches
from conekg.query.shape import Shape
from conekg.sampling.near_misses import find_near_misses
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.training.loss import subsampling_weights
from conekg.training.recipe import NegativeSampling, Pool, TrainingRecipe

BATCHES, DROPOUT = 0, 1
"""The two streams of random numbers of an update, as `seed_at` takes them."""


@dataclass(frozen=True)
class DeviceBlock:
    """The training queries of one shape, as tensors."""

    shape: Shape
    anchors: Tensor
    """[queries, shape.num_anchors] int64"""
    relations: Tensor
    """[queries, shape.num_relations] int64"""
    answer_offsets: Tensor
    """[queries + 1] int64: query i's answers are `answer_values[offsets[i] : offsets[i + 1]]`."""
    answer_values: Tensor
    """Sorted answers, int32; all blocks of the data share this tensor."""
    near_offsets: Tensor
    """[queries + 1] int64: the same for `near_values`; a query may have no near misses."""
    near_values: Tensor
    """Near misses, int32; all blocks of the data share this tensor."""
    weights: Tensor
    """[queries] float32: the weight of each query in the loss."""

    def __len__(self) -> int:
        return len(self.anchors)


@dataclass(frozen=True)
class DeviceData:
    """Every training query of a run, by shape name."""

    num_entities: int
    blocks: Mapping[str, DeviceBlock]

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return next(iter(self.blocks.values())).anchors.device

    @property
    def max_answers(self) -> int:
        """The largest number of answers of any query."""
        return max(int(block.answer_offsets.diff().max()) for block in self.blocks.values())

    def near_misses_of(self, negatives: int, share: float) -> int:
        """How many of a query's negatives are near misses if it has some; at least one.

        0 if `share` is 0 or no query has near misses.
        """
        values = next(iter(self.blocks.values())).near_values
        return max(1, round(share * negatives)) if share and len(values) else 0


@dataclass(frozen=True)
class Batch:
    """The queries of one update, in groups of equal shape, each with positives and negatives."""

    anchors: tuple[Tensor, ...]
    """One [count, anchor slots] per group."""
    relations: tuple[Tensor, ...]
    """One [count, relation slots] per group."""
    positives: Tensor
    """[rows, positives] known answers of each query; one answer may be drawn several times."""
    negatives: Tensor
    """[rows, negatives] entities that a query is trained not to answer with."""
    weights: Tensor
    """[rows] the weight of each query in the loss."""


def load_training_data(
    graph: KnowledgeGraph, query_set: QuerySet, recipe: TrainingRecipe, device: torch.device
) -> DeviceData:
    """The queries that a recipe trains on, with their near misses if it uses some, on `device`."""

    def near_misses(block: QueryBlock) -> Ragged:
        return find_near_misses(graph.adjacency("train"), block, seed=recipe.seed)

    return move_to_device(
        query_set,
        graph.num_entities,
        recipe.trained_shapes(),
        device,
        near_misses if recipe.near_misses else None,
        recipe.answer_discount,
    )


def move_to_device(
    query_set: QuerySet,
    num_entities: int,
    shapes: Sequence[str],
    device: torch.device,
    near_misses: Callable[[QueryBlock], Ragged] | None = None,
    answer_discount: float = 0.5,
) -> DeviceData:
    """The queries of the given shapes on `device`, with the near misses that `near_misses` finds.

    `answer_discount` sets their weights, as in `subsampling_weights`. Queries without an answer
    are left out, and those that every entity answers: they have no positive or no negative. Raises
    `ConfigError` if a shape has no query left or cannot be trained on.
    """
    chosen = {block.shape.name: block for block in query_set if block.shape.name in shapes}
    chosen = {name: _learnable(block, num_entities) for name, block in chosen.items()}
    for name in shapes:
        if not len(chosen.get(name, ())):
            present = [block.shape.name for block in query_set if len(block)]
            raise ConfigError(
                f"the recipe trains on {name}, but the training queries have none that some "
                f"entities answer and others do not; there are queries of "
                f"{', '.join(present) or 'no shape at all'}",
                key="training.pools",
            )
        check_trainable(chosen[name].shape)
    answer_offsets, answers = _shared([chosen[name].hard for name in shapes], device)
    find = near_misses or (lambda block: Ragged.empty(len(block)))
    near_offsets, near = _shared([find(chosen[name]) for name in shapes], device)
    blocks = {
        name: DeviceBlock(
            shape=chosen[name].shape,
            anchors=_as_long(chosen[name].anchors, device),
            relations=_as_long(chosen[name].relations, device),
            answer_offsets=answer_offsets[place],
            answer_values=answers,
            near_offsets=near_offsets[place],
            near_values=near,
            weights=subsampling_weights(answer_offsets[place].diff(), answer_discount),
        )
        for place, name in enumerate(shapes)
    }
    return DeviceData(num_entities, blocks)


def check_trainable(shape: Shape) -> None:
    """Raise `ConfigError` for a shape with unions, which no model can be trained on."""
    if len(union_free_branches(shape.template)) > 1:
        # A batch has one region per query, but a union has one per union-free branch.
        raise ConfigError(
            f"the recipe trains on {shape.name}, a union; models are trained only on shapes "
            "without unions, and answer a union by its union-free branches",
            key="training.pools",
        )


def usable_shapes(query_set: QuerySet, num_entities: int) -> frozenset[str]:
    """The names of the shapes with a query to learn from.

    Such a query has at least one answer and at least one entity that is no answer.
    """
    return frozenset(
        block.shape.name for block in query_set if _is_learnable(block, num_entities).any()
    )


class BatchSampler:
    """Draws the batches of one pool: tensors of constant sizes, without transfers to the host."""

    def __init__(
        self,
        data: DeviceData,
        pool: Pool,
        batch_size: int,
        negatives: int,
        negative_sampling: NegativeSampling,
        positives: int = 1,
        near_misses: float = 0.0,
        shared_negatives: bool = False,
    ) -> None:
        self.composition: dict[str, int] = pool.composition(batch_size)
        self._data = data
        self._blocks = [data.blocks[name] for name in self.composition]
        self._answer_values = self._blocks[0].answer_values
        self._positives = positives
        self._negatives = negatives
        self._near = data.near_misses_of(negatives, near_misses)
        self._filtered = negative_sampling == "uniform-filtered"
        self._shared = shared_negatives
        self._search_rounds = data.max_answers.bit_length()

    @property
    def groups(self) -> list[tuple[Shape, int]]:
        """(shape, count) of each group of a batch, in order, from which its plan is made."""
        counts = self.composition.values()
        return [(block.shape, count) for block, count in zip(self._blocks, counts, strict=True)]

    def draw(self, generator: torch.Generator) -> Batch:
        """A batch drawn with the generator."""
        anchors, relations, starts, stops = [], [], [], []
        near_starts, near_stops, weights = [], [], []
        for block, count in zip(self._blocks, self.composition.values(), strict=True):
            rows = torch.randint(
                len(block), (count,), generator=generator, device=self._data.device
            )
            anchors.append(block.anchors[rows])
            relations.append(block.relations[rows])
            starts.append(block.answer_offsets[rows])
            stops.append(block.answer_offsets[rows + 1])
            near_starts.append(block.near_offsets[rows])
            near_stops.append(block.near_offsets[rows + 1])
            weights.append(block.weights[rows])
        start = torch.cat(starts)
        num_answers = torch.cat(stops) - start
        positives = self._draw_positives(start, num_answers, generator)
        negatives = self._draw_negatives(start, num_answers, generator)
        if self._near:
            near_start = torch.cat(near_starts)
            self._put_near_misses(
                negatives, near_start, torch.cat(near_stops) - near_start, generator
            )
        return Batch(tuple(anchors), tuple(relations), positives, negatives, torch.cat(weights))

    def _draw_positives(
        self, start: Tensor, num_answers: Tensor, generator: torch.Generator
    ) -> Tensor:
        """[rows, positives] answers of each query, drawn uniformly with replacement."""
        limit = num_answers.unsqueeze(1).expand(-1, self._positives)
        place = start.unsqueeze(1) + _below(limit, generator)
        return self._answer_values[place].long()

    def _draw_negatives(
        self, start: Tensor, num_answers: Tensor, generator: torch.Generator
    ) -> Tensor:
        """[rows, negatives] entities, drawn uniformly; if filtered, only from the non-answers."""
        rows, num_entities = len(start), self._data.num_entities

        def among_all(rows: int) -> Tensor:
            size = (rows, self._negatives)
            return torch.randint(num_entities, size, generator=generator, device=start.device)

        if not self._filtered:
            return among_all(1).repeat(rows, 1) if self._shared else among_all(rows)
        answers = self._answer_values, start.unsqueeze(1), num_answers.unsqueeze(1)
        free = (num_entities - num_answers).unsqueeze(1).expand(-1, self._negatives)
        own = nth_outside(_below(free, generator), *answers, self._search_rounds)
        if not self._shared:
            return own
        common = among_all(1).expand(rows, -1)
        return torch.where(is_among(common, *answers, self._search_rounds), own, common)

    def _put_near_misses(
        self, negatives: Tensor, start: Tensor, count: Tensor, generator: torch.Generator
    ) -> None:
        """Replace the first negatives of each query by near misses, in place.

        The near misses are drawn uniformly; queries that have none keep their negatives.
        """
        values = self._blocks[0].near_values
        limit = count.unsqueeze(1).expand(-1, self._near)
        place = start.unsqueeze(1) + _below(limit, generator)
        drawn = values[place.clamp(max=len(values) - 1)].long()
        first = negatives[:, : self._near]
        first.copy_(torch.where(limit > 0, drawn, first))


def nth_outside(index: Tensor, values: Tensor, start: Tensor, count: Tensor, rounds: int) -> Tensor:
    """The `index`-th (from 0) whole number that is not among `values[start : start + count]`.

    The slice is sorted and distinct, so there are `values[j] - j` free numbers below its value j.
    The result is `index` plus the number of values with at most `index` free numbers below them.
    A binary search finds that number for all rows at once, without rejection; its number of
    `rounds` is fixed, with 2^rounds > count.
    """
    low = torch.zeros_like(index)
    high = count.expand_as(index)
    last = len(values) - 1
    for _ in range(rounds):
        middle = (low + high) >> 1
        value = values[(start + middle).clamp(max=last)].long()
        skipped = (value - middle <= index) & (middle < high)
        low = torch.where(skipped, middle + 1, low)
        high = torch.where(skipped, high, middle)
    return index + low


def is_among(number: Tensor, values: Tensor, start: Tensor, count: Tensor, rounds: int) -> Tensor:
    """Whether each number is among `values[start : start + count]`, a sorted slice.

    A binary search as in `nth_outside`, with the same number of `rounds`.
    """
    low = torch.zeros_like(number)
    high = count.expand_as(number)
    last = len(values) - 1
    for _ in range(rounds):
        middle = (low + high) >> 1
        below = (values[(start + middle).clamp(max=last)] < number) & (middle < high)
        low = torch.where(below, middle + 1, low)
        high = torch.where(below, high, middle)
    return (low < count) & (values[(start + low).clamp(max=last)] == number)


def generator_at(seed: int, step: int, update: int, device: torch.device) -> torch.Generator:
    """The generator for the batch of one update; it depends only on the arguments."""
    generator = torch.Generator(device)
    generator.manual_seed(seed_at(seed, step, update, BATCHES))
    return generator


def seed_at(seed: int, step: int, update: int, stream: int) -> int:
    """A well-mixed 63-bit seed for one stream (`BATCHES` or `DROPOUT`) of one update."""
    mixed = np.random.SeedSequence((seed, step, update, stream)).generate_state(1, np.uint64)
    return int(mixed[0] >> np.uint64(1))


def _below(limit: Tensor, generator: torch.Generator) -> Tensor:
    """A uniform whole number from 0 to limit − 1 for each limit.

    In double precision every number can be drawn, and for graphs of 16 million entities all are
    equally likely to one part in 2^29.
    """
    uniform = torch.rand(limit.shape, generator=generator, device=limit.device, dtype=torch.float64)
    return (uniform * limit).long()


def _learnable(block: QueryBlock, num_entities: int) -> QueryBlock:
    usable = _is_learnable(block, num_entities)
    return block if usable.all() else block.take(np.flatnonzero(usable))


def _is_learnable(block: QueryBlock, num_entities: int) -> np.typing.NDArray[np.bool_]:
    num_answers = block.hard.lengths
    usable: np.typing.NDArray[np.bool_] = (num_answers > 0) & (num_answers < num_entities)
    return usable


def _shared(parts: Sequence[Ragged], device: torch.device) -> tuple[list[Tensor], Tensor]:
    """The offsets of each part's rows in the joined values, and the joined values of all parts."""
    values = np.concatenate([part.values for part in parts]).astype(np.int32, copy=False)
    starts = offsets_of([len(part.values) for part in parts])
    places = zip(parts, starts[:-1], strict=True)
    offsets = [_as_long(part.offsets + start, device) for part, start in places]
    return offsets, torch.from_numpy(values).to(device)


def _as_long(array: np.typing.NDArray[np.integer], device: torch.device) -> Tensor:
    return torch.from_numpy(array.astype(np.int64)).to(device)
