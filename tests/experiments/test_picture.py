import sys
from dataclasses import replace

from extras import need

need("matplotlib")

import pytest
from matplotlib.colors import to_hex

from conekg.errors import ConfigError
from conekg.experiments import picture
from conekg.experiments.picture import OUR_COLOURS, PAPER_COLOURS, draw_tables
from conekg.experiments.plot import Plot, Series
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


def test_long_names_cut_no_title_and_leave_the_bars_their_room(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(picture, "save_figure", lambda figure, path: figures.append(figure))
    name = "ConE (nell995-cone-paper-seed0-paths-from-answers), cones of links, by dimension"
    long = replace(TABLE, title=f"Membership: {name}", rows=(Row(name, {"1p": 3.0, "2p": 2.0}),))
    curves = replace(TABLE, plots=(Plot(f"Curves of {name}", "across", "up", ()),))
    for tables in ([TABLE], [long], [curves]):
        draw_tables(tables, tmp_path / "bars.png")
        figures[-1].draw_without_rendering()
    short, bars, plot = (figure.axes[0] for figure in figures)
    widths = [panel.get_window_extent().width for panel in (short, bars)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)
    for panel in (bars, plot):
        extent = panel.title.get_window_extent()
        assert extent.x0 >= 0
        assert extent.x1 <= panel.figure.bbox.x1
        assert extent.y1 <= panel.figure.bbox.y1


def test_columns_of_another_unit_are_not_drawn(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(picture, "save_figure", lambda figure, path: figures.append(figure))
    draw_tables([replace(TABLE, drawn=("2p",))], tmp_path / "bars.png")
    (panel,) = figures[0].axes
    bars = {c.get_label(): [bar.get_height() for bar in c] for c in panel.containers}
    assert bars["ours"] == [2.0]
    assert [label.get_text() for label in panel.get_xticklabels()] == ["2p"]


def test_curves_take_the_place_of_bars(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(picture, "save_figure", lambda figure, path: figures.append(figure))
    series = (
        Series.of("curve", [1, 10], [0.5, 0.7], "marked line"),
        Series.of("outline", [1, 2, 3], [4.0, 2.0, 2.0], "steps"),
        Series.of("theirs", [5], [0.6], "points", "paper"),
    )
    plot = Plot("curves", "across", "up", series, log_x=True, marks=(2.0,))
    draw_tables([TABLE, replace(TABLE, plots=(plot, plot))], tmp_path / "curves.png")
    bars, panel, _ = figures[0].axes
    assert len(bars.containers) == 2
    assert not panel.containers
    curve, outline, mark = panel.lines
    assert (curve.get_xdata().tolist(), curve.get_ydata().tolist()) == ([1, 10], [0.5, 0.7])
    assert curve.get_color() == OUR_COLOURS[0]
    assert outline.get_drawstyle() == "steps-post"
    assert mark.get_xdata() == [2.0, 2.0]
    points = panel.collections[-1]
    assert points.get_offsets().tolist() == [[5.0, 0.6]]
    assert to_hex(points.get_facecolor()[0]) == PAPER_COLOURS[0]
    assert panel.get_xscale() == "log"
    assert (panel.get_title(), panel.get_xlabel(), panel.get_ylabel()) == ("curves", "across", "up")


def test_a_table_without_numbers_is_drawn_empty(tmp_path):
    draw_tables([replace(TABLE, rows=())], tmp_path / "empty.svg")
    assert "<svg" in (tmp_path / "empty.svg").read_text()


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
