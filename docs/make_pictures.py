"""Draw the pictures of the book into docs/images.

    python docs/make_pictures.py RUN

RUN is the run whose training curve is shown. The pictures of the page in the browser and of
the time of a step are made elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

from conekg.experiments.figures import draw_cones, draw_operators
from conekg.experiments.picture import OUR_COLOURS, new_figure, save_figure
from conekg.graph.geography import load_geography
from conekg.query.parse import parse_query
from conekg.query.picture import draw_svg
from conekg.training.run import open_run
from conekg.training.tracking import read_metrics

IMAGES = Path(__file__).with_name("images")
QUESTION = '("South America".^in_subregion & !(Spanish | Dutch).^speaks).capital'


def draw_question(path: Path) -> None:
    """The computation graph of the opening question of the query language."""
    vocabulary = load_geography().vocabulary
    svg = draw_svg(parse_query(QUESTION, vocabulary), vocabulary)
    # As an image of its own it inherits no colours: dark ink on white reads in any theme.
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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    IMAGES.mkdir(exist_ok=True)
    draw_question(IMAGES / "question.svg")
    draw_curve(Path(sys.argv[1]), IMAGES / "training-curve.png")
    draw_cones(IMAGES / "cones.png")
    draw_operators(IMAGES / "operators.png")
