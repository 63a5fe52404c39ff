from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.errors import DownloadError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.store import load_graph, save_graph
from extras import need

FACTS = "".join(f"a{i}\tr{i % 2}\ta{j}\n" for i in range(6) for j in range(6) if i != j)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["graph", *map(str, words)])


def run_json(*words: object) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def films(film_graph: KnowledgeGraph, tmp_path: Path) -> Path:
    return save_graph(film_graph, tmp_path / "films")


def test_build_splits_one_file(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(FACTS + "a0\tr0\ta1\n")
    result = run("build", tmp_path / "facts.tsv", "--out", tmp_path / "g", "--test-share", 0.2)
    assert result.exit_code == 0, result.output
    assert "1 repeated triple merged" in result.stderr
    assert "entities     6" in result.stdout
    graph = load_graph(tmp_path / "g")
    assert len(graph.triples("test")) == 6


def test_build_takes_three_files_and_labels(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(FACTS)
    (tmp_path / "valid.tsv").write_text("a0\tr1\ta1\n")
    (tmp_path / "test.tsv").write_text("a1\tr0\ta2\na1\tr0\tnew\n")
    (tmp_path / "entities.tsv").write_text("a0\tAda\n")
    (tmp_path / "relations.tsv").write_text("r0\tlikes\n")
    words = ["build", tmp_path / "train.tsv", "--valid", tmp_path / "valid.tsv"]
    words += ["--test", tmp_path / "test.tsv", "--out", tmp_path / "g"]
    words += ["--entity-labels", tmp_path / "entities.tsv"]
    words += ["--relation-labels", tmp_path / "relations.tsv"]
    failed = run(*words)
    assert failed.exit_code == 2
    assert f"{tmp_path / 'test.tsv'}:2: entity 'new' does not occur" in failed.stderr
    assert not (tmp_path / "g").exists()
    built = run_json(*words, "--drop-unseen")
    assert built["facts"] == {"train": 30, "valid": 1, "test": 1}
    assert built["notes"] == [
        f"{tmp_path / 'test.tsv'}: 1 triple dropped, training lacks names of theirs"
    ]
    vocabulary = load_graph(tmp_path / "g").vocabulary
    assert vocabulary.entities.id_of("Ada") == vocabulary.entities.id_of("a0")
    assert vocabulary.relation_id("^likes") == vocabulary.relation_id("^r0")


def test_build_copies_the_embedded_graph(tmp_path: Path) -> None:
    built = run_json("build", "geography", "--out", tmp_path / "world")
    assert built["fingerprint"] == run_json("info")["fingerprint"]
    assert run_json("info", tmp_path / "world")["name"] == "geography"


def test_build_refuses_contradictory_options(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(FACTS)
    out = ("--out", tmp_path / "g")
    cases = [
        (("facts.tsv", "--from", tmp_path), "a benchmark's folder goes with its name"),
        (("facts.tsv", "--test-share", 2), "the test share is 2.0"),
        (("absent.tsv",), "no graph, folder or file named"),
    ]
    for (source, *options), message in cases:
        failed = run("build", tmp_path / source, *out, *options)
        assert failed.exit_code == 2
        assert message in failed.stderr
    failed = run("build", "nell995", "--out", tmp_path / "facts.tsv" / "g")
    assert failed.exit_code == 2
    assert "facts.tsv is a file" in failed.stderr
    assert "nell995" not in failed.stderr  # nothing was fetched before


def test_build_does_not_overwrite_the_graph_of_a_run(films: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    assert run("build", films, "--out", tmp_path / "graph").exit_code == 0
    (tmp_path / "graph").rename(folder / "graph")
    result = run("build", "geography", "--out", folder / "graph")
    assert result.exit_code == 2
    assert "is part of the run" in result.stderr
    assert run_json("info", folder)["name"] != "geography"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf8_are_refused(films: Path, tmp_path: Path) -> None:
    strange = tmp_path / os.fsdecode(b"caf\xe9")
    films.rename(strange)
    facts = strange.with_suffix(".tsv")
    facts.write_text("a\tlikes\tb\n")
    for words in (
        ("info", strange),
        ("info", strange, "--verify"),
        ("info", facts),
        ("build", facts, "--out", tmp_path / "graph"),
        ("build", "geography", "--out", strange / "new"),
    ):
        result = run(*words)
        assert result.exit_code == 2, result.exception
        assert "its name is not UTF-8" in result.stderr


def test_build_reads_a_benchmark_from_a_folder(benchmark_data: Path, tmp_path: Path) -> None:
    built = run_json("build", "nell995", "--from", benchmark_data, "--out", tmp_path / "nell")
    assert (built["entities"], built["relations"]) == (63_361, 200)
    assert built["facts"]["train"] == 228_426 // 2


def test_info_tells_sizes(films: Path) -> None:
    told = run_json("info", films, "--verify")
    assert told["entities"] == 8
    assert told["facts"] == {"train": 7, "valid": 1, "test": 2}
    plain = run("info", films)
    assert "train facts  7" in plain.stdout


def test_info_verifies_when_asked(films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conekg.graph.store.VERIFIED_BYTES", 0)
    path = films / "edges" / "train.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"\x01")
    assert run("info", films).exit_code == 0
    failed = run("info", films, "--verify")
    assert failed.exit_code == 2
    assert "does not match its checksum" in failed.stderr


def test_verify_needs_a_graph_folder() -> None:
    failed = run("info", "geography", "--verify")
    assert failed.exit_code == 2
    assert "--verify needs a graph folder" in failed.stderr


def test_the_graph_of_a_run_is_verified(films: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    films.rename(folder / "graph")
    assert run("info", folder, "--verify").exit_code == 0
    path = folder / "graph" / "edges" / "train.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    failed = run("info", folder, "--verify")
    assert failed.exit_code == 2
    assert "does not match its checksum" in failed.stderr


def test_a_folder_called_like_a_graph_is_not_verified_in_its_place(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    films.rename(tmp_path / "geography")
    monkeypatch.chdir(tmp_path)
    failed = run("info", "geography", "--verify")
    assert failed.exit_code == 2
    assert "or a run, not 'geography'" in failed.stderr
    assert run("info", "./geography", "--verify").exit_code == 0


@pytest.mark.parametrize(
    "words", [("info",), ("relations",), ("entities",), ("neighbors", "a0"), ("info", "--json")]
)
def test_every_command_that_reads_a_file_prints_the_notes_about_it(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(FACTS + "a0\tr0\ta1\n")
    looked = run(*words[:2], path) if words[0] == "neighbors" else run(words[0], path, *words[1:])
    assert looked.exit_code == 0, looked.output
    assert looked.stderr == f"{path}: 1 repeated triple merged\n"


def test_a_benchmark_shows_how_it_is_fetched(
    film_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str, folder: Path | None, progress: Any) -> KnowledgeGraph:
        progress("download KG_data.zip", 50, 200)
        return film_graph

    monkeypatch.setattr("conekg.graph.source.open_benchmark", fetch)
    looked = run("info", "nell995")
    assert looked.exit_code == 0, looked.output
    assert looked.stderr.startswith("fetch nell995: 50 of 200 (25%)")


def test_usage_has_an_optional_graph_in_one_pair_of_brackets() -> None:
    usage = run("neighbors", "--help").stdout.lower()
    assert "[graph]" in usage
    assert "[[" not in usage


def test_relations_are_listed_by_use(films: Path) -> None:
    told = run_json("relations", films)
    assert [row["name"] for row in told] == ["produced", "directed_by", "won_by"]
    assert [row["facts"] for row in told] == [4, 3, 3]
    assert [row["name"] for row in run_json("relations", films, "--search", "WON")] == ["won_by"]
    table = run("relations", films, "--limit", 1)
    assert "produced" in table.stdout
    assert "1 of 3 shown" in table.stderr


def test_entities_are_searched(films: Path) -> None:
    assert run_json("entities", films, "-s", "al") == [{"name": "f2", "label": "Alien"}]
    listed = run("entities", films, "--limit", 2)
    assert listed.stdout == "a1\tAcademy Award\nf1\tArgo\n"
    assert "2 of 8 shown" in listed.stderr
    assert "none found" in run("entities", films, "-s", "zzz").stderr


def test_neighbors_tell_which_facts_are_held_out(films: Path) -> None:
    told = run_json("neighbors", "Amour", films)
    assert told == {
        "^won_by": [{"name": "a1", "label": "Academy Award", "split": "train"}],
        "directed_by": [{"name": "d2", "label": "Ridley Scott", "split": "test"}],
        "^produced": [{"name": "c2", "label": "France", "split": "train"}],
    }
    plain = run("neighbors", "a1", films, "--relation", "won_by", "--limit", 2)
    assert plain.stdout == "won_by: Argo, Alien (valid), and 1 more\n"


def test_json_lists_that_were_cut_say_so_on_stderr(films: Path) -> None:
    for words, message in (
        (("entities", films, "--limit", 2), "2 of 8 shown"),
        (("relations", films, "--limit", 1), "1 of 3 shown"),
        (("neighbors", "a1", films, "--limit", 2), "won_by: 2 of 3 shown"),
    ):
        told = run(*words, "--json")
        assert message in told.stderr
        assert json.loads(told.stdout)


def test_names_that_would_break_a_line_or_a_list(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(
        "p1\tlives_in\tDover, Kent\np1\tlives_in\tc2\np2\tknows\tp1\n"
    )
    (tmp_path / "labels.tsv").write_text("p1\tPat\np2\tPat\nc2\tDeal\x1b[31m\n")
    words = ["--entity-labels", tmp_path / "labels.tsv", "--valid-share", 0, "--test-share", 0]
    assert run("build", tmp_path / "facts.tsv", "-o", tmp_path / "g", *words).exit_code == 0
    assert run("neighbors", "p1", tmp_path / "g").stdout.splitlines() == [
        'lives_in: "Dover, Kent", Deal\\x1b[31m',
        "^knows: Pat (p2)",
    ]
    assert "c2\tDeal\\x1b[31m\n" in run("entities", tmp_path / "g").stdout
    ambiguous = run("neighbors", "Pat", tmp_path / "g")
    assert "ambiguous" in ambiguous.stderr
    nothing = run("neighbors", "p1", tmp_path / "g", "-r", "knows")
    assert nothing.stdout == ""
    assert "no facts about 'p1' with 'knows'" in nothing.stderr


def test_neighbors_name_relations_as_they_are_typed(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(
        "p1\thttp://a.org/knows\tp2\np1\thttp://b.org/knows\tp3\np1\tlives_in\tc1\n"
        "p1\thttp://a.org/owns\tc1\n"
    )
    (tmp_path / "labels.tsv").write_text(
        "http://a.org/knows\tknows\nhttp://b.org/knows\tknows\nhttp://a.org/owns\towns\n"
        "lives_in\tlives in\n"
    )
    words = ["--relation-labels", tmp_path / "labels.tsv", "--valid-share", 0, "--test-share", 0]
    assert run("build", tmp_path / "facts.tsv", "-o", tmp_path / "g", *words).exit_code == 0
    assert run("neighbors", "p1", tmp_path / "g").stdout.splitlines() == [
        "knows (http://a.org/knows): p2",
        "knows (http://b.org/knows): p3",
        "lives_in: c1",
        "owns: c1",
    ]
    told = json.loads(run("neighbors", "p1", tmp_path / "g", "--json").stdout)
    assert "http://a.org/owns" in told


def test_neighbors_of_misspelt_names_get_suggestions(films: Path) -> None:
    failed = run("neighbors", "Allien", films)
    assert failed.exit_code == 2
    assert "did you mean 'Alien'? `conekg graph entities GRAPH" in failed.stderr
    assert "searches all 8" in failed.stderr
    failed = run("neighbors", "Alien", films, "-r", "directedby")
    assert "did you mean 'directed_by'? `conekg graph relations GRAPH" in failed.stderr
    assert "no facts about 'Alien'" in run("neighbors", "Alien", films, "-r", "won_by").stderr


def test_a_swapped_entity_and_graph_are_pointed_out(films: Path) -> None:
    result = run("neighbors", films, "Ben Affleck")
    assert result.exit_code == 2
    assert "no graph, folder or file named 'Ben Affleck'" in result.stderr
    swapped = f"conekg graph neighbors 'Ben Affleck' {films}"
    assert f"the two arguments are swapped: `{swapped}`" in result.stderr.replace("\n", "")
    assert run("neighbors", "Ben Affleck", films).exit_code == 0


def test_a_graph_that_cannot_be_downloaded_is_not_called_swapped(
    films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> KnowledgeGraph:
        raise DownloadError("the server does not answer", hint="try again later")

    monkeypatch.setattr("conekg.graph.source.open_benchmark", fail)
    result = run("neighbors", films, "nell995")
    assert result.exit_code == 2
    assert result.stderr.endswith("the server does not answer\ntry again later\n")


def test_build_reads_labels_of_a_language_and_keeps_literals(tmp_path: Path) -> None:
    need("pyoxigraph")
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    statements = ('<http://e/year> "1999"', f'{label} "Film"@en', f'{label} "Elokuva"@fi')
    (tmp_path / "films.nt").write_text("".join(f"<http://e/f> {each} .\n" for each in statements))
    options = ("--language", "fi", "--literals", "year", "--literals", "yr")
    result = run("build", tmp_path / "films.nt", "--out", tmp_path / "g", *options)
    assert result.exit_code == 0, result.output
    assert "no triple with a literal of 'yr'" in result.stderr
    told = run("neighbors", "Elokuva", tmp_path / "g")
    assert told.stdout == "http://e/year: 1999\n"
