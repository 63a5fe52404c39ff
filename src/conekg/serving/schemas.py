"""The API's requests and responses as typed models; the OpenAPI description is made from them.

They have no behaviour. Bounds that an operator can change are in `limits` and are checked by
`service`; bounds that hold on every server are here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from conekg.answering.answer import Only
from conekg.graph.knowledge_graph import Split
from conekg.query.branches import UnionForm

Text = Annotated[str, StringConstraints(min_length=1)]
"""A text that is not empty. The constraint also makes pydantic check that it is valid Unicode: JSON
can spell half of a surrogate pair, which a plain `str` field would accept."""


class Request(BaseModel):
    """Base of request bodies: unknown fields are errors, and so are values of another type, such
    as a number in quotes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Parameters(BaseModel):
    """Base of query parameters, after the `?` of an address; unknown names are errors."""

    model_config = ConfigDict(extra="forbid")


class Response(BaseModel):
    """Base of response bodies."""

    model_config = ConfigDict(from_attributes=True)


class ErrorBody(Response):
    """What went wrong, where, and what to do next."""

    status: int
    kind: str = Field(description="machine-readable name of the error")
    message: str
    hint: str | None = None
    name: str | None = Field(default=None, description="the entity or relation that was not found")
    span: tuple[int, int] | None = Field(
        default=None, description="offending characters of the query text, start and end"
    )
    suggestions: list[str] = []
    about: list[str] = Field(
        default=[],
        description="for each suggestion that is only an id, its label and what tells it apart; "
        "empty for the others",
    )


class ErrorResponse(Response):
    """The one shape of every error."""

    error: ErrorBody


class Tree(BaseModel):
    """A node of a query: `entity` and `hop` alone have a name, `hop` and `not` one operand,
    `and` and `or` two or more; `all` is every entity of the graph."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["entity", "all", "hop", "and", "or", "not"]
    name: Text | None = Field(
        default=None,
        description="entity name, or relation name with ^ before it when walked backwards",
    )
    label: str | None = Field(default=None, description="readable name; ignored in requests")
    operands: list[Tree] = []


class ParseRequest(Request):
    """A query, either as text or as a tree."""

    query: Text | None = None
    tree: Tree | None = None


class ParseResponse(Response):
    """How a query is understood."""

    query: str = Field(description="canonical text")
    formula: str = Field(description="the same as a first-order formula")
    reading: str = Field(description="the same in plain words")
    shape: str = Field(description="the literature's name such as 2in, or the shape spelled out")
    depth: int
    branches: int = Field(
        description="union-free branches, as the limit `query_branches` counts them; "
        "may exceed that limit"
    )
    tree: Tree


class AskRequest(Request):
    """A question, and which answers are wanted."""

    query: Text = Field(examples=["France.borders"])
    top_k: int = Field(default=10, ge=1)
    only: Only | None = Field(
        default=None, description="only answers that follow from the facts, or only the others"
    )
    exclude: list[str] = Field(default=[], description="entities to leave out")
    known_graph: Split = Field(default="train", description="which nested graph counts as known")
    union: UnionForm = "dnf"
    keep_contradicted: bool = Field(
        default=False, description="also rank entities that known facts rule out"
    )


class AnswerItem(Response):
    """One ranked entity."""

    rank: int
    name: str
    label: str
    score: float
    probability: float | None
    known: bool = Field(description="follows from the facts of the graph alone")
    contradicted: bool = Field(description="ruled out by the facts of the graph")
    member: bool | None = Field(description="inside most of the query's cones")


class AskResponse(Response):
    """Ranked answers."""

    query: str
    reading: str
    answers: list[AnswerItem]
    num_known: int
    num_contradicted: int = Field(description="entities that known facts rule out")
    estimated_count: float | None = Field(
        description="of answers in all; null without a calibration and where facts rule all out"
    )
    estimated_count_factor: float | None
    calibration_error: float | None
    known_graph: Split
    recall: float = Field(
        description="share of true top-10 entities a search finds; below 1 only on huge graphs"
    )
    model: str
    seconds: float


class ExplainRequest(Request):
    """A query and the answer to be explained."""

    query: Text
    answer: Text = Field(description="entity name; it need not be among the top answers")
    known_graph: Split = "train"
    union: UnionForm = "dnf"
    candidates: int = Field(default=5, ge=1, le=50, description="entities listed for each variable")


class EntityItem(Response):
    """An entity by its unique name and its readable label."""

    name: str
    label: str


class EdgeItem(Response):
    """One step of a witness path."""

    head: EntityItem
    relation: str
    relation_label: str
    tail: EntityItem
    kind: Literal["fact", "guess"]
    score: float
    head_variable: str | None
    tail_variable: str


class PartItem(Response):
    """One condition of the query and how the answer meets it."""

    query: str
    reading: str
    kind: Literal["fact", "guess", "absent", "contradicted"]
    score: float


class VariableItem(Response):
    """An inner node of the query and its best entities."""

    name: str
    query: str
    reading: str
    candidates: list[AnswerItem]


class WitnessItem(Response):
    """Why an entity is an answer."""

    answer: AnswerItem
    edges: list[EdgeItem]
    parts: list[PartItem]
    weakest: PartItem | None
    facts_only: bool


class ExplainResponse(Response):
    """The best entities for each variable, and the path to the answer."""

    query: str
    reading: str
    explained: str | None
    variables: list[VariableItem]
    witnesses: list[WitnessItem]


class ConesRequest(Request):
    """A query, an answer, and how many dimensions to show."""

    query: Text
    answer: Text
    dimensions: int = Field(default=8, ge=1)
    known_graph: Split = "train"
    union: UnionForm = "dnf"


class ConeItem(Response):
    """One dimension: the query's sector-cone and the answer's angle, in radians."""

    dimension: int
    axis: float
    half_aperture: float
    entity_angle: float
    inside: bool


class ConesResponse(Response):
    """Cones of a query, evenly spaced from narrow to wide; empty for models without cones."""

    query: str
    answer: EntityItem
    dimensions: int = Field(description="how many dimensions the model has in all")
    inside: int = Field(description="in how many of them the answer lies inside the cone")
    cones: list[ConeItem]


class EntitiesQuery(Parameters):
    """The entities to list: how their names begin, and how many."""

    prefix: str = Field(
        default="",
        description="how names or labels begin, ignoring case; accents may be left out",
    )
    limit: int = Field(default=10, ge=1)


class CompletionItem(EntityItem):
    """An entity, and its name as written in a query, quoted where needed."""

    text: str


class EntitiesResponse(Response):
    """Entities whose name or label begins with the prefix."""

    entities: list[CompletionItem]
    total: int = Field(description="entities of the graph in all")


class RelationItem(Response):
    """A relation, and its name when followed backwards."""

    name: str
    label: str
    inverse: str
    inverse_label: str
    text: str = Field(description="how the name is written in a query, quoted where needed")


class RelationsResponse(Response):
    """The relations of the graph."""

    relations: list[RelationItem]


class NeighborsQuery(Parameters):
    """The entity whose facts to list, from which nested graph, and how many per relation."""

    entity: Text
    graph: Split = "train"
    limit: int = Field(default=10, ge=1)


class NeighborGroup(Response):
    """The entities that one relation leads to from an entity."""

    relation: str
    relation_label: str
    entities: list[EntityItem]
    count: int = Field(description="how many there are in all, listed or not")


class NeighborsResponse(Response):
    """The facts around an entity."""

    entity: EntityItem
    known_graph: Split
    groups: list[NeighborGroup]


class Example(Response):
    """An example question."""

    query: str
    reading: str
    shape: str


class AboutResponse(Response):
    """The graph and model of this server, its limits, and example questions."""

    version: str
    graph: str
    num_entities: int
    num_relations: int
    num_facts: int
    model: str
    dimensions: int
    can_negate: bool
    calibrated: bool
    examples: list[Example]
    limits: dict[str, int | float]


class HealthResponse(Response):
    """Whether the server is up."""

    status: Literal["ok"]
