"""The ten nearest entities: the search that abandons candidates early against scoring all.

Claim: the search finds the same answers. If a query's answers stand out from the other entities,
as in trained tables, it takes clearly less time than scoring all with the same kernels. If angles
have no structure, nothing can be abandoned early: lower bounds help on a processor with AVX-512
VBMI, and on others the search takes no longer than scoring all. A GPU scores all in both ways.
`computed` is the share of all terms of the distances that the search computed (on a CPU). A small
trained table is also measured repeated up to the size of the others. The line below each table has
the recall of a shortlist by dense product: the share of the true ten that it contains.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from conekg.answering.abandon import ScanTable
from conekg.answering.index import EntityIndex
from conekg.answering.ranking import best
from conekg.answering.search import all_points
from conekg.answering.shortlist import HarmonicShortlist, measure_recall
from conekg.model.catalog import build_model
from conekg.model.cone import Cone, ConeConfig
from conekg.model.geometry import Geometry
from conekg.model.interface import Region
from conekg.model.scoring import scoring_table
from conekg.training.run import open_run

NO_IDS = np.empty(0, dtype=np.int32)


def synthetic(kind: str, num_entities: int, dim: int) -> tuple[Cone, torch.Tensor]:
    """A model with random or clustered angles, and the cluster centres, to make queries from."""
    model = build_model("cone", num_entities, 2, ConeConfig(dim=dim, hidden=4), 0).eval()
    assert isinstance(model, Cone)
    generator = torch.Generator().manual_seed(0)
    centers = (2 * torch.rand(300, dim, generator=generator) - 1) * math.pi
    if kind == "clustered":
        places = torch.randint(300, (num_entities,), generator=generator)
        angles = centers[places] + 0.7 * torch.randn(num_entities, dim, generator=generator)
    else:
        angles = (2 * torch.rand(num_entities, dim, generator=generator) - 1) * math.pi
    share = angles.clamp(-0.999 * math.pi, 0.999 * math.pi) / math.pi
    with torch.no_grad():
        model.entity.copy_(torch.atanh(share) * model.embedding_range)
    return model, centers


def queries(centers: torch.Tensor, rows: int) -> Region:
    """Cones whose axes are near randomly chosen centres."""
    generator = torch.Generator().manual_seed(rows)
    axis = centers[torch.randint(len(centers), (rows,), generator=generator)]
    axis = axis + 0.5 * torch.randn(axis.shape, generator=generator)
    half_aperture = 0.1 + 0.8 * torch.rand(axis.shape, generator=generator)
    return axis.clamp(-math.pi, math.pi), half_aperture


def trained(folder: Path) -> tuple[Cone, Callable[[int], Region]]:
    """The model of a run, and a function for the first regions of its validation queries.

    The shapes of the queries alternate.
    """
    from conekg.answering.batch import embed_queries

    run = open_run(folder)
    model = run.load_model("best", "cpu")
    assert isinstance(model, Cone), "the benchmark is about ConE"
    blocks = [block for block in run.queries("valid") if len(block)]

    def regions(rows: int) -> Region:
        asked = [blocks[i % len(blocks)].query(i // len(blocks)) for i in range(rows)]
        return tuple(part[:rows] for part in embed_queries(model, asked).region)

    return model, regions


def repeated(model: Cone, times: int) -> Cone:
    """A model with `times` copies of the entities of `model`, all but the first shifted a bit."""
    larger = build_model(
        "cone", times * model.num_entities, model.num_relations, model.config, 0
    ).eval()
    assert isinstance(larger, Cone)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        shift = torch.randn(times, *model.entity.shape, generator=generator)
        shift *= 0.1 * model.entity.std()
        shift[0] = 0
        larger.entity.copy_((model.entity + shift).flatten(0, 1))
        larger.scale.copy_(model.scale)
    return larger


def fastest(run: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of some runs, after one that is not timed."""
    run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def compare(name: str, model: Cone, region: Region, repeats: int) -> None:
    """Time both ways to find the ten nearest entities of each row, and print one line."""
    rows = len(region[0])
    index, table = EntityIndex(model, shortlist=False), scoring_table(model)
    counts, skip = [10] * rows, [NO_IDS] * rows

    def full() -> list[list[int]]:
        if region[0].is_cuda:  # all rows at once, to wait for the device only once
            return [list(map(int, row)) for row in table.logits(region).topk(10).indices.tolist()]
        return [best(row, 10, NO_IDS).entity_ids.tolist() for row in table.logits(region)]

    def early() -> list[list[int]]:
        return [ranking.entity_ids.tolist() for ranking in index.top(region, counts, skip)]

    with torch.inference_mode():
        same = sum(a == b for a, b in zip(full(), early(), strict=True))
        full_s, early_s = fastest(full, repeats), fastest(early, repeats)
    computed = f"  computed {share_computed(model, region):.2f}" if not region[0].is_cuda else ""
    print(
        f"{name:10} {model.num_entities:>9,} x {model.dim:<5} batch {rows:<3} "
        f"full {1e3 * full_s / rows:7.2f} ms  early {1e3 * early_s / rows:7.2f} ms per query  "
        f"ratio {full_s / early_s:.2f}{computed}  same lists {same} of {rows}"
    )


def share_computed(model: Cone, region: Region) -> float:
    """The share of all terms of the distances that the compiled search computed, from 0 to 1."""
    rows = len(region[0])
    scan = ScanTable(all_points(model).numpy(), Geometry.CONE, model.config.center_weight)
    found = scan.nearest(region[0].numpy(), region[1].numpy(), [10] * rows, [NO_IDS] * rows)
    return float(np.mean([nearest.looked_at for nearest in found]))


def on(device: str, region: Region) -> Region:
    return tuple(part.to(device) for part in region)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="also measure the ConE model of this run")
    parser.add_argument("--entities", type=int, default=14_505, help="as many as FB15k-237 has")
    parser.add_argument("--dim", type=int, default=800)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = parser.parse_args()
    print(f"{options.device}, {torch.get_num_threads()} threads")
    for kind in ("clustered", "random"):
        model, centers = synthetic(kind, options.entities, options.dim)
        model = model.to(options.device)
        for rows in (1, 8, 32):
            compare(kind, model, on(options.device, queries(centers, rows)), options.repeats)
        recall = measure_recall(model, HarmonicShortlist(model))
        print(f"{kind:10} shortlist of 2,000: recall of the true ten {recall:.3f}")
    if options.run is not None:
        model, regions = trained(options.run)
        many = repeated(model, max(1, options.entities // model.num_entities))
        asked = {rows: on(options.device, regions(rows)) for rows in (1, 8, 32)}
        model, many = model.to(options.device), many.to(options.device)
        for region in asked.values():
            compare("trained", model, region, options.repeats)
            compare("repeated", many, region, options.repeats)
        recall = measure_recall(model, HarmonicShortlist(model))
        print(f"trained    shortlist of 2,000: recall of the true ten {recall:.3f}")


if __name__ == "__main__":
    main()
