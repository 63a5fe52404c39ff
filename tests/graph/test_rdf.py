from __future__ import annotations

import builtins
import gzip
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conekg.errors import ConeKGError, DataError
from conekg.graph.rdf import RdfOptions, local_part, read_rdf
from conekg.graph.source import ReadOptions, read_source
from conekg.graph.triples import read_triples

TURTLE = """
@prefix ex: <http://example.org/film#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:alien ex:director ex:scott ; rdfs:label "Außerirdischer"@de , "Alien"@en , "plain" .
ex:scott rdfs:label "Ridley Scott" ; ex:born 1937 .
ex:director rdfs:label "directed by"@en .
ex:alien ex:crew [ ex:role ex:cook ] .
"""
FILM = "http://example.org/film#"


@pytest.fixture
def turtle(tmp_path: Path) -> Path:
    path = tmp_path / "films.ttl"
    path.write_text(TURTLE, encoding="utf-8")
    return path


def test_a_file_of_literals_only_says_what_was_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ages.nt"
    path.write_text('<http://a> <http://age> "7" .\n')
    with pytest.raises(DataError, match="no triples in the file") as caught:
        read_triples(path)
    assert "1 triple with a literal left out, of http://age" in str(caught.value)


def test_edges_labels_and_literals_are_told_apart(turtle: Path) -> None:
    rdf = read_rdf(turtle)
    heads, relations, tails = rdf.columns
    assert (heads[0], relations[0], tails[0]) == (FILM + "alien", FILM + "director", FILM + "scott")
    assert len(heads) == 3
    assert rdf.literals.total() == 1
    assert rdf.labels[FILM + "alien"] == "Alien"
    assert rdf.labels[FILM + "scott"] == "Ridley Scott"
    assert rdf.labels[FILM + "director"] == "directed by"
    assert rdf.labels[FILM + "cook"] == "cook"
    blank = tails[relations.index(FILM + "crew")]
    assert blank.startswith("_:")
    assert blank not in rdf.labels


def test_relations_of_wikidata_are_called_what_their_properties_are(tmp_path: Path) -> None:
    path = tmp_path / "films.ttl"
    path.write_text("""
        @prefix wd: <http://www.wikidata.org/entity/> .
        @prefix wdt: <http://www.wikidata.org/prop/direct/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        wd:Q1 wdt:P57 wd:Q2 ; wdt:P161 wd:Q3 ; wdt:P31 wd:Q4 .
        wd:P57 rdfs:label "director"@en , "Regie"@de .
        wd:P161 rdfs:label "cast member"@en .
        wdt:P161 rdfs:label "played by" .
    """)
    labels = read_rdf(path).labels
    direct = "http://www.wikidata.org/prop/direct/"
    assert {name: labels[direct + name] for name in ("P57", "P161", "P31")} == {
        "P57": "director",
        "P161": "played by",
        "P31": "P31",
    }


@pytest.mark.parametrize("ending", ["nt", "ttl", "nt.gz", "ttl.gz"])
def test_a_byte_order_mark_is_skipped(ending: str, tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf<http://a> <http://r> <http://b> .\n"
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert read_rdf(path).columns == (["http://a"], ["http://r"], ["http://b"])


def test_a_table_of_rdf_says_what_it_left_out(turtle: Path) -> None:
    table = read_triples(turtle)
    assert len(table) == 3
    (note,) = table.notes
    assert note.startswith(f"{turtle}: 1 triple with a literal left out, of {FILM}")


@pytest.mark.parametrize(
    ("text", "edges", "left_out"),
    [
        ("ex:a ex:p ex:b ~ ex:r {| ex:since ex:now |} . ex:a ex:q ex:c .", ["p", "q"], 2),
        ("ex:a ex:p ex:b {| ex:since ex:now ; ex:source 'x' |} .", ["p"], 2),
        ("<< ex:a ex:p ex:b >> ex:since ex:now . ex:c ex:p ex:d .", ["p"], 2),
        ("ex:s ex:says << ex:a ex:p ex:b >> . ex:c ex:p ex:d .", ["p"], 2),
        ("ex:s ex:p ex:t . ex:t ex:q ex:s . ex:s ex:says <<( ex:a ex:p ex:b )>> .", ["p", "q"], 1),
    ],
)
def test_triples_about_triples_are_left_out_and_noted(
    tmp_path: Path, text: str, edges: list[str], left_out: int
) -> None:
    path = tmp_path / "annotated.ttl"
    path.write_text(f"@prefix ex: <http://e/> . {text}\n")
    table = read_triples(path)
    assert read_rdf(path).columns[1] == [f"http://e/{name}" for name in edges]
    spoken = "triple" if left_out == 1 else "triples"
    assert f"{path}: {left_out} {spoken} about other triples left out" in table.notes


def test_the_relations_of_most_literals_are_named(tmp_path: Path) -> None:
    path = tmp_path / "ages.nt"
    lines = [f'<http://a> <http://r{number % 5}> "{number}" .' for number in range(12)]
    path.write_text("\n".join([*lines, "<http://a> <http://knows> <http://b> ."]))
    assert read_triples(path).notes == (
        f"{path}: 12 triples with a literal left out, of http://r0, http://r1, http://r2 "
        "and 2 more relations; `conekg graph build --literals RELATION` keeps those of a relation "
        "as entities",
    )


LANGUAGES = """
    @prefix e: <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    e:a e:r e:b , e:c , e:d , e:f .
    e:a rdfs:label "A in English"@en-GB , "A auf Deutsch"@de-AT , "A" , "A en français"@fr .
    e:b rdfs:label "B en français"@fr , "B in English"@en .
    e:c rdfs:label "C en français"@fr , "C" .
    e:d rdfs:label "D en français"@fr , "D in svensk"@sv .
    e:f rdfs:label "F em português"@pt , "F do Brasil"@pt-BR , "F deveras"@dev .
"""


@pytest.mark.parametrize(
    ("language", "labels"),
    [
        ("en", "A in English|B in English|C|D en français|F em português"),
        ("de", "A auf Deutsch|B in English|C|D en français|F em português"),
        ("fr", "A en français|B en français|C en français|D en français|F em português"),
        ("PT-br", "A|B in English|C|D en français|F do Brasil"),
        ("sv", "A|B in English|C|D in svensk|F em português"),
    ],
)
def test_labels_are_in_the_language_asked_for(language: str, labels: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(LANGUAGES, encoding="utf-8")
    told = read_rdf(path, RdfOptions(language=language)).labels
    assert "|".join(told[f"http://e/{name}"] for name in "abcdf") == labels
    table = read_triples(path, RdfOptions(language=language))
    assert not table.notes
    assert not table.unmatched


def test_a_language_without_labels_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(LANGUAGES, encoding="utf-8")
    assert read_triples(path, RdfOptions(language="German")).unmatched == {
        "language": f"{path}: no label in the language 'German'; there are labels in de-at, dev, "
        "en, en-gb, fr, pt, pt-br, sv"
    }


@pytest.mark.parametrize("kept", ["year", "http://e/film#year"])
def test_literals_of_a_relation_are_kept_as_entities(kept: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text("""
        @prefix e: <http://e/film#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        e:a e:year "1999"^^xsd:gYear ; e:genre "sci-fi/horror" , "drama" ; rdfs:label "A" .
        e:b e:year 1999 ; e:by e:c ; e:year " " .
    """)
    film = "http://e/film#"
    plain = read_rdf(path)
    assert plain.columns == ([film + "b"], [film + "by"], [film + "c"])
    rdf = read_rdf(path, RdfOptions(literals=(kept, "genre")))
    edges = set(zip(*rdf.columns, strict=True))
    assert edges == {
        (film + "a", film + "year", "1999"),
        (film + "a", film + "genre", "sci-fi/horror"),
        (film + "a", film + "genre", "drama"),
        (film + "b", film + "year", "1999"),
        (film + "b", film + "by", film + "c"),
    }
    assert rdf.labels == {
        **{film + name: name for name in ("b", "c", "year", "genre", "by")},
        film + "a": "A",
    }, "a literal has no label beside its name"
    assert rdf.literals == {film + "year": 1}, "a blank text names nothing"
    assert plain.literals == {film + "year": 3, film + "genre": 2}


def test_labels_that_are_kept_as_entities_are_labels_too(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text('<http://e/a> <http://xmlns.com/foaf/0.1/name> "Ada" .\n')
    rdf = read_rdf(path, RdfOptions(literals=("name",)))
    assert rdf.columns[2] == ["Ada"]
    assert rdf.labels["http://e/a"] == "Ada"


def test_a_relation_without_literals_to_keep_is_noted(turtle: Path) -> None:
    note = f"{turtle}: no triple with a literal of 'brn', whose literals were to be kept"
    options = RdfOptions(literals=("born", "brn"))
    assert read_triples(turtle, options).unmatched == {"literals brn": note}
    assert note in read_source(turtle, ReadOptions(rdf=options)).notes


def test_options_of_split_files_are_noted_if_they_match_in_none(tmp_path: Path) -> None:
    fact = "<http://e/{}> <http://e/by> <http://e/{}> .\n"
    label = '<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Anna"@de .\n'
    year = '<http://e/a> <http://e/year> "1999" .\n'
    (tmp_path / "train.nt").write_text(
        "".join(fact.format(*edge) for edge in ("ab", "ba", "bc", "ca")) + label + year
    )
    (tmp_path / "valid.nt").write_text(fact.format("a", "c"))
    (tmp_path / "test.tsv").write_text("http://e/b\thttp://e/by\thttp://e/b\n")
    matching = RdfOptions(language="de", literals=("year",))
    assert read_source(tmp_path, ReadOptions(rdf=matching)).notes == ()
    strange = RdfOptions(language="fr", literals=("year", "born"))
    notes = read_source(tmp_path, ReadOptions(rdf=strange)).notes
    path = tmp_path / "train.nt"
    assert notes == (
        f"{path}: no triple with a literal of 'born', whose literals were to be kept",
        f"{path}: no label in the language 'fr'; there are labels in de",
    )


def test_nodes_without_a_name_get_the_same_names_each_time(turtle: Path, tmp_path: Path) -> None:
    first = read_rdf(turtle)
    assert read_rdf(turtle) == first
    (blank,) = {name for name in (*first.columns[0], *first.columns[2]) if name.startswith("_:")}
    assert blank.startswith("_:anon1-")
    other = tmp_path / "other.ttl"
    other.write_text("@prefix ex: <http://example.org/film#> . [ ex:role ex:cook ] ex:at ex:sea .")
    assert blank not in read_rdf(other).columns[0]


def test_labels_stay_with_nodes_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "crew.ttl"
    path.write_text(
        "@prefix ex: <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        'ex:a ex:crew [ rdfs:label "the cook" ; ex:role ex:b ], _:mate . _:mate ex:role ex:c .'
    )
    rdf = read_rdf(path)
    by_role = dict(zip(rdf.columns[2], rdf.columns[0], strict=True))
    assert rdf.labels[by_role["http://e/b"]] == "the cook"
    assert by_role["http://e/c"] == "_:mate"


def test_n_triples_are_read_plain_and_packed(tmp_path: Path) -> None:
    content = b"<http://a/x> <http://a/r> <http://a/y> .\n"
    (tmp_path / "a.nt").write_bytes(content)
    (tmp_path / "b.nt.gz").write_bytes(gzip.compress(content))
    with pa.output_stream(str(tmp_path / "c.nt.zst")) as stream:  # packed as the name says
        stream.write(b"\xef\xbb\xbf" + content)
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("d.nt", content)
    expected = (["http://a/x"], ["http://a/r"], ["http://a/y"])
    for name in ("a.nt", "b.nt.gz", "c.nt.zst", "d.zip"):
        assert read_rdf(tmp_path / name).columns == expected


def test_rdf_in_utf_16_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_bytes("<http://a> <http://b> <http://c> .\n".encode("utf-16"))
    with pytest.raises(DataError, match="convert the file to UTF-8"):
        read_rdf(path)


def test_bad_syntax_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.nt"
    path.write_text("<http://a> <http://b> <http://c> .\n<http://a> <http://b> oops .\n")
    with pytest.raises(DataError, match="RDF syntax") as caught:
        read_rdf(path)
    assert caught.value.line == 2


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.nt.gz"
    path.write_bytes(gzip.compress(b"<http://a> <http://b> <http://c> .\n" * 50)[:-9])
    told = "cannot be read: Compressed file ended before the end-of-stream marker was reached"
    with pytest.raises(DataError, match=told) as caught:
        read_rdf(path)
    assert caught.value.hint == "is it complete, and packed as .gz says?"


def test_the_extra_is_named_where_it_is_missing(
    turtle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pyoxigraph":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConeKGError, match=r"pip install 'conekg\[rdf\]'"):
        read_rdf(turtle)


@pytest.mark.parametrize(
    ("iri", "local"),
    [
        ("http://a.org/film#director", "director"),
        ("http://a.org/film/", "film"),
        ("urn:isbn:1", "urn:isbn:1"),
        ("_:b0", "_:b0"),
    ],
)
def test_local_parts(iri: str, local: str) -> None:
    assert local_part(iri) == local


@pytest.mark.parametrize(
    ("labels", "chosen"),
    [
        ('"Lift"@de, "Elevator"@en-US, "plain"', "Elevator"),
        ('"first"@en, "second"@en-GB', "first"),
        ('"erste"@de, "zweite"@fr', "erste"),
        ('""@en, " ", "erste"@de', "erste"),
        ('""@en, "\\t"', "a"),
    ],
)
def test_of_several_labels_the_first_english_one_is_taken(
    labels: str, chosen: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.ttl"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    path.write_text(f"<http://e/a> <http://e/r> <http://e/b> ; {label} {labels} .")
    assert read_rdf(path).labels["http://e/a"] == chosen


NOTATIONS = {
    "nq": f"""
        <{FILM}alien> <{FILM}director> <{FILM}scott> <http://example.org/graph/1> .
        <{FILM}alien> <{FILM}crew> _:mate .
        <{FILM}alien> <http://schema.org/name> "Alien" .
        <{FILM}scott> <{FILM}born> "1937" .
    """,
    "trig": f"""
        @prefix ex: <{FILM}> .
        <http://example.org/graph/1> {{ ex:alien ex:director ex:scott . }}
        ex:alien ex:crew [ ] ; <http://schema.org/name> "Alien" .
        ex:scott ex:born 1937 .
    """,
    "rdf": f"""<?xml version="1.0"?>
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="{FILM}"
                 xmlns:schema="http://schema.org/">
          <rdf:Description rdf:about="{FILM}alien">
            <ex:director rdf:resource="{FILM}scott"/>
            <ex:crew><rdf:Description/></ex:crew>
            <schema:name>Alien</schema:name>
          </rdf:Description>
          <rdf:Description rdf:about="{FILM}scott"><ex:born>1937</ex:born></rdf:Description>
        </rdf:RDF>
    """,
    "jsonld": f"""
        {{"@context": {{"ex": "{FILM}", "name": "http://schema.org/name"}}, "@graph": [
          {{"@id": "ex:alien", "ex:director": {{"@id": "ex:scott"}}, "ex:crew": {{}},
            "name": "Alien"}},
          {{"@id": "ex:scott", "ex:born": 1937}}
        ]}}
    """,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ending", [*NOTATIONS, "owl"])
def test_every_notation_gives_the_same_graph(ending: str, packed: bool, tmp_path: Path) -> None:
    text = NOTATIONS["rdf" if ending == "owl" else ending].strip().encode()
    path = tmp_path / (f"films.{ending}.gz" if packed else f"films.{ending}")
    path.write_bytes(gzip.compress(text) if packed else text)
    rdf = read_rdf(path)
    assert rdf == read_rdf(path), "a node without a name is called the same each time"
    edges = dict(zip(rdf.columns[1], zip(rdf.columns[0], rdf.columns[2], strict=True), strict=True))
    assert edges.keys() == {FILM + "director", FILM + "crew"}
    assert edges[FILM + "director"] == (FILM + "alien", FILM + "scott")
    assert edges[FILM + "crew"][1].startswith("_:")
    assert (rdf.labels[FILM + "alien"], rdf.labels[FILM + "scott"]) == ("Alien", "scott")
    assert rdf.literals.total() == 1
    assert len(read_triples(path)) == 2


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ('skos:prefLabel "pref" ; rdfs:label "label"', "label"),
        ('foaf:name "foaf" ; schema:name "schema"', "schema"),
        ('rdfs:label "Etikett"@de ; foaf:name "foaf"', "foaf"),
        ('skos:altLabel "alt"', "a"),
    ],
)
def test_the_most_telling_of_names_in_one_language_is_the_label(
    said: str, chosen: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        "@prefix schema: <https://schema.org/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .\n"
        f"<http://e/a> <http://e/r> <http://e/b> ; {said} ."
    )
    assert read_rdf(path).labels["http://e/a"] == chosen


def test_relative_names_are_the_same_in_every_file(tmp_path: Path) -> None:
    """Relative IRIs are common in RDF/XML, JSON-LD and Turtle; a graph may have several files."""
    turtle, xml, json = (tmp_path / f"{name}" for name in ("train.ttl", "valid.rdf", "test.jsonld"))
    turtle.write_text("<#a> <http://e/r> <b> .")
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xml.write_text(
        f'<rdf:RDF xmlns:rdf="{rdf}" xmlns:e="http://e/"><rdf:Description rdf:about="#a">'
        '<e:r rdf:resource="b"/></rdf:Description></rdf:RDF>'
    )
    json.write_text('{"@id": "#a", "http://e/r": {"@id": "b"}}')
    for path in (turtle, xml, json):
        assert read_rdf(path).columns == (["file:///#a"], ["http://e/r"], ["file:///b"])
    assert read_rdf(turtle).labels["file:///b"] == "b"


def test_a_context_of_the_web_is_not_fetched(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonld"
    path.write_text('{"@context": "https://schema.org", "@id": "http://e/a", "name": "x"}')
    with pytest.raises(DataError, match="RDF syntax") as caught:
        read_rdf(path)
    assert "@context into the file" in (caught.value.hint or "")
