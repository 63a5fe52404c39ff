"""First-order formulas: what they mean, and a brute-force check that they mean just that."""

from itertools import product

import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

import strategies
from conekg.errors import QuerySyntaxError, QueryTooLargeError, UnknownNameError
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.branches import count_branches
from conekg.query.parse import parse_query
from conekg.query.render import render_formula, render_query
from conekg.query.tree import Anchor, And, Or
from oracle import Oracle

VOCABULARY = Vocabulary(
    NameTable("entity", ["a", "b", "c", "f", "Academy Award", "United States"]),
    NameTable("relation", ["r", "s", "t", "won_by", "produced", "director", "exists"]),
)


def meaning(text):
    """The path algebra of a formula, which is easier to read than a tree."""
    return render_query(parse_query(text, VOCABULARY), VOCABULARY)


@pytest.mark.parametrize(
    ("formula", "path"),
    [
        (
            '?d: exists f. won_by("Academy Award", f) & !produced("United States", f) '
            "& director(f, ?d)",
            '("Academy Award".won_by & !"United States".produced).director',
        ),
        ("?x: r(a, ?x)", "a.r"),
        ("?x: r(?x, a)", "a.^r"),
        ("?x: ^r(a, x)", "a.^r"),
        ("?x: ^r(x, a)", "a.r"),
        ("?x: x = a", "a"),
        ("?x: a = ?x", "a"),
        ("?x: *(x)", "*"),
        ("?x: exists y. r(y, x)", "*.r"),
        ("?x: exists y. r(x, y)", "*.^r"),
        ("?x: r(a, x) & s(b, x) & !t(c, x)", "a.r & b.s & !c.t"),
        ("?x: r(a, x) | s(b, x) & t(c, x)", "a.r | b.s & c.t"),
        ("?x: !r(a, x)", "!a.r"),
        ("?x: !(r(a, x) | s(a, x))", "!(a.r | a.s)"),
        # Chains, with the variables introduced together or one inside the other.
        ("?x: exists y, z. r(a, y) & s(y, z) & t(z, x)", "a.r.s.t"),
        ("?x: exists z. (exists y. r(a, y) & s(y, z)) & t(z, x)", "a.r.s.t"),
        ("?x: exists y. r(a, y) & exists z. s(y, z) & t(z, x)", "a.r.s.t"),
        ("?x: exists y, z. t(z, x) & s(y, z) & r(a, y)", "a.r.s.t"),
        # Atoms with swapped terms give the inverse relation.
        ("?x: exists y. r(x, y) & s(y, a)", "a.^s.^r"),
        # Negation of a whole existential statement, and of a part inside one.
        ("?x: s(b, x) & !(exists y. r(a, y) & s(y, x))", "b.s & !a.r.s"),
        ("?x: exists y. !r(a, y) & s(y, x)", "(!a.r).s"),
        ("?x: exists y. !(exists z. r(a, z) & s(z, y)) & t(y, x)", "(!a.r.s).t"),
        # A disjunction over several variables is multiplied out; over one variable it is kept.
        ("?x: exists y. (r(a, y) | s(b, y)) & t(y, x)", "(a.r | b.s).t"),
        ("?x: exists y. r(a, y) & (s(y, x) | t(y, x))", "a.r.s | a.r.t"),
        ("?x: exists y. (r(a, y) & s(y, x)) | t(b, x)", "a.r.s | b.t"),
        # A negation over several variables is pushed inward until each part has one variable.
        ("?x: exists y. !(r(a, y) | !s(y, x))", "(!a.r).s"),
        ("?x: exists y. !!s(y, x) & r(a, y)", "a.r.s"),
        ("?x: exists y. r(b, y) & !(r(a, y) & r(a, x)) & s(y, x)",
         "(b.r & !a.r).s | !a.r & b.r.s"),
        # Several children of one variable, operands in the order written.
        ("?x: exists y, z. r(a, y) & s(y, x) & r(b, z) & t(z, x) & t(c, x)",
         "a.r.s & b.r.t & c.t"),
        # A repeated atom, also with swapped terms, changes nothing.
        ("?x: exists y. r(a, y) & r(a, y) & s(y, x)", "(a.r & a.r).s"),
        ("?x: exists y. r(a, y) & s(y, x) & s(y, x)", "a.r.s"),
        ("?x: exists y. r(a, y) & s(y, x) & ^s(x, y) & (s(y, x) & t(b, x))", "a.r.s & b.t"),
        ("?x: exists y, z. s(z, y) & t(y, x) & s(z, y) & r(a, z)", "a.r.s.t"),
        ("?x: exists y. r(a, y) & s(y, x) & (s(y, x) | t(b, x))", "a.r.s | a.r.s & b.t"),
        # A contradiction about one variable has no answers but is a valid query.
        ("?x: exists y. r(a, y) & !r(a, y) & s(y, x)", "(a.r & !a.r).s"),
        # A bare name is a variable if one of that name is in scope; a quoted name never is.
        ("?x: exists f. r(f, x)", "*.r"),
        ('?x: r("f", x)', "f.r"),
        ("?x: r(f, x)", "f.r"),
        ("?x: (exists f. r(f, x)) & r(f, x)", "*.r & f.r"),
        # Names may be reused in separate scopes.
        ("?x: (exists y. r(y, x)) | (exists y. s(y, x))", "*.r | *.s"),
        ("?x: exists(a, x)", "a.exists"),
        ("?x: exists ?y. r(?y, ?x)", "*.r"),
        ("?x: ∃y. r(a, y) ∧ ¬s(a, y) ∧ t(y, x)", "(a.r & !a.s).t"),
        # `exists` extends to the end, also past |.
        ("?x: t(a, x) & exists y. s(y, x) | r(y, x)", "a.t & (*.s | *.r)"),
    ],
)  # fmt: skip
def test_what_formulas_mean(formula, path):
    assert meaning(formula) == path


def refusal(text):
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text, VOCABULARY)
    start, stop = caught.value.span
    return caught.value.message.splitlines()[0].rpartition(" at column")[0], text[start:stop]


@pytest.mark.parametrize(
    ("formula", "message", "place"),
    [
        ("?x: r(x, x)", "'?x' is linked to itself, a cycle", "r(x, x)"),
        ("?x: exists y. r(y, x) & s(y, x)", "'?x' and 'y' are linked in a cycle", "s(y, x)"),
        ("?x: exists y. r(y, x) & s(x, y)", "'?x' and 'y' are linked in a cycle", "s(x, y)"),
        ("?x: exists y, z. r(y, x) & s(y, z) & t(z, x)",
         "'?x' and 'z' are linked in a cycle", "t(z, x)"),
        ("?x: exists y. r(a, y) & r(b, x)", "variable 'y' is not connected to '?x'", "r(a, y)"),
        ("?x: r(b, x) & !(exists z. r(a, z))", "variable 'z' is not connected to '?x'",
         "!(exists z. r(a, z))"),
        ("?x: exists y, z. r(a, x) & s(y, z)",
         "variables 'y' and 'z' are not connected to '?x'", "s(y, z)"),
        ("?x: r(b, x) | exists z. r(a, z)", "this part says nothing about '?x'",
         "exists z. r(a, z)"),
        ("?x: exists y. r(a, y) & (s(y, x) | t(b, x))",
         "variable 'y' is not connected to '?x'", "r(a, y)"),
        ("?x: exists y. r(a, y) & !s(y, x)",
         "variable '?x' is unsafe: it is linked to 'y' under a negation", "s(y, x)"),
        ("?x: exists y. r(a, y) & s(y, x) & !s(y, x)",
         "variable '?x' is unsafe: it is linked to 'y' under a negation", "s(y, x)"),
        ("?x: exists y. r(y, x) & ^r(y, x)", "'?x' and 'y' are linked in a cycle", "^r(y, x)"),
        ("?x: r(x, x) & r(x, x)", "'?x' is linked to itself, a cycle", "r(x, x)"),
        ("?x: exists y. r(a, y) & t(y, x) & !(exists z. s(y, z) & s(z, x))",
         "variable '?x' is unsafe: it is linked to 'y' under a negation",
         "exists z. s(y, z) & s(z, x)"),
        ("?x: exists y. r(a, x) & (s(a, y) | t(a, y))", "variable 'y' is not connected to '?x'",
         "s(a, y) | t(a, y)"),
        ("?x: r(a, x) & ((exists y. s(a, y)) | (exists z. t(a, z)))",
         "variables 'y' and 'z' are not connected to '?x'",
         "(exists y. s(a, y)) | (exists z. t(a, z))"),
        ("?x: exists y. r(a, x) & (s(a, y) & t(a, y))", "variable 'y' is not connected to '?x'",
         "s(a, y) & t(a, y)"),
        ("?x: exists y. r(a, y)", "the variable to find, '?x', is not used in the formula", "?x"),
        ("?x: exists y. r(a, x)", "variable 'y' is introduced but never used", "y"),
        ("?x: r(a, ?y)", "variable '?y' has no meaning here", "?y"),
        ("?x: r(a, x) & (exists y. s(y, x)) & t(?y, x)", "variable '?y' has no meaning here",
         "?y"),
        ("?x: exists y. r(y, x) & exists y. s(y, x)",
         "variable 'y' already has a meaning here", "y"),
        ("?x: exists x. r(a, x)", "variable 'x' already has a meaning here", "x"),
        ("?x: exists y. x = y & r(a, y)", "'?x' and 'y' are said to be equal", "x = y"),
        ("?x: r(a, x) & r(a, b)", "this atom has no variable", "r(a, b)"),
        ("?x: r(a, x) & a = b", "this equality has no variable", "a = b"),
        ("?x: *(a)", "'*' holds for every entity; it needs a variable", "*(a)"),
    ],
)  # fmt: skip
def test_formulas_that_are_not_tree_shaped_are_refused(formula, message, place):
    assert refusal(formula) == (message, place)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("?x r(a, x)", "expected ':' after the variable to find, '?x', found 'r'"),
        ("?x:", "expected an atom such as 'relation(a, b)', 'exists', '!' or '(', "
         "found the end of the query"),
        ("?x: r(a, x",
         "expected ')' after the two terms of a relation, found the end of the query"),
        ("?x: r(a)", "expected ',' between the two terms of a relation, found ')'"),
        ("?x: r(a, )", "expected a variable or an entity, found ')'"),
        ("?x: exists y r(y, x)", "expected ',' or '.' after the variables of 'exists', found 'r'"),
        ("?x: exists y, . r(y, x)", "expected a variable, found '.'"),
        ("?x: exists y-1. r(y-1, x)",
         "a variable is made of letters, digits and '_', unlike 'y-1'"),
        ("?x: (r(a, x)", "expected '&', '|' or ')', found the end of the query"),
        ("?x: r(a, x))", "expected '&', '|' or the end of the formula, found ')'"),
        ("?x: a", "expected '(' after a relation, or '=' after a term, found the end of the query"),
        ("?x: ^(a, x)", "expected a relation, found '('"),
        ("?x: *x", "expected '(' after '*', found 'x'"),
    ],
)  # fmt: skip
def test_syntax_errors(formula, message):
    assert refusal(formula)[0] == message


def test_unknown_names_are_reported_where_they_stand():
    with pytest.raises(UnknownNameError) as caught:
        parse_query("?x: wonby(a, x)", VOCABULARY)
    assert caught.value.span == (4, 9)
    with pytest.raises(UnknownNameError) as caught:
        parse_query("?x: r('Academy', x)", VOCABULARY)
    assert (caught.value.kind, caught.value.span) == ("entity", (6, 15))


def test_alternatives_over_several_variables_are_limited():
    unions = " & ".join(f"(r(y, z{i}) | s(y, z{i}))" for i in range(7))
    names = ", ".join(f"z{i}" for i in range(7))
    with pytest.raises(QueryTooLargeError, match="64 alternatives"):
        parse_query(f"?x: exists y, {names}. r(y, x) & {unions}", VOCABULARY)


def test_blocks_of_one_variable_are_no_alternatives():
    unions = " & ".join(f"(r(y, z{i}) | s(y, z{i}))" for i in range(6))
    names = ", ".join(f"z{i}" for i in range(6))
    assert (
        count_branches(parse_query(f"?x: exists y, {names}. r(y, x) & {unions}", VOCABULARY)) == 64
    )
    a, b = Anchor(0).project(0), Anchor(1).project(2)
    many = Or((And((a, b)),) * 70)
    assert parse_query(render_formula(many, VOCABULARY), VOCABULARY) == many
    denied = " & ".join(["!(r(a, ?x) & s(b, ?x))"] * 70)
    assert len(parse_query(f"?x: {denied}", VOCABULARY).operands) == 70


def test_a_missing_dot_after_exists_is_the_remedy_and_not_missing_quotes():
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query("?x: exists y, z r(a, y)", VOCABULARY)
    assert caught.value.hint == "write a dot after the variables of 'exists': exists y. ..."


def test_long_chains_are_refused_before_the_stack_ends():
    names = [f"y{i}" for i in range(600)]
    links = " & ".join(f"r({a}, {b})" for a, b in zip(names, [*names[1:], "x"], strict=True))
    with pytest.raises(QueryTooLargeError, match="64 levels"):
        parse_query(f"?x: exists {', '.join(names)}. {links}", VOCABULARY, max_length=100_000)


# ---- a second reading of formulas, by trying every assignment --------------------------------

NUM_ENTITIES, NUM_RELATIONS = 4, 2
GRID = strategies.plain_vocabulary(NUM_ENTITIES, NUM_RELATIONS)


def formulas(scope, budget):
    """Random formulas, as nested tuples, over the variables in scope."""
    relation = st.integers(0, NUM_RELATIONS - 1)
    entity = st.integers(0, NUM_ENTITIES - 1).map(lambda e: f"e{e}")
    variable = st.sampled_from(scope)
    atom = st.tuples(st.just("atom"), relation, entity, variable) | st.tuples(
        st.just("atom"), relation, variable, variable | entity
    )
    if budget == 0:
        return atom
    below = st.deferred(lambda: formulas(scope, budget - 1))
    fresh = f"v{len(scope)}"
    inner = st.deferred(lambda: formulas((*scope, fresh), budget - 1))
    return st.one_of(
        atom,
        st.tuples(st.just("not"), below),
        st.tuples(st.just("and"), below, below),
        st.tuples(st.just("or"), below, below),
        st.tuples(st.just("exists"), st.just(fresh), st.tuples(st.just("and"), inner, inner)),
    )


def text_of(formula):
    match formula:
        case ("atom", relation, head, tail):
            return f"r{relation}({head}, {tail})"
        case ("inverse", relation, head, tail):
            return f"^r{relation}({head}, {tail})"
        case ("not", operand):
            return f"!({text_of(operand)})"
        case ("and", left, right):
            return f"({text_of(left)}) & ({text_of(right)})"
        case ("or", left, right):
            return f"({text_of(left)}) | ({text_of(right)})"
        case ("exists", variable, body):
            return f"exists {variable}. {text_of(body)}"


def holds(formula, values, edges):
    match formula:
        case ("atom", relation, head, tail):
            return (values[head], relation, values[tail]) in edges
        case ("not", operand):
            return not holds(operand, values, edges)
        case ("and", left, right):
            return holds(left, values, edges) and holds(right, values, edges)
        case ("or", left, right):
            return holds(left, values, edges) or holds(right, values, edges)
        case ("exists", variable, body):
            return any(holds(body, {**values, variable: e}, edges) for e in range(NUM_ENTITIES))


EVERY_EDGE = list(product(range(NUM_ENTITIES), range(NUM_RELATIONS), range(NUM_ENTITIES)))


def parsed(formula):
    """The query of a formula; None if it is refused because it is not tree-shaped."""
    try:
        return parse_query(f"?x: {text_of(formula)}", GRID)
    except QuerySyntaxError:
        return None


@given(formulas(("x",), 3), st.sets(st.sampled_from(EVERY_EDGE), max_size=16))
def test_accepted_formulas_mean_what_every_assignment_says(formula, edges):
    query = parsed(formula)
    assume(query is not None)
    constants = {f"e{e}": e for e in range(NUM_ENTITIES)}
    expected = {e for e in range(NUM_ENTITIES) if holds(formula, {**constants, "x": e}, edges)}
    both = [edge for h, r, t in edges for edge in ((h, 2 * r, t), (t, 2 * r + 1, h))]
    assert Oracle(both, NUM_ENTITIES).answer(query) == expected


def doubled(formula):
    """The same formula with every atom repeated, the second time with swapped terms."""
    match formula:
        case ("atom", relation, head, tail):
            return ("and", formula, ("inverse", relation, tail, head))
        case ("exists", variable, body):
            return ("exists", variable, doubled(body))
        case (operator, *operands):
            return (operator, *map(doubled, operands))


@given(formulas(("x",), 3), st.sets(st.sampled_from(EVERY_EDGE), max_size=16))
def test_repeated_atoms_change_neither_acceptance_nor_meaning(formula, edges):
    once, twice = parsed(formula), parsed(doubled(formula))
    assert (once is None) == (twice is None)
    assume(once is not None)
    both = [edge for h, r, t in edges for edge in ((h, 2 * r, t), (t, 2 * r + 1, h))]
    oracle = Oracle(both, NUM_ENTITIES)
    assert oracle.answer(twice) == oracle.answer(once)


def test_the_check_above_can_see_existential_formulas():
    enough = settings(max_examples=20_000, phases=[Phase.generate], database=None)

    def is_wanted(formula):
        return "exists" in text_of(formula) and parsed(formula) is not None

    find(formulas(("x",), 3), is_wanted, settings=enough)
