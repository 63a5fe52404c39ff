"""Counts and times of one server, in the text format of Prometheus.

All updates come from the event loop's thread, so that no locks are needed. The processes of one
server exchange their metrics: `state` gives them as plain values, and `add` adds them up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BATCH_QUERIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Histogram:
    """A Prometheus histogram: the number of observations in each bucket, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the counts and the sum of another histogram of the same bounds."""
        self.counts = [own + other for own, other in zip(self.counts, counts, strict=True)]
        self.total += total

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """The histogram's samples; `labels` is `key="value"` pairs or empty."""
        separator = "," if labels else ""
        running = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            running += count
            yield f'{name}_bucket{{{labels}{separator}le="{bound}"}} {running}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {self.total:.6f}"
        yield f"{name}_count{braces} {running}"


class Metrics:
    """All metrics of the route `/metrics`."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._seconds: dict[str, Histogram] = {}
        self._batches = Histogram(BATCH_QUERIES)
        self._scoring_s = 0.0

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request; `route` is the path pattern, never a raw path."""
        self._requests[method, route, status] += 1
        self._seconds.setdefault(route, Histogram(REQUEST_SECONDS)).observe(seconds)

    def observe_batch(self, size: int, seconds: float) -> None:
        """Count one scored batch."""
        self._batches.observe(size)
        self._scoring_s += seconds

    def state(self) -> dict[str, Any]:
        """All counts, as plain values that JSON can hold."""
        return {
            "in_flight": self.in_flight,
            "requests": [[*key, count] for key, count in self._requests.items()],
            "seconds": {route: [h.counts, h.total] for route, h in self._seconds.items()},
            "batches": [self._batches.counts, self._batches.total],
            "scoring_s": self._scoring_s,
        }

    def add(self, state: Mapping[str, Any]) -> None:
        """Add the counts of another process, given as its `state`."""
        self.in_flight += state["in_flight"]
        for method, route, status, count in state["requests"]:
            self._requests[method, route, status] += count
        for route, (counts, total) in state["seconds"].items():
            self._seconds.setdefault(route, Histogram(REQUEST_SECONDS)).add(counts, total)
        self._batches.add(*state["batches"])
        self._scoring_s += state["scoring_s"]

    def render(self) -> str:
        """All samples in Prometheus' text format, version 0.0.4."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# HELP conekg_requests_total Requests answered, by method, route and status."
        yield "# TYPE conekg_requests_total counter"
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"conekg_requests_total{{{labels}}} {count}"
        yield "# HELP conekg_request_seconds Time from a request's arrival to its answer."
        yield "# TYPE conekg_request_seconds histogram"
        for route, seconds in sorted(self._seconds.items()):
            yield from seconds.lines("conekg_request_seconds", f'route="{route}"')
        yield "# HELP conekg_requests_in_flight API requests being worked on."
        yield "# TYPE conekg_requests_in_flight gauge"
        yield f"conekg_requests_in_flight {self.in_flight}"
        yield "# HELP conekg_batch_queries Questions scored together."
        yield "# TYPE conekg_batch_queries histogram"
        yield from self._batches.lines("conekg_batch_queries")
        yield "# HELP conekg_scoring_seconds_total Time spent scoring questions."
        yield "# TYPE conekg_scoring_seconds_total counter"
        yield f"conekg_scoring_seconds_total {self._scoring_s:.6f}"
