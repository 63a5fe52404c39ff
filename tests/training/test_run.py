import errno
import gc
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from conekg.errors import CheckpointError, StoreError
from conekg.model.catalog import MODELS
from conekg.sampling.query_set import load_query_set, save_query_set
from conekg.training import run as run_module
from conekg.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from conekg.training.loop import train
from conekg.training.run import Run, check_vacant, create_run, is_run, open_run
from tiny import tiny_graph, tiny_queries, tiny_recipe, tiny_run

CPU = torch.device("cpu")


def test_a_run_is_complete_in_its_folder(tmp_path):
    created = tiny_run(tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert is_run(tmp_path / "run")
    assert run.recipe == created.recipe == tiny_recipe()
    assert run.graph.fingerprint == tiny_graph().fingerprint
    assert run.info["graph"] == {"name": "tiny", "fingerprint": tiny_graph().fingerprint}
    assert run.info["model"] == "cone"
    for split, queries in tiny_queries().items():
        assert run.has_queries(split)
        assert len(run.queries(split)) == run.num_queries(split) == len(queries)
    (run.folder / "queries" / "valid.arrow").unlink()
    assert run.num_queries("valid") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_an_occupied_folder_is_never_overwritten(tmp_path):
    folder = tmp_path / "run"
    tiny_run(folder)
    with pytest.raises(CheckpointError, match="already exists") as error:
        tiny_run(folder)
    assert "--resume" in error.value.hint
    other = tmp_path / "letters"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(CheckpointError, match="already exists") as error:
        tiny_run(other)
    assert "--resume" not in error.value.hint
    assert (other / "letter.txt").read_text() == "dear"


def test_an_empty_folder_may_be_used(tmp_path):
    (tmp_path / "run").mkdir()
    assert tiny_run(tmp_path / "run").recipe.model == "cone"


def test_a_link_is_followed(tmp_path):
    """Both to an empty folder and to one that does not exist yet."""
    (tmp_path / "empty").mkdir()
    for target in ("empty", "missing"):
        link = tmp_path / f"to-{target}"
        link.symlink_to(tmp_path / target)
        assert tiny_run(link).recipe.model == "cone"
        assert link.is_symlink()
        assert (tmp_path / target / "run.json").is_file()


def test_a_run_under_a_file_is_refused(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StoreError, match="notes is a file"):
        check_vacant(tmp_path / "notes" / "run")


@pytest.mark.parametrize("name", [".", "", "../here"])
def test_the_current_folder_is_refused(tmp_path, monkeypatch, name):
    """The run would replace it, and the process would be in a folder that no longer exists."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(CheckpointError, match="is the current folder"):
        tiny_run(Path(name))
    assert not list((tmp_path / "here").iterdir())


def test_a_failed_start_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"run: cannot be written: .*file is a file"):
        create_run(tmp_path / "file" / "run", tiny_graph(), tiny_recipe(), tiny_queries())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("writer", ["save_graph", "save_query_set", "write_object"])
def test_a_full_disk_when_a_run_is_created_is_told_and_leaves_nothing(
    tmp_path, monkeypatch, writer
):
    def fill(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run_module, writer, fill)
    told = r"^cannot create the run .*new/run: No space left on device\nmake room there, or choose"
    with pytest.raises(CheckpointError, match=told):
        create_run(tmp_path / "new" / "run", tiny_graph(), tiny_recipe(), tiny_queries())
    assert not list((tmp_path / "new").iterdir())


def test_a_run_reaches_the_disk_before_its_name_does(tmp_path, monkeypatch):
    synced = []

    def note(file):
        assert not (tmp_path / "run").exists()
        synced.append(os.fstat(file).st_ino)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", note)
        tiny_run(tmp_path / "run")
    files = {path.stat().st_ino for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert len(files) > 10
    assert files <= set(synced)


def test_processes_with_equal_ids_do_not_remove_each_others_files(tmp_path, monkeypatch):
    """As in two containers that share a folder; the one that ends second is refused."""
    save, others = run_module.save_graph, []

    def save_while_another_starts(graph, folder):
        if not others:
            others.append(tmp_path / "run")
            tiny_run(*others)
        return save(graph, folder)

    monkeypatch.setattr(run_module, "save_graph", save_while_another_starts)
    with pytest.raises(CheckpointError, match="not empty"):
        tiny_run(tmp_path / "run")
    assert open_run(tmp_path / "run").graph.fingerprint == tiny_graph().fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_folders_that_are_no_runs_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"no run\.json") as error:
        open_run(tmp_path)
    assert "conekg fit" in error.value.hint
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        open_run(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 99, "conekg": "9.9"}')
    with pytest.raises(CheckpointError, match=r"conekg 9\.9"):
        open_run(tmp_path)


DAMAGES = [
    (b"", "it is empty"),
    (b'{"format": 1, "con', "it is not JSON"),
    (b"conekg", "it is not JSON"),
    (b"\x93\xff\x00", "it is not JSON"),
    (b"[" * 100_000, "it is not JSON"),
    (b"[1]", "it holds [1], where an object belongs"),
    (b"null", "it holds None, where an object belongs"),
    (b"{}", "it lacks 'format'"),
    (b'{"format": true}', "'format' is True, not a whole number"),
    (b'{"format": 1, "conekg": "0.1"}', "it lacks 'torch'"),
]


@pytest.mark.parametrize(("content", "complaint"), DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_run_json_names_the_file_and_a_remedy(tmp_path, content, complaint):
    run = tiny_run(tmp_path / "run")
    path = run.folder / "run.json"
    path.write_bytes(content)
    for read in (open_run, lambda folder: Run(folder).graph):
        with pytest.raises(CheckpointError) as caught:
            read(run.folder)
        assert caught.value.message.startswith(f"{path} is damaged: {complaint}")
        assert "copy of the run" in caught.value.hint


@pytest.mark.parametrize("key", ["conekg", "torch", "model", "recipe", "seed", "graph"])
def test_missing_and_wrong_keys_of_run_json_are_named(tmp_path, key):
    run = tiny_run(tmp_path / "run")
    path = run.folder / "run.json"
    info = json.loads(path.read_text())
    graphs = [{"graph": info["graph"] | {"fingerprint": value}} for value in (None, 7)]
    for spoilt, complaint in (
        ({name: info[name] for name in info if name != key}, f"lacks '{key}'"),
        (info | {key: [1]}, rf"'{key}' is \[1\]"),
        *((info | graph, "'fingerprint' is") for graph in graphs),
        (info | {"graph": {"name": "tiny"}}, "lacks 'fingerprint'"),
    ):
        path.write_text(json.dumps(spoilt))
        with pytest.raises(CheckpointError, match=rf"run\.json is damaged: .*{complaint}"):
            open_run(run.folder)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "training.steps is missing"),
        (b"[training", "is not TOML"),
        (b"steps = " + b"[" * 100_000, "is not TOML"),
        (b"\xff\xfe", "is damaged: 'utf-8'"),
        (b"training = 3", "a table of keys is needed"),
        (b"recipe = 3\n[training]\nsteps = 3", "recipe = 3: text is needed"),
        (b"[model]\nname = 3\n[training]\nsteps = 3", "model.name = 3: text is needed"),
        (b"[training]\nsteps = '3'", "a whole number is needed"),
        (b"[training]\nsteps = 3\nnews = 1", "unknown key 'training.news'"),
    ],
)
def test_a_damaged_recipe_names_the_file_and_a_remedy(tmp_path, content, complaint):
    run = tiny_run(tmp_path / "run")
    path = run.folder / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        open_run(run.folder).new_model()
    assert caught.value.message.startswith(str(path))
    assert complaint in caught.value.message
    assert "copy of the run" in caught.value.hint
    path.unlink()
    with pytest.raises(
        CheckpointError, match=r"cannot read .*recipe\.toml: No such file"
    ) as caught:
        _ = open_run(run.folder).recipe
    assert "copy of the run" in caught.value.hint


def test_a_byte_order_mark_before_a_recipe_is_skipped(tmp_path):
    run = tiny_run(tmp_path / "run")
    path = run.folder / "recipe.toml"
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert open_run(run.folder).recipe == run.recipe


def test_a_recipe_of_another_version_names_the_version(tmp_path):
    run = tiny_run(tmp_path / "run")
    (run.folder / "recipe.toml").write_text("[training]\nsteps = 3\nnews = 1")
    (run.folder / "run.json").write_text(json.dumps(run.info | {"conekg": "9.9"}))
    with pytest.raises(CheckpointError, match=r"unknown key 'training\.news'") as caught:
        _ = open_run(run.folder).recipe
    assert caught.value.hint.startswith("use conekg 9.9, which made the run, or restore")


def test_a_run_of_a_model_missing_from_the_catalog_says_how_to_add_it(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS, "mine", MODELS["gqe"])
    recipe = replace(tiny_recipe("gqe"), model="mine")
    run = create_run(tmp_path / "run", tiny_graph(), recipe, tiny_queries())
    assert open_run(run.folder).recipe == recipe
    monkeypatch.delitem(MODELS, "mine")
    with pytest.raises(CheckpointError, match=r"recipe\.toml: unknown model 'mine'") as caught:
        _ = open_run(run.folder).recipe
    assert caught.value.hint.startswith("put 'mine' into conekg.model.catalog.MODELS")
    assert "restore" not in caught.value.hint


def test_weights_of_another_size_than_the_recipe_says_are_refused(tmp_path):
    run = tiny_run(tmp_path / "run")
    parameters = dict(run.new_model().state_dict())
    weights = Checkpoint(step=1, parameters=parameters, optimizer={}, best_score=None, seconds=0.0)
    save_checkpoint(run.checkpoint_folder("last"), weights)
    recipe = tmp_path / "run" / "recipe.toml"
    text = recipe.read_text()
    assert text.count("dim = 32\n") == 1
    recipe.write_text(text.replace("dim = 32\n", "dim = 16\n"))
    with pytest.raises(
        CheckpointError, match=r"last does not fit the model of recipe\.toml: .*"
    ) as error:
        open_run(tmp_path / "run").load_model("last")
    assert "size mismatch for entity" in error.value.message
    assert error.value.hint == "restore both from one copy of the run"


def test_a_run_before_its_first_checkpoint_has_no_model(tmp_path):
    run = tiny_run(tmp_path / "run")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        run.load_model()


def test_a_swapped_graph_is_noticed(tmp_path):
    run = tiny_run(tmp_path / "run")
    path = run.folder / "run.json"
    info = json.loads(path.read_text())
    info["graph"]["fingerprint"] = "0" * 16
    path.write_text(json.dumps(info))
    with pytest.raises(CheckpointError, match="not the graph"):
        _ = open_run(run.folder).graph


def test_queries_of_another_graph_are_noticed(tmp_path):
    run = tiny_run(tmp_path / "run")
    foreign = replace(tiny_queries()["train"], graph_fingerprint="0" * 16)
    save_query_set(run.folder / "queries" / "train.arrow", foreign)
    with pytest.raises(StoreError, match="made for the graph 0000"):
        open_run(run.folder).queries("train")


@pytest.mark.parametrize("model", list(MODELS))
def test_a_loaded_model_scores_as_the_trained_one(tmp_path, model):
    run = tiny_run(tmp_path / "run", model, steps=3)
    trained = {}

    def keep(current):
        trained["logits"] = links(current)
        return {"score": 1.0}

    def links(current):
        region = current.project(current.anchor(torch.tensor([0, 5, 9])), torch.tensor([0, 2, 3]))
        return current.logits_of_all(region)

    train(run, device=CPU, validate=keep)
    loaded = open_run(run.folder).load_model()
    assert not loaded.training
    with torch.no_grad():
        assert torch.equal(links(loaded), trained["logits"])


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused_with_their_checkpoint(tmp_path, model, value):
    run = tiny_run(tmp_path / "run", model, steps=1)
    train(run, device=CPU)
    folder = run.checkpoint_folder("last")
    checkpoint = load_checkpoint(folder)
    checkpoint.parameters["entity"][3, 0] = value
    save_checkpoint(folder, checkpoint)
    with pytest.raises(CheckpointError, match="'entity' are not all finite") as error:
        run.load_model("last")
    assert str(folder) in error.value.message
    assert "learning_rate" in error.value.hint


@pytest.mark.parametrize("name", ["run.json", "recipe.toml", "checkpoint.json", "parameters-"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch, name):
    run = tiny_run(tmp_path / "run", steps=1)
    train(run, device=CPU)
    opened = Path.open

    def refusing(path, *arguments, **options):
        if path.name.startswith(name):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refusing)
    with pytest.raises(CheckpointError, match=f"cannot read .*{name}.*: Permission") as error:
        open_run(run.folder).load_model("last")
    assert error.value.hint is None


def test_queries_are_read_again_only_when_no_longer_in_use(tmp_path, monkeypatch):
    created = tiny_run(tmp_path / "run")
    read = []
    monkeypatch.setattr(
        run_module, "load_query_set", lambda *a: read.append(a) or load_query_set(*a)
    )
    opened = open_run(created.folder)
    first = opened.queries("train")
    assert opened.queries("train") is first
    assert len(read) == 1
    before = [block.hard.values.tolist() for block in first]
    del first
    gc.collect()
    assert [block.hard.values.tolist() for block in opened.queries("train")] == before
    assert len(read) == 2


def test_a_run_just_created_has_the_queries_it_was_given(tmp_path):
    given = tiny_queries()
    created = create_run(tmp_path / "run", tiny_graph(), tiny_recipe(), given)
    again = open_run(tmp_path / "run")
    for split, queries in given.items():
        assert created.queries(split) is queries
        for block, same in zip(queries, again.queries(split), strict=True):
            assert block.anchors.tolist() == same.anchors.tolist()
            assert block.hard.values.tolist() == same.hard.values.tolist()
