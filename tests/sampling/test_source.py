"""Every format of query sets gives the same queries through the one entry point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conekg.errors import ConfigError, DataError, StoreError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.query.shape import STRUCTURES
from conekg.sampling.betae_files import write_betae
from conekg.sampling.protocol import SamplingProtocol
from conekg.sampling.query2box_files import write_query2box
from conekg.sampling.query_set import QuerySet, save_query_set
from conekg.sampling.sample import sample_query_set
from conekg.sampling.source import has_queries, open_all_queries, open_queries, splits_of

PLAIN = SamplingProtocol("plain", cap=12, patience=20_000)


def sampled(graph: KnowledgeGraph, split: Split) -> QuerySet:
    return sample_query_set(graph, split, PLAIN, 0, shapes=[STRUCTURES["2i"]], count=8).query_set


def hard_answers(query_set: QuerySet) -> dict[tuple[int, ...], list[int]]:
    (block,) = query_set
    rows = np.hstack([block.anchors, block.relations]).tolist()
    return {tuple(row): block.hard[place].tolist() for place, row in enumerate(rows)}


def test_a_file_gives_the_split_in_its_metadata(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    path = tmp_path / "any-name.arrow"
    valid = sampled(random_graph, "valid")
    save_query_set(path, valid)
    for split in (None, "valid"):
        found = open_queries(path, split, random_graph)
        assert found.split == "valid"
        assert hard_answers(found) == hard_answers(valid)
    with pytest.raises(ConfigError, match="not test queries; leave the split out") as caught:
        open_queries(path, "test", random_graph)
    assert caught.value.key == "split"
    with pytest.raises(ConfigError, match="has its answers") as caught:
        open_queries(path, "valid", random_graph, recompute=True)
    assert caught.value.key == "recompute"


def test_of_a_folder_the_test_queries_are_taken_unless_others_are_named(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    sets = {split: sampled(random_graph, split) for split in SPLITS}
    assert hard_answers(sets["valid"]) != hard_answers(sets["test"])
    own, release = tmp_path / "own", tmp_path / "release"
    for split, query_set in sets.items():
        save_query_set(own / f"{split}.arrow", query_set)
        write_betae(release, query_set)
    for folder in (own, release):
        assert hard_answers(open_queries(folder, None, random_graph)) == hard_answers(sets["test"])
        for split in SPLITS:
            assert has_queries(folder, split)
            found = open_queries(folder, split, random_graph)
            assert (found.split, hard_answers(found)) == (split, hard_answers(sets[split]))
        assert list(open_all_queries(folder, random_graph)) == splits_of(folder) == list(SPLITS)


@pytest.mark.parametrize("write", [write_betae, write_query2box])
def test_the_answers_of_a_release_are_computed_again_on_request(
    random_graph: KnowledgeGraph, tmp_path: Path, write
) -> None:
    query_set = sampled(random_graph, "test")
    (block,) = query_set
    wrong = replace(block, hard=Ragged.from_rows([[7]] * len(block)), easy=Ragged.empty(len(block)))
    write(tmp_path, replace(query_set, blocks=(wrong,)))
    as_filed = hard_answers(open_queries(tmp_path, "test", random_graph))
    assert list(as_filed.values()) == [[7]] * len(block)
    again = open_queries(tmp_path, "test", random_graph, recompute=True)
    assert hard_answers(again) == hard_answers(query_set)


def test_arrow_files_come_before_the_files_of_a_release(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    save_query_set(tmp_path / "test.arrow", sampled(random_graph, "test"))
    write_betae(tmp_path, replace(sampled(random_graph, "valid"), release="BetaE"))
    assert open_queries(tmp_path, "test", random_graph).release is None
    assert open_queries(tmp_path, "valid", random_graph).release == "BetaE"
    assert list(open_all_queries(tmp_path, random_graph)) == ["valid", "test"]


def test_places_without_queries_say_so(random_graph: KnowledgeGraph, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        open_queries(tmp_path / "nowhere", "test", random_graph)
    with pytest.raises(DataError, match="no valid queries here"):
        open_queries(tmp_path, "valid", random_graph)
    with pytest.raises(StoreError, match=r"notes\.txt: not a readable query set"):
        open_queries(file, None, random_graph)
    for place, told in (
        (file, r"notes\.txt: it is a file"),
        (tmp_path / "nowhere", "no such folder"),
    ):
        with pytest.raises(DataError, match=told):
            open_all_queries(place, random_graph)
        with pytest.raises(DataError, match=told):
            splits_of(place)
    assert open_all_queries(tmp_path, random_graph) == {}
    assert splits_of(tmp_path) == []
    assert not any(has_queries(tmp_path, split) for split in SPLITS)
