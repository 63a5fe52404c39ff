"""What the server accepts: every limit, its default and why it is there.

Limits are settings, checked once when the server starts; nothing edits them
afterwards. `docs/http-api.md` lists each of them, and a test fails when it does not.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from conekg.errors import ConfigError
from conekg.query.parse import DEPTH_LIMIT


@dataclass(frozen=True)
class Limits:
    """The bounds of one server; a request beyond any of them gets an error, never silence."""

    query_chars: int = 2_000
    """Characters of query text, of any name, and of all names of a tree."""
    query_depth: int = 24
    """Nodes on the longest path from the root of a query to a leaf; 128 at most."""
    query_nodes: int = 128
    """Nodes of a query in all."""
    query_branches: int = 16
    """Union-free branches of a query; each is scored against every entity."""
    top_k: int = 1_000
    """Answers of one request."""
    excluded: int = 1_000
    """Entities a request may exclude."""
    completions: int = 100
    """Names one completion or neighbour request returns."""
    dimensions: int = 64
    """Dimensions one picture of the cones shows."""
    body_bytes: int = 65_536
    """Bytes of a request body."""
    head_bytes: int = 65_536
    """Bytes of the address and the headers of a request."""
    concurrent_requests: int = 256
    """API requests being worked on at once, from when their bodies are here; one more is answered
    503 with Retry-After."""
    batch_queries: int = 64
    """Queries scored together; larger batches answer more a second and keep each waiting."""
    gather_s: float = 0.02
    """Seconds a batch waits at most to become as large as the one before it, if that was of
    several and while requests keep coming."""
    scoring_threads: int = 1
    """Batches scored at once, each by its share of the cores; no more than there are cores. One
    large batch by all cores takes less work a question than several small ones."""
    explanations: int = 16
    """Explanations and pictures of cones being worked on at once, waiting included; one more is
    answered 503 with Retry-After."""
    timeout_s: float = 10.0
    """Seconds a request may take, waiting included, once its headers are here; they have as
    long to come. A client that takes nothing of its answers for as long is hung up on."""
    keep_alive_s: int = 30
    """Seconds a connection stays open on which nobody asks, or has asked yet; more than the five
    after which common clients stop using theirs, so that no request crosses the closing."""
    shutdown_s: float = 30.0
    """Seconds a stopping server gives accepted requests to finish."""
    farewell_s: float = 1.0
    """Seconds a stopping server still answers on open connections, each answer the last one there;
    then it closes those on which nobody has asked."""
    retry_after_s: int = 1
    """What an overloaded server tells clients to wait."""

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
                "which is as deep as queries are read",
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
            raise ConfigError(f"limit {setting!r} is not of the form name=value", key=name)
        if name not in types:
            near = tuple(difflib.get_close_matches(name, types, n=3))
            raise ConfigError(
                f"unknown limit {name!r}; there are {', '.join(types)}", key=name, suggestions=near
            )
        number = float if types[name] is float else int
        try:
            changes[name] = number(text)
        except ValueError:
            wanted = "a number" if number is float else "a whole number"
            raise ConfigError(f"limit {name} is {wanted}, not {text!r}", key=name) from None
    return replace(Limits(), **changes)  # type: ignore[arg-type]
