"""Checkpoints: parameters and optimizer state on disk, whole or not at all.

A checkpoint is a folder whose `checkpoint.json` names its two tensor files and their
checksums. New tensor files are written under new names first; replacing the JSON file
is the commit. Whatever happens in between, the folder still holds the older checkpoint.
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
    """A model and its training at one moment."""

    step: int
    """How many steps are done."""
    parameters: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best_score: float | None = None
    """The best validation score so far."""
    seconds: float = 0.0
    """Training time so far, interruptions not counted."""


@dataclass(frozen=True)
class _File:
    """A tensor file as the manifest describes it."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class _Manifest:
    """What `checkpoint.json` says."""

    step: int
    best_score: float | None
    seconds: float
    parameters: _File
    optimizer: _File


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in `folder`, which keeps the older one until the new is complete."""
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
    """The checkpoint in `folder`, its checksums verified."""
    manifest, (parameters, optimizer) = _read_whole(folder, "parameters", "optimizer")
    return Checkpoint(
        step=manifest.step,
        parameters=parameters,
        optimizer=optimizer,
        best_score=manifest.best_score,
        seconds=manifest.seconds,
    )


def load_parameters(folder: Path) -> dict[str, Tensor]:
    """The parameters alone, their checksum verified: all that answering needs."""
    _, (parameters,) = _read_whole(folder, "parameters")
    return parameters


def checkpoint_name(folder: Path) -> str:
    """The name of the parameters' file, which tells them from those of all other checkpoints."""
    return _read_manifest(folder).parameters.name


def checkpoint_step(folder: Path) -> int:
    """How many steps a checkpoint's parameters were trained for."""
    return _read_manifest(folder).step


def has_checkpoint(folder: Path) -> bool:
    """Whether a checkpoint was ever completed in `folder`; an error where one may not look."""
    path = folder / _MANIFEST
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise cannot_read(path, error) from error
    return True


def cannot_read(path: Path, error: OSError, if_gone: str | None = None) -> CheckpointError:
    """The error for a file that cannot be read; `if_gone` is the hint where there is none.

    Any other failure, such as of a permission, is no sign of damage.
    """
    hint = if_gone if isinstance(error, FileNotFoundError) else None
    return CheckpointError(f"cannot read {path}: {error.strerror}", hint=hint)


def _write_tensors(folder: Path, kind: str, step: int, tensors: dict[str, Tensor]) -> _File:
    content = safetensors.torch.save(_apart(tensors))
    digest = hashlib.sha256(content).hexdigest()
    # Part of the checksum in the name: a file of that name either is this one or is damaged.
    name = f"{kind}-{step:09d}-{digest[:8]}.safetensors"
    write_atomically(folder / name, content)
    return _File(name, len(content), digest)


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, each in memory of its own: a file cannot say that two names share weights.

    Such weights are in it once for each name, and loading them puts the same into one place.
    """
    apart, taken = {}, set[int]()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        own = tensor.clone() if place in taken else tensor
        apart[name] = own.contiguous()
        taken.add(place)
    return apart


def _read_whole(
    folder: Path, *kinds: Literal["parameters", "optimizer"]
) -> tuple[_Manifest, list[dict[str, Tensor]]]:
    """The manifest and the tensors of some of its files, all of one checkpoint.

    A training that goes on may replace the checkpoint while it is read: then the newer is read.
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
    """The manifest; `ValueError` where it is not one."""
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
    """Remove the tensor files of older checkpoints, and parts left by a killed process."""
    for path in folder.iterdir():
        stale = path.suffix in (".safetensors", ".partial")
        if stale and path.name not in names:
            with suppress(OSError):  # it goes with the next one; the new checkpoint is complete
                path.unlink()
