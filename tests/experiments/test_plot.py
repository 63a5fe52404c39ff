import json

import numpy as np
import pytest

from conekg.experiments.plot import Plot, Series
from conekg.experiments.table import Row, Table


def test_plots_are_plain_data_in_the_tables_file():
    series = Series.of("curve", np.array([0, 1]), np.array([1 / 3, 1.0]), "points", "paper")
    plot = Plot("title", "across", "up", (series,), marks=(0.5,))
    table = Table("t", ("a",), (Row("ours", {"a": 1.0}),), "table:dis", "percent", plots=(plot,))
    (found,) = json.loads(json.dumps(table.to_json()))["plots"]
    assert found == {
        "title": "title", "x": "across", "y": "up", "log_x": False, "marks": [0.5],
        "series": [
            {"label": "curve", "kind": "paper", "style": "points",
             "x": [0.0, 1.0], "y": [0.333333, 1.0]}
        ],
    }  # fmt: skip
    assert Plot("title", "across", "up", (series,), log_x=True).to_json()["log_x"] is True


def test_every_point_has_two_coordinates():
    with pytest.raises(AssertionError):
        Series.of("curve", [1, 2], [1])
