from __future__ import annotations

import hashlib
import http.client
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from conekg.errors import DownloadError
from conekg.graph.download import fetch
from file_server import FileServer, serve

CONTENT = bytes(range(256)) * 4000
"""About a megabyte, several chunks."""


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serve(CONTENT) as running:
        yield running


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_arrives_whole_with_progress(server: FileServer, tmp_path: Path) -> None:
    seen: list[tuple[str, float, float | None]] = []
    path = fetch(
        server.url,
        tmp_path / "deep" / "data.zip",
        checksum=f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
        progress=lambda *told: seen.append(told),
    )
    assert path.read_bytes() == CONTENT
    assert leftovers(path.parent) == {"data.zip"}
    assert len(seen) > 1
    assert seen[-1] == ("download data.zip", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_an_existing_file_is_not_downloaded_again(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "data.zip").write_bytes(b"mine")
    assert fetch(server.url, tmp_path / "data.zip").read_bytes() == b"mine"
    assert server.ranges == []


def test_a_broken_download_continues_where_it_broke(server: FileServer, tmp_path: Path) -> None:
    server.cut_after = [300_000, 400_000]
    path = fetch(server.url, tmp_path / "data.zip", pause_s=0)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=700000-"]


def test_a_failed_download_continues_in_the_next_run(server: FileServer, tmp_path: Path) -> None:
    server.cut_after = [300_000]
    with pytest.raises(DownloadError, match="300,000 bytes are kept"):
        fetch(server.url, tmp_path / "data.zip", attempts=1)
    assert not (tmp_path / "data.zip").exists()
    assert fetch(server.url, tmp_path / "data.zip").read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=300000-"


def test_parts_of_two_versions_are_never_mixed(server: FileServer, tmp_path: Path) -> None:
    server.cut_after = [300_000]
    with pytest.raises(DownloadError):
        fetch(server.url, tmp_path / "data.zip", attempts=1)
    server.content, server.version = CONTENT[::-1], '"2"'
    assert fetch(server.url, tmp_path / "data.zip").read_bytes() == CONTENT[::-1]


def test_without_a_version_a_broken_download_starts_over(
    server: FileServer, tmp_path: Path
) -> None:
    server.version, server.cut_after = None, [300_000]
    assert fetch(server.url, tmp_path / "data.zip", pause_s=0).read_bytes() == CONTENT
    assert server.ranges == [None, None]


def test_a_part_longer_than_the_file_starts_over(server: FileServer, tmp_path: Path) -> None:
    server.cut_after = [300_000]
    with pytest.raises(DownloadError):
        fetch(server.url, tmp_path / "data.zip", attempts=1)
    server.content = b"short"
    assert fetch(server.url, tmp_path / "data.zip").read_bytes() == b"short"


def test_a_server_error_is_retried_and_a_refusal_is_not(server: FileServer, tmp_path: Path) -> None:
    server.statuses = [503, 503]
    assert fetch(server.url, tmp_path / "data.zip", pause_s=0).read_bytes() == CONTENT
    server.statuses = [404, 404]
    with pytest.raises(DownloadError, match="the server answered 404") as caught:
        fetch(server.url, tmp_path / "other.zip", pause_s=0)
    assert server.statuses == [404]
    assert "--from FOLDER" in str(caught.value)


def test_an_unreachable_server_is_a_download_error(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="cannot download"):
        fetch("http://127.0.0.1:9/data.zip", tmp_path / "data.zip", attempts=2, pause_s=0)


@pytest.mark.parametrize(
    "error",
    [ssl.SSLError(1, "decryption failed or bad record mac"), OSError(113, "No route to host")],
)
def test_any_connection_error_is_retried(
    error: OSError, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = http.client.HTTPResponse.read
    sizes: list[int | None] = []

    def fail_at_first(response: http.client.HTTPResponse, size: int | None = None) -> bytes:
        sizes.append(size)
        if len(sizes) == 2:
            raise error
        return whole(response, size)

    monkeypatch.setattr(http.client.HTTPResponse, "read", fail_at_first)
    path = fetch(server.url, tmp_path / "data.zip", pause_s=0)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={sizes[0]}-"]


@pytest.mark.parametrize("checksum", ["sha256:" + "0" * 64, "md5:" + "0" * 32])
def test_a_wrong_checksum_is_refused_and_removed(
    checksum: str, server: FileServer, tmp_path: Path
) -> None:
    with pytest.raises(DownloadError, match=f"expected {checksum}"):
        fetch(server.url, tmp_path / "data.zip", checksum=checksum)
    assert leftovers(tmp_path) == set()


def test_an_unwritable_destination_is_a_download_error(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match="cannot write"):
        fetch(server.url, tmp_path / "file" / "data.zip")
