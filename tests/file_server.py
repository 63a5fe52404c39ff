"""A small HTTP server for tests of downloads: ranges, versions, and connections that break."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """Serves one file at every address, as its fields say; they may be changed while it runs."""

    content: bytes
    version: str | None = '"1"'
    """The ETag; if None, an interrupted download cannot be continued."""
    cut_after: list[int] = field(default_factory=list)
    """After how many bytes the replies to the next requests break off, one entry per request."""
    statuses: list[int] = field(default_factory=list)
    """Error codes with which the next requests are answered, one entry per request."""
    opened: threading.Event | None = None
    """If given, requests are answered when it is set, or after five seconds."""
    ranges: list[str | None] = field(default_factory=list)
    """The Range header of every request so far."""
    url: str = ""


@contextmanager
def serve(content: bytes) -> Iterator[FileServer]:
    """Run a server on a free local port during the `with` block."""
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
