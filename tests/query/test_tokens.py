import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from conekg.errors import QuerySyntaxError, QueryTooLargeError
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.tokens import (
    as_written,
    check_text,
    is_bare_character,
    is_bare_name,
    quote,
    tokenize,
)

NAMES = Vocabulary(NameTable("entity", ["a"]), NameTable("relation", ["r"]))


def kinds(text):
    return [(token.kind, token.text) for token in tokenize(text)]


def test_words_and_signs():
    assert kinds('a."b c" & ^r|!*(,)=') == [
        ("name", "a"), (".", "."), ("quoted", "b c"), ("&", "&"), ("^", "^"), ("name", "r"),
        ("|", "|"), ("!", "!"), ("*", "*"), ("(", "("), (",", ","), (")", ")"), ("=", "="),
        ("end", ""),
    ]  # fmt: skip


def test_logicians_signs_are_understood():
    assert [kind for kind, _ in kinds("¬a ∧ b ∨ c")] == [
        "!",
        "name",
        "&",
        "name",
        "|",
        "name",
        "end",
    ]
    assert kinds("∃f")[0] == ("name", "exists")


def test_spans_are_the_characters_read():
    text = ' "a\\"b" .  r'
    spans = [token.span for token in tokenize(text)]
    assert [text[start:stop] for start, stop in spans] == ['"a\\"b"', ".", "r", ""]


@pytest.mark.parametrize(
    "name", ["/m/02x", "concept:team:lakers", "Ōsaka", "हिन्दी", "a-b", "#1", "$x", "50%"]
)
def test_bare_names(name):
    assert is_bare_name(name)
    assert as_written(name) == name
    assert kinds(name) == [("name", name), ("end", "")]


@pytest.mark.parametrize(
    "name", ["", "a b", "a.b", ":x", "?x", "a&b", "don't", 'q"', "a\\b", "*", "^r", "x=y"]
)
def test_names_that_need_quotes(name):
    assert not is_bare_name(name)
    assert as_written(name) == quote(name)
    assert kinds(quote(name)) == [("quoted", name), ("end", "")]


def test_a_variable_ends_before_the_colon():
    assert kinds("?d:exists") == [("variable", "d"), (":", ":"), ("name", "exists"), ("end", "")]


def test_single_quotes_hold_double_ones():
    assert kinds("""'say "hi"' "don't" 'don\\'t'""")[:3] == [
        ("quoted", 'say "hi"'), ("quoted", "don't"), ("quoted", "don't"),
    ]  # fmt: skip


@given(strategies.names())
def test_quoting_keeps_any_name_and_stays_on_one_line(name):
    assert kinds(quote(name)) == [("quoted", name), ("end", "")]
    assert not {"\n", "\t", "\r"} & set(quote(name))
    if is_bare_name(name):
        assert kinds(name) == [("name", name), ("end", "")]


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ('a & "b', 'no closing "', (4, 6)),
        ("a & 'b\\'", "no closing '", (4, 8)),
        ('"a\\x"', r"unknown escape", (2, 4)),
        ('"a\\', r"unknown escape", (2, 4)),
        ("a ; b", "unexpected character ';'", (2, 3)),
        ("?", "a variable needs a name", (0, 1)),
    ],
)  # fmt: skip
def test_unreadable_text_is_reported_where_it_stands(text, message, span):
    with pytest.raises(QuerySyntaxError, match=message) as caught:
        tokenize(text)
    assert caught.value.span == span
    assert caught.value.text == text


@pytest.mark.parametrize("mark", ['"', "'"])
def test_escapes_in_quotes(mark):
    text = rf"""{mark}a\"b\'c\\d\ne\tf\rg{mark}"""
    assert kinds(text) == [("quoted", "a\"b'c\\d\ne\tf\rg"), ("end", "")]


def test_what_is_no_text_is_reported_where_it_stands():
    with pytest.raises(QuerySyntaxError, match="not valid Unicode") as caught:
        check_text("a\udce9", 10)
    assert caught.value.span == (1, 2)


def test_length_is_limited():
    with pytest.raises(QueryTooLargeError, match="11 characters; at most 10"):
        check_text("a" * 11, 10)
    check_text("a" * 10, 10)


@given(st.text(alphabet="aZ0_-/:#@$%+~éß٣́ .'\"", max_size=6))
def test_names_are_bare_where_each_of_their_characters_is(name):
    expected = name != "" and not name.startswith(":") and all(map(is_bare_character, name))
    assert is_bare_name(name) == expected
    if expected:
        assert kinds(name) == [("name", name), ("end", "")]
