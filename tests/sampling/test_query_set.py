from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from conekg.errors import QueryError, StoreError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.ragged import Ragged
from conekg.query.shape import STRUCTURES, Shape, shape_of
from conekg.query.tree import Anchor, And, Not, Project, Universe
from conekg.sampling import query_set as module
from conekg.sampling.query_set import (
    QueryBlock,
    QuerySet,
    concatenate_blocks,
    load_query_set,
    save_query_set,
)

UNNAMED = shape_of(And((Universe(), Not(Project(Anchor(0), 0)))))


def block_of(shape: Shape, size: int, seed: int = 0) -> QueryBlock:
    generator = np.random.default_rng(seed)

    def answers() -> Ragged:
        rows = [np.unique(generator.integers(0, 50, generator.integers(0, 9))) for _ in range(size)]
        return Ragged.from_rows(rows)

    return QueryBlock(
        shape,
        generator.integers(0, 50, (size, shape.num_anchors)).astype(np.int32),
        generator.integers(0, 8, (size, shape.num_relations)).astype(np.int32),
        answers(),
        answers(),
    )


@pytest.fixture
def query_set() -> QuerySet:
    blocks = (block_of(STRUCTURES["2in"], 7), block_of(UNNAMED, 3), block_of(STRUCTURES["3p"], 0))
    return QuerySet("valid", blocks, "fingerprint", "small", 5)


def assert_same(left: QuerySet, right: QuerySet) -> None:
    facts = [
        (part.split, part.graph_fingerprint, part.protocol, part.seed) for part in (left, right)
    ]
    assert facts[0] == facts[1]
    assert [block.shape for block in left] == [block.shape for block in right]
    for a, b in zip(left, right, strict=True):
        for first, second in (
            (a.anchors, b.anchors),
            (a.relations, b.relations),
            (a.easy.offsets, b.easy.offsets),
            (a.easy.values, b.easy.values),
            (a.hard.offsets, b.hard.offsets),
            (a.hard.values, b.hard.values),
        ):
            assert first.dtype == second.dtype
            assert np.array_equal(first, second)


@pytest.mark.parametrize("rows_per_batch", [2, 65_536])
def test_a_set_comes_back_as_it_was_saved(
    query_set: QuerySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_batch: int
) -> None:
    monkeypatch.setattr(module, "_ROWS_PER_BATCH", rows_per_batch)
    path = tmp_path / "deep" / "queries.arrow"
    save_query_set(path, query_set)
    assert_same(load_query_set(path), query_set)
    assert [file.name for file in path.parent.iterdir()] == ["queries.arrow"]


def test_a_set_of_other_integers_comes_back_as_well(query_set: QuerySet, tmp_path: Path) -> None:
    def wide(answers: Ragged) -> Ragged:
        return Ragged(answers.offsets.astype(np.int32), answers.values.astype(np.int64))

    blocks = tuple(
        QueryBlock(
            block.shape,
            block.anchors.astype(np.int64),
            block.relations.astype(np.uint8),
            wide(block.easy),
            wide(block.hard),
        )
        for block in query_set
    )
    path = tmp_path / "queries.arrow"
    save_query_set(path, replace(query_set, blocks=blocks))
    assert_same(load_query_set(path), query_set)


def test_a_set_has_one_block_a_shape(query_set: QuerySet) -> None:
    one, *others = query_set.blocks
    with pytest.raises(QueryError, match="2 blocks of shape 2in; a query set has one per shape"):
        replace(query_set, blocks=(one, *others, one))
    joined = concatenate_blocks(one.shape, [one, one])
    assert len(replace(query_set, blocks=(joined, *others))) == 7 + len(query_set)


def test_any_arrow_tool_reads_the_file(query_set: QuerySet, tmp_path: Path) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    table = pa.ipc.open_file(path).read_all()
    assert table.column_names == ["shape", "anchors", "relations", "easy", "hard"]
    assert table.num_rows == 10
    first = table.slice(0, 1).to_pylist()[0]
    block = query_set.block("2in")
    assert first["shape"] == "2in"
    assert first["anchors"] == block.anchors[0].tolist()
    assert first["hard"] == block.hard[0].tolist()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9, 0.999])
def test_a_file_cut_short_is_damaged(query_set: QuerySet, tmp_path: Path, share: float) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StoreError, match=r"queries\.arrow: "):
        load_query_set(path)


def test_no_flipped_byte_goes_unseen(query_set: QuerySet, tmp_path: Path) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    content = path.read_bytes()
    seen = 0
    for place in range(0, len(content), 37):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            loaded = load_query_set(path)
        except StoreError:
            seen += 1
        else:  # padding between buffers may change without changing the content
            for a, b in zip(loaded, query_set, strict=True):
                assert np.array_equal(a.anchors, b.anchors)
                assert np.array_equal(a.hard.values, b.hard.values)
    assert seen > 10


def test_other_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        load_query_set(tmp_path / "missing.arrow")
    text = tmp_path / "text.arrow"
    text.write_text("not arrow")
    with pytest.raises(StoreError, match="not a readable query set"):
        load_query_set(text)
    foreign = tmp_path / "foreign.arrow"
    table = pa.table({"x": [1, 2]})
    with pa.ipc.new_file(str(foreign), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(StoreError, match="an Arrow file, but not a query set"):
        load_query_set(foreign)
    with pytest.raises(StoreError, match="a folder, and a query set is a file") as caught:
        load_query_set(tmp_path)
    assert caught.value.hint == "name one of its files: foreign.arrow, text.arrow"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 99}, "query set format 99; this version of conekg reads 1"),
        ({"split": "training"}, "unknown split 'training'"),
        ({"shapes": [["2in", "e r e r ! &3"]]}, "not a readable query set"),
        ({"shapes": [["2in", 7]]}, "is no name and text of a shape"),
        ({"shapes": [["2in", "e r e r ! &2"]] * 2}, "2 blocks of shape 2in"),
        ({"shapes": ["ab"]}, "'ab' is no name and text of a shape"),
        ({"shapes": [["2in", "e" + " !" * 5_000]]}, "not a readable query set"),
        ({"shapes": {"2in": "e"}}, "has {'2in': 'e'} for 'shapes'"),
        ({"split": ["train"]}, r"has \['train'\] for 'split'"),
        ({"graph": 7}, "has 7 for 'graph'"),
        ({"seed": "7"}, "has '7' for 'seed'"),
        ({"release": 7}, "has 7 for 'release'"),
        ({"paths_from": 7}, "has 7 for 'paths_from'"),
        ({"digest": None}, "has None for 'digest'"),
        ({"digest": "0"}, "does not match its digest"),
        # Another shape with the same number of slots: only the digest shows the difference.
        (
            {"shapes": [["2in", "e r e r |2"], [UNNAMED.name, "* e r ! &2"], ["3p", "e r r r"]]},
            "does not match its digest",
        ),
    ],
)
def test_metadata_that_does_not_fit_is_refused(
    query_set: QuerySet, tmp_path: Path, change: dict[str, object], told: str
) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    table, facts = content_of(path)
    rewrite(path, table, json.dumps({**facts, **change}))
    with pytest.raises(StoreError, match=told) as caught:
        load_query_set(path)
    assert caught.value.path == str(path)
    assert caught.value.hint


def test_the_release_is_saved_and_is_none_in_files_of_earlier_versions(
    query_set: QuerySet, tmp_path: Path
) -> None:
    path = tmp_path / "queries.arrow"
    for release in ("Query2Box", None):
        save_query_set(path, replace(query_set, release=release))
        assert load_query_set(path).release == release
    table, facts = content_of(path)
    del facts["release"], facts["paths_from"]
    rewrite(path, table, json.dumps(facts))
    assert load_query_set(path).release is None


def content_of(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The rows and the metadata of a file."""
    with pa.ipc.open_file(pa.BufferReader(path.read_bytes())) as reader:
        table = reader.read_all()
    return table, json.loads(table.schema.metadata[b"conekg.query_set"])


def rewrite(path: Path, table: pa.Table, metadata: str) -> None:
    """Replace the rows and the metadata of a file."""
    table = table.replace_schema_metadata({"conekg.query_set": metadata})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def test_damaged_metadata_is_refused(query_set: QuerySet, tmp_path: Path) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    table, facts = content_of(path)
    needed = facts.keys() - {"release", "paths_from"}  # files of earlier versions lack these
    texts = [json.dumps({k: v for k, v in facts.items() if k != key}) for key in needed]
    texts += ["", "{", "[1]", "7", "null", json.dumps(facts)[:-9], "[" * 100_000]
    for text in texts:
        rewrite(path, table, text)
        with pytest.raises(StoreError, match=r"queries\.arrow: not a readable query set"):
            load_query_set(path)
    rewrite(path, table, json.dumps(facts))
    assert_same(load_query_set(path), query_set)


def test_missing_columns_and_other_types_are_refused(query_set: QuerySet, tmp_path: Path) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    table, facts = content_of(path)
    numbers = pa.array(range(table.num_rows), pa.int32())
    for changed in (table.drop_columns(["hard"]), table.set_column(3, "easy", numbers)):
        rewrite(path, changed, json.dumps(facts))
        with pytest.raises(StoreError, match="its columns are not shape, anchors, relations"):
            load_query_set(path)


def test_a_set_cannot_be_put_under_a_file(query_set: QuerySet, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="the query set cannot be written"):
        save_query_set(tmp_path / "file" / "queries.arrow", query_set)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_set_of_another_graph_is_refused(
    query_set: QuerySet, random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    with pytest.raises(StoreError, match="made for the graph fingerprint, but this is"):
        load_query_set(path, random_graph)
    for fingerprint in (None, random_graph.fingerprint):
        save_query_set(path, replace(query_set, graph_fingerprint=fingerprint))
        assert load_query_set(path, random_graph).graph_fingerprint == fingerprint


@pytest.mark.parametrize(
    ("column", "kind", "size"),
    [
        ("anchors", "entity", "num_entities"),
        ("relations", "relation", "num_relations"),
        ("easy", "entity", "num_entities"),
        ("hard", "entity", "num_entities"),
    ],
)
@pytest.mark.parametrize("is_negative", [False, True])
def test_ids_that_the_graph_does_not_have_are_refused(
    random_graph: KnowledgeGraph, tmp_path: Path, column: str, kind: str, size: str,
    is_negative: bool,
) -> None:  # fmt: skip
    path = tmp_path / "queries.arrow"
    number = getattr(random_graph, size)
    outside = -1 if is_negative else number
    block = block_of(STRUCTURES["2in"], 7)
    ids = getattr(block, column)
    (ids.values if isinstance(ids, Ragged) else ids[3])[-1] = outside
    save_query_set(path, QuerySet("test", (block,), random_graph.fingerprint))
    told = f"its 2in queries hold {kind} id {outside}; the graph has ids 0 to {number - 1}"
    with pytest.raises(StoreError, match=told):
        load_query_set(path, random_graph)
    assert len(load_query_set(path)) == 7, "without a graph there is nothing to compare with"


def test_a_failed_write_keeps_the_old_file(
    query_set: QuerySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "queries.arrow"
    save_query_set(path, query_set)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_encode", fail)
    with pytest.raises(StoreError, match="No space left on device"):
        save_query_set(path, query_set)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_blocks_concatenate_in_order() -> None:
    shape = STRUCTURES["2i"]
    first, second = block_of(shape, 3), block_of(shape, 2, seed=1)
    joined = concatenate_blocks(shape, [first, second])
    assert len(joined) == 5
    assert joined.query(3) == second.query(0)
    assert joined.hard[4].tolist() == second.hard[1].tolist()
    assert len(concatenate_blocks(shape, [])) == 0


@pytest.mark.parametrize(("at_most", "rows"), [(1, [0]), (3, [0, 3, 6]), (4, [0, 2, 5, 7])])
def test_too_many_queries_are_thinned_evenly(at_most: int, rows: list[int]) -> None:
    block = block_of(STRUCTURES["2p"], 10)
    found = block.evenly_spaced(at_most)
    np.testing.assert_array_equal(found.anchors, block.anchors[rows])
    np.testing.assert_array_equal(found.relations, block.relations[rows])


@pytest.mark.parametrize("at_most", [None, 10, 11])
def test_a_block_that_is_short_enough_is_not_thinned(at_most: int | None) -> None:
    block = block_of(STRUCTURES["2p"], 10)
    assert block.evenly_spaced(at_most) is block


def test_a_block_is_found_by_name(query_set: QuerySet) -> None:
    assert query_set.block("2in") is query_set.blocks[0]
    assert len(query_set) == 10
    with pytest.raises(QueryError, match="no valid queries of shape '2i' in this set; it has 2in,"):
        query_set.block("2i")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link.arrow").symlink_to(tmp_path / "real.arrow")
    save_query_set(tmp_path / "link.arrow", QuerySet("train", ()))
    assert (tmp_path / "link.arrow").is_symlink()
    assert load_query_set(tmp_path / "real.arrow") == QuerySet("train", ())
