"""A run is a folder: recipe, graph, queries, checkpoints, metrics.

It holds everything needed to continue it, evaluate it and ask it questions, and records the
graph and the package version that it was made with. Evaluation and calibration put their own
files beside these.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args
from weakref import WeakValueDictionary

import torch

from conekg.errors import CheckpointError, ConfigError, DataError
from conekg.graph.json_file import read_object, value_of, write_object
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.place import as_path, check_place, place_of, sync_tree
from conekg.graph.source import RUN_FILE
from conekg.graph.store import load_graph, save_graph
from conekg.model.catalog import MODELS, build_model
from conekg.model.interface import QueryModel
from conekg.sampling.query_set import QuerySet, load_query_set, save_query_set
from conekg.training.checkpoint import (
    cannot_read,
    checkpoint_name,
    checkpoint_step,
    has_checkpoint,
    load_parameters,
)
from conekg.training.recipe import Recipe
from conekg.training.recipe_file import dump_recipe, parse_recipe
from conekg.version import VERSION

FORMAT_VERSION = 1
CHECKPOINTS = "checkpoints"
"""The folder in a run that holds its checkpoints."""
_RECIPE = "recipe.toml"
_INFO_KINDS: dict[str, type] = {
    "conekg": str,
    "torch": str,
    "model": str,
    "recipe": str,
    "seed": int,
    "graph": dict,
}
"""The keys of `run.json` besides its format, and the types of their values."""
_RESTORE = (
    "restore the file from a copy of the run, or train a new one on what is left: "
    "`conekg train RUN/graph --queries RUN/queries --out NEW`"
)

Which = Literal["best", "last"]


@dataclass(frozen=True)
class Run:
    """A training run on disk; each of its files is read when it is first needed."""

    folder: Path

    @cached_property
    def info(self) -> dict[str, Any]:
        """The contents of `run.json`: versions, model, recipe, seed, graph fingerprint."""
        return _read_info(self.folder)

    @cached_property
    def recipe(self) -> Recipe:
        """The resolved recipe the run was started with."""
        path = self.folder / _RECIPE
        try:
            return parse_recipe(path.read_text(encoding="utf-8-sig"), str(path))
        except OSError as error:
            raise cannot_read(path, error, _RESTORE) from error
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{path} is damaged: {error}", hint=_RESTORE) from error
        except ConfigError as error:
            made_by = self.info["conekg"]
            other = "" if made_by == VERSION else f"use conekg {made_by}, which made the run, or "
            remedy = _RESTORE
            if (model := self.info["model"]) not in MODELS:  # the file itself is not damaged
                remedy = f"put {model!r} into conekg.model.catalog.MODELS before the run is opened"
            raise CheckpointError(error.message, hint=other + remedy) from error

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """The run's own copy of its graph; `CheckpointError` if it is another graph."""
        graph = load_graph(self.folder / "graph")
        expected = self.info["graph"]["fingerprint"]
        if graph.fingerprint != expected:
            raise CheckpointError(
                f"{self.folder / 'graph'} is not the graph this run was trained on: its "
                f"fingerprint is {graph.fingerprint}, run.json says {expected}",
                hint="restore the folder from a copy of the run",
            )
        return graph

    @cached_property
    def _held(self) -> MutableMapping[Split, QuerySet]:
        """The query sets of the run that are still in use, which need not be read again."""
        return WeakValueDictionary()

    def queries(self, split: Split) -> QuerySet:
        """The run's queries of a split; `DataError` if it has none."""
        if not self.has_queries(split):
            raise DataError(
                f"the run has no {split} queries",
                path=str(self.folder),
                hint="`conekg sample` makes some; give them by --queries, or train a run with them "
                "by `conekg train --queries FOLDER`",
            )
        queries = self._held.get(split)
        if queries is None:
            # Given the graph, loading refuses a file of another graph.
            queries = load_query_set(self.folder / "queries" / f"{split}.arrow", self.graph)
            self._held[split] = queries
        return queries

    def has_queries(self, split: Split) -> bool:
        """Whether the run has queries of that split."""
        return (self.folder / "queries" / f"{split}.arrow").exists()

    def num_queries(self, split: Split) -> int:
        """How many queries of that split the run has; 0 if it has no such file."""
        return len(self.queries(split)) if self.has_queries(split) else 0

    def checkpoint_folder(self, which: Which) -> Path:
        """The folder of that checkpoint, which may not exist yet."""
        return self.folder / CHECKPOINTS / which

    def new_model(self, recipe: Recipe | None = None) -> QueryModel:
        """An untrained model of the run's recipe, or of another, on the CPU."""
        recipe = recipe or self.recipe
        return build_model(
            recipe.model,
            self.graph.num_entities,
            self.graph.num_relations,
            recipe.config,
            recipe.training.seed,
            facts=self.graph.edges("train"),
        )

    def load_model(self, which: Which = "best", device: torch.device | str = "cpu") -> QueryModel:
        """The trained model in evaluation mode; the last checkpoint if there is no best one."""
        which = self._available(which)
        parameters = load_parameters(self.checkpoint_folder(which))
        model = self.new_model()
        try:
            model.load_state_dict(parameters)
        except RuntimeError as error:
            raise CheckpointError(
                f"{self.checkpoint_folder(which)} does not fit the model of recipe.toml: {error}",
                hint="restore both from one copy of the run",
            ) from error
        check_weights(model, self.checkpoint_folder(which))
        return model.to(device).eval()

    def weights_name(self, which: Which = "best") -> str:
        """A name of the weights that `load_model` loads; different weights have different names."""
        return checkpoint_name(self.checkpoint_folder(self._available(which)))

    def weights_step(self, which: Which = "best") -> int:
        """How many steps the weights that `load_model` loads were trained for."""
        return checkpoint_step(self.checkpoint_folder(self._available(which)))

    def _available(self, which: Which) -> Which:
        if which not in get_args(Which):
            raise ConfigError(
                f"the checkpoint {which!r} is asked for; there are 'best' and 'last'", key="which"
            )
        if which == "best" and not has_checkpoint(self.checkpoint_folder("best")):
            return "last"
        return which

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file into the run's folder, replacing an older one atomically."""
        write_object(self.folder / name, content)


def create_run(
    folder: Path,
    graph: KnowledgeGraph,
    recipe: Recipe,
    queries: Mapping[Split, QuerySet],
) -> Run:
    """Create a run in `folder`, which must not exist or be empty.

    The run appears there complete or not at all. `queries` has at least the training queries. If
    `folder` is a link, the run is put where the link leads.
    """
    check_vacant(folder)
    place, private = place_of(folder), None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # A random name, since processes on two machines may have the same process id.
        private = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        part = private / "run"
        part.mkdir()
        save_graph(graph, part / "graph")
        (part / "queries").mkdir()
        for split, query_set in queries.items():
            save_query_set(part / "queries" / f"{split}.arrow", query_set)
        (part / _RECIPE).write_text(dump_recipe(recipe), encoding="utf-8")
        info = {
            "format": FORMAT_VERSION,
            "conekg": VERSION,
            "torch": torch.__version__,
            "model": recipe.model,
            "recipe": recipe.name,
            "seed": recipe.training.seed,
            "graph": {"name": graph.name, "fingerprint": graph.fingerprint},
        }
        write_object(part / RUN_FILE, info)
        sync_tree(part)
        part.replace(place)  # this also replaces an empty folder
    except OSError as error:
        raise CheckpointError(
            f"cannot create the run {folder}: {error.strerror or error}",
            hint="make room there, or choose another folder",
        ) from error
    finally:
        if private is not None:
            shutil.rmtree(private, ignore_errors=True)
    run = open_run(folder)
    run._held.update(queries)
    return run


def check_vacant(folder: Path) -> None:
    """Raise an error unless a new run can be created in `folder`; to be called before long work."""
    if folder.resolve() == Path.cwd():
        raise CheckpointError(
            f"{folder} is the current folder, but a run is moved to its place as a whole",
            hint="give --out the name of a folder that does not exist yet",
        )
    check_place(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(
            f"{folder} already exists and is not empty",
            hint="give another --out, or continue the run that is there with --resume"
            if (folder / RUN_FILE).exists()
            else "give another --out",
        )


def open_run(folder: Path | str) -> Run:
    """The run in `folder`; `CheckpointError` if there is none or it has another format."""
    folder = as_path(folder, "the folder of the run")
    _read_info(folder)
    return Run(folder)


def check_weights(model: QueryModel, checkpoint: Path) -> None:
    """Raise `CheckpointError` if weights that were loaded from `checkpoint` are not all finite."""
    spoilt = model.spoilt_weights()
    if spoilt is not None:
        raise CheckpointError(
            f"the checkpoint in {checkpoint} cannot be used: its weights {spoilt!r} are not all "
            "finite numbers (NaN or infinity), because its training diverged",
            hint="a run keeps two checkpoints, `last` and `best`, and the other may be from before "
            "that: delete this folder to use it, or train again with a lower "
            "training.learning_rate",
        )


def is_run(folder: Path) -> bool:
    """Whether `folder` holds a run."""
    return (folder / RUN_FILE).is_file()


def _read_info(folder: Path) -> dict[str, Any]:
    path = folder / RUN_FILE
    try:
        info = read_object(path)
        version = value_of(info, "format", int)
        if version == FORMAT_VERSION:
            _check_info(info)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "does not exist" if not folder.exists() else f"is not a run: it has no {RUN_FILE}"
        if folder.is_file():
            what = "is a file; a run is a folder"
        raise CheckpointError(
            f"{folder} {what}",
            hint="`conekg fit TRIPLES --out RUN` makes a run; `conekg demo` makes one to try",
        ) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {error}", hint=_RESTORE) from error
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{folder} was made by conekg {info.get('conekg')} in run format {version}; "
            f"this version reads format {FORMAT_VERSION}",
            hint="use that version of conekg, or train a new run",
        )
    return info


def _check_info(info: dict[str, Any]) -> None:
    """Raise `ValueError` if `run.json` lacks a key or has a value of the wrong type."""
    for key, kind in _INFO_KINDS.items():
        value_of(info, key, kind)
    for key in ("name", "fingerprint"):
        value_of(info["graph"], key, str)
