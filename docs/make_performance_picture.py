"""Draws docs/images/step-time.png from results/profiles/step-cone.json (needs the plot extra)."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]


def main() -> None:
    profile = json.loads((ROOT / "results/profiles/step-cone.json").read_text(encoding="utf-8"))
    parts = profile["microseconds_per_step"]
    names = sorted(parts, key=parts.__getitem__)
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    axes.barh(names, [parts[name] / 1000 for name in names], color="#3b6ea5")
    for place, name in enumerate(names):
        axes.text(parts[name] / 1000 + 0.01, place, f"{parts[name] / 1000:.2f}", va="center")
    axes.set_xlabel("milliseconds of GPU time per step, ConE, FB15k-237's sizes")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs/images/step-time.png", dpi=110)


if __name__ == "__main__":
    main()
