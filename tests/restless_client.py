"""A client that sends requests one after the other, for tests of servers that stop."""

from __future__ import annotations

from threading import Event

import httpx


def ask_until_refused(client: httpx.Client, answered: Event) -> int:
    """Send requests until the server is gone, and return the number of answers.

    The first answer sets `answered`. Raises AssertionError if a request got no answer although the
    same connection had carried one before and the server had not announced that it would close it.
    A connection without any answer may end in any way: the operating system may have accepted it,
    but not yet the server.
    """
    answers = 0
    is_fresh = True
    while True:
        try:
            response = client.get("/api/relations")
        except httpx.HTTPError as error:
            if is_fresh or isinstance(error, httpx.ConnectError):
                return answers
            raise AssertionError(f"connection broken after {answers} answers") from error
        assert response.status_code == 200
        answers += 1
        answered.set()
        is_fresh = response.headers.get("connection") == "close"
