"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from conekg.query.branches import UnionForm

RunArgument = Annotated[Path, typer.Argument(help="A run folder from `conekg fit` or `train`.")]
CheckpointOption = Annotated[
    Literal["best", "last"], typer.Option("--checkpoint", help="Which checkpoint to use.")
]
DeviceOption = Annotated[
    str, typer.Option("--device", help="cpu, cuda, or auto: a GPU if there is one.")
]
UnionOption = Annotated[
    UnionForm,
    typer.Option(
        "--union",
        help="How to answer unions: dnf scores each branch and takes the best score; demorgan "
        "rewrites unions by De Morgan's law.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]

# Of `fit` and `train`.
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="cone (the default), gqe, box, beta or emql."),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="The run folder to write.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one value of the recipe, such as training.steps=1000 or model.dim=200. "
        "May be repeated; overrides --config.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file of changes to the recipe, or a run's recipe.toml to use as it is.",
    ),
]
MaxMinutesOption = Annotated[
    float | None,
    typer.Option(
        "--max-minutes",
        min=0.0,
        help="Save and stop after this many minutes; --resume continues.",
    ),
]
