"""A server under load: overload, slow work, bugs, and a shutdown that loses no request."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from extras import need

need("fastapi", "uvicorn", "httpx")

import httpx
import pytest

from conekg.answering.engine import Answerer
from conekg.errors import ConfigError
from conekg.query.parse import parse_query
from conekg.serving import service
from conekg.serving.http import create_app
from conekg.serving.limits import Limits
from conekg.serving.server import make_server, open_sockets
from conekg.serving.worker import Settings, load_app
from restless_client import ask_until_refused
from untrained_run import untrained_run


class HeldAnswerer:
    """A real answerer whose scoring waits for the event `go`, or fails for one question."""

    def __init__(self, answerer):
        self._answerer = answerer
        self.go = threading.Event()
        self.started = threading.Event()
        self.batches: list[int] = []
        self.poison: str | None = None
        self.explain = threading.Event()
        self.explain.set()

    @property
    def __class__(self):
        return Answerer  # as which it is taken

    def __getattr__(self, name):
        return getattr(self._answerer, name)

    def ask_in_parts(self, questions, most):
        self.started.set()
        assert self.go.wait(60)
        self.batches.append(len(questions))
        if any(question.text == self.poison for question in questions):
            raise ZeroDivisionError("a bug of ours in /home/me")
        return self._answerer.ask_in_parts(questions, most)

    def judge(self, question, entity_ids):
        assert self.explain.wait(60)
        return self._answerer.judge(question, entity_ids)


@pytest.fixture
def held(answerer):
    wrapped = HeldAnswerer(answerer)
    yield wrapped
    wrapped.go.set()
    wrapped.explain.set()


def test_a_raised_limit_of_branches_reaches_the_answers(tmp_path, film_graph):
    limits = Limits(query_branches=128)
    run = untrained_run(tmp_path / "run", film_graph)
    app, _ = load_app(Settings(run, "best", "cpu", limits, None, False, None))
    text = " & ".join(
        f"(a1 | {name}).won_by" for name in ("f1", "f2", "f3", "d1", "d2", "c1", "c2")
    )

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://here") as client,
        ):
            return await client.post("/api/ask", json={"query": text, "top_k": 3})

    response = asyncio.run(ask())
    assert response.status_code == 200, response.text
    assert len(response.json()["answers"]) == 3


@pytest.fixture
def ask_many():
    """Sends questions to a server at once, each on a connection and a thread of its own."""
    with httpx.Client(timeout=30, verify=False) as client, ThreadPoolExecutor(16) as pool:

        def send(url: str, texts: list[str]):
            address = f"{url}/api/ask"
            return [pool.submit(client.post, address, json={"query": text}) for text in texts]

        yield send


def wait_until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def in_flight(url: str) -> int:
    lines = httpx.get(f"{url}/metrics", timeout=30, verify=False).text.splitlines()
    return int(next(x for x in lines if x.startswith("conekg_requests_in_flight")).split()[1])


def test_an_overloaded_server_answers_503_and_finishes_accepted_requests(
    start_server, held, ask_many
):
    with start_server(held, Limits(concurrent_requests=5, retry_after_s=3)) as served:
        accepted = ask_many(served.url, ["France.borders"] * 5)
        wait_until(lambda: in_flight(served.url) == 5)
        refused = served.post("/api/ask", query="France.borders")
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "3"
        assert refused.json()["error"]["kind"] == "server_busy"
        assert served.get("/health").status_code == 200, "an operator must see an overload"
        counted = 'conekg_requests_total{method="POST",route="/api/ask",status="503"} 1'
        assert counted in served.get("/metrics").text
        held.go.set()
        assert [each.result().status_code for each in accepted] == [200] * 5
        assert served.post("/api/ask", query="France.borders").status_code == 200
        assert in_flight(served.url) == 0


def test_waiting_questions_are_scored_together(start_server, held, ask_many):
    with start_server(held, Limits(scoring_threads=1)) as served:
        first = ask_many(served.url, ["France.borders"])
        assert held.started.wait(30)
        texts = ["Germany.borders", "Italy.borders.capital", "Spain.speaks & !English"] * 3
        others = ask_many(served.url, texts)
        wait_until(lambda: in_flight(served.url) == 10)
        held.go.set()
        answered = [each.result().json()["query"] for each in [*first, *others]]
    assert answered == ["France.borders", *texts]
    assert held.batches == [1, 9]


def test_questions_do_not_wait_for_explanations(start_server, held):
    held.go.set()
    asked = {"query": "France.borders", "answer": "Spain"}
    with (
        start_server(held, Limits(explanations=2, retry_after_s=7)) as served,
        ThreadPoolExecutor(2) as pool,
    ):
        held.explain.clear()
        waiting = [pool.submit(served.post, "/api/explain", **asked) for _ in range(2)]
        wait_until(lambda: in_flight(served.url) == 2)
        for _ in range(3):
            assert served.post("/api/ask", query="France.borders").status_code == 200
        refused = served.post("/api/explain", **asked)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "7"
        assert refused.json()["error"]["kind"] == "server_busy"
        held.explain.set()
        assert [future.result().status_code for future in waiting] == [200, 200]
        assert served.post("/api/explain", **asked).status_code == 200


def test_one_failing_question_does_not_fail_its_batch(start_server, held, ask_many, caplog):
    held.poison = "Italy.borders"
    with start_server(held) as served:
        first = ask_many(served.url, ["France.borders"])
        assert held.started.wait(30)
        others = ask_many(served.url, ["Spain.borders", "Italy.borders", "Germany.borders"])
        wait_until(lambda: in_flight(served.url) == 4)
        held.go.set()
        responses = [each.result() for each in [*first, *others]]
    assert [response.status_code for response in responses] == [200, 200, 500, 200]
    assert responses[2].json()["error"]["kind"] == "internal"
    assert "/home" not in responses[2].text
    assert "ZeroDivisionError" in caplog.text, "the operator must find the bug in the log"


def test_a_client_that_leaves_with_several_requests_open_is_no_failure(start_server, held, caplog):
    head = "{} HTTP/1.1\r\nHost: localhost\r\n"
    body = '{"query": "France.borders"}'
    ask = head.format("POST /api/ask") + "Content-Type: application/json\r\n"
    ask += f"Content-Length: {len(body)}\r\n\r\n{body}"
    other = head.format("GET /health") + "\r\n"
    with start_server(held) as served:
        served.get("/health")  # the client's own connection
        address = served.url.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1]))) as client:
            client.sendall((other + ask + other).encode())
            wait_until(lambda: in_flight(served.url) == 1)
        wait_until(lambda: len(served.server.server_state.connections) == 1)
        held.go.set()
        wait_until(lambda: in_flight(served.url) == 0)
        counts = served.get("/metrics").text
    assert 'route="/api/ask",status="200"} 1' in counts
    assert 'status="500"' not in counts
    assert caplog.text == ""


def test_slow_scoring_ends_at_the_time_limit(start_server, held):
    with start_server(held, Limits(timeout_s=0.3)) as served:
        response = served.post("/api/ask", query="France.borders")
        assert response.status_code == 504
        assert response.json()["error"]["kind"] == "request_timeout"
        held.go.set()
        wait_until(lambda: served.post("/api/ask", query="France.borders").status_code == 200)


@pytest.fixture
def slow_reading(monkeypatch):
    """Make parsing of queries with braces wait for an event; also the texts it began with."""
    go, begun = threading.Event(), []

    def read(text, *arguments, **options):
        if "{" in text:
            begun.append(text)
            assert go.wait(60)
        return parse_query(text, *arguments, **options)

    monkeypatch.setattr(service, "parse_query", read)
    yield go, begun
    go.set()


@pytest.mark.parametrize("path", ["ask", "explain", "cones", "parse"])
def test_slow_parsing_ends_at_the_time_limit_and_delays_no_other_request(
    start_server, answerer, slow_reading, path
):
    go, begun = slow_reading
    body = {"answer": "Spain"} if path in ("explain", "cones") else {}
    with start_server(answerer, Limits(timeout_s=3)) as served, ThreadPoolExecutor(3) as pool:
        texts = [f"SELECT ?x {{}} # {number}" for number in range(3)]
        waiting = [pool.submit(served.post, f"/api/{path}", query=text, **body) for text in texts]
        wait_until(lambda: in_flight(served.url) == 3)
        assert served.get("/health").status_code == 200
        assert served.post("/api/ask", query="France.borders").status_code == 200
        assert served.get("/api/entities", prefix="Fr").status_code == 200
        assert not any(each.done() for each in waiting)
        responses = [each.result() for each in waiting]
        assert [response.status_code for response in responses] == [504] * 3
        assert responses[0].json()["error"]["kind"] == "request_timeout"
        assert all(response.elapsed.total_seconds() < 6 for response in responses)
        go.set()
        wait_until(lambda: served.post("/api/parse", query=texts[0]).status_code == 400)
    assert len(set(begun)) <= 2, "what had been given up before its turn was read"


def test_the_search_for_similar_names_delays_no_other_request(start_server, answerer, monkeypatch):
    go = threading.Event()
    entities = type(answerer.graph.vocabulary.entities)
    suggest = entities.suggest
    monkeypatch.setattr(entities, "suggest", lambda *asked: go.wait(60) and suggest(*asked))
    with start_server(answerer, Limits(timeout_s=1.5)) as served:
        requests = (
            lambda: served.post("/api/ask", query="Frnce.borders"),
            lambda: served.post("/api/ask", query="France", exclude=["Frnce"]),
            lambda: served.get("/api/graph/neighbors", entity="Frnce"),
        )
        for request in requests:
            assert request().status_code == 504
            assert served.post("/api/ask", query="France.borders").status_code == 200
        go.set()
        for request in requests:
            response = request()
            assert response.status_code == 404
            assert "France" in response.json()["error"]["suggestions"]


def test_parsing_and_scoring_share_the_time_limit_of_a_request(start_server, held, slow_reading):
    go, _ = slow_reading
    text = "SELECT ?x { <urn:conekg:France> <urn:conekg:borders> ?x }"
    with start_server(held, Limits(timeout_s=4)) as served, ThreadPoolExecutor(1) as pool:
        go.set()
        served.post("/api/parse", query=text)  # what reads SPARQL is imported the first time
        go.clear()
        asked = pool.submit(served.post, "/api/ask", query=text)
        wait_until(lambda: in_flight(served.url) == 1)
        time.sleep(2.5)
        go.set()
        response = asked.result()
        held.go.set()
    assert response.status_code == 504
    assert held.started.is_set()
    assert response.elapsed.total_seconds() < 6.3, "each had 4 s of its own"


def test_a_body_that_never_ends_is_refused_at_the_time_limit(start_server, answerer):
    with start_server(answerer, Limits(timeout_s=0.3)) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(b"POST /api/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
            told = b""
            while part := raw.recv(65_536):  # until the server hangs up
                told += part
    assert told.startswith(b"HTTP/1.1 408")
    assert told.count(b"connection: close") == 1
    assert b'"kind":"slow_request"' in told


def test_a_stopping_server_answers_what_it_has_accepted(start_server, held, ask_many):
    with start_server(held, Limits(batch_queries=3)) as served:
        accepted = ask_many(served.url, ["France.borders"] * 10)
        wait_until(lambda: in_flight(served.url) == 10)
        served.client.close()
        served.server.should_exit = True
        time.sleep(0.3)
        assert not any(each.done() for each in accepted)
        held.go.set()
        assert [each.result().status_code for each in accepted] == [200] * 10
        served.thread.join(10)
        assert not served.thread.is_alive()
    assert not is_up(served.url)


SCRIPT = """
import signal, sys, threading
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where these tests are run by nohup
from conekg.answering.engine import Answerer
from conekg.graph.geography import load_geography
from conekg.model.catalog import build_model
from conekg.serving.http import create_app
from conekg.serving.limits import Limits
from conekg.serving.server import make_server, open_sockets
graph = load_geography()
model = build_model("cone", graph.num_entities, graph.num_relations, {"dim": 4, "hidden": 8})
answerer = Answerer(graph, model)
quick = answerer.ask_in_parts
go = threading.Event()
go.set()
def held(questions, most):
    assert go.wait(60)
    return quick(questions, most)
answerer.ask_in_parts = held
(listening,) = open_sockets("127.0.0.1", 0, 1)
def tell():
    go.clear()
    threading.Thread(target=lambda: (sys.stdin.readline(), go.set()), daemon=True).start()
    print(listening.getsockname()[1], flush=True)
limits = Limits(batch_queries=4)
app = create_app(answerer, limits=limits)
make_server(app, limits, on_ready=tell).run(sockets=[listening])
"""


def test_a_stopping_server_loses_no_request_of_busy_clients(start_server, answerer):
    """A client that keeps asking on one connection gets `Connection: close`, then is refused."""

    def ask(url: str, answered: threading.Event) -> int:
        with httpx.Client(base_url=url, timeout=30, verify=False) as client:
            return ask_until_refused(client, answered)

    answered = [threading.Event() for _ in range(8)]
    limits = Limits(farewell_s=60)  # a slow machine may keep a client from asking for long
    with start_server(answerer, limits) as served, ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(ask, served.url, each) for each in answered]
        are_busy = [each.wait(60) for each in answered]
        served.stop()
        assert all(are_busy)
        assert all(client.result() for client in clients)


def test_a_stopping_server_answers_once_more_on_an_open_connection(start_server, answerer):
    with start_server(answerer, Limits(farewell_s=60)) as served:
        assert "connection" not in served.get("/api/relations").headers
        served.server.should_exit = True
        wait_until(lambda: not is_up(served.url))
        last = served.get("/api/relations")
        assert last.status_code == 200
        assert last.headers["connection"] == "close"
        served.thread.join(30)
        assert not served.thread.is_alive()


def test_an_idle_connection_does_not_keep_a_server_from_stopping(start_server, answerer):
    with start_server(answerer, Limits(farewell_s=0.2)) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as silent:
            wait_until(lambda: served.server.server_state.connections)  # the server has taken it
            served.stop()
            assert silent.recv(1) == b""


def test_an_idle_connection_is_closed_at_its_time_limit(start_server, answerer):
    with start_server(answerer, Limits(keep_alive_s=1)) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as used:
            used.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            told = b""
            while part := used.recv(1000):
                told += part
            assert told.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_server_after_its_accepted_requests(ask_many, number):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        accepted = ask_many(url, ["France.borders"] * 8)
        wait_until(lambda: in_flight(url) == 8)
        process.send_signal(number)
        wait_until(lambda: not is_up(url))
        assert not any(each.done() for each in accepted)
        print("go", file=process.stdin, flush=True)
        assert [each.result().status_code for each in accepted] == [200] * 8
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


STUCK_SCRIPT = """
import signal, threading
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where these tests are run by nohup
from conekg.answering.engine import Answerer
from conekg.graph.geography import load_geography
from conekg.model.catalog import build_model
from conekg.serving.http import create_app
from conekg.serving.limits import Limits
from conekg.serving.server import make_server, open_sockets
graph = load_geography()
model = build_model("cone", graph.num_entities, graph.num_relations, {"dim": 4, "hidden": 8})
answerer = Answerer(graph, model)
def compile_for_minutes(*question, **options):
    print("compiling", flush=True)
    threading.Event().wait(600)
answerer.ask_batch = compile_for_minutes
app = create_app(answerer)
make_server(app, Limits()).run(sockets=open_sockets("127.0.0.1", 0, 1))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_loading_server_at_once(number):
    """The first answer may compile for a minute, which nothing but the end of the process stops."""
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK_SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiling\n"
        process.send_signal(number)
        assert process.wait(30) == -number
        assert process.stderr is not None
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def is_up(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            return True
    except ConnectionRefusedError:
        return False


def test_a_taken_port_is_a_clear_error():
    with open_sockets("127.0.0.1", 0, 1)[0] as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}"):
            open_sockets("127.0.0.1", port, 1)
    with pytest.raises(ConfigError, match=r"cannot listen on no\.such\.host"):
        open_sockets("no.such.host.invalid", 0, 1)


@pytest.mark.parametrize("loop", ["asyncio", "auto"])
def test_a_port_that_another_server_took_while_this_one_loaded_is_a_clear_error(answerer, loop):
    """Two servers can bind one port as long as neither listens; "auto" is uvloop, if installed."""
    (first,) = open_sockets("127.0.0.1", 0, 1)
    port = first.getsockname()[1]
    (second,) = open_sockets("127.0.0.1", port, 1)
    first.listen()
    limits, told = Limits(), []
    app = create_app(answerer, limits=limits)
    server = make_server(app, limits, on_ready=lambda: told.append("ready"))
    server.config.loop = loop
    with (
        first,
        pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}: another server"),
    ):
        server.run(sockets=[second])
    assert told == []
    assert second.fileno() == -1


def test_several_processes_share_a_port_that_no_other_server_can_take():
    sockets = open_sockets("127.0.0.1", 0, 3)
    port = sockets[0].getsockname()[1]
    try:
        assert {each.getsockname()[1] for each in sockets} == {port}
        assert len({each.fileno() for each in sockets}) == (
            3 if hasattr(socket, "SO_REUSEPORT") else 1
        )
        sockets[0].listen()
        for count in (1, 2):  # not even somebody who would share it
            with pytest.raises(ConfigError, match=f"port {port}"):
                open_sockets("127.0.0.1", port, count)
    finally:
        for each in sockets:
            each.close()
