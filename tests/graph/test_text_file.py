from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from conekg.errors import DataError
from conekg.graph.text_file import QuoteWatch, fields_of, line_of_row, lines_of


def test_lines_are_numbered_and_blank_ones_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\n\ntwo\nthree")
    assert list(lines_of(path)) == [(1, b"one"), (4, b"two"), (5, b"three")]
    assert [line_of_row(path, row) for row in range(3)] == [1, 4, 5]
    packed = tmp_path / "a.tsv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(lines_of(packed)) == list(lines_of(path))


def test_a_line_ends_at_lf_cr_lf_or_a_lone_cr(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"one\rtwo\r\nthree\n\rfive\r\r\nseven")
    lines = [(1, b"one"), (2, b"two"), (3, b"three"), (5, b"five"), (7, b"seven")]
    assert list(lines_of(path)) == lines
    assert [line_of_row(path, row) for row in range(5)] == [1, 2, 3, 5, 7]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"a\tr\tb\na\tr\n", 2, "2 columns found, 3 tab-separated ones expected: 'a\\\\tr'"),
        (b"a r b\n", 1, "1 column found"),
        (b"\na\tr\tb\tc\n", 2, "4 columns found"),
        (b"a\tr\tb\na\t\tb\n", 2, "field 2 is empty"),
        (b"a\tr\tb\na\tr\tb\xff\n", 2, "byte 0xff at column 6 is not UTF-8"),
    ],
)
def test_the_first_bad_line_is_named(
    content: bytes, line: int, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        list(fields_of(path, "\t", 3))
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_quoted_commas_belong_to_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('"Bonaire, Saba",r,b\n')
    assert list(fields_of(path, ",", 3)) == [(1, ["Bonaire, Saba", "r", "b"])]


def test_damaged_gzip_and_missing_files_are_data_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tr\tb\n" * 100)[:-10])
    with pytest.raises(DataError, match="cannot be read"):
        list(lines_of(path))
    with pytest.raises(DataError, match="no such file"):
        list(lines_of(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("line", "suspicious"),
    [
        (b'"a"b,r,c', True),
        (b'"5\\" pipe",r,c', True),
        (b'"a" ,r,c', True),
        (b'""a,r,c', True),
        (b'"a"""b,r,c', True),
        (b'"x,"y,r,c', True),
        (b'a,r,"b"c', True),
        (b'a,r,"b', True),
        (b'a,r,"b""', True),
        (b'a,"b,"",c', True),
        (b'"a""b",r,c', False),
        (b'"""a""","r","c, d"', False),
        (b'a"b"c,r,5" pipe', False),
        (b'a,"",""""', False),
    ],
)
def test_names_that_go_on_after_their_quote_or_never_close_it_are_seen_across_blocks(
    line: bytes, suspicious: bool
) -> None:
    for rest in (b"\r\nb,r,c\n", b""):
        content = b"a,r,b\n" + line + rest
        for size in range(1, len(content) + 1):
            watch = QuoteWatch()
            for start in range(0, len(content), size):
                watch.look(content[start : start + size])
            watch.look(b"\n")
            assert watch.suspicious == suspicious


@pytest.mark.parametrize(
    ("name", "line", "hint"),
    [
        ("a.csv", "a\tr\tb", "separated by tabs: write commas, or let its name end in .tsv"),
        ("a.tsv", "a,r,b", "separated by commas: write tabs, or let its name end in .csv"),
        ("a.csv", "a;r;b", "separated by semicolons: write tabs (.tsv) or commas (.csv)"),
        ("a.tsv", "a;r;b", "separated by semicolons"),
        (
            "a.tsv",
            "a r b",
            "a line is `head relation tail`; names may hold spaces, so tabs separate",
        ),
        ("a.tsv", "a,r,s\tb", "a line is `head relation tail`"),
        ("a.csv", "a;r;s,b", "names may hold spaces, names with commas are quoted"),
    ],
)
def test_another_separator_is_named_in_the_remedy(
    tmp_path: Path, name: str, line: str, hint: str
) -> None:
    (tmp_path / name).write_text(line + "\n")
    with pytest.raises(DataError) as caught:
        list(fields_of(tmp_path / name, "," if name == "a.csv" else "\t", 3))
    assert hint in str(caught.value.hint)


def test_a_byte_order_mark_is_one_only_where_the_file_begins(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")
    assert list(lines_of(tmp_path / "a.tsv")) == [(1, b"a"), (2, b"\xef\xbb\xbfb")]


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_with_a_remedy(order: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes("\ufeffa\tr\tb\n".encode(order))
    with pytest.raises(DataError, match="is text in UTF-16; only UTF-8 is read") as caught:
        list(fields_of(path, "\t", 3))
    assert "CSV UTF-8" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("# people", "if it is a comment, remove it"),
        ("a\tr\tb\t0.5", "ignored if the first line is a header that names them all"),
        ("<http://a> <http://b> <http://c> .", r"let the file's name end in \.nt"),
        ("a r b", "so tabs separate them"),
    ],
)
def test_a_wrong_number_of_columns_gets_a_remedy(line: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{line}\n")
    with pytest.raises(DataError, match=hint):
        list(fields_of(path, "\t", 3))


def test_a_first_line_of_too_many_columns_may_belong_to_a_table(tmp_path: Path) -> None:
    path = tmp_path / "films.csv"
    path.write_text("title,director,year,genre\nAlien,Scott,1979,horror\n")
    with pytest.raises(DataError, match="a table with a row for each thing is written as facts"):
        list(fields_of(path, ",", 3))
    path.write_text("Alien,directed by,Scott\nAlien,genre,horror,film\n")
    with pytest.raises(DataError, match=r"films\.csv:2: 4 columns found") as caught:
        list(fields_of(path, ",", 3))
    assert "further columns" in str(caught.value)
    assert "a row for each thing" not in str(caught.value)


def test_columns_that_are_not_needed_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\t\tr\tb\n\tnote\tr\tb\n")
    lines = fields_of(path, "\t", 4, (0, 2, 3))
    assert next(lines) == (1, ["a", "", "r", "b"])
    with pytest.raises(DataError, match="field 1 is empty"):
        next(lines)
