"""Metrics: cumulative buckets, and text that Prometheus' own grammar accepts."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from conekg.serving.metrics import Histogram, Metrics

SAMPLE = re.compile(r'^[a-z_]+(\{([a-z]+="[^"\\\n]*",?)*\})? -?[0-9.e+-]+$')


@given(st.lists(st.floats(0, 20)))
def test_buckets_count_what_is_not_larger(values):
    histogram = Histogram((1.0, 5.0))
    for value in values:
        histogram.observe(value)
    lines = list(histogram.lines("x"))
    at_most = [sum(v <= bound for v in values) for bound in (1.0, 5.0)]
    assert lines[0] == f'x_bucket{{le="1.0"}} {at_most[0]}'
    assert lines[1] == f'x_bucket{{le="5.0"}} {at_most[1]}'
    assert lines[2] == f'x_bucket{{le="+Inf"}} {len(values)}'
    assert lines[3] == f"x_sum {sum(values):.6f}"
    assert lines[4] == f"x_count {len(values)}"


def test_requests_and_batches_are_counted():
    metrics = Metrics()
    metrics.observe_request("POST", "/api/ask", 200, 0.004)
    metrics.observe_request("POST", "/api/ask", 200, 0.3)
    metrics.observe_request("POST", "/api/ask", 503, 0.001)
    metrics.observe_batch(12, 0.25)
    metrics.in_flight = 3
    text = metrics.render()
    assert 'conekg_requests_total{method="POST",route="/api/ask",status="200"} 2' in text
    assert 'conekg_requests_total{method="POST",route="/api/ask",status="503"} 1' in text
    assert 'conekg_request_seconds_bucket{route="/api/ask",le="0.005"} 2' in text
    assert 'conekg_request_seconds_count{route="/api/ask"} 3' in text
    assert 'conekg_batch_queries_bucket{le="16"} 1' in text
    assert 'conekg_batch_queries_bucket{le="8"} 0' in text
    assert "conekg_scoring_seconds_total 0.250000" in text
    assert "conekg_requests_in_flight 3" in text


def test_every_line_is_a_comment_or_a_sample_of_a_declared_metric():
    metrics = Metrics()
    metrics.observe_request("GET", "/health", 200, 0.1)
    declared: set[str] = set()
    text = metrics.render()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            declared.add(line.split()[2])
        elif not line.startswith("# HELP "):
            assert SAMPLE.match(line), line
            assert any(line.startswith(name) for name in declared), line
