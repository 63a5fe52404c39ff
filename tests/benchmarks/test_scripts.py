"""Every benchmark starts and prints its help; it skips or refuses what it cannot do."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(
    path for path in BENCHMARKS.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")
)


@pytest.fixture
def start(monkeypatch, capsys):
    """A function that runs a script with options and returns (exit code, output)."""

    def run(name, *options):
        monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
        monkeypatch.setattr(sys, "argv", [name, *options])
        code = 0
        try:
            runpy.run_path(str(BENCHMARKS / name), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


@pytest.mark.parametrize("name", [path.name for path in SCRIPTS])
def test_a_script_prints_its_help_and_refuses_unknown_options(start, name):
    code, printed = start(name, "--help")
    assert code == 0
    assert "usage" in printed
    assert start(name, "--no-such-option")[0] == 2


@pytest.mark.parametrize("name", ["bench_training_step.py", "profile_training_step.py"])
def test_scripts_that_need_a_gpu_are_skipped_without_one(start, monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert start(name) == (0, "skipped: this benchmark needs a CUDA device\n")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bench_training_step.py", ["--models", "con"]),
        ("bench_training_step.py", ["--datasets", "fb"]),
        ("bench_training_step.py", ["--variants", "fused"]),
        ("bench_training_step.py", ["--steps", "0"]),
        ("bench_training_step.py", ["--inductor", "max_autotune"]),
        ("bench_training_step.py", ["--inductor", "=true"]),
        ("profile_training_step.py", ["--model", "emql"]),
        ("bench_scoring_cpu.py", ["--models", "beta"]),
        ("compare_models.py", ["--models", "cone", "gqe"]),
        ("compare_models.py", ["--page", "no/where.md"]),
        ("bench_evaluation.py", ["--dim", "0"]),
        ("bench_evaluation.py", ["--max-queries", "0"]),
    ],
)
def test_bad_options_are_refused_by_name(start, name, options):
    code, printed = start(name, *options)
    assert code == 2
    assert options[0] in printed


def test_graph_load_measures_the_memory_of_the_new_process_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import bench_graph_load

    source = tmp_path / "facts.tsv"
    bench_graph_load.write_triples(source, 20)
    np.ones(1 << 26)  # a peak of half a gigabyte in this process, which starts the new one
    measured = bench_graph_load.measure("plain", source, tmp_path / "store")
    assert 0.01 < measured["gigabytes"] < 0.3


def test_the_scoring_benchmark_prints_its_goals(start):
    code, printed = start("bench_scoring_cpu.py", "--entities", "40", "--dim", "6", "--repeats=1")
    assert code == 0
    assert "cone: 40 entities" in printed
    assert "goal for ConE 1.25" in printed


def test_the_search_benchmark_finds_the_same_lists_as_the_full_scan(start):
    code, printed = start("bench_topk.py", "--entities", "400", "--dim", "12", "--repeats=1")
    assert code == 0
    found = re.findall(r"ratio \d+\.\d+  computed \d\.\d+  same lists (\d+) of (\d+)", printed)
    assert found == [("1", "1"), ("8", "8"), ("32", "32")] * 2
    assert printed.count("shortlist of 2,000: recall of the true ten 1.000") == 2


def test_the_benchmark_of_few_rows_prints_a_ratio_for_each_number_of_rows(start, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    code, printed = start("bench_few_rows.py", "--width", "64", "--repeats=1")
    assert code == 0
    ratios = re.findall(r"^ *(\d+) rows .*  ratio \d+\.\d+$", printed, re.MULTILINE)
    assert " ".join(ratios) == "2 4 8 12 16 24 32 48 64" or printed.startswith("skipped:")


def test_the_symbolic_benchmark_prints_a_rate_for_each_shape(start, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import benchmark_graph

    monkeypatch.setitem(benchmark_graph._SIZES, "FB15k-237", (60, 4, 400))
    options = ["--data", str(tmp_path), "--queries", "50", "--shapes", "2p", "pin"]
    code, printed = start("bench_symbolic.py", *options)
    assert code == 0
    assert len(re.findall(r"^  (?:2p|pin) .* x sets", printed, re.MULTILINE)) == 4


def test_the_loading_benchmark_prints_every_step(start):
    code, printed = start("bench_graph_load.py", "--triples", "2000")
    assert code == 0
    for step in ("tsv", "build", "reload"):
        assert re.search(rf"^{step} .* s .* GB peak", printed, re.MULTILINE), step


def test_the_evaluation_benchmark_prints_both_paths_and_the_published_figure(
    start, monkeypatch, tmp_path
):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import benchmark_graph

    monkeypatch.setitem(benchmark_graph._SIZES, "NELL", (60, 4, 400))
    row = tmp_path / "row.json"
    options = ["--data", str(tmp_path), "--dim", "4", "--max-queries", "2", "--json", str(row)]
    code, printed = start("bench_evaluation.py", *options)
    assert code == 0
    for key in ("seconds=", "plain_ms_per_query=", "published_ms_per_query_on_an_h200=2.6"):
        assert key in printed
    assert '"queries": 28' in row.read_text()
