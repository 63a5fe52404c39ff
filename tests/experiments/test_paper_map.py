"""The map of the paper names only what exists, and leaves no experiment and no table out."""

import ast
import importlib
import json
import re
from functools import cache
from pathlib import Path
from statistics import stdev

import pytest

from conekg.errors import ConfigError
from conekg.experiments.catalog import EXPERIMENTS
from conekg.experiments.published import ANY, FIGURE_PLACES, labels, place_of, published
from conekg.experiments.seeds import PAPER_SEEDS
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.recipe_change import change_recipe
from conekg.training.recipes import find_recipe

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([^`]+)`", PAGE)))

ELSEWHERE = (
    "subfig:comp_graph",
    "def:cone",
    "def:odc",
    "def:sec_cone",
    "eqn:cartesian",
    "eqn:param",
    "eqn:proj_op",
    "table:datasets",
    "table:hp",
)
"""Labels of the paper that no experiment repeats: its definitions, equations, and the rest."""


def resolve(dotted):
    """The object of a dotted name, however much of it is module; None when there is none."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name, None)
        return found
    return None


@cache
def functions_in(path):
    file = ROOT / path
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def is_setting(text):
    """Whether ConE's published recipe can be changed by the text, as by `--set`."""
    try:
        change_recipe(find_recipe("paper", "cone"), {}, [text])
    except ConfigError:
        return False
    return True


def exists(name):
    if name.startswith("conekg reproduce"):
        return name == "conekg reproduce" or name.split()[2] in EXPERIMENTS
    if name.startswith("conekg explain-query"):
        return name.split()[2:] == ["--svg"]
    if name.startswith("conekg."):
        return resolve(name) is not None
    if "::" in name:
        path, _, test = name.partition("::")
        return test in functions_in(path)
    if "/" in name:
        return (ROOT / name).exists()
    if name.startswith(("training.", "model.")):
        return is_setting(name)
    return name in {*labels(), *FIGURE_PLACES, *ELSEWHERE}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_exists(name):
    assert exists(name), f"docs/paper-map.md names `{name}`, which does not exist"


@pytest.mark.parametrize(
    "name",
    [
        "conekg reproduce nothing",
        "conekg.model.cone.Cone.fly",
        "conekg.nowhere",
        "tests/model/test_cone.py::test_nothing",
        "tests/nowhere.py::test_nothing",
        "results/nothing.json",
        "table:nothing",
        "training.idle_weights",
        "training.idle_weights=fly",
        "training.nothing=1",
    ],
)
def test_the_check_sees_what_does_not_exist(name):
    assert not exists(name)


def rows():
    """The cells of every row of the page's tables."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_experiment_and_every_table_is_on_the_map():
    commands = {row[1]: row for row in rows() if "conekg reproduce" in row[1]}
    assert set(commands) == {f"`conekg reproduce {name}`" for name in EXPERIMENTS}
    covered = set(re.findall(r"`(\S+)`", " ".join(row[0] for row in commands.values())))
    assert {*labels(), *FIGURE_PLACES} <= covered
    defined = {label for row in rows() for label in re.findall(r"`(\S+)`", row[0])}
    assert set(ELSEWHERE) <= defined
    for name, experiment in EXPERIMENTS.items():
        if name in ("main-epfo", "main-negation"):
            continue  # their error bars have a row of their own
        for label in experiment.paper:
            assert f"`{label}`" in commands[f"`conekg reproduce {name}`"][0], place_of(label)


RUNS = {"NELL": "nell995", "FB15k-237": "fb15k-237", "FB15k": "fb15k"}
"""What the map calls the data sets that the recipe `paper` was run on."""
FOLDER = "results/experiments/nell995-cone-paper-seed0"
BOXES = "results/experiments/nell995-box-paper-seed0-400-boxes"
BETA = "results/experiments/nell995-beta-paper-seed0"
FAST = "results/experiments/nell995-cone-fast-seed0-alike"
EMQL = "results/experiments/fb15k-emql-small-seed0"
COMPARED = "results/experiments/geography-runs-compared"
TIMED = "results/experiments/fb15k-237-models-timed/speed.json"


def mean_mrr(structures):
    return ", ".join(f"{called} {mean_of(run, structures)}" for called, run in RUNS.items())


def mean_of(data_set, structures, model="cone"):
    run = f"results/{data_set}-{model}-paper-seed0.json"
    measured = json.loads((ROOT / run).read_text())["structures"]
    mean = sum(measured[name]["mrr"] for name in structures) / len(structures)
    return f"{100 * mean:.1f} (`{run}`)"


def papers_mean(table, error_bars):
    """The paper's averages on the data sets of those runs."""
    cells = []
    for called, data_set in RUNS.items():
        mean = published(f"table:{table}", data_set).row("cone")["AVG"]
        bar = published(f"table:{error_bars}", data_set).row("deviation")["AVG"]
        cells.append(f"{called} {mean} ± {bar}")
    return f"ConE, average: {', '.join(cells)}"


def ours(experiment, folder=FOLDER):
    """By table, the values of our rows by label."""
    tables = json.loads((ROOT / folder / f"{experiment}.json").read_text())["tables"]
    return [
        {row["label"]: row["values"] for row in table["rows"] if row["kind"] == "ours"}
        for table in tables
    ]


def first(table):
    return next(iter(table.values()))


def cardinality_cell():
    return one_and_two_hops(*map(first, ours("cardinality")))


def beta_cardinality_cell():
    values = one_and_two_hops(*map(first, ours("cardinality", BETA)))
    return f"BetaE, {values} (`{BETA}/cardinality.json`)"


def one_and_two_hops(spearman, pearson):
    return (
        f"1p: Spearman {spearman['1p']:.2f}, Pearson {pearson['1p']:.2f}; "
        f"2p: {spearman['2p']:.2f} and {pearson['2p']:.2f}"
    )


def operators_cell():
    values = ours("operators")[0]["ConE (run), uniform cones, total length"]
    numbers = (f"{values[name]:.3f}" for name in ("projection", "intersection", "union"))
    return f"NELL, uniform cones by total length: {', '.join(numbers)}"


def empty_cell():
    values = first(ours("empty-intersection")[0])
    apertures = f"{values['more than five']:.3f} and {values['none']:.3f}"
    return f"NELL: {apertures}, ROC-AUC {values['ROC-AUC']:.3f}"


def union_cell():
    v = first(ours("union")[0])
    return f"2u {v['2u-N']:.1f} and {v['2u-M']:.1f}, up {v['up-N']:.1f} and {v['up-M']:.1f}"


def variability_cell():
    (table,) = ours("variability")
    spearman, pearson = (table[f"ConE (run), {name}"]["1p"] for name in ("spearman", "pearson"))
    return f"NELL, 1p: Spearman {spearman:.2f}, Pearson {pearson:.2f}"


def membership_cell():
    positive, negative = (table["ConE (run), test"] for table in ours("membership"))
    options = json.loads((ROOT / FOLDER / "membership.json").read_text())["options"]
    assert options["max_queries"] is None, "all were measured"
    return (
        f"{positive['precision']:.3f} and {positive['recall']:.3f}; "
        f"with negation {negative['precision']:.3f} and {negative['recall']:.3f}"
    )


def fast_membership_cell():
    positive, negative = (table["ConE (run-nell), test"] for table in ours("membership", FAST))
    return (
        f"by the fast recipe, queries counted alike, "
        f"{positive['precision']:.3f} and {positive['recall']:.3f}; "
        f"with negation {negative['precision']:.3f} and {negative['recall']:.3f} "
        f"(`{FAST}/membership.json`)"
    )


def boxes_cell():
    (values,) = (table["Query2Box (box), test"] for table in ours("membership", BOXES))
    numbers = f"{values['precision']:.3f} and {values['recall']:.3f}"
    return f"Query2Box, with 400 boxes, {numbers} (`{BOXES}/membership.json`)"


def averages(experiment):
    """By table, the averages of our rows by label."""
    file = ROOT / COMPARED / f"{experiment}.json"
    tables = json.loads(file.read_text())["tables"]
    return [
        {row["label"]: row["values"]["AVG"] for row in table["rows"] if row["kind"] == "ours"}
        for table in tables
    ]


def dimensions_cell():
    table = averages("dimensions")[0]
    narrow, wide = (table[f"BetaE (beta-{dim}), d = {dim}"] for dim in (32, 64))
    return f"geography: {narrow:.1f} at d = 32, {wide:.1f} at 64"


def emql_cell():
    values = first(ours("emql", EMQL)[0])
    full_size = f"EmQL {values['AVG']:.1f} (`{EMQL}/emql.json`)"
    cone = mean_of("fb15k", POSITIVE_STRUCTURES)
    (table,) = averages("emql")
    return (
        f"our own queries of FB15k: {full_size}, ConE {cone}; "
        f"geography: EmQL {table['EmQL (emql)']:.1f}, ConE {table['ConE (cone-0)']:.1f}"
    )


def seeds_cell():
    files = [f"results/nell995-cone-fast-seed{seed}.json" for seed in PAPER_SEEDS]
    runs = [json.loads((ROOT / file).read_text()) for file in files]
    full_size = [stdev(100 * run[key]["mrr"] for run in runs) for key in ("avg_p", "avg_n")]
    spreads = [table["ConE, standard deviation"] for table in averages("seeds")]
    nell, geography = (" and ".join(f"{v:.3f}" for v in each) for each in (full_size, spreads))
    seeds = ", ".join(map(str, PAPER_SEEDS[1:-1]))
    return (
        f"NELL, by the fast recipe: {nell} (`{files[0]}`, and seeds {seeds} and "
        f"{PAPER_SEEDS[-1]}); geography: {geography}"
    )


def speed_cell():
    (table,) = json.loads((ROOT / TIMED).read_text())["tables"]
    seconds = {row["label"]: row["values"]["seconds"] for row in table["rows"]}
    cone, beta = seconds["ConE, d = 800"], seconds["BetaE, d = 400"]
    return f"FB15k-237, one H200: ConE {cone:.2f} s, BetaE {beta:.2f} s per 100 steps (`{TIMED}`)"


COMPARED_CELLS = {"dimensions": dimensions_cell, "emql": emql_cell, "seeds": seeds_cell}

CELLS = {
    "cardinality": cardinality_cell,
    "operators": operators_cell,
    "empty-intersection": empty_cell,
    "union": union_cell,
    "variability": variability_cell,
    "membership": membership_cell,
}
"""What the column *ours* must say of each experiment, from its file."""


def column_ours():
    """By experiment, the last cell of its row."""
    return {row[1].strip("`").split()[2]: row[-1] for row in rows() if "conekg reproduce" in row[1]}


def test_our_numbers_are_those_of_the_results():
    measured = {path.stem for path in (ROOT / FOLDER).glob("*.json")}
    assert set(CELLS) == measured, "every measured experiment has its numbers on the map"
    expected = {name: f"{cell()} (`{FOLDER}/{name}.json`)" for name, cell in CELLS.items()}
    for name, cell in COMPARED_CELLS.items():
        expected[name] = f"{cell()} (`{COMPARED}/{name}.json`)"
    expected["membership"] += f"; {fast_membership_cell()}; {boxes_cell()}"
    expected["cardinality"] += f"; {beta_cardinality_cell()}"
    boxes = mean_of("nell995", POSITIVE_STRUCTURES, "box")
    positive, negative = (
        f"BetaE, NELL {mean_of('nell995', structures, 'beta')}"
        for structures in (POSITIVE_STRUCTURES, NEGATION_STRUCTURES)
    )
    expected["main-epfo"] = f"{mean_mrr(POSITIVE_STRUCTURES)}; {positive}; Query2Box, NELL {boxes}"
    expected["main-negation"] = f"{mean_mrr(NEGATION_STRUCTURES)}; {negative}"
    expected["figures"] = "drawn"
    expected["speed"] = speed_cell()
    assert column_ours() == expected


def of_nell(label, row="cone"):
    """A row of the paper's table of NELL."""
    return published(label, "nell995").row(row)


def of_fb15k(label, row="cone"):
    """A row of a table that the paper has for FB15k alone."""
    return published(label, "fb15k").row(row)


def papers_cells():
    """What the column of the paper's numbers must say, by experiment, from the published ones."""
    cone, beta = (
        [of_nell(f"table:{name}_nell", model) for name in ("spearman", "pearson")]
        for model in ("cone", "beta")
    )
    betas = {name: of_nell(f"table:{name}_results", "beta")["AVG"] for name in ("epfo", "negation")}
    operators, empty = of_fb15k("sec:operators"), of_fb15k("sec:empty_intersection")
    unions, wide = of_nell("table:dis"), "table:epfo_results_800"
    bars = [of_nell(f"table:errorbar_{name}", "deviation")["AVG"] for name in ("epfo", "neg")]
    by_rank, by_value = (of_fb15k("table:variety", name) for name in ("spearman", "pearson"))
    positive, negative = (of_nell(f"tab:answer_{name}", "cone-test") for name in ("epfo", "neg"))
    boxes = of_nell("tab:answer_epfo", "box-test")
    times = published("tab:running_time", ANY).rows
    return {
        "main-epfo": papers_mean("epfo_results", "errorbar_epfo")
        + f"; BetaE, NELL {betas['epfo']}"
        + f"; Query2Box, NELL {of_nell('table:epfo_results', 'box')['AVG']}",
        "main-negation": papers_mean("negation_results", "errorbar_neg")
        + f"; BetaE, NELL {betas['negation']}",
        "cardinality": f"ConE, NELL, {one_and_two_hops(*cone)}; BetaE, {one_and_two_hops(*beta)}",
        "operators": ", ".join(f"{name} {value}" for name, value in operators.items()) + " (FB15k)",
        "empty-intersection": f"apertures {empty['more than five']} and {empty['none']}, "
        f"ROC-AUC {empty['ROC-AUC']} (FB15k)",
        "dimensions": f"BetaE, NELL, average {of_nell(wide, 'beta-400')['AVG']} at d = 400, "
        f"{of_nell(wide, 'beta-800')['AVG']} at 800",
        "union": f"ConE, NELL: 2u {unions['2u-N']} by DNF, {unions['2u-M']} by De Morgan; "
        f"up {unions['up-N']} and {unions['up-M']}",
        "emql": f"EmQL {of_fb15k('table:cmp_results', 'emql')['AVG']}, "
        f"ConE {of_fb15k('table:cmp_results')['AVG']}",
        "seeds": f"NELL, standard deviation of the average {bars[0]} and {bars[1]}",
        "variability": f"1p: Spearman {by_rank['1p']:.2f}, Pearson {by_value['1p']:.2f} (FB15k)",
        "membership": f"ConE, NELL, test: precision {positive['precision']}, "
        f"recall {positive['recall']}; "
        f"with negation {negative['precision']} and {negative['recall']}; "
        f"Query2Box {boxes['precision']} and {boxes['recall']}",
        "speed": f"ConE {times['cone']['seconds']:.0f} s, BetaE {times['beta']['seconds']:.0f} s "
        "per 100 steps (one RTX 3090)",
        "figures": "",
    }


def test_the_papers_numbers_on_the_map_are_the_published_ones():
    column = {
        row[1].strip("`").split()[2]: row[-2] for row in rows() if "conekg reproduce" in row[1]
    }
    assert column == papers_cells()
