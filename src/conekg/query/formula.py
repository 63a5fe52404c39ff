"""First-order formulas to trees, where the formula is tree-shaped.

    query       = "?" word ":" disjunction ;
    disjunction = conjunction { "|" conjunction } ;
    conjunction = negation { "&" negation } ;
    negation    = "!" negation | primary ;
    primary     = "exists" variable { "," variable } "." disjunction
                | "(" disjunction ")" | atom ;
    atom        = [ "^" ] relation "(" term "," term ")"
                | "*" "(" variable ")" | term "=" term ;
    relation    = name ;
    term        = variable | name ;
    variable    = [ "?" ] word ;

A word consists of letters, digits and `_`; names are written as in the path algebra. `exists`
extends as far to the right as possible. A term is a variable (with or without `?`) if a variable
of that name is in scope, otherwise an entity; a quoted term is always an entity. `*(x)` is true
for every entity. The reader below makes a syntax tree; `formula_tree` turns that into a query.
"""

from __future__ import annotations

from itertools import count

from conekg.query.formula_tree import (
    Conjunction,
    Disjunction,
    Equals,
    Everything,
    Exists,
    Formula,
    Negation,
    TreeBuilder,
    Variable,
    atom,
)
from conekg.query.token_stream import TokenStream
from conekg.query.tokens import Span, Token, is_word
from conekg.query.tree import Query

_AFTER_EXISTS = "write a dot after the variables of 'exists': exists y. ..."


def read_formula(stream: TokenStream) -> Query:
    """The query of the formula in `stream`; raises the errors of `parse_query`."""
    target, body = _FormulaReader(stream).read()
    return TreeBuilder(stream.text, stream.max_depth).build(target, body)


class _FormulaReader:
    """Recursive descent over the grammar above, one method per rule."""

    def __init__(self, stream: TokenStream) -> None:
        self._stream = stream
        self._scope: dict[str, Variable] = {}
        self._used: set[Variable] = set()
        self._serial = count()

    def read(self) -> tuple[Variable, Formula]:
        """The variable to find and the formula about it."""
        stream = self._stream
        token = stream.expect("variable", "the variable to find, such as '?x'")
        stream.expect(":", f"':' after the variable to find, '?{token.text}'")
        target = self._declare(token, is_target=True)
        body = self._disjunction()
        stream.expect("end", "'&', '|' or the end of the formula")
        if target not in self._used:
            raise stream.error(
                f"the variable to find, '{target}', is not used in the formula", token.span
            )
        return target, body

    def _declare(self, token: Token, *, is_target: bool = False) -> Variable:
        """The variable of that name, added to the scope if it is not in it yet."""
        return self._scope.setdefault(
            token.text, Variable(next(self._serial), token.text, token.span, is_target)
        )

    def _disjunction(self) -> Formula:
        start = self._stream.next.span[0]
        operands = [self._conjunction()]
        while self._stream.accept("|"):
            operands.append(self._conjunction())
        if len(operands) == 1:
            return operands[0]
        return Disjunction(tuple(operands), (start, self._stream.stop))

    def _conjunction(self) -> Formula:
        start = self._stream.next.span[0]
        operands = [self._negation()]
        while self._stream.accept("&"):
            operands.append(self._negation())
        if len(operands) == 1:
            return operands[0]
        return Conjunction(tuple(operands), (start, self._stream.stop))

    def _negation(self) -> Formula:
        sign = self._stream.accept("!")
        if sign is None:
            return self._primary()
        self._stream.enter()
        operand = self._negation()
        self._stream.leave()
        return Negation(operand, (sign.span[0], self._stream.stop))

    def _primary(self) -> Formula:
        stream = self._stream
        following = stream.after_next.kind
        match stream.next.kind:
            case "name" if stream.next.text == "exists" and following in ("name", "variable"):
                return self._exists()
            case "(":
                stream.take()
                stream.enter()
                body = self._disjunction()
                stream.expect(")", "'&', '|' or ')'")
                stream.leave()
                return body
            case "*":
                return self._everything()
            case "^":
                return self._relation_atom()
            case "name" | "quoted" if following == "(":
                return self._relation_atom()
            case "name" | "quoted" | "variable":
                return self._equality()
            case _:
                raise stream.surprise("an atom such as 'relation(a, b)', 'exists', '!' or '('")

    def _exists(self) -> Formula:
        stream = self._stream
        start = stream.take().span[0]
        outer = dict(self._scope)
        variables = [self._fresh_variable()]
        while stream.accept(","):
            variables.append(self._fresh_variable())
        if not stream.accept("."):
            raise stream.error(
                f"expected ',' or '.' after the variables of 'exists', found {stream.next}",
                stream.next.span,
                hint=_AFTER_EXISTS,
            )
        stream.enter()
        body = self._disjunction()
        stream.leave()
        self._scope = outer
        for variable in variables:
            if variable not in self._used:
                raise stream.error(
                    f"variable '{variable}' is introduced but never used", variable.span
                )
        return Exists(tuple(variables), body, (start, stream.stop))

    def _fresh_variable(self) -> Variable:
        stream = self._stream
        if stream.next.kind not in ("name", "variable"):
            raise stream.surprise("a variable")
        token = stream.take()
        if not is_word(token.text):
            raise stream.error(
                f"a variable is made of letters, digits and '_', unlike {token}",
                token.span,
                hint=_AFTER_EXISTS,
            )
        if token.text in self._scope:
            raise stream.error(
                f"variable '{token.text}' already has a meaning here",
                token.span,
                hint="give the inner variable another name",
            )
        return self._declare(token)

    def _everything(self) -> Formula:
        stream = self._stream
        start = stream.take().span[0]
        stream.expect("(", "'(' after '*'")
        term = self._term()
        stop = stream.expect(")", "')'").span[1]
        if not isinstance(term, Variable):
            raise stream.error("'*' holds for every entity; it needs a variable", (start, stop))
        return Everything(term, (start, stop))

    def _equality(self) -> Formula:
        stream = self._stream
        start = stream.next.span[0]
        left = self._term()
        if stream.next.kind == ".":
            raise stream.error(
                "expected '(' after a relation, found '.'",
                stream.next.span,
                hint="a path stands alone, without a variable and ':' before it",
            )
        stream.expect("=", "'(' after a relation, or '=' after a term")
        stop = stream.next.span[1]
        right = self._term()
        match left, right:
            case (Variable(), Variable()):
                raise stream.error(
                    f"'{left}' and '{right}' are said to be equal",
                    (start, stop),
                    hint=f"write '{left}' for both",
                )
            case (Variable() as variable, int(entity_id)) | (
                int(entity_id),
                Variable() as variable,
            ):
                return Equals(variable, entity_id, (start, stop))
            case _:
                raise stream.error("this equality has no variable", (start, stop))

    def _relation_atom(self) -> Formula:
        stream = self._stream
        start = stream.next.span[0]
        relation_id = stream.take_relation()
        stream.expect("(", "'(' after the relation")
        head = self._term()
        stream.expect(",", "',' between the two terms of a relation")
        tail = self._term()
        span: Span = (start, stream.expect(")", "')' after the two terms of a relation").span[1])
        formula = atom(head, relation_id, tail, span)
        if formula is None:
            raise stream.error("this atom has no variable", span)
        return formula

    def _term(self) -> Variable | int:
        """A variable, or the id of an entity."""
        stream = self._stream
        token = stream.next
        variable = self._scope.get(token.text)
        match token.kind:
            case "variable" | "name" if variable is not None:
                stream.take()
                self._used.add(variable)
                return variable
            case "variable":
                raise stream.error(
                    f"variable '?{token.text}' has no meaning here",
                    token.span,
                    hint=f"introduce it with 'exists {token.text}.'",
                )
            case "name" | "quoted":
                # A single letter was most likely meant as a variable. Similar entity names would
                # be useless suggestions: some name begins with any letter.
                missing = f"introduce a variable with 'exists {token.text}.'"
                remedy = missing if len(token.text) == 1 else None
                return stream.look_up("entity", stream.take(), remedy)
            case _:
                raise stream.surprise("a variable or an entity")
