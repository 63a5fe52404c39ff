"""Draws the pictures of the book into docs/images.

    python docs/make_pictures.py [RUN]

RUN is the run whose training curve the tutorial shows; without RUN, that picture is left as it is.
Curves and experiments recorded in `results/` are drawn if some page shows their picture. Two kinds
of pictures are made elsewhere: those of the page in the browser by `tests/serving/test_page.py`,
that of the time of a step by `docs/make_performance_picture.py`.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
from pathlib import Path
from typing import Any

from conekg.experiments.figures import draw_cones, draw_operators
from conekg.experiments.picture import (
    OUR_COLOURS,
    PAPER_COLOURS,
    draw_plot,
    new_figure,
    save_figure,
)
from conekg.experiments.plot import Plot, Series
from conekg.experiments.structure_figure import draw_structures
from conekg.graph.geography import load_geography
from conekg.query.parse import parse_query
from conekg.query.picture import draw_svg
from conekg.training.run import open_run
from conekg.training.tracking import read_metrics

IMAGES = Path(__file__).with_name("images")
RESULTS = Path(__file__).parents[1] / "results"
QUESTION = '("South America".^in_subregion & !(Spanish | Dutch).^speaks).capital'


def draw_question(path: Path) -> None:
    """The computation graph of the first question on the page about the query language."""
    vocabulary = load_geography().vocabulary
    svg = draw_svg(parse_query(QUESTION, vocabulary), vocabulary)
    # A separate image inherits no colours: dark ink on white can be read in any theme.
    path.write_text(svg.replace("<svg ", '<svg style="background:#fff;color:#1f2328" ', 1) + "\n")


def draw_curve(folder: Path, path: Path) -> None:
    """The losses and the validation MRR of a run, step by step."""
    run = open_run(folder)
    lines = read_metrics(folder)
    trained = [line for line in lines if line["kind"] == "train"]
    validated = [line for line in lines if line["kind"] == "valid"]
    figure = new_figure(7.0, 2.8)
    loss, score = figure.subplots(1, 2)
    pools = dict.fromkeys(run.recipe.training.cycle)
    for pool, colour in zip(pools, OUR_COLOURS, strict=False):
        values = [line[pool] for line in trained]
        loss.plot([line["step"] for line in trained], values, color=colour, label=pool)
    loss.set(xlabel="step", ylabel="loss", ylim=(0, None))
    loss.legend(frameon=False)
    percent = [100 * float(line["score"]) for line in validated]
    score.plot([line["step"] for line in validated], percent, color=OUR_COLOURS[2], marker="o")
    score.set(xlabel="step", ylabel="validation MRR, percent", ylim=(0, None))
    for panel in (loss, score):
        panel.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def draw_recorded_curve(table: Path, path: Path) -> None:
    """The losses of a run recorded in `results/curves`; lines mark drops of its learning rate."""
    with table.open(encoding="utf-8", newline="") as file:
        lines = [
            {key: float(value) for key, value in line.items()} for line in csv.DictReader(file)
        ]
    steps = [line["step"] for line in lines]
    figure = new_figure(7.0, 2.8)
    panel = figure.subplots()
    for pool, colour in zip(("path", "other"), OUR_COLOURS, strict=False):
        panel.plot(steps, [line[pool] for line in lines], color=colour, label=pool, linewidth=1)
    for before, after in itertools.pairwise(lines):
        if after["learning_rate"] < before["learning_rate"]:
            panel.axvline(before["step"], color=PAPER_COLOURS[0], linestyle=":", linewidth=1)
    panel.set(xlabel="step", ylabel="loss", yscale="log", xlim=(0, steps[-1]))
    panel.legend(frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def draw_recorded_plots(experiment: Path, path: Path) -> None:
    """The plots in the record of an experiment, side by side."""
    tables = json.loads(experiment.read_text(encoding="utf-8"))["tables"]
    plots = [plot_of(content) for table in tables for content in table["plots"]]
    figure = new_figure(5.5 * len(plots), 2.8)
    for plot, panel in zip(plots, figure.subplots(1, len(plots), squeeze=False)[0], strict=True):
        draw_plot(plot, panel)
    save_figure(figure, path)


def plot_of(content: dict[str, Any]) -> Plot:
    """The plot of which `content` is the `Plot.to_json`."""
    series = tuple(
        Series.of(one["label"], one["x"], one["y"], one["style"], one["kind"])
        for one in content["series"]
    )
    axes = content["x"], content["y"]
    return Plot(content["title"], *axes, series, content["log_x"], tuple(content["marks"]))


def recorded_pictures() -> dict[str, Path]:
    """The records of which some page shows a picture, by the name of the picture's file."""
    records = {f"{table.stem}-curve.png": table for table in (RESULTS / "curves").glob("*.csv")} | {
        f"{experiment.parent.name}-{experiment.stem}.png": experiment
        for experiment in (RESULTS / "experiments").glob("*/*.json")
    }
    book = "".join(page.read_text(encoding="utf-8") for page in IMAGES.parent.glob("*.md"))
    return {name: records[name] for name in sorted(records) if f"images/{name}" in book}


def main() -> None:
    """Draw all pictures."""
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    IMAGES.mkdir(exist_ok=True)
    draw_question(IMAGES / "question.svg")
    draw_cones(IMAGES / "cones.png")
    draw_operators(IMAGES / "operators.png")
    draw_structures(IMAGES / "structures.png")
    for name, record in recorded_pictures().items():
        draw = draw_recorded_curve if record.suffix == ".csv" else draw_recorded_plots
        draw(record, IMAGES / name)
    if len(sys.argv) == 2:
        draw_curve(Path(sys.argv[1]), IMAGES / "training-curve.png")


if __name__ == "__main__":
    main()
