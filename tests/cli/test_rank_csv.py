import csv
import io

import numpy as np

from conekg.cli.rank_csv import rank_csv
from conekg.graph.ragged import Ragged
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.shape import STRUCTURES
from conekg.sampling.query_set import QueryBlock

NAMES = ["France", 'the "Hexagon"', "Cork,\nIreland", "Łódź"]
VOCABULARY = Vocabulary(NameTable("entity", NAMES), NameTable("relation", ["borders"]))


def block(name, anchors, relations, hard):
    easy = Ragged.from_rows([[] for _ in hard])
    ids = (np.array(part, dtype=np.int32) for part in (anchors, relations))
    return QueryBlock(STRUCTURES[name], *ids, easy, Ragged.from_rows(hard))


def test_a_row_for_each_hard_answer_in_order():
    links = block("1p", [[0], [1]], [[0], [1]], [[1, 2], [3]])
    both = block("2in", [[0, 2]], [[0, 0]], [[1]])
    ranked = [(links, np.array([1.0, 2.5, 700000.0])), (both, np.array([1234567.5]))]
    text = rank_csv(ranked, VOCABULARY)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["structure", "query", "question", "answer", "rank"],
        ["1p", "1", "France.borders", 'the "Hexagon"', "1"],
        ["1p", "1", "France.borders", "Cork,\nIreland", "2.5"],
        ["1p", "2", '"the \\"Hexagon\\"".^borders', "Łódź", "700000"],
        ["2in", "1", 'France.borders & !"Cork,\\nIreland".borders', 'the "Hexagon"', "1234567.5"],
    ]


def test_without_ranks_there_is_only_the_header_row():
    assert rank_csv([], VOCABULARY).splitlines() == ["structure,query,question,answer,rank"]
