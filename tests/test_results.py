"""Pages and texts have the figures of the files in `results/`, and these files are complete."""

import csv
import itertools
import json
import re
import shlex
import statistics
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.experiments.published import published
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.source import open_graph
from toy_release import write_folder

ROOT = Path(__file__).parents[1]
RUNS = sorted((ROOT / "results").glob("*.json"), key=lambda path: path.stem)
EXPERIMENT_FILES = sorted(
    path for path in (ROOT / "results" / "experiments").glob("*/*.json") if path.stem != "about"
)
PAGES = (ROOT / "docs" / "results.md", ROOT / "docs" / "other-runs.md")
CURVES = sorted((ROOT / "results" / "curves").glob("*.csv"))
REQUIRED = {
    "dataset",
    "model",
    "recipe",
    "seed",
    "steps",
    "seconds",
    "device",
    "command",
    "structures",
    "avg_p",
}


def test_the_generated_pages_match_the_files() -> None:
    checked = subprocess.run(
        [sys.executable, "docs/make_results.py", "--check"], cwd=ROOT, check=False
    )
    assert checked.returncode == 0, "run `python docs/make_results.py` and commit what it wrote"


def test_the_tables_of_the_paper_have_every_run_of_a_current_recipe() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    summary = page.partition("## Tables 1 and 2")[2].partition("\n## ")[0]
    titles = {"cone": "ConE", "gqe": "GQE", "box": "Query2Box", "beta": "BetaE"}
    found = dict[tuple[str, str, str], list[str]]()
    graph, average = "", ""
    for line in summary.splitlines():
        first, *values = [cell.strip() for cell in line.split("|")[1:-1]] or [""]
        if values and values[-1] == "AVG":
            graph, _, average = first.partition(", ")
        elif values and "[" in first:
            model, _, rest = first.partition(", ")
            found[graph.lower(), average, f"{model} {rest.split('`')[1]}"] = values
    expected = dict[tuple[str, str, str], list[str]]()
    for path in (path for path in RUNS if path.stem.endswith("-seed0")):
        run = json.loads(path.read_text(encoding="utf-8"))
        for average, key, names in (
            ("without negation", "avg_p", "1p 2p 3p 2i 3i pi ip 2u up"),
            ("with negation", "avg_n", "2in 3in inp pin pni"),
        ):
            if key in run:
                mrr = [run["structures"][name]["mrr"] for name in names.split()]
                place = (run["dataset"], average, f"{titles[run['model']]} {run['recipe']}")
                expected[place] = [f"{100 * value:.1f}" for value in (*mrr, run[key]["mrr"])]
    assert len(expected) > 15
    assert found == expected


def test_the_seeds_of_a_recipe_are_compared() -> None:
    page = PAGES[0].read_text(encoding="utf-8")
    (section,) = (part.partition("\n### ")[0] for part in page.split("\n### seeds: ")[1:])
    tables = [lines.splitlines() for lines in section.split("\n\n") if lines.startswith("|")]
    runs = [
        json.loads((ROOT / f"results/nell995-cone-fast-seed{seed}.json").read_text("utf-8"))
        for seed in (0, 10, 100, 1000, 10000)
    ]
    for table, average, label in zip(
        tables, ("avg_p", "avg_n"), ("errorbar_epfo", "errorbar_neg"), strict=True
    ):
        (_, *names, _), _, *rows = (
            [cell.strip() for cell in line.split("|")[1:-1]] for line in table
        )
        columns = [[100 * run["structures"][name]["mrr"] for run in runs] for name in names]
        columns.append([100 * run[average]["mrr"] for run in runs])
        paper = published(f"table:{label}", "nell995")
        expected = [
            *([f"{value:.2f}" for value in row] for row in zip(*columns, strict=True)),
            [f"{statistics.mean(column):.2f}" for column in columns],
            [f"{statistics.stdev(column):.2f}" for column in columns],
            [f"{paper.row('mean')[name]:.1f}" for name in (*names, "AVG")],
            [f"{paper.row('deviation')[name]:.2f}" for name in (*names, "AVG")],
        ]
        assert [row[1:] for row in rows] == expected
    readme, changelog = ((ROOT / name).read_text("utf-8") for name in ("README.md", "CHANGELOG.md"))
    for average in ("avg_p", "avg_n"):
        values = [100 * run[average]["mrr"] for run in runs]
        spread = f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
        assert all(spread in text for text in (section, readme, changelog))


def headings_of(page: Path) -> list[str]:
    """The headings of a page's runs, without those of its other tables."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if re.match(r"## .* on .*, recipe", line)]


def test_every_record_is_on_one_page_with_runs_of_current_recipes_on_the_first() -> None:
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    for path in (*RUNS, *EXPERIMENT_FILES):
        name = path.stem if path in RUNS else path.parent.name
        is_other = re.search(r"-seed\d+-", name) or name.startswith("geography-")
        source = f"Source: `{path.relative_to(ROOT)}`."
        assert [source in page for page in pages] == [not is_other, bool(is_other)], source
    first, second, *_ = headings_of(PAGES[0])
    assert first.startswith("## ConE on NELL995, recipe `paper`")
    assert second.startswith("## ConE on NELL995, recipe `fast`")


def test_every_link_of_a_record_to_a_run_is_resolved() -> None:
    """tests/test_docs.py checks that the links of all pages lead to a heading."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "results").rglob("*.json")]
    linked = [name for text in texts for name in re.findall(r"\]\(run:([^)]+)\)", text)]
    assert len(linked) > 50
    assert {*linked} <= {path.stem for path in RUNS} | {
        path.parent.name for path in EXPERIMENT_FILES
    }
    for page in PAGES:
        assert "](run:" not in page.read_text(encoding="utf-8")


def test_runs_of_one_recipe_have_different_headings() -> None:
    headings = [heading for page in PAGES for heading in headings_of(page)]
    assert len(headings) == len(set(headings)) >= len(RUNS)
    seen: dict[tuple[str, ...], list[str | None]] = {}
    for path in RUNS:
        run = json.loads(path.read_text(encoding="utf-8"))
        key = tuple(str(run[name]) for name in ("dataset", "model", "recipe", "seed"))
        seen.setdefault(key, []).append(run.get("variant"))
    for key, variants in seen.items():
        if len(variants) > 1:
            assert None not in variants, f"{key}: each of several runs needs a `variant`"


@pytest.mark.parametrize(
    "path", EXPERIMENT_FILES, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_a_recorded_experiment_is_complete_and_explained(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found.keys() >= {"dataset", "model", "recipe", "seed", "device", "command", "why"}
    assert found["experiment"] == path.stem
    assert found["command"].startswith(f"conekg reproduce {path.stem} ")
    for table in found["tables"]:
        ours = {row["label"]: row["values"] for row in table["rows"] if row["kind"] == "ours"}
        assert ours
        for row in table["rows"]:
            if row["kind"] != "comparison":
                continue
            theirs = published(table["paper"], found["dataset"])
            split = row["label"].removesuffix(" − paper").rpartition(", ")[2]
            paper = theirs.row(found["model"]) or theirs.row(f"{found['model']}-{split}")
            for column, difference in row["values"].items():
                own = ours[row["label"].removesuffix(" − paper")][column]
                assert difference == pytest.approx(own - paper[column])


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_recorded_command_still_trains_what_was_recorded(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = json.loads(path.read_text(encoding="utf-8"))
    (command,) = (
        line
        for line in run["command"].split("; ")
        if line.startswith("conekg train ") and "--resume" not in line
    )
    _, _, graph, *options = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    # A toy graph with the benchmark's name, which is given the toy's size to be recognised.
    write_folder(Path(graph))
    toy, benchmark = open_graph(graph), BENCHMARKS[run["dataset"]]
    size = (toy.num_entities, len(toy.vocabulary.relations))
    monkeypatch.setitem(BENCHMARKS, run["dataset"], replace(benchmark, size=size))
    shown = CliRunner().invoke(app, ["train", graph, *options, "--show-recipe"])
    assert shown.exit_code == 0, shown.output
    recipe = tomllib.loads(shown.stdout)
    assert recipe["training"]["steps"] == run.get("steps_planned", run["steps"])
    assert (recipe["recipe"], recipe["model"]["name"]) == (run["recipe"], run["model"])
    assert recipe["training"]["seed"] == run["seed"]
    if run["model"] in ("gqe", "box"):  # they have runs with several dimensions
        assert f"{recipe['model']['dim']} " in run["variant"]
    if run["recipe"] == "fast" and run["model"] == "cone":
        variant = run.get("variant", "")
        assert ("one positive" in variant) == (recipe["training"]["positives"] == 1)
        assert ("near misses" in variant) == (recipe["training"]["near_misses"] > 0)
        assert ("count alike" in variant) == (recipe["training"]["answer_discount"] == 0)


def test_the_first_run_of_a_recipe_changes_none_of_its_settings() -> None:
    """Only how often a run is validated and saved may differ: its last weights are the same."""
    firsts = dict[tuple[str, str], str]()
    for path in RUNS:
        run = json.loads(path.read_text(encoding="utf-8"))
        if run["model"] == "cone":
            firsts.setdefault((run["dataset"], run["recipe"]), run["command"])
    assert len(firsts) == 6, "three graphs, by `fast` and by `paper`"
    for recipe, command in firsts.items():
        words = shlex.split(command)
        changed = {
            value.partition("=")[0]
            for word, value in itertools.pairwise(words)
            if word in ("--set", "--config")
        }
        assert changed <= {"training.validate_every", "training.checkpoint_every"}, recipe


def test_texts_are_divided_into_short_paragraphs() -> None:
    about = json.loads((ROOT / "results/recipe-search/about.json").read_text(encoding="utf-8"))
    contents = [about, *about["rounds"].values()]
    contents += [
        json.loads(path.read_text(encoding="utf-8")) for path in (*RUNS, *EXPERIMENT_FILES)
    ]
    texts = [content[key] for content in contents for key in ("notes", "why") if key in content]
    assert len(texts) > 70
    for text in texts:
        for paragraph in [text] if isinstance(text, str) else text:
            assert paragraph.startswith("|") or 0 < len(paragraph) <= 700, paragraph


def test_the_performance_page_has_the_recorded_steps_and_minutes() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    shown = {row[0]: row[1:] for row in cells if len(row) == 6}
    titles = {"cone": "ConE", "gqe": "GQE", "box": "Query2Box", "beta": "BetaE"}
    graphs = {"fb15k-237": "FB15k-237", "nell995": "NELL995", "fb15k": "FB15k"}
    measured = dict[str, dict[str, dict[str, float]]]()
    for name in ("training-step", "training-step-nell995"):
        record = json.loads((ROOT / f"results/benchmarks/{name}.json").read_text(encoding="utf-8"))
        for row in record["rows"]:
            place = f"{titles[row['model']]}, {graphs[row['dataset']]}"
            measured.setdefault(place, {})[row["updater"]] = row
    assert len(measured) == 6
    for place, by in measured.items():
        fused = by["fused"]
        assert shown[place] == [
            f"{fused['published_ms']} ms" if "published_ms" in fused else "–",
            f"{by['eager']['ms_per_step']:.1f} ms" if "eager" in by else "–",
            f"{fused['ms_per_step']:.2f} ms",
            f"{fused['times_faster_than_published']:.0f}" if "published_ms" in fused else "–",
            f"{fused['peak_gib']:.1f} GiB",
        ]
    full = {(row[0], row[1]): row[2:] for row in cells if len(row) == 4 and row[0].startswith("`")}
    assert len(full) == 7
    for path in RUNS:
        run = json.loads(path.read_text(encoding="utf-8"))
        place = f"{titles[run['model']]}, {graphs[run['dataset']]}"
        if path.stem.endswith("-seed0") and (f"`{run['recipe']}`", place) in full:
            steps, minutes = full.pop((f"`{run['recipe']}`", place))
            assert steps == f"{run['steps']:,}"
            assert minutes.partition(",")[0] == f"{run['seconds'] / 60:.1f}"
    assert not full


def averages(model: str, recipe: str, data_set: str) -> tuple[str, str, float]:
    """The two average MRRs of a recipe's recorded run, as shown on pages, and its minutes."""
    path = ROOT / "results" / f"{data_set}-{model}-{recipe}-seed0.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    positive, negative = (f"{100 * run[key]['mrr']:.1f}" for key in ("avg_p", "avg_n"))
    return positive, negative, run["seconds"] / 60


def papers_averages(data_set: str) -> tuple[str, str]:
    positive, negative = (
        f"{published(label, data_set).row('cone')['AVG']}"
        for label in ("table:epfo_results", "table:negation_results")
    )
    return positive, negative


def test_the_readme_has_the_recorded_averages_and_minutes() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    rows = {row[0]: row[1:] for row in cells if len(row) == 4}
    data_sets = ("nell995", "fb15k-237", "fb15k")
    assert [name.lower() for name in rows[""]] == list(data_sets)
    assert rows["the paper"] == [", ".join(papers_averages(name)) for name in data_sets]
    for recipe in ("fast", "paper"):
        for data_set, cell in zip(data_sets, rows[f"`--recipe {recipe}`"], strict=True):
            shown, _, minutes = cell.removesuffix(" minutes").partition(" in ")
            positive, negative, measured = averages("cone", recipe, data_set)
            assert shown == f"{positive}, {negative}"
            assert minutes in (f"{measured:.1f}", f"{measured:.0f}")


def test_the_changelog_has_the_recorded_averages() -> None:
    text = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split())
    fast, paper = list[str](), list[str]()
    for data_set, name in (("nell995", "NELL995"), ("fb15k-237", "FB15k-237"), ("fb15k", "FB15k")):
        theirs = papers_averages(data_set)
        positive, negative, minutes = averages("cone", "fast", data_set)
        papers = " and ".join(theirs)
        fast.append(f"{positive} and {negative} on {name} in {minutes:.1f} ({papers})")
        positive, negative, _ = averages("cone", "paper", data_set)
        paper.append(f"{positive} and {negative} on {name} ({', '.join(theirs)})")
    assert ", ".join(fast) in text.replace(" minutes (the paper: ", " (")
    assert f"has the paper's numbers: {paper[0]}, {paper[2]}." in text


def test_the_performance_page_has_the_recorded_ranking_profile_and_precisions() -> None:
    text = " ".join((ROOT / "docs" / "performance.md").read_text(encoding="utf-8").split())
    results = ROOT / "results"
    ranking = json.loads((results / "benchmarks/evaluation.json").read_text(encoding="utf-8"))
    for sentence in (
        f"all {ranking['queries']:,} official NELL995 test queries",
        f"takes {ranking['seconds']:.1f} s ({ranking['ms_per_query']:.2f} ms per query; ",
        f" and {ranking['peak_gib']:.1f} GiB.",
        f"takes {ranking['plain_ms_per_query']:.2f} ms per query, "
        f"{ranking['times_faster_than_plain']:.0f} times as long; "
        f"the published code takes {ranking['published_ms_per_query_on_an_h200']} ms",
    ):
        assert sentence in text
    profile = json.loads((results / "profiles/step-cone.json").read_text(encoding="utf-8"))
    parts = profile["microseconds_per_step"]
    total, step = sum(parts.values()) / 1000, profile["step_ms"]
    assert f"times of all kernels: {total:.1f} ms in a step of {step:.2f} ms" in text
    loss = parts["loss and region gradients (contrast)"] / 3000
    assert f"The loss kernel ({loss:.2f} ms per update)" in text
    lines = (results / "recipe-search/fb15k-237-second.jsonl").read_text(encoding="utf-8")
    trials = {trial["trial"]: trial for trial in map(json.loads, lines.splitlines())}
    whole, half = trials["products in float32"], trials["rate 2.5e-4, falling evenly"]
    assert (
        f"bfloat16 has {half['avg_p']:.2f} without negation and {half['avg_n']:.2f} with, "
        f"float32 {whole['avg_p']:.2f} and {whole['avg_n']:.2f}," in text
    )


def test_the_models_on_geography_have_the_recorded_rows() -> None:
    """Checks the rows of the runs that experiments measured again on the same queries."""
    page = (ROOT / "docs" / "models-on-geography.md").read_text(encoding="utf-8")
    table = page.partition("\nMRR:\n")[2].partition("\nStandard deviation")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    header, shown = lines[1], {line[0]: line[1:] for line in lines if len(line) > 10}
    compared = ROOT / "results" / "experiments" / "geography-runs-compared"
    for model, name, label in (
        ("BetaE", "dimensions", "BetaE (beta-32), d = 32"),
        ("EmQL", "emql", "EmQL (emql)"),
    ):
        record = json.loads((compared / f"{name}.json").read_text(encoding="utf-8"))
        measured = dict.fromkeys(header[1:], "–")
        for number, measured_table in enumerate(record["tables"]):
            average = ("avg_p", "avg_n")[number]
            (values,) = [r["values"] for r in measured_table["rows"] if r["label"] == label]
            measured |= {average if n == "AVG" else n: f"{v:.1f}" for n, v in values.items()}
        assert shown[model] == list(measured.values())


def test_curves_are_losses_by_step() -> None:
    assert CURVES
    for path in CURVES:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        steps = [int(line["step"]) for line in lines]
        run = json.loads((ROOT / "results" / f"{path.stem}.json").read_text(encoding="utf-8"))
        assert steps == sorted(set(steps))
        assert run["steps"] - 500 <= steps[-1] <= run["steps"]
        assert all(float(line["path"]) > 0 and float(line["other"]) > 0 for line in lines)
        rates = [float(line["learning_rate"]) for line in lines]
        assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_recorded_run_is_complete_and_its_averages_are_right(path: Path) -> None:
    run = json.loads(path.read_text(encoding="utf-8"))
    assert run.keys() >= REQUIRED
    for average, names in (
        ("avg_p", "1p 2p 3p 2i 3i pi ip 2u up"),
        ("avg_n", "2in 3in inp pin pni"),
    ):
        found = [run["structures"][n]["mrr"] for n in names.split() if n in run["structures"]]
        if found:
            assert run[average]["mrr"] == pytest.approx(sum(found) / len(found), abs=1e-5)
