from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.text_array import as_texts, first_repeated, flat_bytes


@given(st.lists(st.text("abc", max_size=2), min_size=1))
def test_first_repeated_gives_the_first_of_several(texts: list[str]) -> None:
    some = ["once", *texts, texts[-1]]
    assert first_repeated(as_texts(some)) == next(text for text in some if some.count(text) > 1)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.integers(0, 3))
def test_flat_bytes_are_the_texts_also_of_a_slice(texts: list[str], start: int) -> None:
    offsets, data = flat_bytes(as_texts(texts)[start:])
    cut = [bytes(data[a:b]).decode() for a, b in pairwise(offsets)]
    assert cut == texts[start:]


def test_any_kind_of_text_array_becomes_large_strings() -> None:
    for values in (["a", None], pa.array(["a", None]), pa.chunked_array([["a"], [None]])):
        texts = as_texts(values)
        assert texts.type == pa.large_string()
        assert texts.to_pylist() == ["a", None]
