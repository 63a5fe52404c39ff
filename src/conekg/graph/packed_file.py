"""The bytes of files, packed or not: gzip, bzip2, Zstandard, and zip archives of one file.

The end of a file's name tells how it is packed. What the bytes say is left to the readers.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from conekg.errors import DataError

STREAMS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Endings of packed files, and what Arrow calls their kind."""

ARCHIVE = ".zip"
PACKED = (*STREAMS, ARCHIVE)
"""What may follow the ending that says a file's format."""

_STARTS = {
    re.compile(rb"\x1f\x8b"): "it is gzipped: let its name end in .gz",
    re.compile(rb"BZh[1-9]1AY&SY"): "it is packed by bzip2: let its name end in .bz2",
    re.compile(rb"\x28\xb5\x2f\xfd"): "it is packed by Zstandard: let its name end in .zst",
    re.compile(rb"PK\x03\x04"): "it is zipped: let its name end in .zip",
}
"""How packed files begin, and what to say of one whose name does not tell."""

_UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,  # a way of packing that `zipfile` has no code for
)
"""What reading and unpacking may raise."""


def packing_of(path: Path) -> str | None:
    """Which of `PACKED` a file's name ends in; `None` where it is not packed."""
    ending = path.suffix.lower()
    return ending if ending in PACKED else None


def bare_suffix(path: Path) -> str:
    """The lower-case ending of a file's name that says its format, that of packing aside.

    Of a zip archive it is that of the one file within, unless that has none.

    >>> bare_suffix(Path("facts.TSV.gz"))
    '.tsv'
    """
    packing = packing_of(path)
    if packing is None:
        return path.suffix.lower()
    within = ""
    if packing == ARCHIVE:
        with _errors_of(path), zipfile.ZipFile(path) as archive:
            within = Path(_only_member(archive, path).filename).suffix
    return (within or Path(path.stem).suffix).lower()


def unmarked_packing(start: bytes) -> str | None:
    """What to say of a file that is packed though its name does not tell, by its first bytes."""
    return next((told for begins, told in _STARTS.items() if begins.match(start)), None)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file; DataError where they cannot be read, now or further on."""
    with _errors_of(path), ExitStack() as stack:
        packing = packing_of(path)
        if packing is None:
            yield stack.enter_context(path.open("rb"))
        elif packing == ".gz":
            yield io.BufferedReader(stack.enter_context(gzip.open(path)))
        elif packing == ARCHIVE:
            archive = stack.enter_context(zipfile.ZipFile(path))
            yield stack.enter_context(archive.open(_only_member(archive, path)))
        else:
            yield stack.enter_context(io.BufferedReader(_arrow_stream(path)))


@contextmanager
def open_stream(path: Path) -> Iterator[pa.NativeFile]:
    """The same for Arrow, which unpacks by itself what it can, and then raises its own errors."""
    if packing_of(path) != ARCHIVE:
        with _arrow_stream(path) as stream:
            yield stream
    else:
        with open_bytes(path) as file:
            yield pa.PythonFile(file, mode="r")


def _arrow_stream(path: Path) -> Any:
    return pa.input_stream(str(path), compression=STREAMS.get(packing_of(path) or ""))


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Errors of reading and unpacking inside become one of ours."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file", path=str(path)) from None
    except _UNREADABLE as error:
        raise DataError(
            f"cannot be read: {error}",
            path=str(path),
            hint=None
            if packing_of(path) is None
            else f"is it complete, and packed as {packing_of(path)} says?",
        ) from error


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The one file in an archive, beside what macOS adds of its own."""
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:3])
        more = ", ..." if len(members) > 3 else ""
        raise DataError(
            f"holds {len(members):,} files, {names}{more}; of an archive one is read"
            if members
            else "holds no file",
            path=str(path),
            hint="unpack it and give the file that is meant, or the folder of train, valid and "
            "test files",
        )
    if members[0].flag_bits & 1:
        raise DataError("is locked by a password", path=str(path), hint="unpack it first")
    return members[0]
