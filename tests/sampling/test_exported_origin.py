from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conekg.errors import DataError, StoreError
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.sampling.benchmark_files import read_queries
from conekg.sampling.betae_files import write_betae
from conekg.sampling.query2box_files import write_query2box
from conekg.sampling.query_set import QuerySet
from release_files import FORMS, Write, origin, sampled_queries


def sampled_links(graph: KnowledgeGraph, split: Split = "test", seed: int = 3) -> QuerySet:
    return sampled_queries(graph, split, ("1p", "2p"), count=6, seed=seed)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_exported_queries_keep_their_origin(
    random_graph: KnowledgeGraph, tmp_path: Path, split: str, write: Write, release: str, name: str
) -> None:
    query_set = sampled_links(random_graph, split)
    written = write(tmp_path, query_set)
    assert written[-1] == tmp_path / name.format(split)
    assert sorted(written) == sorted(tmp_path.iterdir())
    for recompute in (False, True):
        back = read_queries(tmp_path, split, random_graph, recompute=recompute)
        assert origin(back) == origin(query_set)
    assert query_set.protocol == "plain"
    written[-1].unlink()
    assert origin(read_queries(tmp_path, split, random_graph)) == (release, None, None, None)


@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_the_pickles_are_the_same_whatever_the_origin(
    random_graph: KnowledgeGraph, tmp_path: Path, write: Write, release: str, name: str
) -> None:
    own = sampled_links(random_graph)
    sets = {"own": own, "release": replace(own, release=release, protocol=None, seed=None)}
    files = {
        folder: {file.name: file.read_bytes() for file in write(tmp_path / folder, query_set)}
        for folder, query_set in sets.items()
    }
    for pickles in files.values():
        assert pickles.pop(name.format("test"))
    assert files["own"] == files["release"]


def test_a_release_is_still_known_after_an_export_in_the_other_form(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    of_release = QuerySet("test", sampled_links(random_graph).blocks, release="BetaE")
    write_query2box(tmp_path, of_release)
    assert origin(read_queries(tmp_path, "test", random_graph)) == ("BetaE", None, None, None)
    unknown = replace(of_release, release=None)
    write_query2box(tmp_path, unknown)
    assert origin(read_queries(tmp_path, "test", random_graph)) == (None, None, None, None)


@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_an_origin_says_nothing_about_other_pickles_in_its_folder(
    random_graph: KnowledgeGraph, tmp_path: Path, write: Write, release: str, name: str
) -> None:
    """A release that is unpacked over an export is the release's."""
    own = sampled_links(random_graph)
    write(tmp_path / "own", own)
    official = replace(
        sampled_links(random_graph, seed=4), release=release, protocol=None, seed=None
    )
    write(tmp_path / "official", official)[-1].unlink()
    shutil.copytree(tmp_path / "official", tmp_path / "own", dirs_exist_ok=True)
    assert (tmp_path / "own" / name.format("test")).exists()
    back = read_queries(tmp_path / "own", "test", random_graph)
    assert origin(back) == (release, None, None, None)


def test_a_query2box_folder_of_mixed_origin_is_not_ours(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    own = sampled_links(random_graph)
    write_query2box(tmp_path, own)
    shutil.copy(tmp_path / "test_ans_1c.pkl", tmp_path / "test_ans_2i.pkl")
    assert origin(read_queries(tmp_path, "test", random_graph)) == origin(own)
    for kind in ("ans", "triples"):
        (tmp_path / f"test_{kind}_2i.pkl").write_bytes(pickle.dumps([] if kind != "ans" else {}))
    (tmp_path / "test_ans_2i_hard.pkl").write_bytes(pickle.dumps({}))
    assert read_queries(tmp_path, "test", random_graph).release == "Query2Box"
    (tmp_path / "test_triples_2i.pkl").unlink()
    (tmp_path / "test_triples_1c.pkl").unlink()
    assert origin(read_queries(tmp_path, "test", random_graph)) == origin(own), "fewer of ours"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _: b"", "it is empty"),
        (lambda _: b"[]", "where an object belongs"),
        (lambda content: {**content, "format": 2}, "has format 2; this version reads 1"),
        (lambda content: {**content, "seed": "three"}, "'seed' is 'three', not a whole number"),
        (lambda content: {k: v for k, v in content.items() if k != "release"}, "lacks 'release'"),
        (lambda content: {**content, "files": None}, "'files' is None, not an object"),
    ],
)
def test_a_damaged_origin_is_refused_with_a_remedy(
    random_graph: KnowledgeGraph, tmp_path: Path, change: Callable, told: str
) -> None:
    write_betae(tmp_path, sampled_links(random_graph))
    path = tmp_path / "test-queries-origin.json"
    changed = change(json.loads(path.read_bytes()))
    path.write_bytes(changed if isinstance(changed, bytes) else json.dumps(changed).encode())
    with pytest.raises(DataError, match=told) as caught:
        read_queries(tmp_path, "test", random_graph)
    assert str(path) in str(caught.value)
    assert "remove the file if they are those of the release" in str(caught.value.hint)
    with pytest.raises(DataError, match="may be a release's, so they are left alone"):
        write_betae(tmp_path, sampled_links(random_graph))


def test_an_origin_that_cannot_be_written_is_reported(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    (tmp_path / "test-queries-origin.json").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        write_betae(tmp_path, sampled_links(random_graph))
