"""The ten best of all entities: abandoning candidates early against scoring everything.

Claim: the same answers, and where a query's answers stand out from the rest, as they do
in trained tables, in clearly less time than scoring everything with the same kernels. On
angles without any structure nothing can be abandoned early; there lower bounds help, on a
processor with AVX-512 VBMI, and elsewhere nothing is lost. `looked at` is the share of all
terms that were computed in full (known on a CPU only). A small trained table is also measured
repeated up to the size of the others. Below each: how many of the true ten a shortlist by
dense product holds.
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
from conekg.answering.device_search import nearest_on_device
from conekg.answering.index import EntityIndex
from conekg.answering.ranking import best
from conekg.answering.search import all_points
from conekg.answering.shortlist import HarmonicShortlist, measure_recall
from conekg.model.catalog import build_model
from conekg.model.cone import Cone, ConeConfig
from conekg.model.geometry import Geometry
from conekg.model.interface import Region
from conekg.model.scoring import DeviceTable, scoring_table
from conekg.training.run import open_run

NOBODY = np.empty(0, dtype=np.int32)


def synthetic(kind: str, num_entities: int, dim: int) -> tuple[Cone, torch.Tensor]:
    """A model with random or clustered angles, and axes of queries near the clusters."""
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
    generator = torch.Generator().manual_seed(rows)
    axis = centers[torch.randint(len(centers), (rows,), generator=generator)]
    axis = axis + 0.5 * torch.randn(axis.shape, generator=generator)
    half_aperture = 0.1 + 0.8 * torch.rand(axis.shape, generator=generator)
    return axis.clamp(-math.pi, math.pi), half_aperture


def trained(folder: Path) -> tuple[Cone, Callable[[int], Region]]:
    """The model of a run, and regions of its validation queries, shapes mixed."""
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
    """A model whose entities are those of `model` so many times, each copy shifted a little."""
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
    run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def compare(name: str, model: Cone, region: Region, repeats: int) -> None:
    rows = len(region[0])
    index, table = EntityIndex(model, shortlist=False), scoring_table(model)
    counts, skip = [10] * rows, [NOBODY] * rows

    def full() -> list[list[int]]:
        if region[0].is_cuda:  # all rows at once, which waits for the device once
            return [list(map(int, row)) for row in table.logits(region).topk(10).indices.tolist()]
        return [best(row, 10, NOBODY).entity_ids.tolist() for row in table.logits(region)]

    def early() -> list[list[int]]:
        if isinstance(table, DeviceTable):  # which the index leaves alone in small tables
            found = nearest_on_device(model, table, region, counts, skip, abandon=True)
            return [ranking.entity_ids.tolist() for ranking in found]
        return [ranking.entity_ids.tolist() for ranking in index.top(region, counts, skip)]

    with torch.inference_mode():
        same = sum(a == b for a, b in zip(full(), early(), strict=True))
        full_s, early_s = fastest(full, repeats), fastest(early, repeats)
    looked_at = f"  looked at {share_looked_at(model, region):.2f}" if not region[0].is_cuda else ""
    print(
        f"{name:10} {model.num_entities:>9,} x {model.dim:<5} batch {rows:<3} "
        f"full {1e3 * full_s / rows:7.2f} ms  early {1e3 * early_s / rows:7.2f} ms a query  "
        f"ratio {full_s / early_s:.2f}{looked_at}  same lists {same} of {rows}"
    )


def share_looked_at(model: Cone, region: Region) -> float:
    """The share of all terms of all distances that the compiled scan computed."""
    rows = len(region[0])
    scan = ScanTable(all_points(model).numpy(), Geometry.CONE, model.config.center_weight)
    found = scan.nearest(region[0].numpy(), region[1].numpy(), [10] * rows, [NOBODY] * rows)
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
