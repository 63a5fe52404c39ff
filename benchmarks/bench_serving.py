"""How many questions per second the server answers, and how long the slowest requests take.

A ConE model of FB15k-237's size (14,505 entities, d = 800, random weights) is served by one
process or by several, as with `conekg serve --processes`. 32 clients in this process ask for the
top 10 answers of questions of mixed shapes over loopback; each asks again as soon as it has its
answer. The claim: on two cores, two processes answer at least 400 requests/s with a 99th
percentile below 250 ms and no error. The same load with batches of one question shows the gain
from micro-batching, and with one process the gain from the second. `cpu ms` is the processor time
per request of servers and clients together. `others` is the mean number of cores that were busy
with other work during the load: the claim holds only if it is close to 0. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
from conekg.graph.store import load_graph
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.tokens import quote
from conekg.serving.limits import Limits
from conekg.serving.server import open_sockets
from conekg.serving.share import Share

NUM_ENTITIES = 14_505
NUM_RELATIONS = 237
NUM_FACTS = 272_115
TARGET_RATE = 400.0
TARGET_P99_S = 0.250
SHAPES = {
    "1p": "{e0}.{r0}",
    "2p": "{e0}.{r0}.{r1}",
    "3p": "{e0}.{r0}.{r1}.{r2}",
    "2i": "{e0}.{r0} & {e1}.{r1}",
    "3i": "{e0}.{r0} & {e1}.{r1} & {e2}.{r2}",
    "ip": "({e0}.{r0} & {e1}.{r1}).{r2}",
    "pi": "{e0}.{r0}.{r1} & {e1}.{r2}",
    "2u": "{e0}.{r0} | {e1}.{r1}",
    "up": "({e0}.{r0} | {e1}.{r1}).{r2}",
    "2in": "{e0}.{r0} & !{e1}.{r1}",
    "3in": "{e0}.{r0} & {e1}.{r1} & !{e2}.{r2}",
    "inp": "({e0}.{r0} & !{e1}.{r1}).{r2}",
    "pin": "{e0}.{r0}.{r1} & !{e1}.{r2}",
    "pni": "!{e0}.{r0}.{r1} & {e1}.{r2}",
}


@dataclass
class Load:
    """The measurements of one load: many requests from several clients."""

    seconds: float
    latencies: list[float]
    errors: int
    cpu_s: float = 0.0
    """Processor time of servers and clients."""
    others_s: float = 0.0
    """Processor time of everything else on the machine."""

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile_s(self, share: float) -> float:
        """The latency that `share` percent of the requests did not exceed."""
        return float(np.percentile(self.latencies, share))


def serve(
    listening: socket.socket, share: Share, options: argparse.Namespace, batch_queries: int
) -> None:
    """Serve a random model, or the run of `options`, until the process is terminated."""
    from conekg.cli.idle import let_idle_threads_sleep

    let_idle_threads_sleep()
    from conekg.answering.engine import Answerer
    from conekg.model.catalog import build_model
    from conekg.model.kernels.few_rows import lay_out_for_few_rows
    from conekg.serving.http import create_app
    from conekg.serving.server import make_server

    if options.run is not None:
        answerer = Answerer.open(options.run, device="cpu")
    else:
        graph = random_graph()
        model = build_model("cone", NUM_ENTITIES, graph.num_relations, {"dim": options.dim})
        lay_out_for_few_rows(model)
        answerer = Answerer(graph, model)
    limits = Limits(batch_queries=batch_queries)
    app = create_app(answerer, limits=limits, share=share if share.processes > 1 else None)
    make_server(app, limits).run(sockets=[listening])


def random_graph() -> KnowledgeGraph:
    """A graph with as many entities, relations and training facts as FB15k-237, all random."""
    draw = np.random.default_rng(0)
    facts = draw.integers(0, (NUM_ENTITIES, NUM_RELATIONS, NUM_ENTITIES), size=(NUM_FACTS, 3))
    none = np.empty((0, 3), dtype=np.int32)
    vocabulary = Vocabulary(
        NameTable("entity", [f"e{i}" for i in range(NUM_ENTITIES)]),
        NameTable("relation", [f"r{i}" for i in range(NUM_RELATIONS)]),
    )
    edges = {"train": with_inverses(facts.astype(np.int32)), "valid": none, "test": none}
    return KnowledgeGraph("random", vocabulary, edges)


def make_requests(vocabulary: Vocabulary, count: int, seed: int) -> list[bytes]:
    """`count` whole HTTP requests: the shapes in turn, entities and relations at random."""
    draw = np.random.default_rng(seed)
    requests = []
    for number in range(count):
        names = {
            f"{letter}{i}": quote(table.name(int(draw.integers(len(table)))))
            for letter, table in (("e", vocabulary.entities), ("r", vocabulary.relations))
            for i in range(3)
        }
        text = list(SHAPES.values())[number % len(SHAPES)].format(**names)
        body = json.dumps({"query": text, "top_k": 10}).encode()
        head = (
            "POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        requests.append(head.encode() + body)
    return requests


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, bytes]:
    """Status and body of one request on an open connection."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


async def run_load(port: int, clients: int, requests: list[bytes], most_seconds: float) -> Load:
    """Send the requests from several clients, each waiting for an answer before it asks again.

    No request is started after `most_seconds`. Statuses other than 200, and replies with other
    than ten answers, count as errors.
    """
    pending = iter(requests)
    latencies: list[float] = []
    errors = 0
    start = time.perf_counter()

    async def client() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in pending:
            began = time.perf_counter()
            if began - start > most_seconds:
                break
            status, body = await ask(reader, writer, request)
            latencies.append(time.perf_counter() - began)
            errors += status != 200 or len(json.loads(body)["answers"]) != 10
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(time.perf_counter() - start, latencies, errors)


def measure(
    options: argparse.Namespace, vocabulary: Vocabulary, processes: int, batch_queries: int
) -> Load:
    """Start the server processes, warm them up, and measure one load."""
    context = multiprocessing.get_context("spawn")
    sockets = open_sockets("127.0.0.1", 0, processes)
    port = sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        servers = [
            context.Process(
                target=serve,
                args=(each, Share(index, processes, Path(folder)), options, batch_queries),
                daemon=True,
            )
            for index, each in enumerate(sockets)
        ]
        for server in servers:
            server.start()
        for each in sockets:
            each.close()  # each server has its own copy
        try:
            wait_for(port, processes)
            for count, seed in ((10 * options.clients, 1), (options.requests, 2)):
                requests = make_requests(vocabulary, count, seed)
                own_s, all_s = busy_seconds(servers)
                load = asyncio.run(run_load(port, options.clients, requests, options.seconds))
                own_after_s, all_after_s = busy_seconds(servers)
                load.cpu_s = own_after_s - own_s
                load.others_s = max(0.0, all_after_s - all_s - load.cpu_s)
            return load
        finally:
            for server in servers:
                server.terminate()
                server.join()


def busy_seconds(servers: Sequence[BaseProcess]) -> tuple[float, float]:
    """Processor time of the servers and this process, and of the whole machine; Linux only."""
    tick = os.sysconf("SC_CLK_TCK")
    server_s = 0.0
    for server in servers:
        stat = Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        server_s += (int(stat[11]) + int(stat[12])) / tick
    user, nice, system, _idle, _wait, interrupts, soft = (
        int(count) for count in Path("/proc/stat").read_text().split()[1:8]
    )
    return server_s + time.process_time(), (user + nice + system + interrupts + soft) / tick


def wait_for(port: int, servers: int) -> None:
    """Wait until every server listens on its socket; Linux only."""
    address = f"0100007F:{port:04X}"
    for _ in range(1200):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        if sum(row[1] == address and row[3] == "0A" for row in rows) == servers:
            return
        time.sleep(0.1)
    raise SystemExit("the server did not start within two minutes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--requests", type=int, default=6_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit of a load")
    parser.add_argument("--dim", type=int, default=800)
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[1, 64], help="batch limits to compare"
    )
    parser.add_argument(
        "--processes", type=int, nargs="+", default=[1, 2], help="numbers of servers to compare"
    )
    parser.add_argument("--run", help="ask this trained run instead of a random model")
    options = parser.parse_args()
    graph = random_graph() if options.run is None else load_graph(Path(options.run) / "graph")
    size = f"{graph.num_entities:,} entities, {options.run or f'd = {options.dim}, random'}"
    print(f"{size}, {options.clients} clients, {len(os.sched_getaffinity(0))} cores")
    columns = (
        "processes",
        "batch limit",
        "requests",
        "/s",
        "p50 ms",
        "p99 ms",
        "cpu ms",
        "others",
        "errors",
    )
    print("".join(f"{column:>13}" for column in columns))
    for processes, batch_queries in itertools.product(options.processes, options.batches):
        load = measure(options, graph.vocabulary, processes, batch_queries)
        count = len(load.latencies)
        print(
            f"{processes:>13}{batch_queries:>13}{count:>13}{load.rate:>13.0f}"
            f"{1e3 * load.percentile_s(50):>13.1f}{1e3 * load.percentile_s(99):>13.1f}"
            f"{1e3 * load.cpu_s / count:>13.2f}{load.others_s / load.seconds:>13.2f}"
            f"{load.errors:>13}"
        )
    print(
        f"target: {load.rate / TARGET_RATE:.2f} of {TARGET_RATE:.0f} requests/s, "
        f"p99 {load.percentile_s(99) / TARGET_P99_S:.2f} of {1e3 * TARGET_P99_S:.0f} ms"
    )


if __name__ == "__main__":
    main()
