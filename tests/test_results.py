"""The pages made from `results/` say what the files say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUNS = sorted((ROOT / "results").glob("*.json"))
REQUIRED = {
    "dataset",
    "model",
    "recipe",
    "seed",
    "steps",
    "seconds",
    "device",
    "command",
    "structures",
    "avg_p",
}


def test_the_page_is_what_the_files_say() -> None:
    checked = subprocess.run(
        [sys.executable, "docs/make_results.py", "--check"], cwd=ROOT, check=False
    )
    assert checked.returncode == 0, "run `python docs/make_results.py` and commit docs/results.md"


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_recorded_run_is_whole_and_its_averages_add_up(path: Path) -> None:
    run = json.loads(path.read_text(encoding="utf-8"))
    assert run.keys() >= REQUIRED
    for average, names in (
        ("avg_p", "1p 2p 3p 2i 3i pi ip 2u up"),
        ("avg_n", "2in 3in inp pin pni"),
    ):
        found = [run["structures"][n]["mrr"] for n in names.split() if n in run["structures"]]
        if found:
            assert run[average]["mrr"] == pytest.approx(sum(found) / len(found), abs=1e-5)
