"""A small HTTP server for tests of downloads: ranges, versions, and connections that break."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """Serves one file at every address; the fields say how, and may change while it runs."""

    content: bytes
    version: str | None = '"1"'
    """The ETag; without one, parts cannot be continued."""
    cut_after: list[int] = field(default_factory=list)
    """The next requests break off after so many bytes, one entry a request."""
    statuses: list[int] = field(default_factory=list)
    """The next requests are answered by these codes instead, one entry a request."""
    opened: threading.Event | None = None
    """Where there is one, requests are answered once it is set, or after some seconds."""
    ranges: list[str | None] = field(default_factory=list)
    """The Range header of every request so far."""
    url: str = ""


@contextmanager
def serve(content: bytes) -> Iterator[FileServer]:
    """A server on a free local port for as long as the block lasts."""
    state = FileServer(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.ranges.append(wanted)
            if state.opened is not None:
                state.opened.wait(timeout=5)
            if state.statuses:
                self.send_error(state.statuses.pop(0))
                return
            start = 0
            if wanted and self.headers.get("If-Range") == state.version:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
                if start >= len(state.content):
                    self.send_error(416)
                    return
            body = state.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            if state.version:
                self.send_header("ETag", state.version)
            self.end_headers()
            self.wfile.write(body[: state.cut_after.pop(0)] if state.cut_after else body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/files/data.zip"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
