"""The command `conekg reproduce`; the experiments have tests of their own."""

import json
import re
import sys
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.experiments.catalog import EXPERIMENTS
from conekg.experiments.options import Options
from conekg.graph.ragged import Ragged
from conekg.query.shape import STRUCTURES
from conekg.sampling.query_set import QueryBlock, QuerySet, save_query_set
from conekg.training.recipes import find_recipe
from conekg.version import VERSION
from untrained_run import untrained_run


def conekg(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.fixture
def run(film_graph, tmp_path):
    return untrained_run(tmp_path / "run", film_graph)


def one_query(split):
    """A set of one query: which entities entity 0 is linked to by relation 0; one hard answer."""
    ids = np.zeros((1, 1), dtype=np.int32)
    block = QueryBlock(STRUCTURES["1p"], ids, ids, Ragged.empty(1), Ragged.from_rows([[1]]))
    return QuerySet(split, (block,))


def test_the_list_names_every_experiment():
    result = conekg("--list")
    assert result.exit_code == 0
    for name in EXPERIMENTS:
        assert name in result.stdout
    for beside, told in (
        (["union"], "NAME, as 'union' is one"),
        (["--json", "list.json"], "--json"),
        (["--max-queries", 3], "--max-queries"),
    ):
        refused = conekg("--list", *beside)
        assert refused.exit_code == 2
        assert f"takes no {told}" in " ".join(refused.stderr.split())


def test_the_help_says_what_an_option_is_when_left_out():
    shown = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "300"}).stdout
    lines = {option: line for line in shown.splitlines() for option in re.findall("--[a-z]+", line)}
    for option in ("split", "checkpoint", "seed", "steps"):
        assert f"by default {getattr(Options(), option)}." in lines[f"--{option}"]


def test_tables_go_to_the_terminal_and_to_files(run, tmp_path):
    files = [tmp_path / name for name in ("t.json", "t.md", "t.png")]
    result = conekg(
        "operators", run, "--pairs", 4, "--seed", 2,
        "--json", files[0], "--markdown", files[1], "--picture", files[2],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    content = json.loads(files[0].read_text())
    assert content["experiment"] == "operators"
    assert content["conekg"] == VERSION
    assert content["options"] == {"split": "test", "checkpoint": "best", "pairs": 4, "seed": 2}
    (told,) = content["runs"]
    recipe = tomllib.loads((run / "recipe.toml").read_text())
    assert told.pop("settings") == {key: recipe[key] for key in ("model", "training")}
    assert [told] == [
        {
            "label": "ConE (run)",
            "model": "cone",
            "dim": 8,
            "graph": json.loads((run / "run.json").read_text())["graph"],
            "recipe": "small",
            "steps": find_recipe("small", "cone").training.steps,
            "seed": 0,
            "checkpoint": "best",
            "weights_of_step": 0,
        }
    ]
    projection = content["tables"][0]["rows"][0]["values"]["projection"]
    assert f"{projection:.4f}" in result.stdout
    assert f"{projection:.4f}" in files[1].read_text()
    assert f"- {content['tables'][0]['notes'][0]}" in result.stdout
    assert files[2].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the NAME"),
        (["operatos"], "did you mean 'operators'"),
        (["operators"], "needs at least one RUN"),
        (["operators", "RUN", "--max-queries", "3"], "--max-queries has no effect on operators"),
        (["figures"], "--out FOLDER"),
        (["operators", "nowhere"], "does not exist"),
        (["main-epfo", "RUN"], "the run has no test queries"),
        (["operators", "RUN", "--pairs", "1", "--json", "no/where"], "cannot write no/where"),
        (["operators", "RUN", "--picture", "x.nonsense"], "use .png, .svg or .pdf"),
        (["operators", "RUN", "--markdown", "."], "cannot write .: it is a folder"),
        (["operators", "RUN", "--seed", str(2**63)], "'--seed'"),
    ],
)
def test_mistakes_are_reported_in_plain_messages(arguments, message, run):
    result = conekg(*[run if word == "RUN" else word for word in arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == "", "nothing is measured for nothing"


def test_notes_of_both_tables_are_printed_once(run, tmp_path):
    queries = tmp_path / "queries.arrow"
    save_query_set(queries, one_query("test"))
    file = tmp_path / "t.json"
    result = conekg("dimensions", run, "--queries", queries, "--json", file)
    assert result.exit_code == 0, result.output
    described = "ConE (run): cone with d = 8 on films"
    assert result.stdout.count(described) == 1
    above, below = result.stdout.split("Both tables:")
    assert described in below
    assert "There are no test queries of 2p, 3p, 2i, 3i, pi, ip, 2u, up." in above
    tables = json.loads(file.read_text())["tables"]
    for table in tables:
        assert any(described in note for note in table["notes"]), "data says all of each table"


def test_a_picture_without_matplotlib_names_the_extra(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = conekg("operators", run, "--pairs", 1, "--picture", tmp_path / "t.png")
    assert result.exit_code == 2
    assert "conekg[plot]" in result.stderr


def test_a_file_of_other_queries_than_the_split_is_refused(run, tmp_path):
    file = tmp_path / "queries.arrow"
    save_query_set(file, one_query("valid"))
    result = conekg("main-epfo", run, "--queries", file, "--split", "test")
    assert result.exit_code == 2
    assert "holds valid queries, not test queries" in " ".join(result.stderr.split())
    assert conekg("main-epfo", run, "--queries", file, "--split", "valid").exit_code == 0
    record = tmp_path / "t.json"
    assert conekg("main-epfo", run, "--queries", file, "--json", record).exit_code == 0
    assert json.loads(record.read_text())["options"]["split"] == "valid", "the file says of which"
