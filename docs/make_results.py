"""Writes docs/results.md, docs/other-runs.md and docs/recipe-search.md from the files in results/.

    python docs/make_results.py [--check]

With --check nothing is written; the exit code is 1 if a page differs from what the files give.

- `results/RUN.json` is the record of a trained and evaluated run. A run with another seed than 0
  has no section of its own: the section of seed 0 compares the seeds.
- `results/experiments/RUN/NAME.json` is the output of `conekg reproduce NAME` for a run, with the
  command and an explanation `why` of its differences from the paper. `about.json` in this folder
  describes a run without a record of its own.
- `results/recipe-search/NAME.jsonl` is the output of `benchmarks/search_recipe.py`; `about.json`
  beside these files describes the rounds of the search.

`notes` and `why` are one paragraph or a list of paragraphs. In them `[words](run:RUN)` is a link to
the section of that run, whichever page it is on.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conekg.experiments.catalog import EXPERIMENTS
from conekg.experiments.main_results import is_within
from conekg.experiments.published import MODEL_TITLES, place_of, published
from conekg.experiments.seeds import mean_and_deviation

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
RESULTS_PAGE = ROOT / "docs" / "results.md"
OTHERS_PAGE = ROOT / "docs" / "other-runs.md"
SEARCH_PAGE = ROOT / "docs" / "recipe-search.md"
TITLES = {
    "nell995": "NELL995",
    "fb15k-237": "FB15k-237",
    "fb15k": "FB15k",
    "geography": "geography",
}
MODEL_ORDER = ("cone", "beta", "box", "gqe", "emql")
MAIN_TABLES = (
    ("without negation", "table:epfo_results", "table:errorbar_epfo", "avg_p"),
    ("with negation", "table:negation_results", "table:errorbar_neg", "avg_n"),
)
DIGITS = {
    "union": 1,
    "dimensions": 1,
    "emql": 1,
    "seeds": 2,
    "cardinality": 2,
    "variability": 2,
    "speed": 2,
}
"""Decimals in an experiment's tables, about as many as in the paper's; 3 for all others."""

INTRODUCTION = """\
# Results

This page shows what was measured with this package beside the paper's numbers: first Tables 1 and
2 of the paper, then each full-size run of the recipes `paper` and `fast` with its experiments, ConE
on NELL995 first. [Other runs](other-runs.md) has those of other settings and those on the built-in
graph; [how the recipe `fast` was found](recipe-search.md) has the trials. `python
docs/make_results.py` makes all three pages from the files in `results/`; do not edit them.

"""

OTHERS_INTRODUCTION = """\
# Other runs

This page has the full-size runs with other settings than the recipes have now, and the experiments
on the built-in graph. [Results](results.md) has the runs with the recipes as they are now.

"""

HOW_TO_READ = """\
*Paper* is the row of the same model in the paper's table, ± its standard deviation over five
seeds where it gives one. *Difference* is ours minus the paper's, **bold** if it exceeds that
standard deviation plus 0.05 (the paper prints one decimal, so its means are known to 0.05). In
the paper only the MRR tables have error bars; for the others, judge for yourself. If the text gives
a cause of a difference, it says whether the cause is known or only supposed.

MRR is filtered and in percent, with ties at their mean rank. The columns are the query structures
of the literature ([drawn here](researchers.md#add-a-query-shape)): p is a hop, i an intersection,
u a union, n a negation.
"""

SUMMARY_TITLE = "Tables 1 and 2 of the paper"
SUMMARY_TEXT = """\
MRR in percent: the paper's rows and ours, by the recipes `paper` (the published schedule) and
`fast`, seed 0; the section of `fast` on NELL995 compares it with four other seeds. On NELL995 the
test queries are the published ones; on the other two graphs they are sampled by the same rules. If
a run differs from the recipe as it is now, its section says how."""

Values = Mapping[str, float]


def results_page() -> str:
    """The page of the runs with the current recipes, and of the experiments on them."""
    records = records_of(RESULTS_PAGE)
    parts = [
        INTRODUCTION + HOW_TO_READ,
        summary([path for path in records if path.stem != "about"]),
        overview([path for path in records if path.stem != "about"]),
        experiment_overview([*records, *records_of(OTHERS_PAGE)]),
    ]
    return "\n".join([*parts, *sections(records)])


def others_page() -> str:
    """The page of all other runs."""
    records = records_of(OTHERS_PAGE)
    table = overview([path for path in records if path.stem != "about"])
    return "\n".join([OTHERS_INTRODUCTION + HOW_TO_READ, table, *sections(records)])


def records_of(page: Path) -> list[Path]:
    """The records that have a section on a page, in its order.

    Records of runs come first, then the `about.json` of runs without a record.
    """
    runs = [path for path in RESULTS.glob("*.json") if not is_another_seed(path)]
    abouts = list((RESULTS / "experiments").glob("*/about.json"))
    return sorted((path for path in (*runs, *abouts) if page_of(path) == page), key=place_among)


def page_of(record: Path) -> Path:
    """The page that has a run's section."""
    as_it_is = record.stem == "about" or re.search(r"-seed\d+$", record.stem)
    is_full_size = read(record)["dataset"] != "geography"
    return RESULTS_PAGE if as_it_is and is_full_size else OTHERS_PAGE


def is_another_seed(record: Path) -> bool:
    """Whether a run differs in its seed alone from one that has a section."""
    return re.search(r"-seed[1-9]\d*$", record.stem) is not None


def seeds_of(record: Path) -> list[Path]:
    """The records of a run and of those that differ from it in their seed alone, by seed."""
    stem, seed, rest = record.stem.partition("-seed0")
    others = [] if rest or not seed else filter(is_another_seed, RESULTS.glob(f"{stem}-seed*.json"))
    return sorted((record, *others), key=lambda path: int(read(path)["seed"]))


def place_among(record: Path) -> tuple[object, ...]:
    """The sort key of a run's section: by graph, model and recipe."""
    run = read(record)
    graph, model = list(TITLES).index(run["dataset"]), MODEL_ORDER.index(run["model"])
    return record.stem == "about", graph, model, run["recipe"] != "paper", run_name(record)


def run_name(record: Path) -> str:
    """The name of a run in `results/`."""
    return record.parent.name if record.stem == "about" else record.stem


def sections(records: Iterable[Path]) -> list[str]:
    """The section of each run; a note of an experiment is shown only where it first occurs."""
    shown = set[str]()
    return [
        experiments_only_section(path, shown) if path.stem == "about" else run_section(path, shown)
        for path in records
    ]


def summary(records: Sequence[Path]) -> str:
    """The paper's tables of MRR, with the rows of our runs below the paper's row of each model."""
    parts = [f"## {SUMMARY_TITLE}", SUMMARY_TEXT]
    for data_set in ("nell995", "fb15k-237", "fb15k"):
        for heading, label, _, average in MAIN_TABLES:
            theirs = published(label, data_set)
            lines = list[tuple[str, list[str]]]()
            for model in (name for name in MODEL_TITLES if name in theirs.rows):
                title = MODEL_TITLES[model]
                lines.append((f"{title}, the paper", cells(theirs.row(model), theirs.columns, 1)))
                for record in records:
                    run = read(record)
                    if (run["dataset"], run["model"]) == (data_set, model) and average in run:
                        ours = mrr_of(run, theirs.columns, average)
                        words = f"`{run['recipe']}`{stopped(run)}"
                        name = link_to(record, RESULTS_PAGE, words)
                        lines.append((f"{title}, {name}", cells(ours, theirs.columns, 1)))
            parts.append(markdown_table(f"{TITLES[data_set]}, {heading}", theirs.columns, lines))
    return "\n\n".join(parts) + "\n"


def stopped(run: Mapping[str, Any]) -> str:
    """What a row says of a run that was stopped before its planned end, else nothing."""
    return ", stopped" if run.get("steps_planned", run["steps"]) > run["steps"] else ""


def mrr_of(run: Mapping[str, Any], columns: Iterable[str], average: str) -> dict[str, float]:
    """A run's MRR in percent by structure, and its average."""
    found = run["structures"]
    ours = {name: 100 * found[name]["mrr"] for name in columns if name in found}
    return ours | {"AVG": 100 * run[average]["mrr"]}


def overview(records: Iterable[Path]) -> str:
    """Every run in one line: the two averages, the paper's in brackets, and the minutes."""
    lines = list[tuple[str, list[str]]]()
    for record in records:
        run = read(record)
        values = list[str]()
        for _, label, _, average in MAIN_TABLES:
            if average not in run:
                values.append("–")
                continue
            theirs = published(label, run["dataset"]).row(run["model"])["AVG"]
            values.append(f"{100 * run[average]['mrr']:.1f} ({theirs:.1f})")
        values += [f"{run['steps']:,}", f"{run['seconds'] / 60:.1f}"]
        lines.append((link_to(record, page_of(record)), values))
    columns = ("without negation", "with negation", "steps", "minutes")
    table = markdown_table("average MRR (the paper's)", columns, lines)
    return f"## All runs\n\n{table}\n"


def experiment_overview(records: Sequence[Path]) -> str:
    """A table of the runs and the experiments made with each."""
    lines = list[tuple[str, list[str]]]()
    for record in records:
        made = [name for name in EXPERIMENTS if (folder_of(record) / f"{name}.json").is_file()]
        if made:
            lines.append((link_to(record, RESULTS_PAGE), [", ".join(made)]))
    table = markdown_table("run", ("experiments made with it",), lines)
    return f"## All experiments\n\n{table}\n"


def folder_of(record: Path) -> Path:
    """The folder of the experiments on a run."""
    return RESULTS / "experiments" / run_name(record)


def run_section(path: Path, shown: set[str]) -> str:
    """A run: its MRR beside the paper's, how it was made, and its experiments."""
    run, page = read(path), page_of(path)
    tables = [main_table(run, *names) for names in MAIN_TABLES if names[-1] in run]
    parts = [f"## {title_of(run)}", *tables]
    planned = run.get("steps_planned", run["steps"])
    parts.append(
        f"{run['steps']:,} of {planned:,} steps in {run['seconds'] / 60:.1f} minutes "
        f"({1000 * run['seconds'] / run['steps']:.2f} ms per step, set-up included) on "
        f"{run['device']}; all test queries evaluated in {run['evaluation_seconds']:.1f} s. "
        f"Queries: {run['queries']}."
    )
    parts += [paragraphs(run["notes"], page), commands(run["command"])]
    if (RESULTS / "curves" / f"{path.stem}.csv").is_file():
        parts.append(
            f"![Loss and learning rate by step](images/{path.stem}-curve.png)\n\n"
            f"From `results/curves/{path.stem}.csv`: the mean loss of each pool of queries over "
            "the last 500 steps; dotted lines mark where the learning rate drops."
        )
    parts.append(f"Source: `{path.relative_to(ROOT)}`.")
    if len(seeds_of(path)) > 1:
        parts.append(seeds_section(path))
    parts += experiment_sections(path, shown)
    return "\n\n".join(parts) + "\n"


def seeds_section(record: Path) -> str:
    """The MRR of runs that differ in their seed, with mean and standard deviation."""
    records = seeds_of(record)
    runs, page = [read(path) for path in records], page_of(record)
    parts = [f"### seeds: {EXPERIMENTS['seeds'].summary}"]
    for heading, _, label, average in MAIN_TABLES:
        paper = published(label, runs[0]["dataset"])
        rows = [mrr_of(run, paper.columns, average) for run in runs]
        mean, deviation = mean_and_deviation(rows)
        own = {f"seed {run['seed']}": row for run, row in zip(runs, rows, strict=True)}
        own |= {"mean": mean, "standard deviation": deviation}
        lines = [(title, cells(row, paper.columns, 2)) for title, row in own.items()]
        if runs[0]["model"] == "cone":  # the paper's own; it prints its means with one decimal
            lines += [
                (f"paper, {paper.place}, mean", cells(paper.row("mean"), paper.columns, 1)),
                ("standard deviation", cells(paper.row("deviation"), paper.columns, 2)),
            ]
        parts.append(markdown_table(heading, paper.columns, lines))
    others = list(zip(records, runs, strict=True))[1:]
    notes = dict.fromkeys(note for _, run in others for note in run["notes"])
    parts += [paragraphs(list(notes), page), *(commands(run["command"]) for run in runs[1:2])]
    sources = " ".join(f"Source: `{path.relative_to(ROOT)}`." for path, _ in others)
    parts.append(f"The other seeds are given to `training.seed` in the same way. {sources}")
    return "\n\n".join(parts)


def experiments_only_section(path: Path, shown: set[str]) -> str:
    """Experiments on a run without a record of its own, which explain those of other runs."""
    about = read(path)
    notes = paragraphs(about["notes"], page_of(path))
    parts = [f"## {title_of(about)}", notes, commands(about["command"])]
    return "\n\n".join([*parts, *experiment_sections(path, shown)]) + "\n"


def search_page() -> str:
    """The page on how the `fast` recipe was found: all trials of all rounds."""
    folder = RESULTS / "recipe-search"
    about = read(folder / "about.json")
    parts = ["# How the `fast` recipe was found", paragraphs(about["notes"], SEARCH_PAGE)]
    for name, this_round in about["rounds"].items():
        trials = [json.loads(line) for line in (folder / f"{name}.jsonl").open(encoding="utf-8")]
        columns = ("avg_p", "avg_n", "1p", "2p", "3i", "2u", "2in")
        lines = [
            (trial["trial"], cells(trial | trial["mrr"], columns, 1))
            if "mrr" in trial
            else (trial["trial"], [trial["error"].partition(":")[0], *["–"] * 6])
            for trial in trials
        ]
        parts += [
            f"## {this_round['title']}",
            markdown_table("validation MRR", columns, lines),
            paragraphs(this_round["notes"], SEARCH_PAGE),
            commands(this_round["command"]),
            f"Source: `results/recipe-search/{name}.jsonl`.",
        ]
    return "\n\n".join(parts) + "\n"


def title_of(run: Mapping[str, Any]) -> str:
    """The heading of a run's section: model, graph, recipe, seed and, if it has one, variant."""
    title = f"{MODEL_TITLES[run['model']]} on {TITLES[run['dataset']]}, recipe `{run['recipe']}`"
    variant = f": {run['variant']}" if "variant" in run else ""
    seeds = "seed" if isinstance(run["seed"], int) else "seeds"
    return f"{title}, {seeds} {run['seed']}{variant}"


def link_to(record: Path, here: Path, text: str | None = None) -> str:
    """A link from the page `here` to a run's section; its text is the heading by default."""
    title, page = title_of(read(record)), page_of(record)
    # Code hosts and Sphinx make the anchor of a heading like this.
    anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{text or title}]({'' if page == here else page.name}#{anchor})"


def main_table(
    run: Mapping[str, Any], heading: str, label: str, spread_label: str, average: str
) -> str:
    """A table of our MRR by structure, the paper's and the difference."""
    theirs = published(label, run["dataset"])
    row = theirs.row(run["model"])
    spreads = (
        published(spread_label, run["dataset"]).row("deviation") if run["model"] == "cone" else {}
    )
    ours = mrr_of(run, theirs.columns, average)
    papers = [
        f"{row[name]:.1f} ± {spreads[name]:.2f}" if name in spreads else number(row.get(name), 1)
        for name in ours
    ]
    within = is_within(ours, row, spreads) if spreads else {}
    differences = [signed(ours[n] - row[n], 1, within.get(n, True)) for n in ours if n in row]
    lines = [("ours", [number(value, 1) for value in ours.values()]), ("paper", papers)]
    if differences:
        lines.append(("difference", differences))
    return markdown_table(heading, ours, lines)


def experiment_sections(record: Path, shown: set[str]) -> list[str]:
    """The experiments recorded for a run, in the paper's order."""
    files = [folder_of(record) / f"{name}.json" for name in EXPERIMENTS]
    page = page_of(record)
    return [experiment_section(file, page, shown) for file in files if file.is_file()]


def experiment_section(path: Path, page: Path, shown: set[str]) -> str:
    """The tables of one experiment, the explanation of differences, and its notes.

    Notes in `shown` are left out; the others are added to it.
    """
    found = read(path)
    name = found["experiment"]
    parts = [f"### {name}: {EXPERIMENTS[name].summary}"]
    notes = dict[str, None]()
    for table in found["tables"]:
        parts.append(experiment_table(found, table))
        notes |= dict.fromkeys(table["notes"])
    picture = f"{path.parent.name}-{name}.png"
    if (ROOT / "docs" / "images" / picture).is_file():
        parts.append(f"![What `conekg reproduce {name} --picture` draws](images/{picture})")
    parts += [paragraphs(found["why"], page)] if "why" in found else []
    # Left out too: the settings of a single run, which its section has, and what the table shows.
    is_single = len({run for table in found["tables"] for run in runs_of(table)}) == 1
    new = [
        note
        for note in notes
        if note not in shown
        and not note.startswith("The paper has no numbers")
        and not (is_single and " with d = " in note)
    ]
    shown.update(new)
    if new:
        parts.append("\n".join(f"- {note}" for note in new))
    parts += [commands(found["command"]), f"Source: `{path.relative_to(ROOT)}`."]
    return "\n\n".join(parts)


def experiment_table(found: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    """Our rows, each followed by the paper's for the same model and data set and the difference.

    If the paper has no numbers for the data set, its numbers for another one follow.
    """
    digits = DIGITS.get(found["experiment"], 3)
    columns = table["columns"]
    by_kind = {kind: [r for r in table["rows"] if r["kind"] == kind] for kind in ("ours", "paper")}
    differences = {
        row["label"].removesuffix(" − paper"): row["values"]
        for row in table["rows"]
        if row["kind"] == "comparison"
    }
    lines = list[tuple[str, list[str]]]()
    of_one_run = len(runs_of(table)) == 1
    for row in by_kind["ours"]:
        label = short(row["label"]) if of_one_run else row["label"]
        lines.append((label, cells(row["values"], columns, digits)))
        if row["label"] in differences:
            own = differences[row["label"]]
            theirs = {
                column: row["values"][column] - difference for column, difference in own.items()
            }
            lines.append((f"paper, {place_of(table['paper'])}", cells(theirs, columns, digits)))
            signed_cells = [signed(own[name], digits) if name in own else "–" for name in columns]
            lines.append(("difference", signed_cells))
    if not differences:  # the paper's rows then follow all of ours
        lines += [
            (f"paper, {row['label']}", cells(row["values"], columns, digits))
            for row in by_kind["paper"]
        ]
    if not by_kind["paper"]:
        lines += other_data_sets(found["model"], table, digits)
    return markdown_table(corner(table), columns, lines)


def runs_of(table: Mapping[str, Any]) -> set[str]:
    """The runs of our rows in a table, named by the beginnings of their labels: `ConE (run`."""
    return {row["label"].partition(")")[0] for row in table["rows"] if row["kind"] == "ours"}


def corner(table: Mapping[str, Any]) -> str:
    """The text of a table's corner: its subject and unit, without what its section says."""
    title, *rest = table["title"].split(", ")
    about = [title, *(part for part in rest if part.startswith("queries with"))]
    unit: str = table["unit"]
    return unit if unit.startswith(title) else f"{', '.join(about)} ({unit})"


def other_data_sets(
    model: str, table: Mapping[str, Any], digits: int
) -> Iterable[tuple[str, list[str]]]:
    """The paper's rows for the data set that it has instead; none if it has several."""
    others = published(table["paper"], None).data_sets
    if len(others) != 1:
        return
    (data_set,) = others
    theirs = published(table["paper"], data_set)
    for name, values in theirs.rows.items():
        if name in MODEL_TITLES and name != model:
            continue
        kind = "" if name in MODEL_TITLES else f", {name}"
        label = f"paper, {TITLES[data_set]}{kind}"
        yield label, cells(values, table["columns"], digits)


def short(label: str) -> str:
    """A row's label with `ours` for model and run: `ConE (run), test` becomes `ours, test`."""
    _, _, rest = label.partition(")")
    return f"ours{rest}"


def markdown_table(
    heading: str, columns: Iterable[str], lines: Iterable[tuple[str, list[str]]]
) -> str:
    """A table with a heading in its corner."""
    names = list(columns)
    rows = [f"| {heading} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    rows += [f"| {label} | " + " | ".join(values) + " |" for label, values in lines]
    return "\n".join(rows)


def cells(values: Values, columns: Iterable[str], digits: int) -> list[str]:
    """The values of a row, a dash where there is none."""
    return [number(values.get(column), digits) for column in columns]


def number(value: float | None, digits: int) -> str:
    """A number as the page shows it."""
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int, within: bool = True) -> str:
    """A difference with its sign; bold unless it is `within` the error bar."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    if not float(f"{value:.{digits}f}"):
        text = text[1:]  # zero has no sign
    return text if within else f"**{text}**"


def paragraphs(text: str | Sequence[str], here: Path) -> str:
    """The paragraphs as Markdown for the page `here`, with links to runs resolved."""
    pages = (RESULTS_PAGE, OTHERS_PAGE)
    runs = {run_name(path): path for page in pages for path in records_of(page)}
    whole = text if isinstance(text, str) else "\n\n".join(text)
    return re.sub(
        r"\[([^\]]+)\]\(run:([\w-]+)\)", lambda link: link_to(runs[link[2]], here, link[1]), whole
    )


def commands(text: str) -> str:
    """A block of shell commands, one per line, from commands separated by `; `."""
    return "```sh\n" + text.replace("; ", "\n") + "\n```"


def read(path: Path) -> dict[str, Any]:
    """The content of a JSON file."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def main() -> None:
    """Write the pages, or check them."""
    pages = {RESULTS_PAGE: results_page(), OTHERS_PAGE: others_page(), SEARCH_PAGE: search_page()}
    if "--check" in sys.argv[1:]:
        sys.exit(any(path.read_text(encoding="utf-8") != text for path, text in pages.items()))
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
