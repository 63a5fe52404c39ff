"""The syntax tree of a first-order formula, and its translation into a query.

A formula with one free variable denotes a set, so each part that mentions only one variable
becomes a subtree of its own. The remaining parts are *links*, atoms between two variables. The
links must connect the variables into a tree whose root is the variable to find; each link then
becomes one projection towards the root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from conekg.errors import QuerySyntaxError, QueryTooLargeError
from conekg.query.tokens import Span, check_depth
from conekg.query.tree import Anchor, Not, Or, Project, Query, Universe, all_of, inverse_of

MAX_ALTERNATIVES = 64
"""The most conjunctions that disjunctions over several variables may be multiplied out into."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; `serial` distinguishes variables of the same name in different scopes."""

    serial: int
    name: str = field(compare=False)
    span: Span = field(compare=False)
    is_target: bool = field(compare=False)

    def __str__(self) -> str:
        return f"?{self.name}" if self.is_target else self.name


@dataclass(frozen=True, slots=True)
class Link:
    """`relation(head, tail)` between two variables."""

    head: Variable
    relation_id: int
    tail: Variable
    span: Span


@dataclass(frozen=True, slots=True)
class Member:
    """`relation(entity, variable)`: the variable is one projection away from an entity."""

    variable: Variable
    entity_id: int
    relation_id: int
    span: Span


@dataclass(frozen=True, slots=True)
class Equals:
    """`variable = entity`."""

    variable: Variable
    entity_id: int
    span: Span


@dataclass(frozen=True, slots=True)
class Everything:
    """`*(variable)`, which is true for every entity."""

    variable: Variable
    span: Span


@dataclass(frozen=True, slots=True)
class Negation:
    """`!operand`."""

    operand: Formula
    span: Span


@dataclass(frozen=True, slots=True)
class Conjunction:
    """`a & b & ...`."""

    operands: tuple[Formula, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`a | b | ...`."""

    operands: tuple[Formula, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Exists:
    """`exists variables. body`."""

    variables: tuple[Variable, ...]
    body: Formula
    span: Span


Formula: TypeAlias = (
    Link | Member | Equals | Everything | Negation | Conjunction | Disjunction | Exists
)


def atom(
    head: Variable | int, relation_id: int, tail: Variable | int, span: Span
) -> Link | Member | None:
    """The formula `relation(head, tail)`, in which a number is an entity id.

    None if both ends are entities.
    """
    match head, tail:
        case (Variable(), Variable()):
            return Link(head, relation_id, tail, span)
        case (int(), Variable()):
            return Member(tail, head, relation_id, span)
        case (Variable(), int()):
            return Member(head, tail, inverse_of(relation_id), span)
        case _:
            return None


def free_variables(formula: Formula) -> set[Variable]:
    """The variables of a formula that are not bound by an `exists` within it."""
    match formula:
        case Link(head, _, tail, _):
            return {head, tail}
        case Member(variable, _, _, _) | Equals(variable, _, _) | Everything(variable, _):
            return {variable}
        case Negation(operand, _):
            return free_variables(operand)
        case Conjunction(operands, _) | Disjunction(operands, _):
            return set().union(*map(free_variables, operands))
        case Exists(variables, body, _):
            return free_variables(body) - set(variables)
    assert_never(formula)


_TREES_ONLY = "only formulas whose variables form a tree can be answered"


class TreeBuilder:
    """Builds the query of a formula; `text` is the text that error messages point into."""

    def __init__(self, text: str, max_depth: int) -> None:
        self._text = text
        self._max_depth = max_depth
        self._depth = 0
        self._alternatives = 1

    def build(self, root: Variable, formula: Formula) -> Query:
        """The set of values of `root`, the only free variable, that satisfy the formula."""
        if root not in free_variables(formula):
            raise self._error(f"this part says nothing about '{root}'", formula.span)
        match formula:
            case Member(_, entity_id, relation_id, _):
                return Project(Anchor(entity_id), relation_id)
            case Equals(_, entity_id, _):
                return Anchor(entity_id)
            case Everything():
                return Universe()
            case Negation(operand, _):
                return Not(self.build(root, operand))
            case Disjunction(operands, _):
                return Or(tuple(self.build(root, operand) for operand in operands))
            case Link() | Conjunction() | Exists():
                return self._build_block(root, _spine(formula))
        assert_never(formula)

    def _build_block(self, root: Variable, formulas: Sequence[Formula]) -> Query:
        """The set of values of `root` that satisfy all of `formulas`.

        Quantifiers, conjunctions and negations over several variables are dissolved. A disjunction
        over several variables is multiplied out, which gives a union.
        """
        parts: list[Formula] = []
        waiting = list(reversed(formulas))
        while waiting:
            part = waiting.pop()
            several = len(free_variables(part)) > 1
            match part:
                case Exists(_, body, _) if several:
                    waiting.append(body)
                case Conjunction(operands, _) if several:
                    waiting.extend(reversed(operands))
                case Negation(operand, _) if several:
                    waiting.append(self._push_negation(operand))
                case Disjunction(operands, _) if several:
                    # exists y. p & (q | r)  =  (exists y. p & q) | (exists y. p & r)
                    after = waiting[::-1]
                    self._count_alternatives(len(operands))
                    return Or(
                        tuple(
                            self._build_block(root, [*parts, operand, *after])
                            for operand in operands
                        )
                    )
                case _:
                    parts.append(part)
        return self._assemble(root, parts)

    def _count_alternatives(self, number: int) -> None:
        """Count that one alternative is replaced by `number`; refuse too many."""
        self._alternatives += number - 1
        if self._alternatives > MAX_ALTERNATIVES:
            raise QueryTooLargeError(
                f"disjunctions over several variables multiply to more than "
                f"{MAX_ALTERNATIVES} alternatives",
                hint="write '|' where only one variable is meant, or ask several questions",
            )

    def _assemble(self, root: Variable, parts: Sequence[Formula]) -> Query:
        """The set of values of `root` that satisfy `parts`: parts about one variable, and links."""
        parts = _without_repeated_links(parts)
        about: dict[Variable, list[Formula]] = {root: []}
        for part in parts:
            variables = free_variables(part)
            if isinstance(part, Link) and len(variables) == 1:
                raise self._error(
                    f"'{part.head}' is linked to itself, a cycle", part.span, hint=_TREES_ONLY
                )
            for variable in variables:
                about.setdefault(variable, []).append(part)
            if not variables:
                raise self._disconnected(root, part)
        reached: set[Variable] = set()
        query = self._gather(root, None, about, reached)
        for part in parts:
            if not free_variables(part) <= reached:
                raise self._disconnected(root, part)
        return query

    def _gather(
        self,
        variable: Variable,
        parent: Link | None,
        about: Mapping[Variable, Sequence[Formula]],
        reached: set[Variable],
    ) -> Query:
        """The set of values of `variable` by its own parts and those further from the root.

        `parent` is the link towards the root; `about` has the parts that mention each variable;
        `reached` collects the variables that have been visited.
        """
        reached.add(variable)
        self._depth += 1
        check_depth(self._depth, self._max_depth)
        operands: list[Query] = []
        for part in about[variable]:
            if not isinstance(part, Link):
                operands.append(self.build(variable, part))
                continue
            if part is parent:
                continue
            toward = part.tail == variable
            other = part.head if toward else part.tail
            if other in reached:
                raise self._error(
                    f"'{other}' and '{variable}' are linked in a cycle",
                    part.span,
                    hint=_TREES_ONLY,
                )
            below = self._gather(other, part, about, reached)
            relation_id = part.relation_id if toward else inverse_of(part.relation_id)
            operands.append(Project(below, relation_id))
        self._depth -= 1
        return all_of(operands) if operands else Universe()

    def _push_negation(self, operand: Formula) -> Formula:
        """The negation of `operand`, a formula about several variables, moved one level inward."""
        match operand:
            case Negation(inner, _):
                return inner
            case Conjunction(operands, span):
                return Disjunction(tuple(Negation(part, part.span) for part in operands), span)
            case Disjunction(operands, span):
                return Conjunction(tuple(Negation(part, part.span) for part in operands), span)
            case _:
                names = sorted(map(str, free_variables(operand)))
                raise self._error(
                    f"variable '{names[0]}' is unsafe: it is linked to "
                    f"{' and '.join(map(repr, names[1:]))} under a negation",
                    operand.span,
                    hint="a negated part may share only one variable with the rest; "
                    "variables of its own belong inside the negation",
                )

    def _disconnected(self, root: Variable, part: Formula) -> QuerySyntaxError:
        names = sorted(map(str, free_variables(part) or _bound_variables(part)))
        subject = f"variable '{names[0]}' is"
        if len(names) > 1:
            subject = f"variables {' and '.join(map(repr, names))} are"
        return self._error(
            f"{subject} not connected to '{root}'",
            part.span,
            hint="a part that is not linked to the variable to find says nothing about it; leave "
            "it out",
        )

    def _error(self, message: str, span: Span, *, hint: str | None = None) -> QuerySyntaxError:
        return QuerySyntaxError(message, text=self._text, span=span, hint=hint)


def _spine(formula: Formula) -> Sequence[Formula]:
    """The conjuncts of a formula without its outer quantifiers.

    Removing quantifiers is safe because no two variables have the same serial.
    """
    while isinstance(formula, Exists):
        formula = formula.body
    return formula.operands if isinstance(formula, Conjunction) else (formula,)


def _without_repeated_links(parts: Sequence[Formula]) -> list[Formula]:
    """The parts without links that repeat an earlier one, which would be taken for a cycle."""
    kept: list[Formula] = []
    edges: set[tuple[Variable, int, Variable]] = set()
    for part in parts:
        if isinstance(part, Link):
            edge = _forward_edge(part)
            if edge in edges:
                continue
            edges.add(edge)
        kept.append(part)
    return kept


def _forward_edge(link: Link) -> tuple[Variable, int, Variable]:
    """A link as (head, forward relation, tail): `^r(x, y)` is the same link as `r(y, x)`."""
    if link.relation_id % 2:
        return link.tail, inverse_of(link.relation_id), link.head
    return link.head, link.relation_id, link.tail


def _bound_variables(formula: Formula) -> set[Variable]:
    """The variables that are bound by an `exists` within the formula."""
    match formula:
        case Negation(operand, _):
            return _bound_variables(operand)
        case Conjunction(operands, _) | Disjunction(operands, _):
            return set().union(*map(_bound_variables, operands))
        case Exists(variables, body, _):
            return {*variables, *_bound_variables(body)}
        case _:
            return set()
