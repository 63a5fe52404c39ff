"""How fast a graph of ten million triples is read from TSV, stored, and opened again.

Each step runs in a fresh process; its seconds and peak memory are printed. Reading TSV is
compared with a plain Python reader (dictionaries, nothing held out) on a tenth of the lines.
The goals on two cores: under 60 s and 4 GB from TSV, under 2 s from the store. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

STEPS = {
    "plain": """
import numpy as np
ids, relation_ids, rows = {}, {}, {}
with open(SOURCE, encoding="utf-8") as file:
    for line in file:
        head, relation, tail = line.rstrip("\\n").split("\\t")
        number = 2 * relation_ids.setdefault(relation, len(relation_ids))
        rows[ids.setdefault(head, len(ids)), number, ids.setdefault(tail, len(ids))] = None
edges = np.array([e for h, r, t in rows for e in ((h, r, t), (t, r + 1, h))], dtype=np.int32)
""",
    "tsv": """
from conekg.graph.source import open_graph
graph = open_graph(SOURCE)
assert len(graph.edges("train"))
""",
    "build": """
from conekg.graph.source import open_graph
from conekg.graph.store import save_graph
save_graph(open_graph(SOURCE), STORE)
""",
    "reload": """
from conekg.graph.store import load_graph
graph = load_graph(STORE)
middle = graph.num_entities // 2
assert len(graph.adjacency("test").relations_of(middle))
assert graph.vocabulary.entities.id_of(graph.vocabulary.entities.name(middle)) == middle
""",
}


def measure(step: str, source: Path, store: Path) -> dict[str, float]:
    """Seconds and peak gigabytes of one step in a process of its own.

    The time excludes imports; the memory includes them.
    """
    code = "import json, time\n"
    code += "import conekg.graph.source, conekg.graph.store\n"
    code += f"SOURCE, STORE = {str(source)!r}, {str(store)!r}\n"
    code += "started, cpu = time.perf_counter(), time.process_time()\n"
    code += STEPS[step]
    code += "spent, cpu = time.perf_counter() - started, time.process_time() - cpu\n"
    # Not `ru_maxrss`: for a process that was just started it includes the peak of its parent.
    code += "status = [line.split() for line in open('/proc/self/status')]\n"
    code += "peak = next(int(words[1]) for words in status if words[0] == 'VmHWM:') / 2**20\n"
    code += "print(json.dumps({'seconds': spent, 'cpu': cpu, 'gigabytes': peak}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def write_triples(path: Path, count: int) -> None:
    """Write random triples with a few frequent and many rare entities, as in real graphs."""
    generator = np.random.default_rng(0)
    entities = max(10, count // 10)
    with path.open("w") as file:
        for start in range(0, count, 1_000_000):
            size = min(1_000_000, count - start)
            heads, tails = (entities * generator.random((2, size)) ** 2).astype(np.int64)
            relations = (500 * generator.random(size) ** 2).astype(np.int64)
            file.writelines(
                f"http://example.org/entity/{h}\trelation_{r}\thttp://example.org/entity/{t}\n"
                for h, r, t in zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True)
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, default=10_000_000)
    count = parser.parse_args().triples
    with tempfile.TemporaryDirectory() as folder:
        source, tenth, store = (Path(folder) / n for n in ("facts.tsv", "tenth.tsv", "store"))
        write_triples(source, count)
        write_triples(tenth, count // 10)
        size = source.stat().st_size / 2**20
        print(f"{count:,} triples, {size:,.0f} MB of text")
        measured = {
            step: measure(step, tenth if step == "plain" else source, store) for step in STEPS
        }
        stored = sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) / 2**20
    for step, goal in (("tsv", "60 s, 4 GB"), ("build", "-"), ("reload", "2 s")):
        seconds, cpu, gigabytes = (measured[step][key] for key in ("seconds", "cpu", "gigabytes"))
        print(
            f"{step:<7} {seconds:7.2f} s  {cpu:7.2f} CPU s  {gigabytes:5.2f} GB peak  (goal {goal})"
        )
    print(f"store   {stored:,.0f} MB")
    plain = 10 * measured["plain"]["cpu"]
    print(f"plain Python reader, nothing held out, scaled from a tenth: {plain:.2f} CPU s")
    print(f"tsv: {plain / measured['tsv']['cpu']:.1f} times as fast as the plain reader (CPU time)")
    faster = measured["tsv"]["seconds"] / measured["reload"]["seconds"]
    print(f"reload: {faster:.0f} times as fast as tsv")


if __name__ == "__main__":
    main()
