from __future__ import annotations

import csv
import gzip
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import DataError
from conekg.graph.triples import TripleTable, read_triples

Rows = list[tuple[str, str, str]]
ROWS: Rows = [("Ada", "born in", "London"), ("Alan", "born in", "London"), ("Ada", "knows", "Ada")]


def told(table: TripleTable) -> Rows:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def write_tsv(path: Path, rows: Rows) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_csv(path: Path, rows: Rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def write_parquet(path: Path, rows: Rows) -> Path:
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table(dict(zip(("head", "relation", "tail"), columns, strict=True))), path)
    return path


WRITERS = {"a.tsv": write_tsv, "a.txt": write_tsv, "a.csv": write_csv, "a.parquet": write_parquet}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_triples(name: str, tmp_path: Path) -> None:
    table = read_triples(WRITERS[name](tmp_path / name, ROWS))
    assert told(table) == ROWS
    assert len(table) == 3


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_gzip_is_read(name: str, tmp_path: Path) -> None:
    plain = WRITERS[name](tmp_path / name, ROWS)
    for ending in (".gz", ".GZ"):
        packed = tmp_path / f"{name}{ending}"
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        assert told(read_triples(packed)) == ROWS


names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=5)


@given(rows=st.lists(st.tuples(names, names.filter(lambda n: n[0] != "^"), names), min_size=1))
def test_any_name_survives_tsv_and_csv(
    rows: Rows, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    header = ("head", "relation", "tail")
    assert told(read_triples(write_tsv(folder / "a.tsv", [header, *rows]))) == rows
    assert told(read_triples(write_csv(folder / "a.csv", [header, *rows]))) == rows


def test_quotes_mean_nothing_in_tsv(tmp_path: Path) -> None:
    rows = [('"Weird Al" Yankovic', "won", 'say "hi')]
    assert told(read_triples(write_tsv(tmp_path / "a.tsv", rows))) == rows


@pytest.mark.parametrize(
    "header",
    [
        ("Head", "Relation", "Tail"),
        ("subject", "predicate", "object"),
        ("Subject", "relation", "object"),
        ("source", "predicate", "tail"),
    ],
)
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_header_is_no_triple(name: str, header: tuple[str, str, str], tmp_path: Path) -> None:
    table = read_triples(WRITERS[name](tmp_path / name, [header, *ROWS]))
    assert told(table) == ROWS
    assert table.line_of(0) == 2


@pytest.mark.parametrize(
    ("header", "places", "left_out"),
    [
        ("head,relation,tail,weight", (0, 1, 2), "column left out: 'weight'"),
        (",head,relation,tail", (1, 2, 3), "column left out: one without a name"),
        ("tail,relation,head", (2, 1, 0), None),
        ("Source,Target,note,Relation,id", (0, 3, 1), "columns left out: 'note', 'id'"),
        ("#head,relation,tail", (0, 1, 2), None),
        ("# Subject,Predicate,Object", (0, 1, 2), None),
    ],
)
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_header_says_which_columns_hold_the_triples(
    name: str, header: str, places: tuple[int, int, int], left_out: str | None, tmp_path: Path
) -> None:
    fields = header.split(",")
    rows = [fields]
    for triple in ROWS:
        row = [""] * len(fields)  # what is not read may be empty
        for place, word in zip(places, triple, strict=True):
            row[place] = word
        rows.append(row)
    path = tmp_path / name
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="," if name == "a.csv" else "\t").writerows(rows)
    table = read_triples(path)
    assert told(table) == ROWS
    assert table.notes == (() if left_out is None else (f"{path}: {left_out}",))
    assert table.line_of(2) == 4


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("a,,b,1", "field 2 is empty"),
        ("a,r,b", "3 columns found, 4"),
        ('a,r,b,"x', "not closed"),
        ('a,r,b,"x\nc,r,d,y"', "not closed"),
    ],
)
def test_lines_below_a_header_must_match_its_columns(
    second: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"head,relation,tail,weight\n{second}\n")
    with pytest.raises(DataError, match=message) as caught:
        read_triples(path)
    assert caught.value.line == 2


def test_a_first_line_that_names_a_column_twice_is_no_header(tmp_path: Path) -> None:
    rows = [("head", "relation", "head"), ("tail", "head", "relation")]
    assert told(read_triples(write_tsv(tmp_path / "a.tsv", rows))) == rows


FACTS: Rows = [(f"a{i}", "r", f"b{i % 2}") for i in range(6)]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_first_line_that_may_be_a_header_is_noted(name: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path / name, [("from", "via", "to"), *FACTS])
    table = read_triples(path)
    assert len(table) == 7
    assert table.notes == (
        f"{path}: the first line, 'from' 'via' 'to', is taken for a fact, though none of its "
        "names occurs again: if it is a header, remove it",
    )


@pytest.mark.parametrize(
    "first", [("a1", "via", "to"), ("from", "r", "to"), ("from", "via", "b0"), ("b1", "via", "to"),
              ("from", "via", "a5"), ("head", "relation", "tail")]
)  # fmt: skip
def test_a_first_line_whose_names_occur_again_is_a_fact(
    first: tuple[str, str, str], tmp_path: Path
) -> None:
    assert read_triples(write_tsv(tmp_path / "a.tsv", [first, *FACTS])).notes == ()


def test_in_a_file_of_few_facts_a_possible_header_is_not_noted(tmp_path: Path) -> None:
    rows = [("a", "r", "b"), ("c", "s", "d"), ("e", "s", "f"), ("g", "s", "h")]
    assert read_triples(write_tsv(tmp_path / "a.tsv", rows)).notes == ()


def test_names_in_quotes_are_noted_in_tab_separated_files(tmp_path: Path) -> None:
    rows = [('"Ada"', "knows", '"Ada"'), ('"Ada"', '"likes"', '"'), ('"a" b', "knows", "c")]
    path = write_tsv(tmp_path / "a.tsv", rows)
    assert read_triples(path).notes == (
        f"{path}: 2 names in quotes, such as '\"Ada\"': in tab-separated files "
        "quotes are part of the name",
    )
    assert read_triples(write_csv(tmp_path / "a.csv", rows)).notes == ()


def test_a_header_may_follow_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("\n\nhead\trelation\ttail\na\tr\tb\n")
    table = read_triples(path)
    assert told(table) == [("a", "r", "b")]
    assert table.line_of(0) == 4


def test_blank_lines_do_not_shift_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tr\tb\n\n\nb\tr\tc\n")
    table = read_triples(path)
    assert len(table) == 2
    assert table.line_of(1) == 4


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_lines_may_end_as_on_any_system(name: str, end: str, tmp_path: Path) -> None:
    lines = ["", "head,relation,tail", "a,r,b", "", "b,r,c", ""]
    text = end.join(lines).replace(",", "," if name == "a.csv" else "\t")
    path = tmp_path / name
    path.write_bytes(text.encode())
    table = read_triples(path)
    assert told(table) == [("a", "r", "b"), ("b", "r", "c")]
    assert [table.line_of(row) for row in range(2)] == [3, 5]


def test_many_blocks_share_one_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conekg.graph.triples._BLOCK_BYTES", 64)
    rows = [(f"e{i % 7}", f"r{i % 3}", f"e{i % 11}") for i in range(200)]
    table = read_triples(write_tsv(tmp_path / "a.tsv", rows))
    assert told(table) == rows
    assert len(table.columns[0].dictionary) == 7


def test_parquet_columns_are_found_by_name_or_as_the_only_three(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"weight": [1], "object": [3], "subject": [1], "predicate": [2]}), path)
    assert told(read_triples(path)) == [("1", "2", "3")]
    pq.write_table(pa.table({"x": ["a"], "y": ["r"], "z": ["b"]}), path)
    table = read_triples(path)
    assert told(table) == [("a", "r", "b")]
    assert table.notes == (f"{path}: columns 'x', 'y', 'z' are taken for head, relation and tail",)
    names = ("source", "subject", "relation", "object", "Target")
    pq.write_table(pa.table({name: [name] for name in names}), path)
    assert told(read_triples(path)) == [("source", "relation", "Target")]
    pq.write_table(pa.table({name: [name] for name in ("object", "w", "relation", "head")}), path)
    assert told(read_triples(path)) == [("head", "relation", "object")]
    pq.write_table(pa.table({"Tail": ["b"], "head": ["a"], "kind": ["r"]}), path)
    with pytest.raises(DataError, match="three columns in this order"):
        read_triples(path)
    pq.write_table(pa.table({"x": ["a"], "y": ["r"]}), path)
    with pytest.raises(DataError, match="expected: head, relation and tail"):
        read_triples(path)


class Overlong:
    """A column of text in several chunks that are too long to be joined."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __getattr__(self, name: str) -> Any:
        return getattr(self._column, name)

    def combine_chunks(self) -> None:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")


def test_parquet_columns_longer_than_an_array_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Arrow splits more than 2 GiB of text into several chunks.
    rows = [(f"e{i % 7}", f"r{i % 3}", f"e{i % 11}") for i in range(200)]
    path = write_parquet(tmp_path / "a.parquet", rows)
    whole = pq.read_table(path)
    parts = pa.concat_tables([whole.slice(0, 90), whole.slice(90)])
    assert parts["head"].num_chunks == 2
    columns = {name: Overlong(parts[name]) for name in parts.column_names}
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: columns)
    table = read_triples(path)
    assert told(table) == rows
    assert len(table.columns[0].dictionary) == 7


def test_null_in_parquet_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": ["a", "b"], "y": ["r", None], "z": ["b", "c"]}), path)
    with pytest.raises(DataError, match="column 'y' is null in row 2") as caught:
        read_triples(path)
    assert (
        caught.value.hint == "every row names head, relation and tail; leave out those that do not"
    )
    pq.write_table(pa.table({"head": ["a"], "relation": ["r"], "tail": [""]}), path)
    with pytest.raises(DataError, match="column 'tail' is empty in row 1"):
        read_triples(path)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_in_parquet_is_null(kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    tails = pa.array([1.0, 2.0, float("nan")], kind, from_pandas=False)
    pq.write_table(pa.table({"head": [1, 2, 3], "relation": ["r"] * 3, "tail": tails}), path)
    with pytest.raises(DataError, match="column 'tail' is null in row 3"):
        read_triples(path)


def test_ids_are_the_same_in_columns_of_floats_and_of_whole_numbers(tmp_path: Path) -> None:
    # 2**53 - 1 is the largest integer that no other integer shares its float with.
    ids = [0, 7, 1_234_567_890, 123_456_789_012, -(10**15), 2**53 - 1]
    path = tmp_path / "a.parquet"
    columns = {"head": ids, "relation": ["r"] * 6, "tail": list(map(float, ids))}
    pq.write_table(pa.table(columns), path)
    assert told(read_triples(path)) == [(str(number), "r", str(number)) for number in ids]
    pq.write_table(pa.table({**columns, "tail": [0.5, 1, 2, 3, 4, 5]}), path)
    assert [tail for *_, tail in told(read_triples(path))] == ["0.5", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (["a", ""], "column 'head' is empty in row 2"),
        ([b"a", b"\xff"], "column 'head' holds binary, which cannot be read as names"),
        ([["a"], ["b"]], "column 'head' holds list"),
        ([{"x": 1}, {"x": 2}], "column 'head' holds struct"),
    ],
)
def test_parquet_columns_that_hold_no_names_are_refused(
    heads: list[object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"head": heads, "relation": ["r", "r"], "tail": ["b", "c"]})
    pq.write_table(table, path)
    with pytest.raises(DataError, match=message) as caught:
        read_triples(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("a.tsv", b"", None, "the file is empty"),
        ("a.tsv", b"\n\n", None, "the file is empty"),
        ("a.tsv", b"head\trelation\ttail\n", None, "no triples in the file"),
        ("a.tsv", b"a\tr\tb\na\tr\n", 2, "2 columns found"),
        ("a.tsv", b"a r b\n", 1, "1 column found, 3 tab-separated"),
        ("a.csv", b"a,r,b\na,r,b,c\n", 2, "4 columns found, 3 comma-separated"),
        ("a.tsv", b"a\tr\tb\n\t\t\n", 2, "field 1 is empty"),
        ("a.tsv", b"a\tr\tb\n\nc\t\xe9t\xe9\td\n", 3, "byte 0xe9 at column 3 is not UTF-8"),
        ("a.tsv", b"a\tr\tb\na\t^r\tb\n", 2, "starts with '\\^'"),
        ("a.tsv.gz", gzip.compress(b"a\tr\tb\n" * 99, mtime=0)[:-9], None, "cannot be read"),
        ("a.parquet", b"not parquet", None, "(?s)as Parquet.*is it complete"),
        ("a.csv", b'a,r,b\nc,r,"b\nd"\nx,y\n', 2, "a quote is not closed on its line"),
        ("a.csv", b'a,r,b\n"c", "r", "d"\n', 2, "a space stands before a quote"),
        ("a.csv", b'a,r,b\nc,r, "d, e"\n', 2, "a space stands before a quote"),
        ("a.csv", b'"5\\" pipe",r,b\n', 1, "a name goes on after its closing quote: '\"5"),
        ("a.csv", b'a,r,b\n\n"a"b,r,c\n', 3, "a name goes on after its closing quote"),
        ("a.csv", b'a,r,b\na,r,"c" \n', 2, "a name goes on after its closing quote"),
        ("a.csv", b'a,r,b\n"x,"y,r,c\n', 2, "a name goes on after its closing quote"),
        ("a.csv", b'a,r,b\n"c\rd",r,e\n', 2, "a quote is not closed on its line"),
        ("a.csv", b'a,r,b\na,r,"c', 2, "a quote is not closed on its line"),
        ("a.tsv", b"A\rX\tr\tB\n", 1, "1 column found, 3 tab-separated ones expected: 'A'"),
        ("a.tsv", b"a\tr\tb\rb\t^r\tc\r", 2, "starts with '\\^'"),
        ("a.csv", b"a,r," + b"b" * 140_000, 1, "cannot be read as CSV: field larger"),
        ("a.xlsx", b"PK", None, "files ending in '.xlsx' are not read"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(
    name: str, content: bytes, line: int | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_triples(path)
    assert caught.value.path == str(path)
    assert caught.value.line == line


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_quote_left_open_to_the_end_of_a_block_loses_no_lines(
    line_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conekg.graph.triples._BLOCK_BYTES", 64)
    lines = [f"entity{i},r,thing{i}" for i in range(40)]
    for row in range(40):
        path = tmp_path / "a.csv"
        left_open = [*lines[:row], 'a,r,"b', *lines[row:]]
        path.write_text(line_end.join(left_open), newline="")
        with pytest.raises(DataError, match="a quote is not closed on its line") as caught:
            read_triples(path)
        assert caught.value.line == row + 1


def test_a_packed_file_without_the_ending_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(gzip.compress(b"a\tr\tb\n"))
    with pytest.raises(DataError, match=r"gzipped: let its name end in \.gz"):
        read_triples(path)


@pytest.mark.parametrize("ending", ["bz2", "zst", "zip"])
def test_other_packed_files_are_read_as_well(ending: str, tmp_path: Path) -> None:
    plain = write_csv(tmp_path / "a.csv", [("head", "relation", "tail"), *ROWS])
    path = tmp_path / f"a.csv.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(plain, "a.csv")
    else:
        with pa.output_stream(str(path)) as stream:  # packed as the name says
            stream.write(plain.read_bytes())
    table = read_triples(path)
    assert told(table) == ROWS
    assert table.line_of(1) == 3
    hidden = path.rename(tmp_path / "hidden.csv")
    with pytest.raises(DataError, match=rf"let its name end in \.{ending}"):
        read_triples(hidden)


def test_packed_parquet_is_refused(tmp_path: Path) -> None:
    plain = write_parquet(tmp_path / "a.parquet", ROWS)
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    with pytest.raises(DataError, match="Parquet is not read from compressed files"):
        read_triples(path)


def test_ignored_columns_of_parquet_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"weight": [0.5], "head": ["a"], "relation": ["r"], "tail": ["b"]}
    pq.write_table(pa.table(columns), path)
    table = read_triples(path)
    assert told(table) == [("a", "r", "b")]
    assert table.notes == (f"{path}: column left out: 'weight'",)


def test_quotes_and_spaces_within_quotes_are_kept(tmp_path: Path) -> None:
    rows = [(' "a" ', "r", 'b"c'), ('x, "y"', "r", " z")]
    assert told(read_triples(write_csv(tmp_path / "a.csv", rows))) == rows


def test_quotes_within_unquoted_names_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a"b"c,r,5" pipe\n"a ""b"" c",r,"d"\n"e,","r","f"\n')
    assert told(read_triples(path)) == [
        ('a"b"c', "r", '5" pipe'),
        ('a "b" c', "r", "d"),
        ("e,", "r", "f"),
    ]


@pytest.mark.parametrize("names", [["head", "head", "relation", "tail"], ["x", "x", "x"]])
def test_parquet_columns_of_one_name_are_refused(names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([pa.array(["a"])] * len(names), names=names), path)
    with pytest.raises(DataError, match="two columns are called") as caught:
        read_triples(path)
    assert str(path) in caught.value.message


def test_a_folder_and_a_name_without_ending(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a file"):
        read_triples(tmp_path)
    (tmp_path / "facts").write_text("a\tr\tb\n")
    with pytest.raises(DataError, match="its name has no ending"):
        read_triples(tmp_path / "facts")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent.tsv: no such file"):
        read_triples(tmp_path / "absent.tsv")


def test_a_line_that_is_too_long_is_named(tmp_path: Path) -> None:
    text = "a\tr\tb\na\tr\t" + "x" * 17_000_000
    (tmp_path / "a.tsv").write_text(text)
    with pytest.raises(
        DataError, match=r"has 17,000,004 bytes; a line may have 8,388,608"
    ) as caught:
        read_triples(tmp_path / "a.tsv")
    assert caught.value.line == 2
    assert caught.value.hint == "is a line end missing?"


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_header_with_a_column_twice_is_refused(name: str, tmp_path: Path) -> None:
    sign = "," if name.endswith("csv") else "\t"
    path = tmp_path / name
    path.write_text(sign.join(["Head", "relation", "tail", "Tail"]) + "\na,r,b,c\n")
    with pytest.raises(DataError, match="two columns are called 'tail'") as caught:
        read_triples(path)
    assert caught.value.line == 1
    path.write_text(
        "\n".join(sign.join(row) for row in [("head", "head", "tail"), ("a", "r", "b")])
    )
    assert len(read_triples(path)) == 2, "two words of a header are none"
