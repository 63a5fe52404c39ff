import math
import sys
from dataclasses import replace

import pytest

from conekg.errors import ConfigError
from conekg.experiments import figures as experiment
from conekg.experiments.figures import FIGURES, draw_averages, figures
from conekg.experiments.structure_figure import FOURTEEN, draw_structures
from conekg.query.shape import STRUCTURES

PNG = b"\x89PNG\r\n"


@pytest.fixture
def drawn(monkeypatch):
    """The figures by file name; they are kept instead of being written."""
    saved = {}
    for module in (experiment, sys.modules["conekg.experiments.structure_figure"]):
        monkeypatch.setattr(module, "save_figure", lambda f, path: saved.update({path.name: f}))
    return saved


def test_every_figure_is_a_picture(reproduce, tmp_path):
    (table,) = reproduce("figures", "--out", tmp_path / "new")
    names = ["cones.png", "operators.png", "structures.png", "averages.png"]
    assert [row["label"].split()[0] for row in table["rows"]] == names
    assert table["rows"][1]["label"] == "operators.png (Figure 2)"
    assert [row["values"]["panels"] for row in table["rows"]] == [4, 5, 14, 2]
    assert table["place"] == "Figure 1b, Figure 2, Figure 3, Figure 4"
    for name in names:
        assert (tmp_path / "new" / name).read_bytes().startswith(PNG)


def test_panels_are_whole_circles_with_their_ticks(options, tmp_path, drawn):
    figures([], replace(options, out=tmp_path))
    assert [len(drawn[name].axes) for name in ("cones.png", "operators.png")] == [4, 5]
    for name in ("cones.png", "operators.png", "averages.png"):
        for panel in drawn[name].axes:
            low, high = panel.get_xlim()
            assert high - low == pytest.approx(2 * math.pi)
            assert [t.get_text() for t in panel.get_xticklabels()] == ["0", "π/2", "π", "−π/2"]


def sectors(panel):
    """(axis, half aperture) of the filled sectors of a panel, in the order they were drawn."""
    return [
        (bar.get_x() + bar.get_width() / 2, bar.get_width() / 2)
        for container in panel.containers
        for bar in container
    ]


def test_operators_are_drawn_as_they_are(options, tmp_path, drawn):
    figures([], replace(options, out=tmp_path))
    projection, intersection, union, complement, distance = drawn["operators.png"].axes
    assert sectors(union) == [pytest.approx((0.4, 0.6)), pytest.approx((1.5, 0.8))]
    given, rest = sectors(complement)
    assert given == pytest.approx((0.4, 0.6))
    assert (rest[0] - given[0]) % (2 * math.pi) == pytest.approx(math.pi)
    assert rest[1] == pytest.approx(math.pi - 0.6)
    assert sectors(intersection)[2][1] <= 0.6 + 1e-6, "no wider than the narrower of the two"
    assert len(sectors(projection)) == 2
    # ConE, Section 4.3, for a point at 2.2: to the nearer border, and from the border to the axis.
    outside, inside = math.sin((2.2 - 1.0) / 2), math.sin(0.6 / 2)
    assert distance.get_title() == f"distance: {outside:.2f} outside, {inside:.2f} inside"


def test_averages_point_where_they_should(tmp_path, drawn):
    draw_averages(tmp_path / "averages.png")
    last = [panel.texts[-1].xy[0] for panel in drawn["averages.png"].axes]
    assert last[0] == pytest.approx(0.0, abs=1e-6)
    assert abs(last[1]) == pytest.approx(math.pi, abs=1e-6)


def test_all_fourteen_structures_are_drawn(tmp_path, drawn):
    draw_structures(tmp_path / "structures.png")
    titles = [panel.get_title() for panel in drawn["structures.png"].axes]
    assert [title.split()[0] for title in titles if title] == list(FOURTEEN)
    assert sorted(FOURTEEN) == sorted(set(STRUCTURES) - {"2u-DM", "up-DM"})
    assert sum("not trained" in title for title in titles) == 4


def test_a_structure_has_its_signs_and_only_projections_have_arrowheads(tmp_path, drawn):
    draw_structures(tmp_path / "structures.png")
    (panel,) = (p for p in drawn["structures.png"].axes if p.get_title() == "inp")
    assert [text.get_text() for text in panel.texts if text.get_text()] == ["¬", "∧"]
    arrows = [text.arrow_patch for text in panel.texts if hasattr(text, "arrow_patch")]
    assert sorted(arrow.get_linestyle() for arrow in arrows) == ["dashed"] * 3 + ["solid"] * 3
    by_mark = [tuple(mark.get_offsets()[0]) for mark in panel.collections]
    assert by_mark[-1] == max(by_mark), "the answers are farthest to the right"


def test_a_folder_is_needed_and_runs_are_not(options, trained, tmp_path):
    with pytest.raises(ConfigError, match="--out FOLDER"):
        figures([], options)
    with pytest.raises(ConfigError, match="takes no RUN"):
        FIGURES.measure([trained["cone"]], options)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot make the folder"):
        figures([], replace(options, out=tmp_path / "file"))
