from __future__ import annotations

import bz2
import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from conekg.errors import DataError
from conekg.graph.packed_file import bare_suffix, open_bytes, open_stream

CONTENT = b"".join(b"a%d\tr\tb\r\n" % number for number in range(20_000))


def zipped(content: bytes, members: tuple[str, ...] = ("facts.TSV",)) -> bytes:
    sink = pa.BufferOutputStream()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, content)
    return sink.getvalue().to_pybytes()


def with_zstandard(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "a.tsv": bytes,
    "a.tsv.gz": gzip.compress,
    "a.tsv.bz2": bz2.compress,
    "a.tsv.zst": with_zstandard,
    "a.tsv.ZIP": zipped,
    "a.zip": zipped,
}


@pytest.mark.parametrize("name", PACKERS)
def test_packed_files_are_read_as_they_were_written(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(PACKERS[name](CONTENT))
    assert bare_suffix(path) == ".tsv"
    with open_bytes(path) as file:
        assert list(file) == CONTENT.splitlines(keepends=True)
    with open_stream(path) as stream:
        assert stream.read() == CONTENT


@pytest.mark.parametrize("name", [name for name in PACKERS if name != "a.tsv"])
@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda _: b"a\n"])
def test_damaged_and_unpacked_files_are_data_errors(
    name: str, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(damage(PACKERS[name](CONTENT)))
    with pytest.raises(DataError, match="cannot be read") as caught, open_bytes(path) as file:
        file.read()
    assert caught.value.path == str(path)
    assert "is it complete, and packed as" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "method",
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA],
)
def test_damaged_archives_are_data_errors(method: int, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.tsv", "".join(f"{n}\tr\t{n * n}\n" for n in range(3_000)))
    with open_bytes(path) as file:
        assert len(file.readlines()) == 3_000
    content = bytearray(path.read_bytes())
    middle = slice(len(content) // 2, len(content) // 2 + 20)
    content[middle] = bytes(sign ^ 0x5A for sign in content[middle])
    path.write_bytes(content)
    for opened in (open_bytes, open_stream):
        with pytest.raises(DataError, match="cannot be read"), opened(path) as file:
            file.read()


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.tsv", ".tsv"), ("a.TSV.GZ", ".tsv"), ("a.b.csv", ".csv"), ("a.gz", ""), ("a", ""),
     ("a.nt.bz2", ".nt"), ("a.csv.zst", ".csv"), ("a.tar.xz", ".xz")],
)  # fmt: skip
def test_the_ending_of_the_name_gives_the_format(name: str, suffix: str) -> None:
    assert bare_suffix(Path(name)) == suffix


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ((), "holds no file"),
        (
            ("train.tsv", "valid.tsv"),
            r"holds 2 files, train\.tsv, valid\.tsv; an archive must hold just one",
        ),
        (("a", "b", "c", "d"), r"holds 4 files, a, b, c, \.\.\.; an archive"),
    ],
)
def test_an_archive_has_one_file(members: tuple[str, ...], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.zip"
    path.write_bytes(zipped(CONTENT, members))
    for read in (bare_suffix, lambda path: open_bytes(path).__enter__()):
        with pytest.raises(DataError, match=message) as caught:
            read(path)
        assert "unpack it" in (caught.value.hint or "")


def test_folders_of_an_archive_and_what_macos_adds_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(CONTENT, ("kg/", "kg/a.csv", "__MACOSX/kg/._a.csv")))
    assert bare_suffix(path) == ".csv"
    with open_bytes(path) as file:
        assert file.read() == CONTENT


def test_the_archives_name_gives_the_format_if_its_member_has_no_ending(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zip"
    path.write_bytes(zipped(CONTENT, ("facts",)))
    assert bare_suffix(path) == ".csv"


def test_an_archive_with_a_password_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    content = bytearray(zipped(b"a\tr\tb\n"))
    # Set the bit for "encrypted" in the member's header and in the directory at the end.
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="is locked by a password"):
        bare_suffix(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for name in PACKERS:
        with pytest.raises(DataError, match="no such file"), open_bytes(tmp_path / name):
            pass
