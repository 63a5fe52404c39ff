"""Relation names of many graphs in words: forwards and backwards, of one entity and of many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from conekg.answering.relation_phrase import ANYTHING, one_hop
from conekg.graph.vocabulary import NameTable, Vocabulary


def phrase(  # type: ignore[no-untyped-def]
    name: str, *, label: str | None = None, single: bool = True, operand: str | None = None
):
    backwards = name.startswith("^")
    bare = name.removeprefix("^")
    relations = NameTable("relation", [bare], None if label is None else [label])
    vocabulary = Vocabulary(NameTable("entity", ["X"]), relations)
    operand = operand or ("X" if single else "(many)")
    return one_hop(vocabulary, int(backwards), operand, single=single)


@pytest.mark.parametrize(
    ("name", "noun", "negated"),
    [
        ("borders", "things that X borders", "that X does not border"),
        ("^borders", "things that border X", "that do not border X"),
        ("border", "things that X borders", "that X does not border"),
        ("^border", "things that border X", "that do not border X"),
        ("marry", "things that X marries", "that X does not marry"),
        ("employ", "things that X employs", "that X does not employ"),
        ("star", "stars of X", "that are not stars of X"),
        ("support_group", "support groups of X", "that are not support groups of X"),
        ("import_partner", "import partners of X", "that are not import partners of X"),
        ("supports_group", "groups that X supports", "that X does not support"),
        ("work_for", "things reached by 'work for' from X", "not reached by 'work for' from X"),
        ("lead_to", "things that X leads to", "that X does not lead to"),
        ("seeAlso", "things reached by 'see also' from X", "not reached by 'see also' from X"),
        ("stars", "things that X stars", "that X does not star"),
        ("is_a", "things whose instance is X", "whose instance is not X"),
        ("^is_a", "instances of X", "that are not instances of X"),
        ("^IsA", "instances of X", "that are not instances of X"),
        ("is_a_part_of", "things whose part is X", "whose part is not X"),
        ("^is the capital of", "capitals of X", "that are not capitals of X"),
        ("larger_than", "things that X is larger than", "that X is not larger than"),
        ("^is_larger_than", "things larger than X", "that are not larger than X"),
        ("^found_in", "things found in X", "that are not found in X"),
        ("^dies_of", "things that die of X", "that do not die of X"),
        ("links to", "things that X links to", "that X does not link to"),
        ("^linksTo", "things that link to X", "that do not link to X"),
        ("links", "links of X", "that are not links of X"),
        ("view", "views of X", "that are not views of X"),
        ("^viewed", "things that viewed X", "that did not view X"),
        ("^takes_place_in", "things that take place in X", "that do not take place in X"),
        ("^set in", "things set in X", "that are not set in X"),
        ("set", "sets of X", "that are not sets of X"),
        ("similar to", "things that X is similar to", "that X is not similar to"),
        ("^is_similar_to", "things similar to X", "that are not similar to X"),
        ("CapableOf", "things that X is capable of", "that X is not capable of"),
        ("^responsible for", "things responsible for X", "that are not responsible for X"),
        ("cinematographer", "cinematographers of X", "that are not cinematographers of X"),
        ("has", "things that X has", "that X does not have"),
        ("^has_a", "things that have X", "that do not have X"),
        ("has_a_child", "children of X", "that are not children of X"),
        ("the_capital", "capitals of X", "that are not capitals of X"),
        ("vitamin_a", "vitamin as of X", "that are not vitamin as of X"),
        ("does_not_like", "things reached by 'does not like' from X",
         "not reached by 'does not like' from X"),
        ("is_not_in", "things reached by 'is not in' from X", "not reached by 'is not in' from X"),
        ("is", "things reached by 'is' from X", "not reached by 'is' from X"),
        ("than", "things reached by 'than' from X", "not reached by 'than' from X"),
        ("won", "things that X won", "that X did not win"),
        ("^won", "things that won X", "that did not win X"),
        ("studies", "things that X studies", "that X does not study"),
        ("plays_for", "things that X plays for", "that X does not play for"),
        ("^playsFor", "things that play for X", "that do not play for X"),
        ("uses_currency", "currencies that X uses", "that X does not use"),
        ("^uses_currency", "things that use the currency X", "that do not use the currency X"),
        ("capital", "capitals of X", "that are not capitals of X"),
        ("réalisé", "réalisés of X", "that are not réalisés of X"),
        ("P57", "things reached by 'P57' from X", "not reached by 'P57' from X"),
        ("^wdt:P1411", "things with 'P1411' leading to X", "without 'P1411' leading to X"),
        ("CtD", "things reached by 'CtD' from X", "not reached by 'CtD' from X"),
        ("^Gr>G", "things with 'Gr>G' leading to X", "without 'Gr>G' leading to X"),
        ("isIn", "things that X is in", "that X is not in"),
        ("CEO", "CEOs of X", "that are not CEOs of X"),
        ("^hasCEO", "things whose CEO is X", "whose CEO is not X"),
        ("original language of film or TV show", "original languages of film or TV show of X",
         "that are not original languages of film or TV show of X"),
        ("IS_A", "things whose instance is X", "whose instance is not X"),
        ("WORKS_AT", "things that X works at", "that X does not work at"),
        ("HAS", "things that X has", "that X does not have"),
        ("position held", "things reached by 'position held' from X",
         "not reached by 'position held' from X"),
        ("^employees (approx.)", "things with 'employees (approx.)' leading to X",
         "without 'employees (approx.)' leading to X"),
        ("named after", "things that X is named after", "that X is not named after"),
        ("^located in the administrative territorial entity",
         "things located in the administrative territorial entity X",
         "that are not located in the administrative territorial entity X"),
        ("contains the administrative territorial entity",
         "administrative territorial entities that X contains", "that X does not contain"),
        ("shares border with", "things that X shares border with",
         "that X does not share border with"),
        ("^shares_border_with", "things that share border with X",
         "that do not share border with X"),
        ("^sits on board of", "things that sit on board of X", "that do not sit on board of X"),
        ("reports_to", "things that X reports to", "that X does not report to"),
        ("reports", "reports of X", "that are not reports of X"),
        ("^member of political party", "members of the political party X",
         "that are not members of the political party X"),
        ("member of political party", "political parties that X is a member of",
         "that X is not a member of"),
        ("memberOf", "things whose member is X", "whose member is not X"),
        ("^alumniOf", "alumni of X", "that are not alumni of X"),
        ("hasChildren", "children of X", "that are not children of X"),
        ("wife", "wives of X", "that are not wives of X"),
        ("^alumni", "things whose alumni include X", "whose alumni do not include X"),
        ("^actors", "things whose actors include X", "whose actors do not include X"),
        ("has_children", "children of X", "that are not children of X"),
        ("^has_children", "things whose children include X", "whose children do not include X"),
        ("^countries of origin", "things whose countries of origin include X",
         "whose countries of origin do not include X"),
        ("^series", "things whose series is X", "whose series is not X"),
        ("^species", "things whose species is X", "whose species is not X"),
        ("^status", "things whose status is X", "whose status is not X"),
        ("^boss", "things whose boss is X", "whose boss is not X"),
        ("upper bound", "upper bounds of X", "that are not upper bounds of X"),
        ("導演", "things reached by '導演' from X", "not reached by '導演' from X"),
        ("^導演", "things with '導演' leading to X", "without '導演' leading to X"),
        ("uses_貨幣", "貨幣 that X uses", "that X does not use"),
        ("^capital", "things whose capital is X", "whose capital is not X"),
        ("has_province", "provinces of X", "that are not provinces of X"),
        ("hasChild", "children of X", "that are not children of X"),
        ("capital_of", "things whose capital is X", "whose capital is not X"),
        ("^capital_of", "capitals of X", "that are not capitals of X"),
        ("located_in", "things that X is located in", "that X is not located in"),
        ("^located_in", "things located in X", "that are not located in X"),
        ("acted_in", "things that X acted in", "that X did not act in"),
        ("^acted in", "things that acted in X", "that did not act in X"),
        ("played_by", "things that X is played by", "that X is not played by"),
        ("diedIn", "things that X died in", "that X did not die in"),
        ("^diedIn", "things that died in X", "that did not die in X"),
        ("die", "things reached by 'die' from X", "not reached by 'die' from X"),
        ("^lives", "things with 'lives' leading to X", "without 'lives' leading to X"),
        ("has died", "things reached by 'has died' from X", "not reached by 'has died' from X"),
        ("resided_in", "things that X resided in", "that X did not reside in"),
        ("^happened_in", "things that happened in X", "that did not happen in X"),
        ("^occurred_at", "things that occurred at X", "that did not occur at X"),
        ("graduatedFrom", "things that X graduated from", "that X did not graduate from"),
        ("participated_in", "things that X participated in", "that X did not participate in"),
        ("^depended_on", "things that depended on X", "that did not depend on X"),
        ("led_to", "things that X led to", "that X did not lead to"),
        ("led_by", "things that X is led by", "that X is not led by"),
        ("^led_by", "things led by X", "that are not led by X"),
        ("directed_by", "things that directed X", "that did not direct X"),
        ("^directed_by", "things directed by X", "that are not directed by X"),
        ("is written by", "things that wrote X", "that did not write X"),
        ("won_by_person", "people that won X", "that did not win X"),
        ("filmed_by", "things that X is filmed by", "that X is not filmed by"),
        ("starring", "things that X stars", "that X does not star"),
        ("^starring", "things that star X", "that do not star X"),
        ("^featuring", "things that feature X", "that do not feature X"),
        ("feature", "features of X", "that are not features of X"),
        ("edits", "edits of X", "that are not edits of X"),
        ("influences", "things that X influences", "that X does not influence"),
        ("influenced", "things that X influenced", "that X did not influence"),
        ("influence", "influences of X", "that are not influences of X"),
        ("hasWonPrize", "prizes that X won", "that X did not win"),
        ("^hasWonPrize", "things that won the prize X", "that did not win the prize X"),
        ("has_worked_for", "things that X worked for", "that X did not work for"),
        ("may_treat", "things reached by 'may treat' from X", "not reached by 'may treat' from X"),
        ("^can_cause", "things with 'can cause' leading to X", "without 'can cause' leading to X"),
        ("in_timezone", "timezones that X is in", "that X is not in"),
        ("/people/person/place_of_birth", "places of birth of X",
         "that are not places of birth of X"),
        ("^/people/person/place_of_birth", "people whose place of birth is X",
         "whose place of birth is not X"),
        ("^/film/film/produced_by", "films produced by X", "that are not produced by X"),
        ("/a/b/c./d/e/genre", "genres of X", "that are not genres of X"),
        ("concept:athleteplaysforteam", "things reached by 'athleteplaysforteam' from X",
         "not reached by 'athleteplaysforteam' from X"),
        ("^concept:athleteplaysforteam", "things with 'athleteplaysforteam' leading to X",
         "without 'athleteplaysforteam' leading to X"),
        ("http://example.org/ns#birthPlace", "birth places of X", "that are not birth places of X"),
        ("people/person/nationality", "nationalities of X", "that are not nationalities of X"),
        ("owned/controlled by", "things that X is owned/controlled by",
         "that X is not owned/controlled by"),
        ("based-in/at", "things reached by 'based-in/at' from X",
         "not reached by 'based-in/at' from X"),
        ("M&A: target", "things reached by 'M&A: target' from X",
         "not reached by 'M&A: target' from X"),
        ("Hetionet::CtD::Compound:Disease",
         "things reached by 'Hetionet::CtD::Compound:Disease' from X",
         "not reached by 'Hetionet::CtD::Compound:Disease' from X"),
        ("^GNBR::E::Compound:Gene", "things with 'GNBR::E::Compound:Gene' leading to X",
         "without 'GNBR::E::Compound:Gene' leading to X"),
        ("^born on (y/m/d)", "things born on the (y/m/d) X", "that are not born on the (y/m/d) X"),
        ("dbo:birthPlace", "birth places of X", "that are not birth places of X"),
        ("award received", "things reached by 'award received' from X",
         "not reached by 'award received' from X"),
        ("RATED", "things reached by 'rated' from X", "not reached by 'rated' from X"),
        ("breed", "breeds of X", "that are not breeds of X"),
        ("acquired", "things that X acquired", "that X did not acquire"),
        ("^invested_in", "things that invested in X", "that did not invest in X"),
        ("supplies", "things that X supplies", "that X does not supply"),
        ("^upregulates", "things that upregulate X", "that do not upregulate X"),
        ("expresses", "things that X expresses", "that X does not express"),
        ("award_nominated_for", "things reached by 'award nominated for' from X",
         "not reached by 'award nominated for' from X"),
    ],
)  # fmt: skip
def test_one_entity(name: str, noun: str, negated: str) -> None:
    found = phrase(name)
    assert (found.noun, found.negated) == (noun, negated)
    assert found.named == (not noun.startswith("things "))


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        ("borders", "things bordered by (many)"),
        ("shares_border_with", "things that any of (many) share border with"),
        ("member of sports team", "sports teams that any of (many) are members of"),
        ("^member of sports team", "members of any sports team of (many)"),
        ("speaks", "things spoken by (many)"),
        ("plays_for", "things that any of (many) play for"),
        ("uses_currency", "currencies used by (many)"),
        ("^uses_currency", "things that use any currency of (many)"),
        ("located_in", "things that any of (many) are located in"),
        ("^capital", "things whose capital is among (many)"),
        ("^actors", "things whose actors include any of (many)"),
        ("directed_by", "things that directed (many)"),
        ("^directed_by", "things directed by (many)"),
        ("starring", "things that any of (many) star"),
    ],
)
def test_many_entities(name: str, noun: str) -> None:
    assert phrase(name, single=False).noun == noun


@pytest.mark.parametrize(
    ("name", "noun", "negated"),
    [
        ("borders", "things bordered by anything", "that are not bordered by anything"),
        ("^borders", "things that border anything", "that do not border anything"),
        ("plays_for", "things that anything plays for", "that nothing plays for"),
        ("acted_in", "things that anything acted in", "that nothing acted in"),
        ("starring", "things that anything stars", "that nothing stars"),
        ("^uses_currency", "things that use any currency", "that do not use any currency"),
        ("located_in", "things that anything is located in", "that nothing is located in"),
        ("^located_in", "things located in anything", "that are not located in anything"),
        ("member of sports team", "sports teams that anything is a member of",
         "that nothing is a member of"),
        ("^member of sports team", "members of any sports team",
         "that are not members of any sports team"),
        ("capital", "capitals of anything", "that are not capitals of anything"),
        ("^capital", "things that have any capital", "that have no capital"),
        ("^actors", "things that have any actors", "that have no actors"),
        ("directed_by", "things that directed anything", "that did not direct anything"),
    ],
)  # fmt: skip
def test_anything(name: str, noun: str, negated: str) -> None:
    found = phrase(name, operand=ANYTHING, single=False)
    assert (found.noun, found.negated) == (noun, negated)


@pytest.mark.parametrize(
    ("name", "holds", "fails"),
    [
        ("borders", "X borders it", "X does not border it"),
        ("^borders", "it borders X", "it does not border X"),
        ("won", "X won it", "X did not win it"),
        ("^won", "it won X", "it did not win X"),
        ("^has_a", "it has X", "it does not have X"),
        ("plays_for", "X plays for it", "X does not play for it"),
        ("^playsFor", "it plays for X", "it does not play for X"),
        ("^acted in", "it acted in X", "it did not act in X"),
        ("uses_currency", "X uses it", "X does not use it"),
        ("^uses_currency", "it uses the currency X", "it does not use the currency X"),
        ("directed_by", "it directed X", "it did not direct X"),
        ("^directed_by", "it is directed by X", "it is not directed by X"),
        ("located_in", "X is located in it", "X is not located in it"),
        ("^located_in", "it is located in X", "it is not located in X"),
        ("larger_than", "X is larger than it", "X is not larger than it"),
        ("member of political party", "X is a member of it", "X is not a member of it"),
        ("^member of political party", "it is a member of the political party X",
         "it is not a member of the political party X"),
        ("capital", "it is among the capitals of X", "it is not among the capitals of X"),
        ("^capital", "its capital is X", "its capital is not X"),
        ("^actors", "its actors include X", "its actors do not include X"),
        ("P57", "it is reached by 'P57' from X", "it is not reached by 'P57' from X"),
        ("^P57", "it has 'P57' leading to X", "it has no 'P57' leading to X"),
    ],
)  # fmt: skip
def test_sentences_about_one_entity(name: str, holds: str, fails: str) -> None:
    found = phrase(name)
    assert (found.holds, found.fails) == (holds, fails)


@pytest.mark.parametrize(
    ("name", "holds", "fails"),
    [
        ("borders", "it is bordered by (many)", "it is not bordered by (many)"),
        ("plays_for", "any of (many) play for it", "none of (many) play for it"),
        ("located_in", "any of (many) are located in it", "none of (many) are located in it"),
        ("member of sports team", "any of (many) are members of it",
         "none of (many) are members of it"),
        ("^member of sports team", "it is a member of any sports team of (many)",
         "it is not a member of any sports team of (many)"),
        ("^capital", "its capital is among (many)", "its capital is not among (many)"),
        ("^actors", "its actors include any of (many)", "its actors do not include any of (many)"),
    ],
)  # fmt: skip
def test_sentences_about_many_entities(name: str, holds: str, fails: str) -> None:
    found = phrase(name, single=False)
    assert (found.holds, found.fails) == (holds, fails)


@pytest.mark.parametrize(
    ("name", "holds", "fails"),
    [
        ("borders", "it is bordered by anything", "it is not bordered by anything"),
        ("^borders", "it borders anything", "it does not border anything"),
        ("plays_for", "anything plays for it", "nothing plays for it"),
        ("located_in", "anything is located in it", "nothing is located in it"),
        ("^capital", "it has any capital", "it has no capital"),
        ("capital", "it is among the capitals of anything",
         "it is not among the capitals of anything"),
    ],
)  # fmt: skip
def test_sentences_about_anything(name: str, holds: str, fails: str) -> None:
    found = phrase(name, operand=ANYTHING, single=False)
    assert (found.holds, found.fails) == (holds, fails)


def test_an_entity_called_anything_is_one_entity() -> None:
    assert phrase("^capital", operand=ANYTHING).noun == "things whose capital is anything"
    assert phrase("located_in", operand=ANYTHING).negated == "that anything is not located in"


@pytest.mark.parametrize(
    ("name", "label", "noun"),
    [
        ("http://www.wikidata.org/prop/direct/P57", "director", "directors of X"),
        ("http://example.org/ns#starring", "has star", "stars of X"),
        ("/film/film/genre", "kind of film", "kinds of film of X"),
        ("+/film/film/genre", "film film genre", "genres of X"),
        ("/tv/tv_program/regular_cast./tv/tv_actor/actor",
         "tv tv program regular cast. tv tv actor actor", "actors of X"),
    ],
)  # fmt: skip
def test_labels_of_paths_are_read_unless_they_repeat_them(name: str, label: str, noun: str) -> None:
    assert phrase(name, label=label).noun == noun


def test_labels_are_read_where_there_are_some() -> None:
    assert phrase("speaks", label="has official language").noun == "official languages of X"
    located = phrase("^located_in", label="is located in subregion")
    assert located.noun == "things located in the subregion X"
    # A label that only repeats a path is not used.
    path = phrase("/film/film/genre", label="film film genre")
    assert path.noun == "genres of X"


@given(
    name=strategies.names().filter(lambda name: not name.startswith("^")),
    backwards=st.booleans(),
    single=st.booleans(),
)
def test_any_name_gives_three_different_readings(name: str, backwards: bool, single: bool) -> None:
    vocabulary = Vocabulary(NameTable("entity", ["X"]), NameTable("relation", [name]))
    found = one_hop(vocabulary, int(backwards), "OPERAND", single=single)
    assert "OPERAND" in found.noun
    assert "OPERAND" in found.clause
    assert "OPERAND" in found.negated
    assert found.clause != found.negated
    assert found.noun != found.clause
