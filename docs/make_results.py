"""Writes docs/results.md from the files in results/, ours beside the paper's.

    python docs/make_results.py [--check]

With --check nothing is written; the exit code is 1 when the page is not what the files say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from conekg.experiments.published import MODEL_TITLES, published

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
TITLES = {"nell995": "NELL995", "fb15k-237": "FB15k-237", "fb15k": "FB15k"}
TABLES = (
    ("without negation", "table:epfo_results", "table:errorbar_epfo", "avg_p"),
    ("with negation", "table:negation_results", "table:errorbar_neg", "avg_n"),
)
INTRODUCTION = """\
# Results

Made by `python docs/make_results.py` from the files in `results/`; do not edit. All figures
are filtered MRR in percent, ties at their mean rank. *Paper* is ConE's (or the named model's)
row of the paper's Tables 1 and 2, ± its standard deviation over five seeds where it gives one.
"""


def number(value: float | None, spread: float | None = None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if spread is None else f"{value:.1f} ± {spread:.2f}"


def table(run: dict[str, Any], heading: str, label: str, spread_label: str, average: str) -> str:
    theirs = published(label, run["dataset"])
    row = theirs.row(run["model"])
    spreads = (
        published(spread_label, run["dataset"]).row("deviation") if run["model"] == "cone" else {}
    )
    names = [name for name in theirs.columns if name in run["structures"]]
    ours = {name: 100 * run["structures"][name]["mrr"] for name in names}
    if average in run:
        ours["AVG"] = 100 * run[average]["mrr"]
    lines = [
        f"| {heading} | " + " | ".join(ours) + " |",
        "|---" * (len(ours) + 1) + "|",
        "| ours | " + " | ".join(f"{value:.1f}" for value in ours.values()) + " |",
        "| paper | " + " | ".join(number(row.get(n), spreads.get(n)) for n in ours) + " |",
    ]
    return "\n".join(lines)


def section(path: Path) -> str:
    run = json.loads(path.read_text(encoding="utf-8"))
    title = f"{MODEL_TITLES[run['model']]} on {TITLES[run['dataset']]}, recipe `{run['recipe']}`"
    parts = [f"## {title}, seed {run['seed']}"]
    parts += [table(run, *names) for names in TABLES]
    minutes = run["seconds"] / 60
    planned = run.get("steps_planned", run["steps"])
    parts.append(
        f"{run['steps']:,} of {planned:,} steps in {minutes:.1f} minutes "
        f"({1000 * run['seconds'] / run['steps']:.2f} ms a step, set-up included) on "
        f"{run['device']}; all test queries evaluated in {run['evaluation_seconds']:.1f} s. "
        f"Queries: {run['queries']}. {run['notes']}"
    )
    parts.append("```sh\n" + run["command"].replace("; ", "\n") + "\n```")
    parts.append(f"Source: `results/{path.name}`.")
    return "\n\n".join(parts)


def page() -> str:
    runs = sorted((ROOT / "results").glob("*.json"))
    return "\n".join([INTRODUCTION, *(section(path) + "\n" for path in runs)])


def main() -> None:
    text = page()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == text else 1)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
