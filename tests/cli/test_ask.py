"""`conekg ask` as a user meets it: tables, JSON lines, files, and clear refusals."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from conekg.answering.calibration import (
    Calibration,
    CountCurve,
    ScoreCurve,
    save_calibration,
)
from conekg.answering.curves import Curve
from conekg.answering.index import EntityIndex
from conekg.cli.main import app
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.vocabulary import NameTable
from conekg.sampling.query_set import save_query_set
from tiny import tiny_graph, tiny_queries
from untrained_run import untrained_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, film_graph: KnowledgeGraph) -> Path:
    folder = untrained_run(tmp_path_factory.mktemp("ask") / "run", film_graph)
    scores = ScoreCurve(Curve((0.0, 30.0), (0.0, 0.5)), relative=True, error=0.021)
    count = CountCurve(Curve((0.0, 100.0), (0.0, 1.0)), 1.5)
    save_calibration(
        Calibration(scores, count, 0.03, 0.9, 10),
        folder / "calibration.json",
    )
    return folder


def ask(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(
        app, ["ask", "--device", "cpu", *map(str, arguments)], input=stdin
    )


def test_the_table_is_below_the_reading(run: Path) -> None:
    result = ask(run, '"Academy Award".won_by', "--top-k", "4")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "things that won Academy Award"
    assert lines[1].strip() == '"Academy Award".won_by'
    for heading in ("rank", "name", "score", "probability", "known or predicted", "inside"):
        assert heading in result.stdout
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines[5:] if "│" in line]
    told = json.loads(ask(run, "a1.won_by", "--json", "--top-k", "4").stdout)["answers"]
    assert [row[1] for row in cells] == [each["label"] for each in told]
    assert [row[4] == "known" for row in cells] == [each["known"] for each in told]
    assert [row[5] == "yes" for row in cells] == [each["member"] for each in told]
    assert "2 known from the training facts" in lines[-1]
    assert "known from all facts" in ask(run, "a1.won_by", "--known", "test").stdout
    assert "off by 2.1 points" in lines[-1]
    assert re.search(r"about \d+ answers in all if any is missing \(", lines[-1])
    assert "100.0%" in ask(run, "a1.won_by", "--only", "known").stdout


def test_json_is_one_line(run: Path) -> None:
    result = ask(run, "a1.won_by", "--json", "--only", "known")
    (line,) = result.stdout.splitlines()
    content = json.loads(line)
    assert {answer["name"] for answer in content["answers"]} == {"f1", "f3"}
    assert all(answer["probability"] == 1.0 for answer in content["answers"])
    assert content["calibration_error"] == 0.021
    assert "line" not in content


def test_options_reach_the_engine(run: Path) -> None:
    content = json.loads(
        ask(run, "a1.won_by", "--json", "--known", "valid", "--only", "known",
            "-x", "Alien", "--exclude", "f1").stdout
    )  # fmt: skip
    assert [answer["name"] for answer in content["answers"]] == ["f3"]
    assert content["num_known"] == 3
    union = json.loads(ask(run, "a1 | c1", "--json", "--union", "demorgan", "-k", "2").stdout)
    assert len(union["answers"]) == 2


def test_explanations(run: Path) -> None:
    result = ask(run, "a1.won_by.directed_by & !c2.produced.directed_by", "--explain", "-k", "8")
    assert result.exit_code == 0
    assert "fact   Academy Award –won_by→ Argo" in result.stdout
    assert "x1: things that won Academy Award" in result.stdout
    assert "weakest: " in result.stdout
    assert "no fact against: " in result.stdout
    content = json.loads(ask(run, "a1.won_by.directed_by", "-e", "--json").stdout)
    assert content["variables"][0]["name"] == "x1"
    assert len(content["witnesses"]) == len(content["answers"])
    assert content["explained"] is None
    empty = ask(run, "a1.won_by | (c1 & c2).produced.directed_by", "--explain").stdout
    assert "without parts that change no answer: things that won Academy Award\n" in empty
    assert "x1: " not in empty
    nothing = ask(run, "(c1 & c2).produced", "--explain").stdout
    assert "x1: United States, if it is France\n  none\n" in nothing
    assert "without parts" not in nothing


def test_explanations_tell_relations_by_their_labels(
    tmp_path: Path, film_graph: KnowledgeGraph
) -> None:
    names = list(film_graph.vocabulary.relations)
    iris = [f"http://example.org/{name}" for name in names]
    labels = [name.replace("_", " ") for name in names]
    vocabulary = replace(film_graph.vocabulary, relations=NameTable("relation", iris, labels))
    edges = {split: film_graph.edges(split) for split in SPLITS}
    folder = untrained_run(tmp_path / "run", KnowledgeGraph("films", vocabulary, edges))
    told = ask(folder, 'a1."won by"', "-k", "8", "--explain")
    assert "fact   Academy Award –won by→ Argo" in told.stdout
    assert told.stdout.splitlines()[1].strip() == '"Academy Award"."won by"'


def test_a_relation_followed_in_the_wrong_direction_is_pointed_out(run: Path) -> None:
    asked, meant = '"Academy Award".^won_by', '"Academy Award".won_by'
    note = f"no known fact matches {asked}; {meant} has 2: was that meant?\n"
    turned = ask(run, "a1.^won_by & !a1.^won_by.produced")
    assert turned.exit_code == 0
    assert turned.stderr.count(note) == 1
    assert note not in ask(run, "a1.won_by").stderr
    assert note not in ask(run, "a1.^won_by", "--json").stderr


def test_explanations_are_numbered_as_the_list_is(run: Path) -> None:
    result = ask(run, "a1.won_by & !c1.produced", "--explain", "-k", "3")
    assert "ruled out" in result.stdout
    assert re.findall(r"^(\d+)\. ", result.stdout, re.MULTILINE) == ["1", "2", "3"]


def test_a_file_of_questions(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("# films\na1.won_by\n\na1.won_bye\n  c1.produced  \na1.(\n", encoding="utf-8")
    result = ask(run, "--file", file, "--json")
    assert result.exit_code == 2
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["line"] for line in lines] == [2, 4, 5, 6]
    assert [line["query"] for line in lines if "query" in line] == ["a1.won_by", "c1.produced"]
    assert lines[1]["question"] == "a1.won_bye"
    assert "unknown relation" in lines[1]["error"]
    assert "won_by" in lines[1]["hint"]
    assert f"{file}:4: unknown relation" in result.stderr
    assert f"{file}:6:" in result.stderr
    assert "2 of 4 questions could not be answered" in result.stderr
    tables = ask(run, "--file", file)
    assert tables.exit_code == 2
    assert tables.stdout.count("known or predicted") == 2


def test_lines_end_where_editors_end_them(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text('"a\u2028b".won_by\r\n"c\x85d"\na1.won_by', encoding="utf-8")
    result = ask(run, "--file", file, "--json")
    lines = [json.loads(line) for line in result.stdout.split("\n") if line]
    assert [line["line"] for line in lines] == [1, 2, 3]
    assert lines[0]["question"] == '"a\u2028b".won_by'


def rows_of(result: Result) -> list[dict[str, str]]:
    """The rows of CSV as read by a program that only knows that they are UTF-8."""
    text = io.StringIO(result.stdout_bytes.decode("utf-8"), newline="")
    return list(csv.DictReader(text, strict=True))


def test_csv_has_the_same_answers_as_json(run: Path) -> None:
    question = "a1.won_by & !c1.produced"
    result = ask(run, question, "--csv", "-k", "20", "--keep-contradicted")
    assert result.exit_code == 0, result.output
    answers = json.loads(
        ask(run, question, "--json", "-k", "20", "--keep-contradicted").stdout
    )["answers"]  # fmt: skip
    rows = rows_of(result)
    assert list(rows[0]) == [
        "question", "rank", "name", "label", "score", "probability", "known or predicted", "inside",
    ]  # fmt: skip
    assert {row["question"] for row in rows} == {question}
    assert [int(row["rank"]) for row in rows] == [each["rank"] for each in answers]
    for key in ("name", "label"):
        assert [row[key] for row in rows] == [each[key] for each in answers]
    for key in ("score", "probability"):
        assert [float(row[key]) for row in rows] == [each[key] for each in answers]
    standings = [
        "contradicted" if each["contradicted"] else "known" if each["known"] else "predicted"
        for each in answers
    ]
    assert [row["known or predicted"] for row in rows] == standings
    assert len(set(standings)) == 3
    assert [row["inside"] == "yes" for row in rows] == [each["member"] for each in answers]
    assert len(result.stdout_bytes.split(b"\r\n")) == len(rows) + 2, "a header, and an end"


def test_the_error_for_a_damaged_calibration_has_its_file_and_a_remedy(
    film_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    folder = untrained_run(tmp_path / "run", film_graph)
    for content in ("", "{}", "[" * 200_000):
        (folder / "calibration.json").write_text(content)
        result = ask(folder, "a1.won_by")
        assert result.exit_code == 2
        assert result.stdout == ""
        told = "".join(result.stderr.split())
        assert str(folder / "calibration.json") in told
        assert "conekgcalibrate" in told


def test_csv_of_several_questions_has_their_lines(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text(
        "# films\na1.won_by\na1.won_bye\na1.won_by\nf1.won_by & f1.won_by\n", encoding="utf-8"
    )
    result = ask(run, "--file", file, "--csv", "-k", "2", "--only", "known")
    assert result.exit_code == 2
    rows = rows_of(result)
    assert list(rows[0])[:2] == ["line", "question"]
    assert [(row["line"], row["rank"]) for row in rows] == [
        ("2", "1"), ("2", "2"), ("4", "1"), ("4", "2"),
    ]  # fmt: skip
    assert {row["question"] for row in rows} == {"a1.won_by"}
    assert f"{file}:3: unknown relation" in result.stderr
    assert f"{file}:5: no entity is left to answer with" in result.stderr
    nothing = ask(run, "(f1 & f2).won_by", "--csv")
    assert "nothing can be an answer, whatever facts are missing" in nothing.stderr
    many = ask(run, "--file", "-", "--csv", "-k", "1", stdin="a1.won_by\nf1\n" * 40)
    assert [row["line"] for row in rows_of(many)] == [str(line) for line in range(1, 81)]


ODD_NAMES = (
    "=1+1",
    "+a, b",
    '-"x"',
    "@it",
    "two\nlines",
    "a\rb",
    "a\r\nb",
    " ö—日 ",
    '"',
    ",",
    "'",
)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_names_come_back_from_csv_as_they_are(
    tmp_path: Path, film_graph: KnowledgeGraph, encoding: str
) -> None:
    names = [*ODD_NAMES, *film_graph.vocabulary.entities][: film_graph.num_entities]
    labels = [f"{name};\t" for name in names]
    vocabulary = replace(film_graph.vocabulary, entities=NameTable("entity", names, labels))
    edges = {split: film_graph.edges(split) for split in SPLITS}
    folder = untrained_run(tmp_path / "run", KnowledgeGraph("films", vocabulary, edges))
    question = '!"=1+1"\n&\n*'
    result = CliRunner(charset=encoding).invoke(
        app, ["ask", "--device", "cpu", str(folder), question, "--csv", "-k", "100",
              "--keep-contradicted"]
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = rows_of(result)
    assert {row["name"]: row["label"] for row in rows} == dict(zip(names, labels, strict=True))
    assert {row["question"] for row in rows} == {question}
    assert {row["probability"] for row in rows} == {""}, "not calibrated"


def test_entities_of_one_label_are_told_apart(tmp_path: Path, film_graph: KnowledgeGraph) -> None:
    names = film_graph.vocabulary.entities
    labels = ["Scott" if name in ("d1", "d2") else name for name in names]
    vocabulary = replace(
        film_graph.vocabulary,
        entities=NameTable("entity", list(names), [*labels[:-1], "two\nlines"]),
    )
    edges = {split: film_graph.edges(split) for split in SPLITS}
    graph = KnowledgeGraph("films", vocabulary, edges)
    told = ask(untrained_run(tmp_path / "run", graph), "f1.directed_by", "-k", "8", "--explain")
    assert told.exit_code == 0, told.output
    assert "│ Scott (d1)" in told.stdout
    assert "│ Scott (d2)" in told.stdout
    assert "fact   f1 –directed_by→ Scott (d1)" in told.stdout
    assert re.search(r"^\d\. Scott \(d2\)$", told.stdout, re.MULTILINE)
    assert "│ two\\nlines" in told.stdout


def test_many_questions_in_several_batches(run: Path) -> None:
    result = ask(run, "--file", "-", "--json", "-k", "1", stdin="a1.won_by\nf1\n" * 40)
    assert result.exit_code == 0
    assert [json.loads(line)["line"] for line in result.stdout.splitlines()] == list(range(1, 81))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a1.won_bye"], "unknown relation 'won_bye' at column 4"),
        (["a1.won_by", "-k", "0"], "top_k is 0"),
        (["a1.won_by", "-x", "Nobody"], "unknown entity 'Nobody'"),
        ([], "give one question"),
        (["a1", "--file", "x"], "give one question"),
        (["--file", "missing.txt"], "missing.txt: cannot be read"),
        (["a1", "--csv", "--json"], "--json and --csv are two forms of the same answers"),
        (["a1", "--csv", "--explain"], "--explain does not fit into CSV"),
        (["a1.won_bye", "--csv"], "unknown relation 'won_bye' at column 4"),
        (["a1", "--device", "gpu"], "unknown device 'gpu'; there are auto, cpu and cuda"),
    ],
)
def test_refusals_are_one_message(run: Path, arguments: list[str], message: str) -> None:
    result = ask(run, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)])
@pytest.mark.parametrize(
    ("option", "message"),
    [(("-x", "Nobody"), "error: unknown entity 'Nobody'"), (("-k", "0"), "error: top_k is 0")],
)
def test_a_bad_option_is_reported_once_and_without_a_line(
    run: Path, tmp_path: Path, form: tuple[str, ...], option: tuple[str, ...], message: str
) -> None:
    (tmp_path / "questions.txt").write_text("a1.won_by\na1.won_bye\na1\n")
    result = ask(run, "--file", tmp_path / "questions.txt", *option, *form)
    assert result.exit_code == 2
    assert result.stderr.count("error:") == 1
    assert result.stderr.startswith(message)
    assert "questions.txt" not in result.stderr
    assert result.stdout == ""


def test_a_file_that_is_not_text(run: Path, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a1.won_by\r\n\xff\xfe\x00")
    result = ask(run, "--file", tmp_path / "binary")
    assert result.exit_code == 2
    assert "binary:2: not UTF-8 text" in "".join(result.stderr.split("\n"))
    assert "convert the file to UTF-8" in result.stderr


def test_lines_may_end_as_on_any_system(run: Path, tmp_path: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "questions.txt").write_bytes(f"a1.won_by{end}c1.produced".encode())
        result = ask(run, "--file", tmp_path / "questions.txt", "--json", "-k", "1")
        assert result.exit_code == 0, result.stderr
        assert [json.loads(line)["line"] for line in result.stdout.splitlines()] == [1, 2]


def test_an_approximate_search_says_how_much_it_finds(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "approximate" not in ask(run, "a1.won_by").stdout
    monkeypatch.setattr(EntityIndex, "recall", 0.875)
    shown = " ".join(ask(run, "a1.won_by").stdout.split())
    assert "approximate search, recall 0.875; " in shown


def test_a_file_without_a_question(run: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("# later\n\n", encoding="utf-8")
    result = ask(run, "--file", tmp_path / "notes.txt", "--json")
    assert result.exit_code == 2
    assert "contains no question" in result.stderr


def test_a_byte_order_mark_is_not_part_of_a_question(run: Path, tmp_path: Path) -> None:
    (tmp_path / "windows.txt").write_text("a1.won_by\r\n", encoding="utf-8-sig")
    result = ask(run, "--file", tmp_path / "windows.txt", "--json", "-k", "1")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["query"] == "a1.won_by"


def test_a_run_that_was_not_calibrated_says_what_to_do(tmp_path: Path) -> None:
    folder = untrained_run(tmp_path / "my run", tiny_graph())
    queries = tiny_queries()["valid"]
    for found in (None, replace(queries, blocks=())):
        if found is not None:
            save_query_set(folder / "queries" / "valid.arrow", found)
        result = ask(folder, "*", "-k", "1")
        assert "no probabilities: the run has no validation queries to fit them on" in result.stdout
    save_query_set(folder / "queries" / "valid.arrow", queries)
    result = ask(folder, "*", "-k", "1")
    assert f"no probabilities: `conekg calibrate '{folder}'` fits them" in result.stdout


def test_the_number_of_ruled_out_entities_is_shown(run: Path) -> None:
    result = ask(run, "!a1.won_by", "--keep-contradicted", "-k", "20", "--explain")
    row = next(line for line in result.stdout.splitlines() if "contradicted" in line)
    assert "0.0%" in row
    assert "a fact against: things that did not win Academy Award" in result.stdout


def test_a_folder_that_is_not_a_run(tmp_path: Path) -> None:
    result = ask(tmp_path, "a1.won_by")
    assert result.exit_code == 2
    assert str(tmp_path) in result.stderr.replace("\n", "")


def test_a_file_that_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("a\tr\tb\n")
    result = ask(tmp_path / "facts.tsv", "a.r")
    assert result.exit_code == 2
    assert "facts.tsv is a file; a run is a folder" in result.stderr
    assert "conekg fit TRIPLES" in result.stderr


def test_standard_input_may_begin_with_a_byte_order_mark(run: Path) -> None:
    result = ask(run, "--file", "-", "--json", "-k", "1", stdin="\ufeffa1.won_by\n")
    assert result.exit_code == 0, result.stderr


def test_a_question_whose_entities_are_all_excluded(run: Path) -> None:
    result = ask(run, "f1.won_by", "--only", "known")
    assert result.exit_code == 0
    assert "no entity is left" in result.stdout


def test_a_question_that_facts_leave_empty(run: Path) -> None:
    """The first film is known to have won."""
    result = ask(run, "(f1 & !a1.won_by).directed_by", "--explain")
    assert result.exit_code == 0
    assert "nothing can be an answer, whatever facts are missing" in result.stdout
    assert "0 known from the training facts; 8 ruled out by them" in result.stdout
    assert "if any is missing" not in result.stdout, "no missing fact could add an answer"
    assert result.stdout.count("\n  none\n") == 1, "its variable has no candidates either"
    told = json.loads(ask(run, "(f1 & !a1.won_by).directed_by", "--json").stdout)
    assert told["estimated_count"] is told["estimated_count_factor"] is None, "JSON agrees"
    unsure = ask(run, "(f2 & !a1.won_by).directed_by")
    assert "nothing can be" not in unsure.stdout


def test_a_swapped_run_and_question_are_pointed_out(run: Path) -> None:
    result = ask("a1.won_by", run)
    assert result.exit_code == 2
    assert "a1.won_by does not exist" in result.stderr
    assert f"the two arguments are swapped: `conekg ask {run} a1.won_by`" in result.stderr
