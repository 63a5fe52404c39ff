import errno
import hashlib
import json
import os
from pathlib import Path

import pytest
import torch

from conekg.errors import CheckpointError
from conekg.training import checkpoint as module
from conekg.training.checkpoint import (
    Checkpoint,
    checkpoint_step,
    has_checkpoint,
    load_checkpoint,
    load_parameters,
    save_checkpoint,
)


def checkpoint(step, value=1.0):
    return Checkpoint(
        step,
        {"entity": torch.full((3, 2), value), "scale": torch.tensor(0.5)},
        {"steps": torch.tensor(step), "entity:exp_avg": torch.full((3, 2), -value)},
        best_score=0.25,
        seconds=1.5,
    )


def assert_same(one, other):
    assert (one.step, one.best_score, one.seconds) == (other.step, other.best_score, other.seconds)
    for mine, theirs in ((one.parameters, other.parameters), (one.optimizer, other.optimizer)):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_a_checkpoint_comes_back_and_replaces_the_older(tmp_path):
    assert not has_checkpoint(tmp_path)
    save_checkpoint(tmp_path, checkpoint(1))
    save_checkpoint(tmp_path, checkpoint(2, value=3.0))
    assert_same(load_checkpoint(tmp_path), checkpoint(2, value=3.0))
    assert torch.equal(load_parameters(tmp_path)["entity"], torch.full((3, 2), 3.0))
    assert len(list(tmp_path.iterdir())) == 3  # nothing of the older one is left


def test_an_older_file_that_cannot_be_removed_is_no_error(tmp_path, monkeypatch):
    """For example if another process has it open on a system that forbids removing open files."""
    save_checkpoint(tmp_path, checkpoint(1))
    real = Path.unlink

    def refuse(path, missing_ok=False):
        if path.suffix == ".safetensors":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    save_checkpoint(tmp_path, checkpoint(2, value=3.0))
    assert_same(load_checkpoint(tmp_path), checkpoint(2, value=3.0))
    monkeypatch.undo()
    save_checkpoint(tmp_path, checkpoint(3))
    assert len(list(tmp_path.iterdir())) == 3


def test_a_checkpoint_of_step_zero_in_a_new_folder(tmp_path):
    folder = tmp_path / "run" / "last"
    save_checkpoint(folder, checkpoint(0))
    assert_same(load_checkpoint(folder), checkpoint(0))
    assert checkpoint_step(folder) == 0


def test_weights_that_share_memory_come_back_under_all_their_names(tmp_path):
    table = torch.arange(12.0).reshape(3, 4)
    shared = {"one": table, "other": table, "turned": table.t(), "part": table[1:]}
    save_checkpoint(tmp_path, Checkpoint(3, shared, {"steps": torch.tensor(3)}))
    found = load_parameters(tmp_path)
    assert found.keys() == shared.keys()
    assert all(torch.equal(found[name], shared[name]) for name in shared)


def test_a_truncated_file_is_named(tmp_path):
    save_checkpoint(tmp_path, checkpoint(1))
    (weights,) = tmp_path.glob("parameters-*.safetensors")
    size = weights.stat().st_size
    weights.write_bytes(weights.read_bytes()[:-10])
    told = f" is truncated: {size - 10} bytes where {size} were written"
    with pytest.raises(CheckpointError, match=told) as error:
        load_checkpoint(tmp_path)
    assert weights.name in error.value.message
    assert "best" in error.value.hint


def test_a_flipped_bit_is_found(tmp_path):
    save_checkpoint(tmp_path, checkpoint(1))
    (weights,) = tmp_path.glob("optimizer-*.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match="checksum"):
        load_checkpoint(tmp_path)
    load_parameters(tmp_path)  # the other file is whole


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"step": 1}', b"\xff\xfe\xfd", b"[" * 100_000]
)
def test_a_damaged_manifest_is_refused(tmp_path, content):
    save_checkpoint(tmp_path, checkpoint(1))
    path = tmp_path / "checkpoint.json"
    path.write_bytes(content)
    for read in (load_checkpoint, load_parameters, checkpoint_step):
        with pytest.raises(CheckpointError) as caught:
            read(tmp_path)
        assert caught.value.message.startswith(f"{path} is damaged: it ")
        assert "restore it" in caught.value.hint


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "1"),
        (("step",), "1"),
        (("step",), True),
        (("step",), -1),
        (("step",), 1.5),
        (("step",), float("inf")),
        (("best_score",), "0.25"),
        (("seconds",), None),
        pytest.param(("seconds",), 10**400, id="too large for a float"),
        (("files", "parameters"), None),
        (("files", "parameters", "name"), None),
        (("files", "parameters", "name"), "../elsewhere"),
        (("files", "parameters", "name"), "a\0b"),
        (("files", "parameters", "size"), "88"),
        (("files", "parameters", "sha256"), 7),
    ],
)
def test_a_manifest_with_a_value_of_the_wrong_type_is_refused(tmp_path, place, value):
    save_checkpoint(tmp_path, checkpoint(1))
    path = tmp_path / "checkpoint.json"
    content = json.loads(path.read_text())
    *outer, key = place
    inner = content
    for name in outer:
        inner = inner[name]
    inner[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=f"damaged: '{key}' is ") as caught:
        load_parameters(tmp_path)
    assert "restore it" in caught.value.hint


def rewrite(folder, kind, content):
    """Put other bytes in the place of a tensor file, with a size and a checksum that suit them."""
    path = folder / "checkpoint.json"
    manifest = json.loads(path.read_text())
    entry = manifest["files"][kind]
    (folder / entry["name"]).write_bytes(content)
    entry |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_text(json.dumps(manifest))
    return folder / entry["name"]


def header(text):
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not tensors at all",
        header(b"{"),
        header(b"[]"),
        header(b'{"entity": 3}'),
        header(b'{"entity": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}') + bytes(4),
        header(b'{"entity": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}}'),
        header(b'{"entity": {"dtype": "F32", "shape": [9], "data_offsets": [0, 24]}}') + bytes(24),
    ],
    ids=range(8),
)
def test_a_damaged_header_of_tensors_is_told_with_its_file(tmp_path, content):
    save_checkpoint(tmp_path, checkpoint(1))
    path = rewrite(tmp_path, "parameters", content)
    for read in (load_checkpoint, load_parameters):
        with pytest.raises(CheckpointError) as caught:
            read(tmp_path)
        assert caught.value.message.startswith(f"{path} is damaged: it holds no tensors: ")
        assert "restore it" in caught.value.hint


@pytest.mark.parametrize("key", ["step", "best_score", "seconds", "files"])
def test_a_manifest_that_lacks_something_says_what(tmp_path, key):
    save_checkpoint(tmp_path, checkpoint(1))
    path = tmp_path / "checkpoint.json"
    content = json.loads(path.read_text())
    for spoilt, message in (
        ({name: content[name] for name in content if name != key}, f"lacks '{key}'"),
        (content | {key: ["?"]}, "damaged"),
    ):
        path.write_text(json.dumps(spoilt))
        for read in (load_checkpoint, load_parameters, checkpoint_step):
            with pytest.raises(CheckpointError, match=message) as caught:
                read(tmp_path)
            assert "restore it" in caught.value.hint


def test_missing_pieces(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint") as none:
        load_checkpoint(tmp_path)
    assert "`conekg train --resume` begins it again" in none.value.hint
    save_checkpoint(tmp_path, checkpoint(1))
    next(tmp_path.glob("parameters-*")).unlink()
    with pytest.raises(CheckpointError, match="cannot read") as error:
        load_checkpoint(tmp_path)
    assert "restore it" in error.value.hint


@pytest.mark.parametrize("read", [load_checkpoint, load_parameters])
@pytest.mark.parametrize("kind", ["parameters", "optimizer"])
def test_a_checkpoint_replaced_while_it_is_read_gives_the_newer(tmp_path, monkeypatch, read, kind):
    """Training continues while another process evaluates the checkpoint."""
    save_checkpoint(tmp_path, checkpoint(1))
    real = module._read_tensors

    def late(folder, file):
        if file.name.startswith(f"{kind}-000000001"):
            save_checkpoint(tmp_path, checkpoint(2, value=3.0))
        return real(folder, file)

    monkeypatch.setattr(module, "_read_tensors", late)
    found = read(tmp_path)
    if read is load_checkpoint:
        assert_same(found, checkpoint(2, value=3.0))
    else:
        assert float(found["entity"][0, 0]) == (3.0 if kind == "parameters" else 1.0)


def test_a_folder_without_permission_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    """Otherwise training would begin again and overwrite the checkpoint."""

    def refusing(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(module.Path, "stat", refusing)
    with pytest.raises(CheckpointError, match=r"checkpoint\.json: Permission denied") as error:
        has_checkpoint(tmp_path)
    assert error.value.hint is None


@pytest.mark.parametrize("name", ["checkpoint.json", "parameters-*.safetensors"])
def test_a_file_that_the_system_cannot_read_is_not_called_damaged(tmp_path, name):
    save_checkpoint(tmp_path, checkpoint(1))
    (path,) = tmp_path.glob(name)
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match=f"cannot read .*{path.name}: Is a dir") as error:
        load_checkpoint(tmp_path)
    assert error.value.hint is None


def test_a_newer_format_is_refused(tmp_path):
    save_checkpoint(tmp_path, checkpoint(1))
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(CheckpointError, match="format 99"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("failing_call", [0, 1, 2])
def test_a_full_disk_loses_nothing_older(tmp_path, monkeypatch, failing_call):
    """The disk becomes full at the first, second or third file of the new checkpoint."""
    save_checkpoint(tmp_path, checkpoint(1))
    calls = iter(range(10))

    def fsync(descriptor):
        if next(calls) == 2 * failing_call:  # a file, then its folder, then the next file
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CheckpointError, match="No space left on device") as error:
        save_checkpoint(tmp_path, checkpoint(2))
    assert "--resume" in error.value.hint
    monkeypatch.undo()
    assert_same(load_checkpoint(tmp_path), checkpoint(1))
    assert not list(tmp_path.glob("*.partial"))
    save_checkpoint(tmp_path, checkpoint(3))
    assert_same(load_checkpoint(tmp_path), checkpoint(3))
    assert len(list(tmp_path.iterdir())) == 3


def test_the_next_checkpoint_removes_the_partial_files_of_a_killed_process(tmp_path):
    save_checkpoint(tmp_path, checkpoint(1))
    (tmp_path / ".parameters-000000002-0badcafe.safetensors.77.partial").write_bytes(b"half")
    (tmp_path / "parameters-000000002-0badcafe.safetensors").write_bytes(b"of no manifest")
    (tmp_path / "notes.txt").write_text("mine")
    assert_same(load_checkpoint(tmp_path), checkpoint(1))
    save_checkpoint(tmp_path, checkpoint(3))
    left = sorted(path.suffix for path in tmp_path.iterdir())
    assert left == [".json", ".safetensors", ".safetensors", ".txt"]
    assert_same(load_checkpoint(tmp_path), checkpoint(3))


def test_an_unwritable_place_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot write"):
        save_checkpoint(tmp_path / "file" / "last", checkpoint(1))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
