"""Reading tokens in order, and names in them; most remedies are tested with `parse`."""

import pytest

from conekg.errors import QuerySyntaxError, QueryTooLargeError, UnknownNameError
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.token_stream import TokenStream, look_up

NAMES = Vocabulary(NameTable("entity", ["a"]), NameTable("relation", ["q", "r"]))


def test_the_stream_stays_at_its_end():
    stream = TokenStream("a", NAMES, max_depth=3)
    assert stream.after_next.kind == "end"
    assert [stream.take().kind for _ in range(3)] == ["name", "end", "end"]


def test_the_stream_counts_nesting():
    stream = TokenStream("a", NAMES, max_depth=2)
    stream.enter()
    stream.enter()
    stream.leave()
    stream.enter()
    with pytest.raises(QueryTooLargeError, match="more than 2 levels"):
        stream.enter()


def test_a_token_of_another_kind_is_not_consumed():
    stream = TokenStream("a.^r", NAMES, max_depth=2)
    assert stream.accept("&") is None
    with pytest.raises(QuerySyntaxError, match="expected an end, found") as caught:
        stream.expect("end", "an end")
    assert caught.value.span == (0, 1)
    assert (stream.expect("name", "a name").text, stream.stop) == ("a", 1)
    assert stream.has("^")
    assert stream.accept(".") is not None
    assert stream.take_relation() == 2 * 1 + 1
    assert not stream.has("^")


def test_an_error_of_the_look_up_points_at_the_name():
    assert look_up("relation", NAMES, "r", "a.r", lambda: (2, 3)) == 1
    with pytest.raises(UnknownNameError, match="name of a relation, and here an entity") as caught:
        look_up("entity", NAMES, "r", "r.r", lambda: (0, 1))
    assert caught.value.span == (0, 1)
    with pytest.raises(UnknownNameError, match="write it so"):
        look_up("entity", NAMES, "zzz", "zzz.r", lambda: (0, 3), "write it so")
