"""Projection in compiled code: from a set of heads and a relation to the set of tails.

First the pairs of the relation whose head is in the set are found, by whichever way is
cheapest for the sizes at hand; then their tails are marked in a bitmap and read in order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conekg.graph.adjacency import IntArray, LongArray
from conekg.symbolic.bitmaps import WordArray, count_ones, trailing_zeros, write_bits
from conekg.symbolic.memory import GraphArrays, Workspace
from conekg.symbolic.sorted_arrays import GALLOP, gallop, lower_bound

# Looking each head up beats walking a relation's pairs once there are this many more pairs.
_LOOK_UP = 4

# With a head index, until there are this many fewer.
_LOOK_UP_INDEXED = 4


@njit(cache=True, nogil=True, inline="always")
def select_pairs(
    graph: GraphArrays,
    work: Workspace,
    heads: IntArray,
    complement: bool,
    relation: int,
    out: IntArray,
) -> int:
    """Write the pairs of a relation whose head is in the set to `out`; how many."""
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
        count = _test_pairs(graph.pair_heads, (first, last), work.words, heads, complement, out)
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
    """Write the pairs of a relation and each of the heads that has it to `out`; how many."""
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
    """As `_look_up_pairs`, by the head index."""
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
    """Write the pairs in `span` whose head is in the set to `out`, by searching; how many."""
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
    """As `_search_pairs`, by marks in a bitmap."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for value in heads:
        words[np.uint64(value) >> six] |= one << (np.uint64(value) & low)
    count = 0
    for pair in range(span[0], span[1]):
        head = np.uint64(pair_heads[pair])
        is_member = (words[head >> six] >> (head & low)) & one
        out[count] = pair  # as in `intersect`, without branches on the data
        count += (is_member != 0) != complement
    for value in heads:
        words[np.uint64(value) >> six] = 0
    return count


@njit(cache=True, nogil=True, inline="always")
def unite_tails(graph: GraphArrays, work: Workspace, pairs: IntArray, out: IntArray) -> int:
    """Write the distinct tails of the pairs to `out`, in order; how many.

    Entities are marked in a bitmap, which is then read in order. Where there are few tails
    for the size of the bitmap, a second one says which words to read.
    """
    limit = len(work.words) // 4
    if len(pairs) < limit and _count_edges(graph.pair_offsets, pairs) < limit:
        count = _unite_sparse(graph.pair_offsets, graph.tails, work.words, work.summary, pairs, out)
    else:
        count = _unite_dense(graph.pair_offsets, graph.tails, work.words, pairs, out)
    return count


@njit(cache=True, nogil=True)
def _count_edges(pair_offsets: LongArray, pairs: IntArray) -> int:
    edges = 0
    for pair in pairs:
        edges += pair_offsets[pair + 1] - pair_offsets[pair]
    return edges


@njit(cache=True, nogil=True)
def _unite_dense(
    pair_offsets: LongArray, tails: IntArray, words: WordArray, pairs: IntArray, out: IntArray
) -> np.int64:
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for pair in pairs:
        for place in range(np.uint64(pair_offsets[pair]), np.uint64(pair_offsets[pair + 1])):
            tail = np.uint64(tails[place])
            words[tail >> six] |= one << (tail & low)
    count = np.uint64(0)
    for word in range(np.uint64(len(words))):
        count = write_bits(words[word], word << six, out, count)
        words[word] = 0
    return np.int64(count)


@njit(cache=True, nogil=True)
def _unite_sparse(
    pair_offsets: LongArray,
    tails: IntArray,
    words: WordArray,
    summary: WordArray,
    pairs: IntArray,
    out: IntArray,
) -> np.int64:
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
