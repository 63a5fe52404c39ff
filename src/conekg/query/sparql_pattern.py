"""Translates SPARQL graph patterns into first-order formulas.

SPARQL is evaluated bottom-up: a group binds variables, then a filter or MINUS removes solutions.
There are three cases for a variable inside a negated block. If the group outside binds it in every
solution, it is the same variable. If only one branch of a UNION outside binds it, it is refused,
since the answer would depend on the branch. Otherwise it belongs to the block alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyparsing import ParseResults

from conekg.query.formula_tree import (
    Conjunction,
    Disjunction,
    Equals,
    Everything,
    Exists,
    Formula,
    Negation,
    Variable,
    atom,
    free_variables,
)
from conekg.query.sparql_terms import Terms, describe_node, is_literal, is_name, is_variable
from conekg.query.tokens import Span

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDF_FIRST = "http://www.w3.org/1999/02/22-rdf-syntax-ns#first"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
OWL_THING = "http://www.w3.org/2002/07/owl#Thing"

_UNSUPPORTED_PARTS = {
    "OptionalGraphPattern": "OPTIONAL",
    "Bind": "BIND",
    "GraphGraphPattern": "GRAPH",
    "ServiceGraphPattern": "SERVICE",
}


@dataclass
class Scope:
    """The variables within one block, by name."""

    target: str | None = None
    """The name of the variable that the query selects."""
    known: dict[str, Variable] = field(default_factory=dict)
    """The variables that names have been resolved to so far."""
    inherited: frozenset[Variable] = frozenset()
    """Variables bound outside of the (NOT) EXISTS block that this scope belongs to."""
    doubtful: frozenset[str] = frozenset()
    """Names that are bound in some but not all solutions of the outer pattern."""
    hidden: dict[str, Span] = field(default_factory=dict)
    """For a MINUS within EXISTS: the names bound outside of EXISTS, with the place of the MINUS."""
    created: list[Variable] = field(default_factory=list)
    """The variables that belong to this block, in order of first use."""


@dataclass(frozen=True)
class Pattern:
    """The conditions of a graph pattern, and the variables that its solutions bind."""

    parts: tuple[Formula, ...] = ()
    """Formulas that must all be true."""
    certain: frozenset[Variable] = frozenset()
    """Variables bound in every solution."""
    possible: frozenset[Variable] = frozenset()
    """Variables bound in at least one solution; a superset of `certain`."""

    def joined(self, other: Pattern) -> Pattern:
        """The join of both patterns on the variables that they share."""
        return Pattern(
            self.parts + other.parts, self.certain | other.certain, self.possible | other.possible
        )

    def limited(self, *conditions: Formula) -> Pattern:
        """The same pattern without the solutions that violate one of the conditions."""
        return Pattern(self.parts + conditions, self.certain, self.possible)


class PatternReader:
    """Walks rdflib's parse tree of a WHERE clause."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._source = terms.source
        self._serial = count()

    def read_group(self, group: Any, scope: Scope) -> Pattern:
        """The pattern between two braces; its filters apply to the whole group."""
        if group.name == "SubSelect":
            span = self._source.sign(r"\{\s*(?i:SELECT)")
            raise self._terms.unsupported("SELECT inside of a SELECT", span)
        pattern = Pattern()
        filters: list[tuple[Any, Span]] = []
        for part in group.part or []:
            match part.name:
                case "TriplesBlock":
                    pattern = pattern.joined(self._triples(part, scope))
                case "GroupOrUnionGraphPattern":
                    pattern = pattern.joined(self._union(part, scope))
                case "MinusGraphPattern":
                    pattern = self._minus(pattern, part, scope)
                case "InlineData":
                    pattern = pattern.joined(self.read_values(part, scope))
                case "Filter":
                    filters.append((part.expr, self._terms.keyword("FILTER", part)))
                case name:
                    keyword = _UNSUPPORTED_PARTS[name]
                    raise self._terms.unsupported(keyword, self._terms.keyword(keyword, part))
        conditions = [self._condition(each, pattern, scope, span) for each, span in filters]
        return pattern.limited(*conditions)

    def read_values(self, clause: Any, scope: Scope) -> Pattern:
        """The pattern of `VALUES ?x { ... }` (or with parentheses): ?x is one of the entities."""
        span = self._terms.keyword("VALUES", clause)
        values = list(clause.value or [])
        rows = [list(value) if isinstance(value, ParseResults) else [value] for value in values]
        if len(clause.var) != 1 or not rows or any(len(row) != 1 for row in rows):
            raise self._terms.unsupported("VALUES of several variables or of nothing", span)
        values = [value for row in rows for value in row]
        if any(isinstance(value, str) and value == "UNDEF" for value in values):
            raise self._terms.unsupported("UNDEF", self._source.keyword("UNDEF"))
        variable = self._variable(clause.var[0], scope)
        part = self._is_among(variable, values, span)
        return Pattern((part,), frozenset({variable}), frozenset({variable}))

    def conjunction(self, pattern: Pattern, span: Span) -> Formula:
        """All parts of a pattern as one formula."""
        if not pattern.parts:
            raise self._source.error(
                "an empty group says nothing about any variable", span, hint="leave it out"
            )
        parts: list[Formula] = [p for p in pattern.parts if not isinstance(p, Everything)]
        mentioned = set().union(*map(free_variables, parts))
        for part in pattern.parts:
            # `?x a owl:Thing` only binds ?x; it is redundant if another part mentions ?x.
            if isinstance(part, Everything) and part.variable not in mentioned:
                mentioned.add(part.variable)
                parts.append(part)
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts), span)

    # ---- groups within groups ------------------------------------------------------------

    def _union(self, part: Any, scope: Scope) -> Pattern:
        span = self._terms.keyword("UNION", part)
        patterns = [self.read_group(group, scope) for group in part.graph]
        if len(patterns) == 1:
            return patterns[0]
        choices = tuple(self.conjunction(pattern, span) for pattern in patterns)
        return Pattern(
            (Disjunction(choices, span),),
            frozenset.intersection(*(pattern.certain for pattern in patterns)),
            frozenset.union(*(pattern.possible for pattern in patterns)),
        )

    def _minus(self, outer: Pattern, part: Any, scope: Scope) -> Pattern:
        span = self._terms.keyword("MINUS", part)
        visible = outer.certain - scope.inherited
        inner_scope = Scope(
            known={name: v for name, v in scope.known.items() if v in visible},
            doubtful=_doubtful(outer, scope),
            hidden=scope.hidden
            | {name: span for name, v in scope.known.items() if v in scope.inherited},
        )
        inner = self.read_group(part.graph, inner_scope)
        shared = inner.possible & outer.possible
        if not shared <= inner.certain:
            raise self._terms.unsupported("MINUS over a variable bound in one branch only", span)
        if not shared and inner_scope.hidden:
            # Engines disagree: some count variables bound outside of EXISTS as shared, even if
            # neither side of the MINUS mentions them.
            raise self._terms.unsupported("MINUS that shares no variable within EXISTS", span)
        if not shared:
            return outer  # by SPARQL's rules MINUS removes nothing if no variable is shared
        return outer.limited(_negated(self._closed(inner, inner_scope, span)))

    def _block(self, expression: Any, outer: Pattern, scope: Scope) -> Formula:
        """The formula of (NOT) EXISTS, in which variables bound outside keep their values."""
        visible = outer.certain | scope.inherited
        inner_scope = Scope(
            known={name: v for name, v in scope.known.items() if v in visible},
            inherited=visible,
            doubtful=_doubtful(outer, scope),
            hidden=scope.hidden,
        )
        inner = self.read_group(expression.graph, inner_scope)
        return self._closed(inner, inner_scope, self._terms.keyword("EXISTS", expression))

    def _closed(self, pattern: Pattern, scope: Scope, span: Span) -> Formula:
        """The formula of a block, with `exists` for the variables that belong to the block."""
        body = self.conjunction(pattern, span)
        free = free_variables(body)
        own = tuple(variable for variable in scope.created if variable in free)
        return Exists(own, body, span) if own else body

    # ---- filters -------------------------------------------------------------------------

    def _condition(self, expression: Any, outer: Pattern, scope: Scope, span: Span) -> Formula:
        """The formula of a filter; `span` is the place of its keyword."""
        expression = _unwrapped(expression)
        match getattr(expression, "name", None):
            case "Builtin_EXISTS":
                return self._block(expression, outer, scope)
            case "Builtin_NOTEXISTS":
                return _negated(self._block(expression, outer, scope))
            case "UnaryNot":
                return _negated(self._condition(expression.expr, outer, scope, span))
            case "ConditionalAndExpression" | "ConditionalOrExpression" as name:
                parts = tuple(
                    self._condition(part, outer, scope, span)
                    for part in (expression.expr, *expression.other)
                )
                kind = Conjunction if name == "ConditionalAndExpression" else Disjunction
                return kind(parts, parts[0].span)
            case "RelationalExpression" if expression.op in ("=", "!="):
                return self._comparison(expression, outer, scope, span)
            case "RelationalExpression" if expression.op in ("IN", "NOT IN"):
                return self._one_of(expression, outer, scope, span)
            case _:
                raise self._terms.unsupported(f"FILTER with {describe_node(expression)}", span)

    def _comparison(self, expression: Any, outer: Pattern, scope: Scope, span: Span) -> Formula:
        """The formula of `?x = entity` or `?x != entity`, in either order."""
        sides = [_unwrapped(expression.expr), _unwrapped(expression.other)]
        name, value = sides if is_variable(sides[0]) else reversed(sides)
        if not is_variable(name) or not is_name(value):
            raise self._terms.unsupported("comparison of other than a variable and an IRI", span)
        variable = self._bound(name, outer, scope)
        equals = Equals(variable, self._terms.entity_id(value), span)
        return equals if expression.op == "=" else _negated(equals)

    def _one_of(self, expression: Any, outer: Pattern, scope: Scope, span: Span) -> Formula:
        """The formula of `?x IN (...)` or `?x NOT IN (...)`: ?x is one or none of the entities."""
        name = _unwrapped(expression.expr)
        given = expression.other  # the parser turns an empty list into rdf:nil, a string
        values = [] if isinstance(given, str) else [_unwrapped(value) for value in given]
        if not is_variable(name) or not values or not all(map(is_name, values)):
            raise self._terms.unsupported(
                f"{expression.op} of other than a variable and a list of IRIs", span
            )
        variable = self._bound(name, outer, scope)
        part = self._is_among(variable, values, span)
        return part if expression.op == "IN" else _negated(part)

    def _is_among(self, variable: Variable, values: Sequence[Any], span: Span) -> Formula:
        choices = tuple(Equals(variable, self._terms.entity_id(each), span) for each in values)
        return choices[0] if len(choices) == 1 else Disjunction(choices, span)

    def _bound(self, name: Any, outer: Pattern, scope: Scope) -> Variable:
        """The variable of that name; an error unless the group binds it, as a filter requires."""
        variable = scope.known.get(str(name))
        if variable is None or variable not in outer.certain | scope.inherited:
            raise self._source.error(
                f"variable '?{name}' is compared but not bound here",
                self._source.variable(str(name)),
                hint="bind it by a triple of the same group",
            )
        return variable

    # ---- triples -------------------------------------------------------------------------

    def _triples(self, block: Any, scope: Scope) -> Pattern:
        parts: list[Formula] = []
        for run in block.triples:
            terms = list(run)  # several triples if the text uses `;` or `,`
            triples = zip(terms[::3], terms[1::3], terms[2::3], strict=True)
            parts += [self._triple(*triple, scope) for triple in triples]
        bound: frozenset[Variable] = frozenset().union(*map(free_variables, parts))
        return Pattern(tuple(parts), bound, bound)

    def _triple(self, subject: Any, predicate: Any, value: Any, scope: Scope) -> Formula:
        if is_variable(predicate):
            raise self._terms.unsupported(
                f"variable in the place of a relation, '?{predicate}',",
                self._source.variable(str(predicate)),
            )
        path = _unwrapped_path(predicate)
        iri = None if _is_path(path) else self._terms.iri(path)
        if iri == RDF_FIRST and f"<{iri}>" not in self._source.text:
            raise self._terms.unsupported("list '( ... )'", self._source.sign(r"\("))
        head = self._term(subject, scope)
        if isinstance(head, Variable):
            if iri == RDFS_LABEL and is_literal(value):
                return Equals(head, self._terms.entity_id(value), head.span)
            is_iri = not is_variable(value) and not is_literal(value)
            if iri == RDF_TYPE and is_iri and self._terms.iri(value) == OWL_THING:
                return Everything(head, head.span)
        return self._path(path, head, self._term(value, scope))

    def _path(self, path: Any, head: Variable | int, tail: Variable | int) -> Formula:
        """The formula of `head path tail`; a sequence introduces variables between its steps."""
        path = _unwrapped_path(path)
        match getattr(path, "name", None):
            case "PathAlternative":
                choices = tuple(self._path(part, head, tail) for part in path.part)
                return Disjunction(choices, choices[0].span)
            case "PathSequence":
                return self._sequence(path.part, head, tail)
            case "PathEltOrInverse":
                return self._path(path.part, tail, head)
            case "PathElt":
                span = self._source.sign(rf"[\w)>]\{path.mod}", self._terms.order.place(path))
                raise self._terms.unsupported(f"path operator '{path.mod}'", span)
            case "PathNegatedPropertySet":
                raise self._terms.unsupported("path operator '!'", self._source.sign("!"))
            case _:
                return self._atom(path, head, tail)

    def _sequence(
        self, steps: Sequence[Any], head: Variable | int, tail: Variable | int
    ) -> Formula:
        between = [
            Variable(next(self._serial), "a node inside a path", self._source.sign("/"), False)
            for _ in steps[1:]
        ]
        stops = [head, *between, tail]
        links = tuple(
            self._path(step, start, stop)
            for step, start, stop in zip(steps, stops[:-1], stops[1:], strict=True)
        )
        span = links[0].span
        return Exists(tuple(between), Conjunction(links, span), span)

    def _atom(self, relation: Any, head: Variable | int, tail: Variable | int) -> Formula:
        span = self._terms.span_of(relation)
        formula = atom(head, self._terms.relation_id(relation), tail, span)
        if formula is None:
            raise self._source.error(
                "this triple has no variable",
                span,
                hint="a fact between two entities narrows nothing down; leave it out",
            )
        return formula

    def _term(self, node: Any, scope: Scope) -> Variable | int:
        """The subject or object of a triple: a variable, or the id of an entity."""
        return self._variable(node, scope) if is_variable(node) else self._terms.entity_id(node)

    def _variable(self, node: Any, scope: Scope) -> Variable:
        """The variable that a name means in `scope`, created on first use."""
        name = str(node)
        span = self._source.variable(name)
        if name in scope.hidden:
            # Engines disagree on whether such a variable is a constant here or is shared.
            what = "MINUS over a variable bound outside of EXISTS"
            raise self._terms.unsupported(what, scope.hidden[name])
        if name in scope.doubtful and name not in scope.known:
            raise self._source.error(
                f"variable '?{name}' is bound in only one branch of a UNION, "
                "so what it means in a negated block is open",
                span,
                hint="bind it in every branch, or rename it inside the block",
            )
        if name not in scope.known:
            scope.known[name] = self._create(name, span, scope)
        return scope.known[name]

    def _create(self, name: str, span: Span, scope: Scope) -> Variable:
        """A new variable that belongs to the block of `scope`; messages show its name."""
        is_target = name == scope.target
        shown = name if is_target else f"?{name}"
        variable = Variable(next(self._serial), shown, span, is_target)
        scope.created.append(variable)
        return variable


def _doubtful(outer: Pattern, scope: Scope) -> frozenset[str]:
    """The names that are bound in some but not all solutions of the outer pattern."""
    unsure = outer.possible - outer.certain - scope.inherited
    return scope.doubtful | {name for name, v in scope.known.items() if v in unsure}


def _negated(formula: Formula) -> Formula:
    return Negation(formula, formula.span)


def _unwrapped(expression: Any) -> Any:
    """An expression without the precedence levels that the grammar wraps around it."""
    while str(getattr(expression, "name", "")).endswith("Expression") and expression.other is None:
        expression = expression.expr
    return expression


def _unwrapped_path(path: Any) -> Any:
    """A path without the precedence levels that the grammar wraps around it."""
    while _is_path(path):
        if path.name == "PathElt" and path.mod is None:
            path = path.part
        elif path.name in ("PathAlternative", "PathSequence") and len(path.part) == 1:
            path = path.part[0]
        else:
            break
    return path


def _is_path(node: Any) -> bool:
    return str(getattr(node, "name", "")).startswith("Path")
