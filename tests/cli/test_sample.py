from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import Result
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.geography import load_geography
from conekg.graph.store import save_graph
from conekg.query.shape import STRUCTURES
from conekg.query.tree import has_negation
from conekg.sampling.query_set import QuerySet, load_query_set
from toy_release import ENTITIES, SIGNED, write_folder


def run(*arguments: object):
    return CliRunner().invoke(app, ["sample", "geography", *map(str, arguments)])


def test_a_set_is_written_with_a_table(tmp_path: Path) -> None:
    path = tmp_path / "test.arrow"
    result = run("--split", "test", "--out", path, "--count", 4, "--shapes", "2p,2in")
    assert result.exit_code == 0, result.output
    query_set = load_query_set(path, load_geography())
    assert [block.shape for block in query_set] == [STRUCTURES["2p"], STRUCTURES["2in"]]
    assert [len(block) for block in query_set] == [4, 4]
    assert (query_set.split, query_set.protocol, query_set.seed) == ("test", "small", 0)
    table = " ".join(result.stdout.replace("│", " ").split())
    assert "no hard answer" in table
    assert "no retracted answer" in table
    assert f"wrote {path}: 8 queries" in result.stderr


def test_all_splits_go_to_a_folder_and_json_describes_all(tmp_path: Path) -> None:
    result = run("--out", tmp_path, "--count", 3, "--shapes", "1p, 2i", "--json", "--seed", 7)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["seed"] == 7
    assert told["graph"] == load_geography().fingerprint
    assert [part["split"] for part in told["sets"]] == ["train", "valid", "test"]
    for part in told["sets"]:
        assert Path(part["path"]) == tmp_path / f"{part['split']}.arrow"
        assert part["queries"] == len(load_query_set(part["path"])) == 6
        assert [shape["found"] for shape in part["shapes"]] == [3, 3]
        assert part["shapes"][1]["attempts"] >= 3
        assert set(part["shapes"][1]) == {
            "shape", "wanted", "found", "attempts", "rejected", "mean_easy", "mean_hard"
        }  # fmt: skip


def test_any_shape_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "queries.arrow"
    shape = "((e.r | e.r) & !e.r).r"
    result = run("--split", "train", "--out", path, "--count", 3, "--shapes", shape)
    assert result.exit_code == 0, result.output
    (block,) = load_query_set(path)
    assert (block.shape.num_anchors, block.shape.num_relations) == (3, 4)
    assert has_negation(block.shape.template)
    assert len(block) == 3


@pytest.mark.parametrize(("cap", "most"), [("2", 2), ("none", 10**9)])
def test_caps_are_options(tmp_path: Path, cap: str, most: int) -> None:
    path = tmp_path / "queries.arrow"
    options = ("--split", "train", "--out", path, "--count", 60, "--shapes", "2p")
    assert run(*options, "--train-cap", cap).exit_code == 0
    lengths = load_query_set(path).block("2p").hard.lengths
    assert lengths.max() <= most
    assert (lengths.max() > 2) == (cap == "none")


def test_paths_are_walked_from_either_end(tmp_path: Path) -> None:
    options = ("--split", "train", "--count", 200, "--shapes", "2p,2i")
    means = {}
    for end in ("default", "answer", "anchor"):
        path = tmp_path / f"{end}.arrow"
        chosen = () if end == "default" else ("--train-paths-from", end)
        assert run(*options, "--out", path, *chosen).exit_code == 0
        queries = load_query_set(path)
        means[end] = [float(queries.block(name).hard.lengths.mean()) for name in ("2p", "2i")]
        assert queries.paths_from == ("answer" if end == "default" else end)
    assert means["default"] == means["answer"]
    assert means["anchor"][0] < 0.8 * means["answer"][0], "large sets are no likelier than others"
    assert means["anchor"][1] == means["answer"][1], "only paths have two ends"


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    options = ("--split", "valid", "--count", 10, "--shapes", "pi", "--seed", 3)
    for workers in (1, 3):
        path = tmp_path / f"{workers}.arrow"
        assert run(*options, "--out", path, "--workers", workers).exit_code == 0
    one, three = (load_query_set(tmp_path / f"{workers}.arrow").blocks[0] for workers in (1, 3))
    assert np.array_equal(one.anchors, three.anchors)
    assert np.array_equal(one.hard.values, three.hard.values)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--shapes", "2inn"), "'2inn' is no shape"),
        (("--shapes", "(e.r &"), "is no shape"),
        (("--shapes", "e.r.^r"), "'e.r.^r' has a '^'; leave it out"),
        (("--preset", "nell"), "unknown preset 'nell'"),
        (("--cap", "many"), "--cap is 'many'; give a whole number from 1, or none"),
        (("--train-cap", "0"), "--train-cap is '0'"),
        (("--cap", "²"), "--cap is '²'"),
        (("--shapes", "2p,1p,e.r"), "shape 1p is asked for 2 times"),
        (("--seed", "-1"), "seed is -1; it must be a whole number, 0 or more"),
        (("--train-cap", "5"), "--train-cap has no effect on test queries; their cap is --cap"),
        (("--split", "train", "--cap", "5"), "--cap has no effect on train queries"),
        (("--train-paths-from", "anchor"), "the paths of test queries are always drawn"),
        (
            ("--split", "train", "--shapes", "1p,2i", "--train-paths-from", "anchor"),
            "--train-paths-from has no effect: no shape of 1p, 2i is a path of two hops",
        ),
    ],
)
def test_wrong_options_get_one_message_and_exit_2(
    tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    result = run("--out", tmp_path / "q.arrow", "--split", "test", *options)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "q.arrow").exists()


def test_a_path_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    result = run("--out", tmp_path, "--split", "test")
    assert result.exit_code == 2
    assert "a single split is written to a file" in result.stderr
    file = tmp_path / "q.arrow"
    file.write_text("mine")
    result = run("--out", file)
    assert result.exit_code == 2
    assert "--split all writes a folder" in result.stderr
    assert "sampling" not in result.stderr
    for split in ("all", "test"):
        result = run("--out", file / "deep", "--split", split)
        assert result.exit_code == 2
        assert "q.arrow is a file" in result.stderr
        assert "sampling" not in result.stderr
    assert file.read_text() == "mine"


def test_files_of_another_kind_are_not_overwritten(tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tlikes\tb\n")
    result = run("--out", facts, "--split", "test", "--count", 1, "--shapes", "2p")
    assert result.exit_code == 2
    assert "is not a query set, so it is left alone" in result.stderr
    assert "sampling" not in result.stderr
    (tmp_path / "valid.arrow").write_text("mine")
    assert run("--out", tmp_path, "--count", 1, "--shapes", "2p").exit_code == 2
    assert not (tmp_path / "train.arrow").exists()
    assert facts.read_text() == "a\tlikes\tb\n"
    new = tmp_path / "new.arrow"
    new.touch()
    for size in (0, -9, None):  # an empty file, as `mktemp` makes it; a damaged set; a sound one
        new.write_bytes(new.read_bytes()[:size])
        result = run("--out", new, "--split", "test", "--count", 1, "--shapes", "2p")
        assert result.exit_code == 0, result.output


def test_arrow_files_that_are_not_query_sets_are_not_overwritten(tmp_path: Path) -> None:
    save_graph(load_geography(), tmp_path / "store")
    names = tmp_path / "store" / "entities.arrow"
    mine = tmp_path / "mine.feather"
    with pa.ipc.new_file(str(mine), pa.schema([("x", pa.int32())])) as writer:
        writer.write_batch(pa.record_batch({"x": pa.array([1], pa.int32())}))
    for file in (names, mine):
        before = file.read_bytes()
        assert before.startswith(b"ARROW1")
        result = run("--out", file, "--split", "test", "--count", 1, "--shapes", "2p")
        assert result.exit_code == 2
        assert "is not a query set, so it is left alone" in result.stderr
        assert file.read_bytes() == before


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = run("--out", pipe, "--split", "test", "--count", 1, "--shapes", "2p")
    assert result.exit_code == 2
    assert f"{pipe}: a pipe or a device, which a query set would replace" in result.stderr
    assert pipe.is_fifo()


def test_a_shortfall_is_reported_shape_by_shape(tmp_path: Path) -> None:
    links = np.unique(load_geography().edges("test")[:, :2], axis=0)
    for wanted in (len(links), len(links) + 1):
        options = ("--split", "test", "--shapes", "1p,2p", "--count", wanted, "--cap", "none")
        result = run("--out", tmp_path / "q.arrow", *options)
        assert result.exit_code == 0, result.output
        told = [line for line in result.stderr.splitlines() if line.startswith("warning")]
        short = f"warning: only {len(links):,} of {wanted:,} queries of shape 1p were found; "
        assert told == ([] if wanted == len(links) else [short + "the graph has hardly any more"])


def test_a_cap_of_one_is_a_cap(tmp_path: Path) -> None:
    path = tmp_path / "q.arrow"
    result = run("--out", path, "--split", "test", "--shapes", "2i", "--count", 9, "--cap", 1)
    assert result.exit_code == 0, result.output
    assert load_query_set(path).block("2i").hard.lengths.tolist() == [1] * 9


def test_a_graph_without_held_out_facts_gives_one_warning_per_split(tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tlikes\tb\nb\tlikes\tc\nc\tlikes\ta\n")
    out = tmp_path / "queries"
    result = CliRunner().invoke(app, ["sample", str(facts), "--out", str(out), "--shapes", "1p,2p"])
    assert result.exit_code == 0, result.output
    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning")]
    assert len(warnings) == 2
    for split, told in zip(("valid", "test"), warnings, strict=True):
        assert f"there are no {split} queries, because the graph has no {split} facts" in told
        assert f"`conekg graph build --{split}-share`" in told
        assert len(load_query_set(out / f"{split}.arrow")) == 0
    assert len(load_query_set(out / "train.arrow")) > 3


def test_the_queries_of_a_run_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "run" / "queries").mkdir(parents=True)
    (tmp_path / "run" / "run.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "run" / "queries")
    for out in ("run/queries", "link"):
        result = run("--out", tmp_path / out, "--count", 1, "--shapes", "2p")
        assert result.exit_code == 2
        assert "is part of the run" in result.stderr
    assert not list((tmp_path / "run" / "queries").iterdir())
    beside = run("--out", tmp_path / "run" / "mine", "--count", 1, "--shapes", "2p")
    assert beside.exit_code == 0, beside.output


def test_a_misspelt_preset_gets_a_suggestion(tmp_path: Path) -> None:
    result = run("--out", tmp_path, "--preset", "nell99")
    assert "did you mean 'nell995'?" in result.stderr


@pytest.mark.parametrize(
    ("name", "protocol"), [("NELL-betae", "nell995"), ("NELL", "nell995"), ("toy", "small")]
)
def test_a_benchmark_folder_gets_its_own_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, protocol: str
) -> None:
    as_large = replace(BENCHMARKS["nell995"], size=(len(ENTITIES), len(SIGNED) // 2))
    monkeypatch.setitem(BENCHMARKS, "nell995", as_large)
    result, sampled = sample_links(write_folder(tmp_path / name))
    assert sampled.protocol == protocol
    assert "warning" not in result.stderr


@pytest.mark.parametrize("name", ["NELL", "nell995.tsv"])
def test_a_graph_that_only_has_the_name_of_a_benchmark_gets_the_small_preset(
    tmp_path: Path, name: str
) -> None:
    place = tmp_path / name
    if place.suffix:
        place.write_text("".join(f"{i}\tlikes\t{i + 1}\n" for i in range(9)))
        size = "10 entities and 1 relations"
    else:
        write_folder(place)
        size = "3 entities and 2 relations"
    result, sampled = sample_links(place)
    assert sampled.protocol == "small"
    assert (
        f"warning: chose the preset 'small': the graph is called '{place.stem}' but has {size}, "
        "not 63,361 and 200\n" in result.stderr
    )
    result, sampled = sample_links(place, "--preset", "nell995")
    assert sampled.protocol == "nell995", "it was asked for"
    assert "preset" not in result.stderr


def sample_links(graph: Path, *options: str) -> tuple[Result, QuerySet]:
    """The result of the command that samples the training links of a graph, and the query set."""
    path = graph.parent / "q.arrow"
    command = ["sample", str(graph), "--split", "train", "--out", str(path), "--shapes", "1p"]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 0, result.output
    return result, load_query_set(path)


def test_a_shortfall_is_reported(tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    rows = [(f"x{i}", "likes", f"x{(i * 3 + k) % 12}") for i in range(12) for k in range(2)]
    facts.write_text("".join("\t".join(row) + "\n" for row in rows))
    result = CliRunner().invoke(
        app,
        ["sample", str(facts), "--split", "train", "--out", str(tmp_path / "q.arrow"),
         "--shapes", "2i", "--count", "5000"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "of 5,000 queries of shape 2i were found" in result.stderr
