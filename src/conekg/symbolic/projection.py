"""Projection in compiled code: from a set of heads and a relation to the set of tails.

The first step finds the pairs of the relation whose head is in the set, by the method that
is cheapest for the given sizes. The second step marks their tails in a bitmap and, if there
are few, lists them at once.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.tail_index import WIDE
from conekg.symbolic.bitmaps import (
    SLACK,
    WordArray,
    add_marks,
    count_ones,
    mark,
    trailing_zeros,
    unmark,
    write_bits,
)
from conekg.symbolic.memory import GraphArrays
from conekg.symbolic.sorted_arrays import GALLOP, gallop, lower_bound

# Looking up each head is faster than scanning the relation's pairs once there are this many times
# more pairs than heads.
_LOOK_UP = 4

# With a head index it is faster until there are this many times more heads than pairs.
_LOOK_UP_INDEXED = 4


@njit(cache=True, nogil=True, inline="always")
def select_pairs(
    graph: GraphArrays,
    words: WordArray,
    heads: IntArray,
    complement: bool,
    relation: int,
    out: IntArray,
) -> int:
    """Write the pairs of a relation whose head is in the set to `out`; return their number.

    `words` is an empty bitmap for temporary use; it is left empty.
    """
    first, last = graph.relation_offsets[relation], graph.relation_offsets[relation + 1]
    if (
        not complement
        and graph.head_words.shape[0] > 0
        and len(heads) < _LOOK_UP_INDEXED * (last - first)
    ):
        count = _index_pairs(graph.head_words, graph.head_firsts, heads, relation, out)
    elif not complement and len(heads) * _LOOK_UP < last - first:
        count = _look_up_pairs(
            graph.entity_offsets, graph.entity_relations, graph.entity_pairs, heads, relation, out
        )
    elif (last - first) * GALLOP < len(heads):
        count = _search_pairs(graph.pair_heads, (first, last), heads, complement, out)
    else:
        count = _test_pairs(graph.pair_heads, (first, last), words, heads, complement, out)
    return count


@njit(cache=True, nogil=True)
def _look_up_pairs(
    entity_offsets: LongArray,
    entity_relations: IntArray,
    entity_pairs: IntArray,
    heads: IntArray,
    relation: int,
    out: IntArray,
) -> int:
    """As `select_pairs` for a set that is no complement, by a binary search for each head."""
    count = 0
    for head in heads:
        stop = entity_offsets[head + 1]
        place = lower_bound(entity_relations, entity_offsets[head], stop, relation)
        if place < stop and entity_relations[place] == relation:
            out[count] = entity_pairs[place]
            count += 1
    return count


@njit(cache=True, nogil=True)
def _index_pairs(
    head_words: WordArray, head_firsts: IntArray, heads: IntArray, relation: int, out: IntArray
) -> np.int64:
    """As `_look_up_pairs`, but with the head index."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    row = np.uint64(relation)
    count = np.uint64(0)
    for value in heads:
        head = np.uint64(value)
        word = head_words[row, head >> six]
        bit = one << (head & low)
        out[count] = head_firsts[row, head >> six] + count_ones(word & (bit - one))
        count += (word >> (head & low)) & one
    return np.int64(count)


@njit(cache=True, nogil=True)
def _search_pairs(
    pair_heads: IntArray, span: tuple[int, int], heads: IntArray, complement: bool, out: IntArray
) -> int:
    """As `select_pairs` for the pairs in `span`, by searching for each pair's head in the set."""
    count = place = 0
    for pair in range(span[0], span[1]):
        head = pair_heads[pair]
        place = gallop(heads, place, head)
        if (place < len(heads) and heads[place] == head) != complement:
            out[count] = pair
            count += 1
    return count


@njit(cache=True, nogil=True)
def _test_pairs(
    pair_heads: IntArray,
    span: tuple[int, int],
    words: WordArray,
    heads: IntArray,
    complement: bool,
    out: IntArray,
) -> int:
    """As `_search_pairs`, but with the set marked in a bitmap."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    mark(words, heads)
    count = 0
    for pair in range(span[0], span[1]):
        head = np.uint64(pair_heads[pair])
        is_member = (words[head >> six] >> (head & low)) & one
        out[count] = pair  # as in `intersect`, without branches on the data
        count += (is_member != 0) != complement
    unmark(words, heads)
    return count


@njit(cache=True, nogil=True)
def marked_pairs(
    head_words: WordArray,
    head_firsts: IntArray,
    words: WordArray,
    complement: bool,
    relation: int,
    out: IntArray,
) -> np.int64:
    """As `select_pairs`, for heads that are marked in a bitmap; needs the head index."""
    one, slack = np.uint64(1), np.uint64(SLACK)
    row = np.uint64(relation)
    flip = ~np.uint64(0) if complement else np.uint64(0)
    count = np.uint64(0)
    for place in range(np.uint64(len(words))):
        word, first = head_words[row, place], head_firsts[row, place]
        hits = word & (words[place] ^ flip)
        written = count
        count += count_ones(hits)
        while True:  # four at a time, as in `write_bits`
            for step in range(slack):
                out[written + step] = first + count_ones(word & (hits - one) & ~hits)
                hits &= hits - one
            written += slack
            if written >= count:
                break
    return np.int64(count)


@njit(cache=True, nogil=True)
def count_edges(pair_offsets: LongArray, pairs: IntArray) -> int:
    """The number of edges of the pairs: a tail of several pairs counts once for each."""
    edges = 0
    for pair in pairs:
        edges += pair_offsets[pair + 1] - pair_offsets[pair]
    return edges


@njit(cache=True, nogil=True)
def mark_tails(
    pair_offsets: LongArray,
    tails: IntArray,
    tail_words: WordArray,
    tail_rows: IntArray,
    pairs: IntArray,
    steps: LongArray,
    words: WordArray,
) -> None:
    """Mark the tails of the pairs in a bitmap.

    A loop over the tails of each pair would end after a different, small number of rounds each
    time, which the processor cannot predict. Instead, `steps` is filled with the distance from
    each tail to the next, and one loop follows it through all pairs: less than half the time for
    a hundred pairs.
    """
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    width, wide, room = np.uint64(len(words)), np.uint64(WIDE), np.uint64(len(steps))
    following, end = np.uint64(0), np.uint64(len(pairs))
    while following < end:
        count = last = np.uint64(0)
        while following < end and count + width <= room:
            pair = np.uint64(pairs[following])
            following += one
            start, stop = np.uint64(pair_offsets[pair]), np.uint64(pair_offsets[pair + one])
            if (stop - start) * wide > width:
                add_marks(words, tail_words[tail_rows[pair]])
            else:
                steps[count] = start - last
                count += stop - start
                last = stop - one
        place = np.uint64(0)
        for step in range(count):
            place += np.uint64(steps[step])
            steps[step] = 1
            tail = np.uint64(tails[place])
            words[tail >> six] |= one << (tail & low)


@njit(cache=True, nogil=True)
def unite_tails(
    pair_offsets: LongArray,
    tails: IntArray,
    words: WordArray,
    summary: WordArray,
    pairs: IntArray,
    out: IntArray,
) -> np.int64:
    """Write the distinct tails of the pairs to `out` in order; return their number.

    For few tails: `summary` marks the words of the bitmap that are not zero, and only those are
    read.
    """
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for pair in pairs:
        for place in range(np.uint64(pair_offsets[pair]), np.uint64(pair_offsets[pair + 1])):
            tail = np.uint64(tails[place])
            word = tail >> six
            words[word] |= one << (tail & low)
            summary[word >> six] |= one << (word & low)
    count = np.uint64(0)
    for block in range(np.uint64(len(summary))):
        marked = summary[block]
        summary[block] = 0
        while marked != 0:
            word = (block << six) + trailing_zeros(marked)
            marked &= marked - one
            count = write_bits(words[word], word << six, out, count)
            words[word] = 0
    return np.int64(count)
