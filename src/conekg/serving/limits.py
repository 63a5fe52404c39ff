"""The limits of a server: what each one bounds, and its default.

Limits are settings that are checked once, when the server starts, and do not change afterwards.
`docs/http-api.md` lists all of them; a test checks this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from conekg.errors import ConfigError, unknown_choice
from conekg.query.parse import DEPTH_LIMIT


@dataclass(frozen=True)
class Limits:
    """The limits of one server; a request beyond any of them gets an error, never no answer."""

    query_chars: int = 2_000
    """Characters of query text, of any name, and of all names of a tree."""
    query_depth: int = 24
    """Nodes on the longest path from the root of a query to a leaf; 128 at most."""
    query_nodes: int = 128
    """Nodes of a query in total."""
    query_branches: int = 16
    """Union-free branches of a query; each is scored against every entity."""
    top_k: int = 1_000
    """Answers of one request."""
    excluded: int = 1_000
    """Entities a request may exclude."""
    completions: int = 100
    """Names that one completion or neighbour request returns."""
    dimensions: int = 64
    """Dimensions that one picture of the cones shows."""
    body_bytes: int = 65_536
    """Bytes of a request body."""
    head_bytes: int = 65_536
    """Bytes of the address and the headers of a request."""
    concurrent_requests: int = 256
    """API requests handled at once, counted from when their bodies have arrived. One more is
    answered 503 with Retry-After."""
    batch_queries: int = 64
    """Queries scored together. Larger batches answer more queries per second, but each query
    waits longer."""
    gather_s: float = 0.02
    """Seconds a batch waits at most to become as large as the previous one. It waits only if that
    one had several queries, and only while requests keep coming."""
    scoring_threads: int = 1
    """Batches scored at once, each on its share of the cores; the number of cores at most. One
    large batch on all cores takes less work per question than several small ones."""
    explanations: int = 16
    """Explanations and pictures of cones handled at once, waiting ones included. One more is
    answered 503 with Retry-After."""
    timeout_s: float = 10.0
    """Seconds a request may take, waiting included, once its headers have arrived. The headers
    have as long to arrive. A client that reads nothing of its answers for as long is
    disconnected."""
    keep_alive_s: int = 30
    """Seconds an idle connection stays open, also before its first request. Common clients stop
    reusing a connection after five idle seconds; with more than that, the server does not close
    one just as a request arrives."""
    shutdown_s: float = 30.0
    """Seconds a stopping server gives accepted requests to finish."""
    farewell_s: float = 1.0
    """Seconds a stopping server still answers on open connections, closing each with its answer.
    After that it closes the idle ones."""
    retry_after_s: int = 1
    """Seconds an overloaded server tells clients to wait."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not 0 < value < math.inf:
                raise ConfigError(
                    f"limit {each.name} is {value}; a limit is a positive number", key=each.name
                )
        if self.query_depth > DEPTH_LIMIT:
            raise ConfigError(
                f"limit query_depth is {self.query_depth}; set it to {DEPTH_LIMIT} or less, "
                "the depth of the deepest query that can be parsed",
                key="query_depth",
            )


def limits_from_settings(settings: Iterable[str]) -> Limits:
    """The defaults with `name=value` settings applied.

    >>> limits_from_settings(["timeout_s=2.5"]).timeout_s
    2.5
    """
    types = {each.name: type(each.default) for each in fields(Limits)}
    changes: dict[str, int | float] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        name = name.strip()
        if not separator:
            raise ConfigError(
                f"limit {setting!r} is not of the form name=value, such as timeout_s=5", key=name
            )
        if name not in types:
            raise unknown_choice("limit", name, types, key=name)
        number = float if types[name] is float else int
        try:
            changes[name] = number(text)
        except ValueError:
            wanted = "a number" if number is float else "a whole number"
            raise ConfigError(f"limit {name} is {wanted}, not {text!r}", key=name) from None
    return replace(Limits(), **changes)  # type: ignore[arg-type]
