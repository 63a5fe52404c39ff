import sys

import pytest

from conekg.errors import ConfigError
from conekg.experiments import picture
from conekg.experiments.picture import draw_tables
from conekg.experiments.table import Row, Table

TABLE = Table(
    title="numbers",
    columns=("1p", "2p"),
    rows=(
        Row("ours", {"1p": 3.0, "2p": 2.0}),
        Row("theirs", {"1p": 2.5}, "paper"),
        Row("apart", {"1p": 0.5}, "comparison"),
    ),
    paper="table:x",
    unit="percent",
)


def test_bars_are_the_tables_numbers(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(picture, "save_figure", lambda figure, path: figures.append(figure))
    draw_tables([TABLE, TABLE], tmp_path / "bars.png")
    first, second = figures[0].axes
    bars = {c.get_label(): [bar.get_height() for bar in c] for c in first.containers}
    assert bars == {"ours": [3.0, 2.0], "theirs": [2.5]}
    assert len(second.containers) == 2


def test_the_ending_chooses_the_format(tmp_path):
    draw_tables([TABLE], tmp_path / "bars.svg")
    assert "<svg" in (tmp_path / "bars.svg").read_text()
    with pytest.raises(ConfigError, match=r"\.png, \.svg or \.pdf"):
        draw_tables([TABLE], tmp_path / "bars.nonsense")
    with pytest.raises(ConfigError, match="cannot write"):
        draw_tables([TABLE], tmp_path / "nowhere" / "bars.png")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match=r"pip install 'conekg\[plot\]'"):
        draw_tables([TABLE], tmp_path / "bars.png")
