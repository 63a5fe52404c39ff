import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conekg.errors import (
    ConfigError,
    QuerySyntaxError,
    QueryTooLargeError,
    UnknownNameError,
)
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.parse import DEPTH_LIMIT, parse_query, parse_shape
from conekg.query.token_stream import TokenStream
from conekg.query.tokens import quote
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, depth, subtrees
from strategies import shapes

NAMES = ["Academy Award", "United States", "France", "/m/02x", "concept:team", "a.b", "*"]
VOCABULARY = Vocabulary(
    NameTable("entity", NAMES, ["Oscar", "USA", "Marianne", "Paris", "Lakers", "Paris", "star"]),
    NameTable("relation", ["won_by", "produced", "director", "born in"]),
)
AWARD, STATES, FRANCE, MID, CONCEPT, DOTTED, STAR = map(Anchor, range(7))


def parse(text, **limits):
    return parse_query(text, VOCABULARY, **limits)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("France", FRANCE),
        ("*", Universe()),
        ('"*"', STAR),
        ("/m/02x.produced", Project(MID, 2)),
        ("concept:team . produced", Project(CONCEPT, 2)),
        ('"a.b"."born in"', Project(DOTTED, 6)),
        ("France.^director", Project(FRANCE, 5)),
        ("France.^'born in'", Project(FRANCE, 7)),
        ("Oscar.won_by", Project(AWARD, 0)),  # a label that only one entity has
        (
            '("Academy Award".won_by & !"United States".produced).director',
            Project(And((Project(AWARD, 0), Not(Project(STATES, 2)))), 4),
        ),
    ],
)
def test_what_texts_mean(text, query):
    assert parse(text) == query


@pytest.mark.parametrize(
    ("text", "spelled_out"),
    [
        ("!France.won_by", "!(France.won_by)"),
        ("!France & USA", "(!France) & USA"),
        ("!France | USA", "(!France) | USA"),
        ("France & USA | Oscar", "(France & USA) | Oscar"),
        ("France | USA & Oscar", "France | (USA & Oscar)"),
        ("!!France", "!(!France)"),
        ("France.won_by.director", "(France.won_by).director"),
        ("  ( France )\n.\twon_by ", "France.won_by"),
        ("((France))", "France"),
        ("¬France ∧ USA ∨ Oscar", "!France & USA | Oscar"),
    ],
)
def test_precedence(text, spelled_out):
    assert parse(text) == parse(spelled_out)


def test_parentheses_group_and_chains_do_not():
    assert parse("France & USA & Oscar") == And((FRANCE, STATES, AWARD))
    assert parse("(France & USA) & Oscar") == And((And((FRANCE, STATES)), AWARD))
    assert parse("France | (USA | Oscar)") == Or((FRANCE, Or((STATES, AWARD))))
    assert parse("(!France).won_by") == Project(Not(FRANCE), 0)


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ("", "expected an entity, .* found the end of the query", (0, 0)),
        ("France &", "expected an entity", (8, 8)),
        ("France..won_by", "expected a relation, found '.'", (7, 8)),
        ("France.^", "expected a relation, found the end", (8, 8)),
        ("France.^^won_by", "expected a relation, found '\\^'", (8, 9)),
        ("(France", "expected .* or '\\)', found the end", (7, 7)),
        ("France)", "found '\\)'", (6, 7)),
        ("France USA", "found 'USA'", (7, 10)),
        ("France.*", "expected a relation, found '\\*'", (7, 8)),
        ("& France", "expected an entity", (0, 1)),
        ("France && USA", "expected an entity", (8, 9)),
        ("France.?x", "expected a relation, found '\\?x'", (7, 9)),
    ],
)
def test_syntax_errors_point_at_the_place(text, message, span):
    with pytest.raises(QuerySyntaxError, match=message) as caught:
        parse(text)
    assert caught.value.span == span


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("France.won_by and USA.won_by", "'and' is written '&'"),
        ("France.won_by OR USA.won_by", "'or' is written '|'"),
        ("France.won_by & not USA.won_by", "'not' is written '!'"),
        ("not(USA.won_by)", "'not' is written '!'"),
        ("France.won_by && USA.won_by", "'&' is written once"),
        ("France.won_by || USA.won_by", "'|' is written once"),
        ("France.won_by - USA.won_by", "'a without b' is written a & !b"),
        ("France.won_by \\ USA.won_by", "'a without b' is written a & !b; put names that contain"),
        ("France -> won_by", "a relation is followed by '.'; put names that contain it in quotes"),
        ("?x: won_by(France, x) => won_by(USA, x)", "'if a, then b' is written !a | b"),
        ("?x: won_by(France, x) → won_by(USA, x)", "'if a, then b' is written !a | b"),
        ("?x: won_by(France, x) implies won_by(USA, x)", "'if a, then b' is written !a | b"),
        ("?x: Not won_by(France, x)", "'not' is written '!'"),
        ("?x: forall y. won_by(x, y)", "is written as its double negation: !(exists y. !(...))"),
        ("?x: ∀y. won_by(x, y)", "is written as its double negation: !(exists y. !(...))"),
        ("?x: x != USA", "'x is not a' is written !(x = a)"),
        ("?x: x ≠ USA", "'x is not a' is written !(x = a)"),
        ("?x: x == USA", "'=' is written once"),
        ("?x: won_by(France, x), won_by(USA, x)", "'a, b' is written a & b"),
        ("?x: (won_by(France, x), won_by(USA, x))", "'a, b' is written a & b"),
        ("France.won_by, USA.won_by", "'a, b' is written a & b"),
        ("France.won_by > 1999", "values are not compared"),
        ("<http://a.b/c>.won_by", "an IRI is written in quotes, without < and >"),
        ("?x: exists y: won_by(x, y)", "write a dot after the variables of 'exists'"),
        ("?x: won_by(x, y)", "introduce a variable with 'exists y.'"),
    ],
)
def test_signs_of_other_notations_get_a_remedy(text, instead):
    with pytest.raises((QuerySyntaxError, UnknownNameError)) as caught:
        parse(text)
    assert instead in caught.value.hint
    assert "did you mean" not in caught.value.hint
    assert "a name with spaces" not in caught.value.hint


def test_a_comma_that_cannot_mean_and_gets_no_such_remedy():
    for text in ("?x: won_by(France, x, USA)", "?x: won_by(, x)", "France.,"):
        with pytest.raises(QuerySyntaxError) as caught:
            parse(text)
        assert "is written" not in str(caught.value.hint)
    with pytest.raises(QuerySyntaxError) as caught:
        parse("?x: won_by(France, x) => won_by(USA, x)")
    assert "compared" not in caught.value.hint


def test_a_name_in_quotes_is_no_word_of_another_notation():
    with pytest.raises(UnknownNameError) as caught:
        parse('"and".won_by')
    assert "is written" not in caught.value.hint


def test_two_names_in_a_row_ask_for_quotes():
    with pytest.raises(QuerySyntaxError) as caught:
        parse("USA Oscar.won_by")
    assert caught.value.hint == 'a name with spaces needs quotes: "USA Oscar"'


@pytest.mark.parametrize(
    "text",
    [
        "directors of Oscar-winning films that are not American",
        "  Which of France's directors, or of the USA's, won an Oscar?\n",
        "Who won it?",
        "France USA Oscar",
        "Hvilke lande grænser op til Frankrig",
    ],
)
def test_a_sentence_is_told_from_a_query(text):
    with pytest.raises(QuerySyntaxError, match="in a notation, not in a sentence") as caught:
        parse(text)
    start, stop = caught.value.span
    assert text[start:stop] == text.strip()
    assert "ENTITY.RELATION" in caught.value.hint


@pytest.mark.parametrize("text", ["won by France.won_by", "(won by France)", "France & won by it"])
def test_several_words_within_a_query_are_no_sentence(text):
    with pytest.raises((QuerySyntaxError, UnknownNameError)) as caught:
        parse(text)
    assert "sentence" not in caught.value.message


@pytest.mark.parametrize("table", [["Isle of Man"], ["Q9676"]])
def test_a_long_name_without_quotes_is_shown_with_them(table):
    vocabulary = Vocabulary(NameTable("entity", table, ["Isle of Man"]), VOCABULARY.relations)
    with pytest.raises(QuerySyntaxError, match="this name needs quotes") as caught:
        parse_query(" Isle of Man ", vocabulary)
    assert caught.value.span == (1, 12)
    assert caught.value.hint == 'write "Isle of Man"'
    assert parse_query('"Isle of Man"', vocabulary) == Anchor(0)


ODD_NAMES = Vocabulary(
    NameTable(
        "entity",
        ["Q1", "P.T. Anderson", "Film #1", "Crime & Co.", "http://a.b/c"],
        ["A B C", *[None] * 4],
    ),
    NameTable("relation", ["made by (studio)", "born.in", "r"]),
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A B C.r", "A B C"),
        ("Q1 & !P.T. Anderson.r", "P.T. Anderson"),
        ("Crime & Co..r", "Crime & Co."),
        ("http://a.b/c.r", "http://a.b/c"),
        ("Q1.r.^born.in", "born.in"),
        ("Q1.made by (studio).r", "made by (studio)"),
        ("?x: r(x, P.T. Anderson)", "P.T. Anderson"),
        ("?x: made by (studio)(x, Q1)", "made by (studio)"),
    ],
)
def test_a_name_without_the_quotes_it_needs_is_shown_with_them(text, name):
    with pytest.raises(UnknownNameError) as caught:
        parse_query(text, ODD_NAMES)
    assert caught.value.hint == f'this name needs quotes: "{name}"'
    assert text[slice(*caught.value.span)] == re.split(r"[ .]", name)[0]
    parse_query(text.replace(name, f'"{name}"'), ODD_NAMES)


PHRASES = Vocabulary(
    NameTable("entity", ["Q1", "Q2", "Q3", "Q4"], ["São Paulo", "Côte d'Ivoire", "Film", "John"]),
    NameTable("relation", ["P1", "P2", "P3"], ["country", "country of origin", "staff (all)"]),
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Film.^country of origin", "country of origin"),
        ("Film.^country of origin.country", "country of origin"),
        ("?x: country of origin(x, Film)", "country of origin"),
        ("Film.country of orign.country", "country of orign"),
        ("John the Baptist.country", "John the Baptist"),
    ],
)
def test_a_name_whose_first_word_is_another_name_is_shown_whole(text, name):
    with pytest.raises((QuerySyntaxError, UnknownNameError)) as caught:
        parse_query(text, PHRASES)
    assert caught.value.hint.endswith(f'needs quotes: "{name}"')


@pytest.mark.parametrize(
    ("text", "words", "meant"),
    [
        ("Sao Paulo.country", "Sao Paulo", "São Paulo"),
        ("Film & !Cote d Ivoire.country", "Cote d Ivoire", "Côte d'Ivoire"),
        ("?x: country(x, Sao  Paulo)", "Sao Paulo", "São Paulo"),
        ("Film.contry of origin", "contry of origin", "country of origin"),
    ],
)
def test_misspelt_words_in_a_row_are_looked_up_as_one_name(text, words, meant):
    with pytest.raises(UnknownNameError) as caught:
        parse_query(text, PHRASES)
    assert caught.value.name == words
    assert caught.value.suggestions == (meant,)
    assert text[slice(*caught.value.span)].split() == words.split()


@pytest.mark.parametrize("text", ["not Film.country", "Frm or Film.country", "Nobody of note.P1"])
def test_the_first_of_words_that_resemble_no_name_is_reported(text):
    with pytest.raises(UnknownNameError) as caught:
        parse_query(text, PHRASES)
    assert caught.value.name == text.split()[0]


@pytest.mark.parametrize("text", ["“Film”.country", "Film.‘country’", "«Film».P1", "`Film`.P1"])
def test_quotes_of_a_word_processor_are_told_from_those_of_a_query(text):
    with pytest.raises(QuerySyntaxError, match="unexpected character") as caught:
        parse_query(text, PHRASES)
    assert caught.value.hint.startswith("""write names in straight quotes, " or '""")


def test_a_formula_without_its_question_mark_is_told_how_it_begins():
    with pytest.raises(UnknownNameError, match="unknown entity 'x:'") as caught:
        parse_query("x: country(x, Film)", PHRASES)
    assert caught.value.hint == "a formula begins with ?x:"


@pytest.mark.parametrize(
    ("text", "where", "begins"),
    [
        ("country(?x, Film)", "country", "?x: country("),
        ("contry(Film, ?x)", "contry", "?x: contry("),
        ("Film.country & !'country of origin'(x, Film)", "'country of origin'",
         '?x: "country of origin"('),
        ("exists y. country(x, y)", "exists", "?x: exists "),
        ("(∃?y. country(x, y))", "∃", "?x: exists "),
    ],
)  # fmt: skip
def test_a_formula_without_the_variable_to_find_is_told_how_it_begins(text, where, begins):
    with pytest.raises(QuerySyntaxError, match="begins with the variable to find") as caught:
        parse_query(text, PHRASES)
    assert text[slice(*caught.value.span)] == where
    assert caught.value.hint == f"write {begins}..."


def test_entities_without_a_parenthesis_are_not_checked_for_atoms(monkeypatch):
    """`has` goes through all tokens, which for every entity of a long query took a second."""
    monkeypatch.delattr(TokenStream, "has")
    monkeypatch.delattr(TokenStream, "is_relation")
    assert len(parse(" & ".join(["France"] * 500)).operands) == 500


def test_a_path_behind_a_variable_is_told_to_stand_alone():
    with pytest.raises(QuerySyntaxError, match=r"found '\.'") as caught:
        parse_query("?x: Film.country", PHRASES)
    assert caught.value.hint.startswith("a path stands alone")


@pytest.mark.parametrize("text", ["Film country", "Film & !John staff"])
def test_a_relation_without_its_dot_is_shown_with_it(text):
    names = Vocabulary(PHRASES.entities, NameTable("relation", ["country", "staff"]))
    with pytest.raises(QuerySyntaxError, match=r"found '(country|staff)'") as caught:
        parse_query(text, names)
    shown = ".".join(text.split()[-2:]).removeprefix("!")
    assert caught.value.hint == f"a relation is followed by '.': {shown}"


def test_a_misplaced_sign_at_the_beginning_gets_one_remedy():
    with pytest.raises(QuerySyntaxError, match="unexpected character '∀'") as caught:
        parse_query("∀y. country(x, y)", PHRASES)
    assert caught.value.hint.count("is written") == 1


@pytest.mark.parametrize("text", ["Film #12.r", "Film # 1.r", "Film.r", '"Film" #1.r'])
def test_a_name_that_matches_only_in_part_gives_no_remedy_about_quotes(text):
    with pytest.raises(UnknownNameError) as caught:
        parse_query(text, ODD_NAMES)
    assert "quotes" not in caught.value.hint


def test_an_unclosed_quote_gets_a_remedy_for_names_with_quotes():
    with pytest.raises(QuerySyntaxError, match="no closing '") as caught:
        parse("Palme d'Or.won_by")
    assert caught.value.hint == "a name that contains ' is written in the other quotes"


@pytest.mark.parametrize(
    "text",
    ["director.France", "?x: produced(director, ?x)", "SELECT ?x { :director :produced ?x }"],
)
def test_a_relation_in_the_place_of_an_entity_is_explained(text):
    with pytest.raises(UnknownNameError, match="unknown entity 'director'") as caught:
        parse(text)
    assert caught.value.hint == "it is the name of a relation, and here an entity is needed"
    assert caught.value.suggestions == ()
    assert text[slice(*caught.value.span)].removeprefix(":") == "director"


@pytest.mark.parametrize(
    "text", ["France.Marianne", "?x: Marianne(France, ?x)", "SELECT ?x { :France :Marianne ?x }"]
)
def test_an_entity_in_the_place_of_a_relation_is_explained(text):
    with pytest.raises(UnknownNameError, match="unknown relation 'Marianne'") as caught:
        parse(text)
    assert caught.value.hint == "it is the name of an entity, and here a relation is needed"
    assert text[slice(*caught.value.span)].removeprefix(":") == "Marianne"


def test_an_unknown_name_is_shown_in_its_line_with_a_guess():
    text = "France.won_by\n  & Frnce.director"
    with pytest.raises(UnknownNameError) as caught:
        parse(text)
    error = caught.value
    assert (error.kind, error.name, error.span) == ("entity", "Frnce", (18, 23))
    assert "France" in error.suggestions
    assert error.message.splitlines() == [
        "unknown entity 'Frnce' at line 2, column 5",
        "    & Frnce.director",
        "      ^^^^^",
    ]


def test_a_line_break_after_the_text_makes_no_second_line():
    with pytest.raises(UnknownNameError, match="'Frnce' at column 1"):
        parse("Frnce.director\n")


@pytest.mark.parametrize(
    ("before", "space"),
    [("'日本' | ", "         "), ("'Zoe\u0308' | ", "        "), ("\tUSA |\t", "\t     \t")],
)
def test_the_marker_stands_under_what_it_marks(before, space):
    text = f"{before}Frnce.won_by"
    entities = NameTable("entity", ["日本", "Zoe\u0308", "USA"])
    with pytest.raises(UnknownNameError) as caught:
        parse_query(text, Vocabulary(entities, VOCABULARY.relations))
    assert caught.value.message.splitlines()[1:] == [f"  {text}", f"  {space}^^^^^"]


def test_a_long_line_is_shown_around_its_mistake():
    for operands in range(1, 400, 7):
        text = "USA | " * operands + "Frnce | " + "USA | " * 60 + "USA"
        with pytest.raises(UnknownNameError) as caught:
            parse(text)
        _, line, marker = caught.value.message.splitlines()
        assert len(line) <= 164
        assert line.endswith("…")
        assert line[marker.index("^") :].startswith("Frnce")
        assert marker.count("^") == 5


def test_an_unknown_relation_is_told_from_an_entity():
    with pytest.raises(UnknownNameError) as caught:
        parse("France.^producd")
    assert caught.value.kind == "relation"
    assert caught.value.span == (8, 15)
    assert caught.value.suggestions[0] == "produced"


def test_an_ambiguous_label_is_reported_where_it_stands():
    with pytest.raises(UnknownNameError, match="ambiguous") as caught:
        parse("France | Paris")
    assert caught.value.span == (9, 14)
    assert set(caught.value.suggestions) == {"/m/02x", "a.b"}


def test_depth_is_limited():
    path = "France" + ".won_by" * 9
    assert depth(parse(path, max_depth=10)) == 10
    with pytest.raises(QueryTooLargeError, match="more than 9 levels"):
        parse(path, max_depth=9)
    for deep in ("(" * 50_000 + "France", "!" * 50_000 + "France", "France" + ".won_by" * 50_000):
        with pytest.raises(QueryTooLargeError):
            parse(deep, max_length=1_000_000)


def test_the_deepest_allowed_text_stays_within_the_stack():
    nested = "(!" * (DEPTH_LIMIT // 2) + "France" + ")" * (DEPTH_LIMIT // 2)
    assert depth(parse(nested, max_depth=DEPTH_LIMIT)) == DEPTH_LIMIT // 2 + 1
    exists = "?x: " + "!(" * (DEPTH_LIMIT // 2) + "won_by(France, x)" + ")" * (DEPTH_LIMIT // 2)
    assert depth(parse(exists, max_depth=DEPTH_LIMIT)) == DEPTH_LIMIT // 2 + 2


def test_a_deeper_limit_than_the_stack_bears_is_refused():
    with pytest.raises(ConfigError, match=f"at most {DEPTH_LIMIT}"):
        parse("France", max_depth=DEPTH_LIMIT + 1)


@pytest.mark.parametrize("text", [None, 3, b"a.r", ["a.r"], Anchor(0)])
def test_a_query_that_is_not_a_string_is_refused(text):
    with pytest.raises(ConfigError, match=r"the query is .*; it must be text, such as") as caught:
        parse_query(text, VOCABULARY)
    assert caught.value.key == "text"


@pytest.mark.parametrize("text", ["France", "?x: x = France", "SELECT ?x { ?x a owl:Thing }"])
def test_every_notation_has_a_limit_and_is_text(text):
    length = len(text)
    with pytest.raises(QueryTooLargeError, match=f"has {length} characters; at most {length - 1}"):
        parse(text, max_length=length - 1)
    with pytest.raises(QuerySyntaxError, match="not valid Unicode") as caught:
        parse(f"{text}\udce9")
    assert caught.value.span == (length, length + 1)


def test_length_is_limited():
    with pytest.raises(QueryTooLargeError, match="characters"):
        parse("France | " * 2_000 + "France")
    assert len(parse("France | " * 2_000 + "France", max_length=100_000).operands) == 2_001


def test_a_formula_is_told_by_its_variable():
    assert parse('?x: won_by("Academy Award", ?x)') == Project(AWARD, 0)


KEYWORDS = ["select", "ASK", "Describe", "construct", "prefix", "BASE", "insert", "delete"]


@example("Describe", ":x", "")
@example("select", "$1", ".r")
@example("ASK", "from", " & b")
@example("describe", "", " .c:r")
@given(
    st.sampled_from(KEYWORDS),
    st.text("awherfomdtins$:#-/1", max_size=6),
    st.sampled_from(
        ["", ".r", " . r", " .c:r", " & b", "|b", "\n& (b | *)", " & '{' | '<'.r", " ∧ b"]
    ),
)
def test_names_that_begin_as_sparql_does_are_names(keyword, rest, end):
    name = keyword + rest
    vocabulary = Vocabulary(
        NameTable("entity", [name, "b", "{", "<"]), NameTable("relation", ["r", "c:r"])
    )
    found = parse_query(name + end, vocabulary)
    assert found == parse_query(f"({quote(name)}{end})", vocabulary)
    assert Anchor(0) in subtrees(found)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x WHERE { :France :won_by ?x }",
        "SELECT { :France :won_by ?x }",
        "SELECT DISTINCT x { :France :won_by ?x }",
        "SELECT ?x WHERE :France :won_by ?x",
        "SELECT $x WHERE { France :won_by $x }",
        "SELECT(COUNT(?x) AS ?n)",
        "PREFIX ex <http://x/> SELECT ?x { ex:a :won_by ?x }",
        "PREFIX ex: http://x/ SELECT ?x { ex:a :won_by ?x }",
        "BASE http://x/ SELECT ?x { <a> :won_by ?x }",
        "# France's films\nSELECT ?x",
        "ASK FROM <http://x/> WHERE { :France :won_by ?x }",
        "DESCRIBE :France",
        "DESCRIBE ex:France",
        "INSERT { :France :won_by :USA }",
    ],
)
def test_sparql_with_a_mistake_is_told_so(text):
    with pytest.raises(QuerySyntaxError, match="SPARQL"):
        parse(text)


def test_telling_the_notation_takes_no_longer_than_reading():
    for text in ("select" + " " * 10**6, "#\n" * 10**6, "select " + "a " * 10**6):
        with pytest.raises(QueryTooLargeError, match="characters"):
            parse(text)


@given(shapes())
def test_the_name_of_a_shape_means_that_shape(shape):
    assert parse_shape(shape.name) == shape


@pytest.mark.parametrize(
    ("text", "told", "suggestion"),
    [
        ("2inn", "'2inn' is no shape; the named shapes are 1p", "2in"),
        ("e.r & f.r", "is no shape", None),
        ("e.^r", "'e.^r' has a '^'; leave it out", None),
    ],
)
def test_texts_that_are_no_shape_are_refused(text, told, suggestion):
    with pytest.raises(ConfigError, match=re.escape(told)) as error:
        parse_shape(text)
    assert suggestion is None or suggestion in error.value.suggestions
