from xml.etree import ElementTree

import pytest
from hypothesis import given

import strategies
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.picture import draw_svg, draw_tree, place, sign_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, children, subtrees

VOCABULARY = Vocabulary(
    NameTable("entity", ["/m/1", "<b & c>"], ["Academy Award", ""]),
    NameTable("relation", ["won_by", "director"], ["was won by", ""]),
)
QUERY = Project(And((Project(Anchor(0), 0), Not(Or((Anchor(1), Universe()))))), 3)
SVG = "{http://www.w3.org/2000/svg}"


def test_the_tree_of_lines():
    assert draw_tree(QUERY, VOCABULARY).splitlines() == [
        "via ^director",
        "└─ and",
        "   ├─ via was won by",
        "   │  └─ Academy Award",
        "   └─ not",
        "      └─ or",
        "         ├─ <b & c>",
        "         └─ everything",
    ]


@given(strategies.queries(), strategies.vocabularies())
def test_one_line_a_node(query, vocabulary):
    lines = draw_tree(query, vocabulary).split("\n")
    assert len(lines) == len(subtrees(query))


def test_names_with_line_ends_take_one_line():
    names = Vocabulary(NameTable("entity", ["a\nb"]), NameTable("relation", ["r"], ["r\r\ns"]))
    query = Anchor(0).project(1)
    assert draw_tree(query, names) == "via ^r\\r\\ns\n└─ a\\nb"
    (entity,) = drawn(query, names)[1]("entity")
    assert entity.text == "a\nb"


def drawn(query, vocabulary=VOCABULARY):
    root = ElementTree.fromstring(draw_svg(query, vocabulary))

    def of(kind):
        return [element for element in root.iter() if element.get("class") == kind]

    return root, of


def test_the_svg_shows_names_relations_and_operators():
    root, of = drawn(QUERY)
    assert [text.text for text in of("entity")] == ["Academy Award", "<b & c>", "everything"]
    assert [text.text for text in of("relation")] == ["was won by", "^director"]
    assert [text.text for text in of("sign") if text.text] == ["∨", "¬", "∧"]
    assert root.get("aria-label") == '("Academy Award".won_by & !("<b & c>" | *)).^director'


def test_names_with_control_characters_are_drawn():
    names = ["bell \x07", "nul \x00", "tab\t", "escape \x1b[0m", "beyond \ufffe", "\U0001f600"]
    vocabulary = Vocabulary(NameTable("entity", names), NameTable("relation", ["\x01r"]))
    root, of = drawn(And(tuple(Anchor(i).project(0) for i in range(len(names)))), vocabulary)
    assert [text.text for text in of("entity")] == [
        "bell \ufffd", "nul \ufffd", "tab\t", "escape \ufffd[0m", "beyond \ufffd", "\U0001f600"
    ]  # fmt: skip
    assert {text.text for text in of("relation")} == {"\ufffdr"}
    assert "nul \ufffd" in root.get("aria-label")


@given(strategies.queries())
def test_every_node_and_operand_is_drawn_apart_and_inside(query):
    root, of = drawn(query, strategies.plain_vocabulary())
    circles = of("anchor") + of("set")
    centers = [(float(c.get("cx")), float(c.get("cy"))) for c in circles]
    assert len(circles) == len(subtrees(query))
    assert len(set(centers)) == len(centers)
    assert len(of("edge")) == sum(len(children(node)) for node in subtrees(query))
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 < x < width and 0 < y < height for x, y in centers)


LONG = "/award/award_nominee/award_nominations./award/award_nomination/award"


@pytest.mark.parametrize("name", ["won_by", LONG, "日本国首都東京特別市"])
def test_names_fit_where_they_stand(name):
    """The width is estimated as 6 pixels per character, and 12 for a wide one."""
    names = Vocabulary(NameTable("entity", [name]), NameTable("relation", [name, f"{name}?"]))
    path = Anchor(0).project(0).project(3)
    root, of = drawn(path & Anchor(0).project(0), names)
    width = (12 if name[0] > "\u3000" else 6) * len(name)
    assert all(width < float(text.get("x")) for text in of("entity"))
    centers = sorted(float(circle.get("cx")) for circle in of("anchor") + of("set"))
    for text in of("relation"):
        middle = float(text.get("x"))
        before = max(center for center in centers if center < middle)
        after = min(center for center in centers if center > middle)
        assert before + 13 < middle - width / 2
        assert middle + width / 2 < after - 13
    assert max(centers) + 13 < float(root.get("width"))


def test_a_node_is_to_the_right_of_its_operands_and_between_their_rows():
    nodes = place(QUERY)
    assert [node.query for node in nodes] == subtrees(QUERY)
    (below,) = nodes[-1].operands
    intersection = nodes[below]
    assert nodes[-1].column == intersection.column + 1 == 4
    assert [sign_of(nodes[operand].query) for operand in intersection.operands] == ["", "¬"]
    assert [node.row for node in nodes if not node.operands] == [0, 1, 2]
    assert intersection.row == nodes[-1].row == 0.75


def test_data_flows_from_left_to_right():
    _, of = drawn(QUERY)
    for edge in of("edge"):
        start, stop = edge.get("d").split(" ", 1)[0], edge.get("d").rsplit(" ", 1)[1]
        assert float(start[1:].split(",")[0]) < float(stop.split(",")[0])
