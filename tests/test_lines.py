from __future__ import annotations

import pytest

from conekg.lines import columns, counted, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zürich, 日本", "Zürich, 日本"),
        ("two\nlines\tand\x1b[31m red", "two\\nlines\\tand\\x1b[31m red"),
        ("a\u2028b\x85c", "a\\u2028b\\x85c"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_line_ends_and_control_characters_are_escaped(text, shown):
    assert one_line(text) == shown


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("abc", 3), ("日本", 4), ("Zoe\u0308", 3), ("a\u200bb", 2)]
)
def test_columns_count_the_width_of_the_text_in_a_terminal(text, width):
    assert columns(text) == width


def test_counts_are_in_the_plural_unless_they_are_one():
    assert [counted(number, "fact") for number in (0, 1, 2)] == ["0 facts", "1 fact", "2 facts"]
    assert [counted(number, "test query") for number in (1, 1_000)] == [
        "1 test query",
        "1,000 test queries",
    ]
