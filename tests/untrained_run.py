"""A run folder with an untrained model, for tests that open, ask or serve a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.model.catalog import model_config
from conekg.sampling.query_set import QuerySet
from conekg.training.checkpoint import Checkpoint, save_checkpoint
from conekg.training.recipes import find_recipe
from conekg.training.run import create_run


def untrained_run(folder: Path, graph: KnowledgeGraph) -> Path:
    """Make `folder` a run of a small, untrained ConE on the graph, and return it."""
    recipe = find_recipe("small", "cone")
    recipe = replace(recipe, config=model_config("cone", {"dim": 8, "hidden": 8}))
    run = create_run(folder, graph, recipe, {"train": QuerySet("train", ())})
    parameters = dict(run.new_model().state_dict())
    checkpoint = Checkpoint(
        step=0, parameters=parameters, optimizer={}, best_score=None, seconds=0.0
    )
    save_checkpoint(run.checkpoint_folder("best"), checkpoint)
    return folder
