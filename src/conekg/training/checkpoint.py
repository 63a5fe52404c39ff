"""Checkpoints: parameters and optimizer state on disk, replaced atomically.

A checkpoint is a folder whose `checkpoint.json` names its two tensor files and their
checksums. New tensor files are written under new names first; then replacing the JSON file
commits them. If the process ends in between, the folder still holds the older checkpoint.
"""

from __future__ import annotations

import hashlib
import reprlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import safetensors
import safetensors.torch
from torch import Tensor

from conekg.errors import CheckpointError
from conekg.graph.json_file import read_object, value_of, write_object
from conekg.graph.place import write_atomically

FORMAT_VERSION = 1
_MANIFEST = "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    """The parameters of a model and the state of its training after some step."""

    step: int
    """How many steps are done."""
    parameters: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    """What `Updater.state` returns."""
    best_score: float | None = None
    """The best validation score so far."""
    seconds: float = 0.0
    """Training time so far, without the time between a stop and a resume."""


@dataclass(frozen=True)
class _File:
    """The manifest's entry for a tensor file."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class _Manifest:
    """The contents of `checkpoint.json`."""

    step: int
    best_score: float | None
    seconds: float
    parameters: _File
    optimizer: _File


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in `folder`; the older one stays until the new one is complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = {
            kind: _write_tensors(folder, kind, checkpoint.step, tensors)
            for kind, tensors in (
                ("parameters", checkpoint.parameters),
                ("optimizer", checkpoint.optimizer),
            )
        }
        manifest = {
            "format": FORMAT_VERSION,
            "step": checkpoint.step,
            "best_score": checkpoint.best_score,
            "seconds": checkpoint.seconds,
            "files": {kind: asdict(file) for kind, file in files.items()},
        }
        write_object(folder / _MANIFEST, manifest)
    except OSError as error:
        raise CheckpointError(
            f"cannot write the checkpoint of step {checkpoint.step} to {folder}: {error.strerror}",
            hint="an earlier checkpoint is untouched; make room or repair the folder, then "
            "continue with --resume",
        ) from error
    _remove_all_but(folder, {file.name for file in files.values()})


def load_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`, with checksums verified."""
    manifest, (parameters, optimizer) = _read_whole(folder, "parameters", "optimizer")
    return Checkpoint(
        step=manifest.step,
        parameters=parameters,
        optimizer=optimizer,
        best_score=manifest.best_score,
        seconds=manifest.seconds,
    )


def load_parameters(folder: Path) -> dict[str, Tensor]:
    """The parameters alone, which are all that answering needs, with their checksum verified."""
    _, (parameters,) = _read_whole(folder, "parameters")
    return parameters


def checkpoint_name(folder: Path) -> str:
    """The name of the file of parameters, which no other checkpoint's parameters have."""
    return _read_manifest(folder).parameters.name


def checkpoint_step(folder: Path) -> int:
    """How many steps a checkpoint's parameters were trained for."""
    return _read_manifest(folder).step


def checkpoint_seconds(folder: Path) -> float:
    """How many seconds a checkpoint's parameters were trained for, earlier processes included."""
    return _read_manifest(folder).seconds


def has_checkpoint(folder: Path) -> bool:
    """Whether `folder` holds a checkpoint; `CheckpointError` if it may not be looked into."""
    path = folder / _MANIFEST
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise cannot_read(path, error) from error
    return True


def cannot_read(path: Path, error: OSError, if_gone: str | None = None) -> CheckpointError:
    """The error for a file that cannot be read; `if_gone` is the hint if the file is missing.

    Other failures, such as a missing permission, are no sign of damage and get no hint.
    """
    hint = if_gone if isinstance(error, FileNotFoundError) else None
    return CheckpointError(f"cannot read {path}: {error.strerror}", hint=hint)


def _write_tensors(folder: Path, kind: str, step: int, tensors: dict[str, Tensor]) -> _File:
    content = safetensors.torch.save(_unshared(tensors))
    digest = hashlib.sha256(content).hexdigest()
    # The name has a part of the checksum: an existing file of this name has the same content,
    # unless it is damaged.
    name = f"{kind}-{step:09d}-{digest[:8]}.safetensors"
    write_atomically(folder / name, content)
    return _File(name, len(content), digest)


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, copied where two share memory, which safetensors refuses to save.

    Shared weights are saved once under each name. Loading them writes the same values to the
    shared memory twice.
    """
    unshared, seen = {}, set[int]()
    for name, tensor in tensors.items():
        address = tensor.untyped_storage().data_ptr()
        own = tensor.clone() if address in seen else tensor
        unshared[name] = own.contiguous()
        seen.add(address)
    return unshared


def _read_whole(
    folder: Path, *kinds: Literal["parameters", "optimizer"]
) -> tuple[_Manifest, list[dict[str, Tensor]]]:
    """The manifest and the tensors of the given files, all of one checkpoint.

    If a running training replaces the checkpoint meanwhile, the newer one is read.
    """
    manifest = _read_manifest(folder)
    while True:
        files = [getattr(manifest, kind) for kind in kinds]
        try:
            return manifest, [_read_tensors(folder, file) for file in files]
        except CheckpointError:
            manifest = _read_manifest(folder)
            if files == [getattr(manifest, kind) for kind in kinds]:
                raise


def _read_manifest(folder: Path) -> _Manifest:
    path = folder / _MANIFEST
    try:
        content = read_object(path)
        version = value_of(content, "format", int)
        if version == FORMAT_VERSION:
            return _parsed(content)
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{folder} holds no checkpoint: {_MANIFEST} is missing",
            hint="it stopped before its first checkpoint; `conekg train --resume` begins it again",
        ) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {error}", hint=_OTHER_CHECKPOINT) from error
    raise CheckpointError(
        f"{path} has format {version}; this version of conekg reads format {FORMAT_VERSION}",
        hint="use the version of conekg that run.json names",
    )


def _parsed(content: dict[str, Any]) -> _Manifest:
    """The manifest in the content of `checkpoint.json`; `ValueError` if that is damaged."""
    step, files = value_of(content, "step", int), value_of(content, "files", dict)
    if step < 0:
        raise ValueError(f"'step' is {step}, not a number of steps")
    is_unset = content.get("best_score", "missing") is None
    return _Manifest(
        step=step,
        best_score=None if is_unset else value_of(content, "best_score", float),
        seconds=value_of(content, "seconds", float),
        parameters=_file(value_of(files, "parameters", dict)),
        optimizer=_file(value_of(files, "optimizer", dict)),
    )


def _file(content: dict[str, Any]) -> _File:
    name = value_of(content, "name", str)
    if Path(name).name != name or "\0" in name:
        raise ValueError(f"'name' is {reprlib.repr(name)}, not the name of a file")
    return _File(name, value_of(content, "size", int), value_of(content, "sha256", str))


def _read_tensors(folder: Path, file: _File) -> dict[str, Tensor]:
    path = folder / file.name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error, _OTHER_CHECKPOINT) from error
    if len(content) != file.size:
        raise CheckpointError(
            f"{path} is truncated: {len(content)} bytes where {file.size} were written",
            hint=_OTHER_CHECKPOINT,
        )
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise CheckpointError(
            f"{path} is damaged: its checksum differs from the one written",
            hint=_OTHER_CHECKPOINT,
        )
    try:
        return safetensors.torch.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"{path} is damaged: it holds no tensors: {error}", hint=_OTHER_CHECKPOINT
        ) from error


_OTHER_CHECKPOINT = (
    "a run keeps two checkpoints, `last` and `best`: delete the damaged folder to continue "
    "from the other, or restore it from a copy"
)


def _remove_all_but(folder: Path, names: set[str]) -> None:
    """Remove the tensor files of older checkpoints, and partial files of a killed process."""
    for path in folder.iterdir():
        stale = path.suffix in (".safetensors", ".partial")
        if stale and path.name not in names:
            with suppress(OSError):  # the next checkpoint tries again; this one is complete
                path.unlink()
