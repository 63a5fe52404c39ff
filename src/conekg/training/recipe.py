"""The recipe: every hyper-parameter of a training run, typed, documented and checked.

A recipe is frozen and is stored with its run. `recipe_file` reads and writes recipes as
TOML, `recipe_change` changes them, `recipes` holds those that come with the package, and each
model's own parameters are documented beside the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from conekg.errors import ConfigError
from conekg.model.config import ModelConfig, require, require_choice
from conekg.training.precision import Precision

NegativeSampling = Literal["uniform-filtered", "uniform-published"]
IdleWeights = Literal["rest", "drift"]
Decay = Literal["drops", "linear"]

RESERVED = ("step", "kind", "learning_rate", "peak_memory_gib")
"""Keys of a line of a run's metrics that no pool may have as its name: the loss of each pool is
logged under the name of the pool."""

_MOST_AT_ONCE = 100_000_000
"""Limit of the queries per batch and of the entities per query: more than fits into any memory,
but still within torch's integers."""
_MOST_TIMES = 1_000_000
"""Limit of `query_times`."""


@dataclass(frozen=True)
class Pool:
    """Shapes that share a batch, each with its share of the batch."""

    name: str
    """What the update cycle calls this pool."""
    shares: tuple[tuple[str, float], ...]
    """(shape name, relative share) in batch order; `("2i", 10.0)` is ten times `("2in", 1.0)`."""

    def __post_init__(self) -> None:
        where = f"training.pools.{self.name}"
        if self.name in RESERVED:
            raise ConfigError(
                f"{where}: the metrics of a run have another use for {self.name!r}; give the pool "
                "another name",
                key=where,
            )
        if not self.shares:
            raise ConfigError(f"{where} is empty: a pool has at least one shape", key=where)
        for shape, share in self.shares:
            if not (share > 0 and math.isfinite(share)):
                key = f"{where}.{shape}"
                raise ConfigError(f"{key} = {share}: a share is a positive number", key=key)

    @property
    def shapes(self) -> tuple[str, ...]:
        """The names of the shapes, in batch order."""
        return tuple(shape for shape, _ in self.shares)

    def composition(self, batch_size: int) -> dict[str, int]:
        """How many queries of each shape a batch of `batch_size` holds.

        Shares are rounded by largest remainder; of equal remainders the earlier shape comes
        first. Each shape gets at least one query. Every step of a run has this composition.

        >>> Pool("path", (("1p", 1.0), ("2p", 1.0), ("3p", 1.0))).composition(512)
        {'1p': 171, '2p': 171, '3p': 170}
        """
        if batch_size < len(self.shares):
            raise ConfigError(
                f"training.batch_size = {batch_size} is less than the {len(self.shares)} "
                f"shapes of pool {self.name!r}, each of which needs one query; raise it, or take "
                "shapes out of the pool",
                key="training.batch_size",
            )
        spare = batch_size - len(self.shares)  # each shape gets one query in any case
        total = sum(share for _, share in self.shares)
        wanted = [max(0.0, batch_size * share / total - 1.0) for _, share in self.shares]
        scale = spare / sum(wanted) if sum(wanted) > spare else 1.0
        exact = [want * scale for want in wanted]
        counts = [int(value) for value in exact]
        by_remainder = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
        for place in range(spare - sum(counts)):
            counts[by_remainder[place % len(counts)]] += 1
        return {shape: 1 + count for (shape, _), count in zip(self.shares, counts, strict=True)}


PATH_POOL = Pool("path", (("1p", 1.0), ("2p", 1.0), ("3p", 1.0)))
"""Chains of projections, as the published code pools them."""

OTHER_POOL = Pool(
    "other",
    (
        ("2i", 10.0),
        ("3i", 10.0),
        ("2in", 1.0),
        ("3in", 1.0),
        ("inp", 1.0),
        ("pin", 1.0),
        ("pni", 1.0),
    ),
)
"""Intersections and negations; the release has ten times as many queries of 2i and of 3i as of
each negation structure."""


@dataclass(frozen=True)
class TrainingRecipe:
    """How any model is trained. A step is one round of the update cycle."""

    steps: int
    """How many steps the run has."""
    batch_size: int = 512
    """Queries per update."""
    positives: int = 1
    """Known answers drawn for each query; one, as published. With more, queries with many answers
    are learnt in fewer steps at little cost, since a positive takes only as long as a negative."""
    negatives: int = 128
    """Entities drawn against each query's positive answers."""
    negative_sampling: NegativeSampling = "uniform-filtered"
    """`uniform-filtered` never draws a known answer of the query; `uniform-published` may, as
    the published code does, whose filter has no effect."""
    shared_negatives: bool = False
    """Whether the queries of a batch have the same negatives, except where one is a known answer
    of a query and `uniform-filtered`: there that query has one of its own. Each query's negatives
    are distributed as without sharing, but those of a batch are fewer entities."""
    near_misses: float = 0.0
    """For queries with negation, the share of negatives that would be answers without the
    negations, such as entities in both `A` and `B` for `A and not B`; none, as published. Uniform
    negatives hardly ever show what a negation does. Near misses are found on the training graph
    before the first step."""
    adversarial_temperature: float = 0.0
    """How much more a negative counts if the model takes it for an answer; with 0, as published,
    all count equally. Meant for filtered negatives: among unfiltered ones, those that count more
    are often true answers."""
    answer_discount: float = 0.5
    """How much less a query with many answers counts: with n answers, its weight is (4 + n) to the
    power of minus this. 0.5, as published; with 0 all queries count equally."""
    pools: tuple[Pool, ...] = (PATH_POOL, OTHER_POOL)
    """Which shapes share a batch, and in which proportion. EmQL draws its own examples instead and
    uses only the names of the pools, for `cycle`."""
    cycle: tuple[str, ...] = ("path", "other", "path")
    """The pools of the updates that make one step, in order."""
    learning_rate: float = 1e-4
    """Adam's step size at the start."""
    decay: Decay = "drops"
    """How the learning rate falls: with `drops`, as published, it is constant between the drops at
    `drops_at`; with `linear` it falls by the same amount at every step, to zero after the last, and
    `drops_at` must be empty."""
    drops_at: tuple[float, ...] = (0.5, 0.75)
    """Fractions of the run after which the learning rate drops."""
    drop_factor: float = 5.0
    """What the learning rate is divided by at each drop."""
    fresh_moments: bool = True
    """Whether Adam forgets its moments at each drop, as the published code does."""
    idle_weights: IdleWeights = "rest"
    """What Adam does with weights that an update does not use, such as those of intersections in a
    batch of paths: they `rest`, or `drift` on by their momentum, as in the published runs, whose
    version of PyTorch treated a missing gradient as zero."""
    precision: Precision = "float32"
    """Precision of matrix products on a GPU: `float32`, `tf32` (ten bits of mantissa) or `bfloat16`
    (seven). Sums are always in float32; on a CPU all three mean float32."""
    compile_operators: bool = False
    """Whether a GPU run compiles the model's operators first: about a minute at the start, a
    shorter step afterwards. A CPU run ignores it; EmQL has nothing to compile."""
    query_times: int | None = None
    """How many training queries a run samples per shape, also of shapes with negation: a multiple
    of the sampling protocol's number for shapes without negation. By default the protocol's own
    numbers. Only for runs that sample their queries themselves, and not for EmQL, which learns
    from facts."""
    seed: int = 0
    """Determines the initial parameters, every batch and every dropout mask."""
    log_every: int = 100
    """Steps between lines of `metrics.jsonl`."""
    validate_every: int | None = None
    """Steps between validations; if left out, the model is validated only at the end."""
    validate_queries: int = 500
    """At most this many validation queries per shape are ranked during training."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""

    def __post_init__(self) -> None:
        for name in ("steps", "log_every", "checkpoint_every"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "a whole number above 0")
        for name in ("batch_size", "positives", "negatives"):
            _require(
                1 <= getattr(self, name) <= _MOST_AT_ONCE,
                name,
                getattr(self, name),
                f"a whole number from 1 to {_MOST_AT_ONCE:,}",
            )
        _require(self.validate_queries >= 1, "validate_queries", self.validate_queries, "1 or more")
        _require(
            self.validate_every is None or self.validate_every >= 1,
            "validate_every",
            self.validate_every,
            "a whole number above 0, or left out",
        )
        _require(
            self.query_times is None or 1 <= self.query_times <= _MOST_TIMES,
            "query_times",
            self.query_times,
            f"a whole number from 1 to {_MOST_TIMES:,}, or left out",
        )
        for name, choices in (
            ("negative_sampling", NegativeSampling),
            ("decay", Decay),
            ("idle_weights", IdleWeights),
            ("precision", Precision),
        ):
            require_choice(f"training.{name}", getattr(self, name), choices)
        _require(0 < self.learning_rate < 1, "learning_rate", self.learning_rate, "between 0 and 1")
        _require(0 <= self.near_misses <= 1, "near_misses", self.near_misses, "from 0 to 1")
        _require(
            0 <= self.adversarial_temperature < 100,
            "adversarial_temperature",
            self.adversarial_temperature,
            "0 or above it, below 100",
        )
        _require(
            0 <= self.answer_discount <= 1, "answer_discount", self.answer_discount, "from 0 to 1"
        )
        _require(
            self.drop_factor >= 1 and len(self.drops_at) * math.log10(self.drop_factor) <= 300,
            "drop_factor",
            self.drop_factor,
            f"1 or more, and {len(self.drops_at)} drops by it must divide by 1e300 at most",
        )
        _require(
            all(0 < at < 1 for at in self.drops_at)
            and all(a < b for a, b in zip(self.drops_at, self.drops_at[1:], strict=False)),
            "drops_at",
            list(self.drops_at),
            "fractions between 0 and 1, increasing",
        )
        _require(
            self.decay == "drops" or not self.drops_at,
            "drops_at",
            list(self.drops_at),
            f"empty, [], where training.decay is {self.decay!r}",
        )
        _require(0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0 to 2**63 - 1")
        self._check_pools()

    def _check_pools(self) -> None:
        names = [pool.name for pool in self.pools]
        _require(len(set(names)) == len(names), "pools", names, "pools of distinct names")
        _require(len(self.cycle) >= 1, "cycle", list(self.cycle), "one pool name or more")
        for name in self.cycle:
            _require(name in names, "cycle", name, f"one of the pools {', '.join(names)}")
        for name in dict.fromkeys(self.cycle):  # no batch of any other pool is ever drawn
            self.pool(name).composition(self.batch_size)

    def pool(self, name: str) -> Pool:
        """The pool of that name."""
        return next(pool for pool in self.pools if pool.name == name)

    def trained_shapes(self) -> tuple[str, ...]:
        """Every shape that some update of the cycle trains on, once each."""
        shapes = (shape for pool in self.pools if pool.name in self.cycle for shape in pool.shapes)
        return tuple(dict.fromkeys(shapes))

    def restricted_to(self, shapes: frozenset[str]) -> TrainingRecipe:
        """This recipe with only those shapes; pools without any are removed, from the cycle too."""
        pools = tuple(
            Pool(pool.name, tuple(share for share in pool.shares if share[0] in shapes))
            for pool in self.pools
            if any(name in shapes for name in pool.shapes)
        )
        names = {pool.name for pool in pools}
        cycle = tuple(name for name in self.cycle if name in names)
        if not cycle:
            raise ConfigError(
                f"none of the shapes to train on ({', '.join(self.trained_shapes())}) has a query "
                "that some entities answer and others do not; there are such training queries of "
                f"{', '.join(sorted(shapes)) or 'no shape at all'}; a graph of more facts has more",
                key="training.pools",
            )
        return replace(self, pools=pools, cycle=cycle)


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a run besides its graph and its queries."""

    name: str
    """The name of the package's recipe that this one was derived from."""
    model: str
    """A key of `model.catalog.MODELS`."""
    config: ModelConfig
    """The model's own parameters; see its configuration class."""
    training: TrainingRecipe


def _require(condition: bool, field: str, value: object, accepted: str) -> None:
    require(condition, f"training.{field}", value, accepted)
