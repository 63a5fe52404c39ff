"""How the GPU's time in one captured training step is divided among its parts.

    python benchmarks/profile_training_step.py --json results/profiles/step-cone.json
        [--dataset fb15k-237] [--model cone] [--kernels FILE]

Replays the step of `bench_training_step.py` (compiled operators, bfloat16 products) under
PyTorch's profiler and adds up the times of the kernels of each part, which the kernels' names
tell. Some kernels run side by side, so the sum over the parts may exceed the time of the step.
`--kernels` lists one step's kernels in order. `docs/make_performance_picture.py` draws the JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

import torch
from bench_training_step import CONFIGS, FASTEST, LEARNING_RATE, SIZES, new_updater, random_data
from torch.profiler import ProfilerActivity, profile

from conekg.training.timing import seconds_per_step

REPLAYS = 5

PARTS = (
    ("entity gradients and Adam (entity_update)", r"_update_kernel|update_entit|update_distrib"),
    ("loss and region gradients (contrast)", r"_contrast_kernel"),
    ("Adam of the other parameters", r"[Aa]dam"),
    ("drawing batches", r"_draw_kernel"),
    ("sorting candidates by entity (beside the rest)", r"[Rr]adix|[Ss]ort|_count|_occurrence"),
    ("matrix products", r"gemm|cutlass|nvjet|splitK|_mm_"),
    ("fused pointwise operators", r"^triton_"),
)
"""(part, pattern of its kernels' names); the first pattern that matches counts."""
REST = "other small kernels"


def part_of(kernel: str) -> str:
    """The part of the step that a kernel of this name belongs to."""
    return next((part for part, pattern in PARTS if re.search(pattern, kernel)), REST)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", choices=list(SIZES), default="fb15k-237")
    parser.add_argument("--model", choices=list(CONFIGS), default="cone")
    parser.add_argument("--json", type=Path, help="write the parts to this JSON file")
    parser.add_argument("--kernels", type=Path, help="write one step's kernels to this text file")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: this benchmark needs a CUDA device")
        return
    data = random_data(*SIZES[arguments.dataset], torch.device("cuda"))
    updater = new_updater(arguments.model, arguments.dataset, FASTEST, data)
    ms = 1e3 * seconds_per_step(updater, LEARNING_RATE, 100, repeats=3)
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(REPLAYS):
            updater.step(LEARNING_RATE)
        torch.cuda.synchronize()
    on_gpu = torch.autograd.DeviceType.CUDA
    events = sorted(
        (event.time_range.start, event.time_range.elapsed_us(), event.name)
        for event in profiled.events()
        if event.device_type == on_gpu
    )
    parts: Counter[str] = Counter()
    for _, duration, name in events:
        parts[part_of(name)] += duration / REPLAYS
    report = {
        "what": "GPU time of one captured training step (three updates of 512 queries, 128 "
        "negatives), bfloat16 products, operators compiled",
        "model": arguments.model,
        "dataset": f"{arguments.dataset} (sizes; random queries)",
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "command": " ".join(["python", "benchmarks/profile_training_step.py", *sys.argv[1:]]),
        "step_ms": round(ms, 3),
        "kernels_per_step": round(len(events) / REPLAYS),
        "microseconds_per_step": {part: round(us, 1) for part, us in parts.most_common()},
    }
    print(json.dumps(report, indent=2))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if arguments.kernels is not None:
        one = events[: len(events) // REPLAYS]
        arguments.kernels.write_text(
            "".join(f"{start - one[0][0]:10.1f} {us:7.1f} {name}\n" for start, us, name in one),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
