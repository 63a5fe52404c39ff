"""A client that asks on and on over one connection, for tests of servers that stop."""

from __future__ import annotations

from threading import Event

import httpx


def ask_until_refused(client: httpx.Client, path: str, answered: Event) -> int:
    """Ask again and again until the server is gone; how many answers there were.

    `answered` is set by the first.

    An AssertionError if a connection was torn: if a request got no answer on a connection that
    had carried one before and was not said to be closed. A connection that was never answered
    on may end in any way: the system had taken it, perhaps not the server.
    """
    answers = 0
    is_fresh = True
    while True:
        try:
            response = client.get(path)
        except httpx.HTTPError as error:
            if is_fresh or isinstance(error, httpx.ConnectError):
                return answers
            raise AssertionError(f"torn after {answers} answers") from error
        assert response.status_code == 200
        answers += 1
        answered.set()
        is_fresh = response.headers.get("connection") == "close"
