"""Downloads public files: resumable, checked, and moved to their destination when complete.

A download is written to `NAME.part` beside its destination. If the connection breaks, the next
attempt requests only the rest, provided that the file on the server has not changed.
"""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conekg.errors import DownloadError

Progress = Callable[[str, float, float | None], None]
"""Called with a description of the work, the bytes done, and the bytes in total (None: unknown)."""

_CHUNK_BYTES = 1 << 18
_TIMEOUT_S = 60.0
_CONNECTION_ERRORS = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    TimeoutError,
)


def fetch(
    url: str,
    destination: Path,
    *,
    checksum: str | None = None,
    progress: Progress | None = None,
    attempts: int = 4,
    pause_s: float = 1.0,
) -> Path:
    """Download `url` to `destination` and return it; an existing file there is kept unchecked.

    The download is tried up to `attempts` times. Each try continues where the last one broke off,
    after a pause of `pause_s` seconds that doubles each time. `checksum` is `sha256:...` or
    `md5:...`. Raises `DownloadError` where all attempts fail, the server refuses, the checksum
    differs, or the file cannot be written.
    """
    if destination.exists():
        return destination
    part = destination.with_name(destination.name + ".part")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(attempts):
            try:
                _continue(url, part, progress)
                break
            except _CONNECTION_ERRORS as error:
                if isinstance(error, urllib.error.HTTPError):
                    error.close()  # the error object holds the connection open
                if attempt + 1 == attempts or _is_final(error):
                    raise _failed(url, part, error) from error
                time.sleep(pause_s * 2**attempt)
        _check_sum(url, part, checksum)
        part.replace(destination)
    except OSError as error:
        raise DownloadError(f"cannot write {destination}: {error.strerror}") from error
    _validator_file(part).unlink(missing_ok=True)
    return destination


def _continue(url: str, part: Path, progress: Progress | None) -> None:
    """Append what `part` lacks; start over if the file on the server has changed meanwhile."""
    have = part.stat().st_size if part.exists() else 0
    known = _validator_file(part)
    wanted = {}
    if have and known.exists():
        wanted = {"Range": f"bytes={have}-", "If-Range": known.read_text(encoding="ascii")}
    try:
        response = _request(url, wanted)
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        _forget(part)  # `part` is as long as the file on the server, or longer
        response = _request(url, {})
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            _forget(part)
            have = 0
        _remember(part, response)
        _append(response, part, have, progress, url)


def _request(url: str, headers: dict[str, str]) -> Any:
    """The server's response; its body has not been read yet."""
    request = urllib.request.Request(url, headers={"User-Agent": "conekg", **headers})
    return urllib.request.urlopen(request, timeout=_TIMEOUT_S)


def _append(response: Any, part: Path, have: int, progress: Progress | None, url: str) -> None:
    remaining = response.headers.get("Content-Length")
    total = None if remaining is None else have + int(remaining)
    name = url.rpartition("/")[2]
    with part.open("ab") as file:
        while chunk := _read(response):
            file.write(chunk)
            have += len(chunk)
            if progress is not None:
                progress(f"download {name}", have, total)
    if total is not None and have < total:
        raise http.client.IncompleteRead(b"", total - have)


def _read(response: Any) -> bytes:
    """The next bytes of a response; any `OSError` becomes a `URLError`.

    TLS and routing failures are plain `OSError`s, which would be taken for errors of the disk.
    """
    try:
        chunk: bytes = response.read(_CHUNK_BYTES)
    except OSError as error:
        raise urllib.error.URLError(error) from error
    return chunk


def _remember(part: Path, response: Any) -> None:
    """Save the header that identifies this version of the file, so that versions never mix.

    Weak ETags (`W/...`) are not saved: they do not promise that the bytes are the same.
    """
    validator = response.headers.get("ETag") or response.headers.get("Last-Modified")
    if validator and not validator.startswith("W/"):
        _validator_file(part).write_text(validator, encoding="ascii")


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator_file(part).unlink(missing_ok=True)


def _is_final(error: Exception) -> bool:
    """Whether trying again cannot help: the server refused the request (status 4xx)."""
    return isinstance(error, urllib.error.HTTPError) and 400 <= error.code < 500


def _failed(url: str, part: Path, error: Exception) -> DownloadError:
    reason = getattr(error, "reason", None) or error
    if isinstance(error, urllib.error.HTTPError):
        reason = f"the server answered {error.code} {error.reason}"
    have = part.stat().st_size if part.exists() else 0
    kept = f"; {have:,} bytes are kept, so trying again continues from there" if have else ""
    return DownloadError(
        f"cannot download {url}: {reason}{kept}",
        hint="check the connection, or fetch the file by other means and pass --from FOLDER",
    )


def _check_sum(url: str, part: Path, expected: str | None) -> None:
    if expected is None:
        return
    method = expected.partition(":")[0]
    with part.open("rb") as file:
        found = f"{method}:{hashlib.file_digest(file, method).hexdigest()}"
    if found != expected:
        _forget(part)
        raise DownloadError(
            f"{url} has checksum {found}, expected {expected}",
            hint="the file was damaged on the way, or replaced; it has been removed: try again, "
            "or fetch and unpack it by other means and pass --from FOLDER",
        )
