from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.graph.geography import load_geography
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import PRESETS
from conekg.sampling.query_set import load_query_set, save_query_set
from conekg.sampling.sample import sample_query_set
from toy_release import write_folder


def run(*arguments: object):
    return CliRunner().invoke(app, ["queries", *map(str, arguments)])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small test set of the built-in graph, with and without negation."""
    shapes = [STRUCTURES["2i"], STRUCTURES["2in"]]
    sampled = sample_query_set(
        load_geography(), "test", PRESETS["small"], 0, shapes=shapes, count=6
    )
    file = tmp_path_factory.mktemp("queries") / "test.arrow"
    save_query_set(file, sampled.query_set)
    return file


def test_info_shows_what_a_set_contains(path: Path) -> None:
    told = json.loads(run("info", path, "--json").stdout)
    assert told["split"] == "test"
    assert told["graph"] == load_geography().fingerprint
    assert [(fact["shape"], fact["queries"]) for fact in told["shapes"]] == [("2i", 6), ("2in", 6)]
    block = load_query_set(path).block("2in")
    assert told["shapes"][1]["mean_hard"] == pytest.approx(block.hard.lengths.mean())
    assert told["shapes"][1]["mean_easy"] == pytest.approx(block.easy.lengths.mean())
    shown = run("info", path).stdout
    cells = ["2in", "6", f"{block.easy.lengths.mean():.2f}", f"{block.hard.lengths.mean():.2f}"]
    assert cells in [line.replace("│", " ").split() for line in shown.splitlines()]
    assert "2in" in shown
    assert "sampled by the protocol 'small' with seed 0" in " ".join(shown.split())
    assert told["release"] is None
    assert told["paths_from"] is None


def test_info_says_from_which_end_training_paths_were_drawn(tmp_path: Path) -> None:
    protocol = replace(PRESETS["small"], train_paths_from="anchor")
    shapes = [STRUCTURES["2p"]]
    sampled = sample_query_set(load_geography(), "train", protocol, 0, shapes=shapes, count=3)
    save_query_set(tmp_path / "train.arrow", sampled.query_set)
    shown = " ".join(run("info", tmp_path / "train.arrow").stdout.split())
    assert "sampled by the protocol 'small' with seed 0, paths from the anchor" in shown


@pytest.mark.parametrize("recompute", [(), ("--recompute",)])
def test_a_set_survives_export_and_import(
    path: Path, tmp_path: Path, recompute: tuple[str, ...]
) -> None:
    assert run("export", path, "--out", tmp_path).exit_code == 0
    if recompute:
        (tmp_path / "test-hard-answers.pkl").unlink()
    back = tmp_path / "back.arrow"
    result = run("import", tmp_path, "--graph", "geography", "--out", back, *recompute)
    assert result.exit_code == 0, result.output
    assert json.loads(run("info", back, "--json").stdout) | {"shapes": []} == {
        **json.loads(run("info", path, "--json").stdout),
        "shapes": [],
    }
    shown = " ".join(run("info", back).stdout.split())
    assert "sampled by the protocol 'small' with seed 0" in shown
    assert "release" not in shown
    for before, after in zip(load_query_set(path), load_query_set(back), strict=True):
        rows = np.lexsort(np.hstack([before.anchors, before.relations]).T[::-1])
        places = np.lexsort(np.hstack([after.anchors, after.relations]).T[::-1])
        assert np.array_equal(before.anchors[rows], after.anchors[places])
        assert np.array_equal(before.take(rows).hard.values, after.take(places).hard.values)
        assert np.array_equal(before.take(rows).easy.values, after.take(places).easy.values)


def test_import_names_the_option_for_a_folder_without_a_graph(path: Path, tmp_path: Path) -> None:
    run("export", path, "--out", tmp_path)
    refused = run("import", tmp_path, "--out", tmp_path / "back.arrow")
    assert refused.exit_code == 2
    assert "the folder holds no graph" in refused.stderr
    assert "give the graph that its queries are about by --graph" in refused.stderr
    write_folder(tmp_path)
    (tmp_path / "train.txt").write_text("0\t0\n")
    damaged = run("import", tmp_path, "--out", tmp_path / "back.arrow")
    assert damaged.exit_code == 2
    assert "--graph" not in damaged.stderr


@pytest.mark.parametrize("form", ["betae", "query2box"])
@pytest.mark.parametrize("is_release", [False, True])
def test_an_export_replaces_an_earlier_export_and_no_release(
    path: Path, tmp_path: Path, form: str, is_release: bool
) -> None:
    links = tmp_path / "links.arrow"
    words = ("--split", "test", "--shapes", "1p,2i", "--count", 3, "--out", links)
    sampled = CliRunner().invoke(app, ["sample", "geography", *map(str, words)])
    assert sampled.exit_code == 0
    if is_release:
        release = "BetaE" if form == "betae" else "Query2Box"
        save_query_set(
            links, replace(load_query_set(links), release=release, protocol=None, seed=None)
        )
    folder = tmp_path / "pickles"
    for _ in range(2):
        assert run("export", links, "--out", folder, "--form", form).exit_code == 0
    (origin,) = folder.glob("*origin.json")
    origin.unlink()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    refused = run("export", links, "--out", folder, "--form", form, "--json")
    assert (refused.exit_code, refused.stdout) == (2, "")
    told = " ".join(refused.stderr.split())
    assert "holds test queries that may be a release's, so they are left alone" in told
    assert "choose another folder, or remove test" in told
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    origin.write_text("damaged")
    assert run("export", links, "--out", folder, "--form", form).exit_code == 2
    other = "query2box" if form == "betae" else "betae"
    refused = run("export", links, "--out", folder, "--form", other)
    assert refused.exit_code == 2
    assert "those of BetaE alone are read" in " ".join(refused.stderr.split())


def test_a_folder_without_an_origin_is_that_of_the_release(path: Path, tmp_path: Path) -> None:
    assert run("export", path, "--out", tmp_path).exit_code == 0
    (tmp_path / "test-queries-origin.json").unlink()
    back = tmp_path / "back.arrow"
    told = run("import", tmp_path, "--graph", "geography", "--out", back, "--json")
    assert json.loads(told.stdout)["release"] == "BetaE"
    assert "in the form of the BetaE release" in " ".join(run("info", back).stdout.split())


def test_export_and_import_tell_a_script_what_they_wrote(path: Path, tmp_path: Path) -> None:
    about = json.loads(run("info", path, "--json").stdout)
    assert about["queries"] == 12
    folder, back = tmp_path / "out", tmp_path / "back.arrow"
    exported = run("export", path, "--out", folder, "--json")
    told = json.loads(exported.stdout)
    assert sorted(told.pop("files")) == sorted(file.name for file in folder.iterdir())
    assert told == {"path": str(path), "folder": str(folder), "form": "betae", **about}
    assert f"wrote 12 test queries to {folder}" in exported.stderr.replace("\n", "")
    for recompute in (False, True):
        words = ("--graph", "geography", "--out", back, *(["--recompute"] if recompute else []))
        told = json.loads(run("import", folder, *words, "--json").stdout)
        places = {"path": str(back), "folder": str(folder), "recompute": recompute}
        assert told == places | json.loads(run("info", back, "--json").stdout)
        assert [(fact["shape"], fact["queries"]) for fact in told["shapes"]] == [
            ("2i", 6),
            ("2in", 6),
        ]
    refused = run("import", tmp_path, *words, "--json")
    assert (refused.exit_code, refused.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("info", "missing.arrow"), "missing.arrow: no such file"),
        (("import", "nowhere", "--graph", "geography", "--out", "x.arrow"), "no such folder"),
    ],
)
def test_failures_get_one_message_and_exit_2(arguments: tuple[str, ...], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_query_set_needs_no_import(path: Path, tmp_path: Path) -> None:
    into = ("--graph", "geography", "--out", tmp_path / "again.arrow")
    for place, told in (
        (path.parent, "test.arrow: a query set already"),
        (path, "test.arrow: not a BetaE or Query2Box folder"),
    ):
        result = run("import", place, *into)
        assert result.exit_code == 2
        assert told in result.stderr
        assert "--queries takes it as it is" in result.stderr


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_read(
    path: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (tmp_path / "run" / "queries").mkdir(parents=True)
    (tmp_path / "run" / "run.json").write_text("{}")
    for arguments, told in (
        (("import", "nowhere", "--out", mine), "is not a query set, so it is left alone"),
        (("import", "nowhere", "--out", mine / "x.arrow"), "mine.txt is a file"),
        (("import", "nowhere", "--out", tmp_path), "a query set is a file"),
        (("import", "nowhere", "--out", tmp_path / "run/queries/test.arrow"), "is part of the run"),
        (("export", "nowhere", "--out", mine), "mine.txt is a file"),
        (("export", "nowhere", "--out", tmp_path / "run/queries"), "is part of the run"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert told in result.stderr
    assert mine.read_text() == "mine"


def test_a_folder_of_query_sets_is_no_query_set(path: Path, tmp_path: Path) -> None:
    result = run("info", path.parent)
    assert result.exit_code == 2
    assert "name one of its files: test.arrow" in result.stderr
    told = run("info", tmp_path).stderr
    assert "`conekg sample` writes query sets" in told
    assert "`conekg queries import` makes one" in told


def test_negation_has_no_place_in_query2box_files(path: Path, tmp_path: Path) -> None:
    result = run("export", path, "--out", tmp_path / "out", "--form", "query2box")
    assert result.exit_code == 2
    assert "no place for queries of shape 2in" in result.stderr
    assert not (tmp_path / "out").exists()
