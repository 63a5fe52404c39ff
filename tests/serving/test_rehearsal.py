"""What a server compiles before it listens."""

from __future__ import annotations

import os
import subprocess
import sys

from extras import need

need("fastapi", "uvicorn", "httpx")

import pytest

# In a process of its own: in this one, other tests have compiled the loops already.
SCRIPT = """
import asyncio, sys
import httpx
from numba.core.dispatcher import Dispatcher
from conekg.answering.engine import Answerer
from conekg.graph.geography import load_geography
from conekg.model.catalog import build_model
from conekg.serving.http import create_app

graph = load_geography()
model = build_model(sys.argv[1], graph.num_entities, graph.num_relations, {"dim": 4})
app = create_app(Answerer(graph, model))
queries = [
    "France.borders", "France.borders.capital", "France.borders & Spain.borders",
    "France.borders & Spain", "(France.borders | Spain.borders).capital & Euro.^uses_currency",
]
if model.can_negate:
    queries += ["*.borders", "!France.borders", "(Asia.^in_region & !Italy.borders).capital"]

def compiled():
    return {
        f"{name}.{key}": len(loop.signatures)
        for name, module in tuple(sys.modules.items()) if name.startswith("conekg.")
        for key, loop in vars(module).items() if isinstance(loop, Dispatcher)
    }

async def ask(client, route, **body):
    response = await client.post(f"/api/{route}", json=body)
    assert response.status_code == 200, response.text

async def main():
    async with app.router.lifespan_context(app), httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=60
    ) as client:
        before = compiled()
        for top_k in (1, 10, 1000):
            for query in queries:
                await ask(client, "ask", query=query, top_k=top_k)
            batch = [ask(client, "ask", query=query, top_k=top_k) for query in queries]
            await asyncio.gather(*batch)
        for query in queries:
            for only in ("known", "predicted"):
                await ask(client, "ask", query=query, only=only, known_graph="test")
            await ask(client, "explain", query=query, answer="Paris", candidates=50)
            await ask(client, "cones", query=query, answer="Paris")
        after = compiled()
        print(sorted(name for name in after if after[name] != before.get(name, 0)))

asyncio.run(main())
"""


@pytest.mark.parametrize("model", ["cone", "box"])
def test_no_request_waits_for_a_loop_to_be_compiled(model):
    """Compiling takes longer than a request may, and all others of its batch would wait too."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stdout + done.stderr
