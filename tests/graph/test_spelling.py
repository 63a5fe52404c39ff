from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.spelling import nearest, spelled_out, with_word

words = st.text("abcd", max_size=7)


def plain_distance(left: str, right: str) -> int:
    """Optimal string alignment by the textbook recursion, one cell at a time."""
    table = {(i, -1): i + 1 for i in range(-1, len(left))}
    table |= {(-1, j): j + 1 for j in range(-1, len(right))}
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i, j] = min(
                table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b)
            )
            if i and j and a == right[j - 1] and left[i - 1] == b:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(left) - 1, len(right) - 1]


@given(words, st.lists(words, max_size=12))
def test_nearest_agrees_with_the_textbook(text: str, candidates: list[str]) -> None:
    allowed = max(1, len(text) // 3)
    distances = [plain_distance(text, candidate) for candidate in candidates]
    expected = [i for i in range(len(candidates)) if distances[i] <= allowed] if text else []
    expected.sort(key=lambda place: (distances[place], place))
    found = nearest(text, pa.array(candidates, pa.large_string()), limit=100)
    assert list(found.items()) == [(place, distances[place]) for place in expected]


def test_a_swap_of_neighbours_costs_one() -> None:
    candidates = pa.array(["Germany", "France", "Grance"], pa.large_string())
    assert nearest("Farnce", candidates, limit=5) == {1: 1, 2: 2}
    assert nearest("rFa", pa.array(["Fra"], pa.large_string()), limit=5) == {0: 1}


def test_nothing_is_near_an_empty_or_endless_text() -> None:
    candidates = pa.array(["a", "x" * 300], pa.large_string())
    assert nearest("", candidates, limit=5) == {}
    assert nearest("x" * 300, candidates, limit=5) == {}


def test_an_acronym_is_spelled_out_by_names_in_lower_case() -> None:
    names = ["bank of america", "british airways", "united nations", "unicef", "new_york-city"]
    candidates = pa.array(names, pa.large_string())
    assert spelled_out("BA", candidates) == [1, 0], "small words come later"
    assert spelled_out("UN", candidates) == [2]
    assert spelled_out("NYC", candidates) == [4]
    assert spelled_out("un", candidates) == spelled_out("U", candidates) == []


def test_a_word_is_no_part_of_another() -> None:
    candidates = pa.array(["a land", "finland", "land_of_x.y", "x.y"], pa.large_string())
    assert with_word("land", candidates) == [0, 2]
    assert with_word("x.y", candidates) == [3, 2]
    assert with_word("x?", candidates) == []
