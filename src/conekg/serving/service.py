"""From requests to responses: what each API route does, independent of HTTP.

`scoring` decides what runs on which thread. Each method as a whole keeps to the time limit of a
request.
"""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel

from conekg.answering.answer import Question
from conekg.answering.engine import Answerer
from conekg.answering.explain import explain, sector_cones
from conekg.answering.reading import read_query
from conekg.answering.understand import Understood
from conekg.errors import ConfigError, QueryError
from conekg.graph.namesakes import told_apart
from conekg.query.parse import parse_query
from conekg.query.render import name_of, render_formula, render_query
from conekg.query.shape import shape_of
from conekg.query.tokens import as_written
from conekg.query.tree import Query
from conekg.serving.limits import Limits
from conekg.serving.query_size import (
    check_branches,
    check_names,
    check_size,
    check_text,
    num_branches,
)
from conekg.serving.schemas import (
    AskRequest,
    AskResponse,
    CompletionItem,
    ConeItem,
    ConesRequest,
    ConesResponse,
    EntitiesQuery,
    EntitiesResponse,
    EntityItem,
    ExplainRequest,
    ExplainResponse,
    NeighborGroup,
    NeighborsQuery,
    NeighborsResponse,
    ParseRequest,
    ParseResponse,
    RelationItem,
    RelationsResponse,
)
from conekg.serving.scoring import Scorer
from conekg.serving.trees import look_up, query_from_tree, tree_of_query


class Service:
    """The API of one answerer."""

    def __init__(self, answerer: Answerer, scorer: Scorer, limits: Limits) -> None:
        self._answerer = answerer
        self._scorer = scorer
        self._limits = limits
        self._vocabulary = answerer.graph.vocabulary
        self.relations = self._list_relations()
        """All relations, listed once: they do not change while the server runs."""

    async def ask(self, request: AskRequest) -> AskResponse:
        """Ranked answers."""
        top_k = self._count(request, "top_k", self._limits.top_k)
        self._check_count("the length of exclude", len(request.exclude), self._limits.excluded)

        def understand() -> Understood:
            return self._understand(
                Question(
                    self._parse(request.query),
                    top_k,
                    request.only,
                    tuple(
                        self._entity_id(name, f"exclude.{index}")
                        for index, name in enumerate(request.exclude)
                    ),
                    request.known_graph,
                    request.union,
                    request.keep_contradicted,
                )
            )

        async with self._scorer.in_time():
            question = await self._scorer.read(understand, request.query)
            return AskResponse.model_validate(await self._scorer.ask(question))

    async def explain(self, request: ExplainRequest) -> ExplainResponse:
        """The best entities for each variable of a query, and the witness of one answer."""

        def understand() -> tuple[Understood, int]:
            query = self._parse(request.query)
            question = Question(query, known_graph=request.known_graph, union=request.union)
            return self._understand(question), self._entity_id(request.answer, "answer")

        async with self._scorer.in_time():
            question, entity_id = await self._scorer.read(understand, request.query)
            explanation = await self._scorer.explain(
                lambda: explain(
                    self._answerer, question, entities=[entity_id], candidates=request.candidates
                )
            )
            return ExplainResponse.model_validate(explanation)

    async def cones(self, request: ConesRequest) -> ConesResponse:
        """A sample of a query's cones with an answer's angles."""
        most = self._count(request, "dimensions", self._limits.dimensions)
        dim = self._answerer.model.dim

        def understand() -> tuple[Query, int]:
            query = self._parse(request.query)
            check_branches(query, request.union, self._limits)
            return query, self._entity_id(request.answer, "answer")

        async with self._scorer.in_time():
            query, entity_id = await self._scorer.read(understand, request.query)
            cones = await self._scorer.explain(
                lambda: sector_cones(
                    self._answerer,
                    query,
                    entity_id,
                    dimensions=range(dim),
                    known_graph=request.known_graph,
                    union=request.union,
                )
            )
        # A representative sample: evenly spaced from the narrowest cone to the widest.
        by_width = sorted(cones, key=lambda cone: cone.half_aperture)
        places = np.linspace(0, len(by_width) - 1, min(most, len(by_width)))
        shown = [by_width[round(place)] for place in places]
        return ConesResponse(
            query=render_query(query, self._vocabulary),
            answer=self._entity(entity_id),
            dimensions=dim,
            inside=sum(cone.inside for cone in cones),
            cones=[ConeItem.model_validate(cone) for cone in shown],
        )

    async def parse(self, request: ParseRequest) -> ParseResponse:
        """How a query is understood, whether or not the served model could answer it."""
        async with self._scorer.in_time():
            return await self._scorer.read(lambda: self._parsed(request), request.query or "")

    async def entities(self, query: EntitiesQuery) -> EntitiesResponse:
        """Completions of an entity's name."""
        async with self._scorer.in_time():
            return await self._scorer.read(lambda: self._completions(query), query.prefix)

    async def neighbors(self, query: NeighborsQuery) -> NeighborsResponse:
        """The facts around an entity."""
        async with self._scorer.in_time():
            return await self._scorer.read(lambda: self._facts(query), query.entity)

    def _parsed(self, request: ParseRequest) -> ParseResponse:
        if (request.query is None) == (request.tree is None):
            raise QueryError("send either a query or a tree, and not both")
        if request.tree is not None:
            check_names(request.tree, self._limits)
            with told_apart(self._answerer.graph):
                query = query_from_tree(request.tree, self._vocabulary)
            check_size(query, self._limits)
        else:
            query = self._parse(request.query or "")
        return ParseResponse(
            query=render_query(query, self._vocabulary),
            formula=render_formula(query, self._vocabulary),
            reading=read_query(query, self._vocabulary),
            shape=shape_of(query).name,
            depth=check_size(query, self._limits),
            branches=num_branches(query),
            tree=tree_of_query(query, self._vocabulary),
        )

    def _completions(self, query: EntitiesQuery) -> EntitiesResponse:
        limit = self._count(query, "limit", self._limits.completions)
        table = self._vocabulary.entities
        ids = table.with_prefix(check_text(query.prefix, self._limits, "prefix"), limit)
        return EntitiesResponse(
            entities=[
                CompletionItem(
                    name=table.name(entity_id),
                    label=table.label(entity_id),
                    text=as_written(name_of(table, entity_id, labels=True)),
                )
                for entity_id in ids
            ],
            total=len(table),
        )

    def _facts(self, query: NeighborsQuery) -> NeighborsResponse:
        limit = self._count(query, "limit", self._limits.completions)
        entity_id = self._entity_id(query.entity, "entity")
        adjacency = self._answerer.graph.adjacency(query.graph)
        groups = []
        for relation_id in adjacency.relations_of(entity_id).tolist():
            tails = adjacency.neighbors(entity_id, relation_id)
            groups.append(
                NeighborGroup(
                    relation=self._vocabulary.relation_name(relation_id),
                    relation_label=self._vocabulary.relation_label(relation_id),
                    entities=[self._entity(tail) for tail in tails[:limit].tolist()],
                    count=len(tails),
                )
            )
        return NeighborsResponse(
            entity=self._entity(entity_id), known_graph=query.graph, groups=groups
        )

    def _parse(self, text: str) -> Query:
        with told_apart(self._answerer.graph):
            query = parse_query(
                check_text(text, self._limits, "query"),
                self._vocabulary,
                max_length=self._limits.query_chars,
                max_depth=self._limits.query_depth,
            )
        check_size(query, self._limits)
        return query

    def _understand(self, question: Question) -> Understood:
        assert not isinstance(question.query, str), "queries are parsed under the server's limits"
        check_branches(question.query, question.union, self._limits)
        return self._answerer.understand(question)

    def _entity_id(self, name: str, place: str) -> int:
        check_text(name, self._limits, place)
        with told_apart(self._answerer.graph):
            return look_up(name, self._vocabulary.entities.id_of, place)

    def _entity(self, entity_id: int) -> EntityItem:
        table = self._vocabulary.entities
        return EntityItem(name=table.name(entity_id), label=table.label(entity_id))

    def _list_relations(self) -> RelationsResponse:
        names = self._vocabulary.relation_name
        labels = self._vocabulary.relation_label
        return RelationsResponse(
            relations=[
                RelationItem(
                    name=names(2 * index),
                    label=labels(2 * index),
                    inverse=names(2 * index + 1),
                    inverse_label=labels(2 * index + 1),
                    text=as_written(names(2 * index)),
                )
                for index in range(len(self._vocabulary.relations))
            ]
        )

    def _count(self, request: BaseModel, field: str, limit: int) -> int:
        """The number in a field, checked against the limit; a default is lowered to the limit."""
        value: int = getattr(request, field)
        if field not in request.model_fields_set:
            return min(value, limit)
        self._check_count(field, value, limit)
        return value

    @staticmethod
    def _check_count(name: str, value: int, limit: int) -> None:
        if value > limit:
            raise ConfigError(f"{name} is {value}; this server allows {limit} at most", key=name)
