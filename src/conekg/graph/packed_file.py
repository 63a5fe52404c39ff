"""Opens files that may be compressed: gzip, bzip2, Zstandard, and zip archives of one file.

The ending of a file's name says how it is compressed. Reading the content is left to the callers.
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
"""Endings of compressed files, with Arrow's name for each method."""

ARCHIVE = ".zip"
PACKED = (*STREAMS, ARCHIVE)
"""Endings that may follow the one that says a file's format."""

_REMEDY_BY_START = {
    re.compile(rb"\x1f\x8b"): "it is gzipped: let its name end in .gz",
    re.compile(rb"BZh[1-9]1AY&SY"): "it is packed by bzip2: let its name end in .bz2",
    re.compile(rb"\x28\xb5\x2f\xfd"): "it is packed by Zstandard: let its name end in .zst",
    re.compile(rb"PK\x03\x04"): "it is zipped: let its name end in .zip",
}
"""First bytes of compressed files, with what to tell the user if the file's name lacks the
ending."""

_UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,  # a compression method that `zipfile` does not support
)
"""Exceptions that reading and decompressing may raise."""


def packing_of(path: Path) -> str | None:
    """The ending of `PACKED` that a file's name has, in lower case; `None` if it has none."""
    ending = path.suffix.lower()
    return ending if ending in PACKED else None


def bare_suffix(path: Path) -> str:
    """The ending of a file's name that says its format, in lower case, without that of packing.

    For a zip archive this is the ending of the one file in it, if that has one.

    >>> bare_suffix(Path("facts.TSV.gz"))
    '.tsv'
    """
    packing = packing_of(path)
    if packing is None:
        return path.suffix.lower()
    member_suffix = ""
    if packing == ARCHIVE:
        with _errors_of(path), zipfile.ZipFile(path) as archive:
            member_suffix = Path(_only_member(archive, path).filename).suffix
    return (member_suffix or Path(path.stem).suffix).lower()


def unmarked_packing(start: bytes) -> str | None:
    """What to tell the user if a file's first bytes are those of a compressed file; else `None`.

    For files whose names do not have the ending of that compression.
    """
    return next((remedy for begin, remedy in _REMEDY_BY_START.items() if begin.match(start)), None)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file.

    Raises `DataError` where opening fails, or reading fails within the block.
    """
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
    """The decompressed bytes of a file as an Arrow stream.

    Arrow decompresses everything but zip archives itself, and then raises its own errors.
    """
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
    """Inside the block, errors of reading and decompressing `path` become `DataError`."""
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
    """The one file in an archive; folders and the files that macOS adds are ignored."""
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:3])
        more = ", ..." if len(members) > 3 else ""
        raise DataError(
            f"holds {len(members):,} files, {names}{more}; an archive must hold just one"
            if members
            else "holds no file",
            path=str(path),
            hint="unpack it and give the file that is meant, or the folder of train, valid and "
            "test files",
        )
    if members[0].flag_bits & 1:
        raise DataError("is locked by a password", path=str(path), hint="unpack it first")
    return members[0]
