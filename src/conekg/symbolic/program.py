"""Programs: the template of a shape as a list of stack instructions.

The compiled loops cannot walk Python objects, so each template is translated once into
postfix order. An intersection or union of many operands becomes a chain of binary ones,
which keeps the stack, and so the memory of a worker, small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, assert_never

import numpy as np

from conekg.graph.adjacency import IntArray
from conekg.query.shape import Shape
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold

PUSH_ANCHOR: Final = 0
PUSH_UNIVERSE: Final = 1
PROJECT: Final = 2
INTERSECT: Final = 3
UNITE: Final = 4
NEGATE: Final = 5


@dataclass(frozen=True)
class Program:
    """Instructions that leave a query's answer set on top of an empty stack."""

    instructions: IntArray
    """[n, 2] opcode and slot; the slot is 0 where the opcode has none."""
    stack_size: int
    """The largest number of sets on the stack at once."""


@lru_cache(maxsize=1024)
def compile_shape(shape: Shape) -> Program:
    """The program that answers every query of a shape."""
    pieces = fold(shape.template, _assemble)
    instructions = np.array(pieces, dtype=np.int32).reshape(-1, 2)
    instructions.flags.writeable = False
    return Program(instructions, _stack_size(pieces))


_Piece = tuple[tuple[int, int], ...]


def _assemble(node: Query, parts: tuple[_Piece, ...]) -> _Piece:
    match node:
        case Anchor(slot):
            return ((PUSH_ANCHOR, slot),)
        case Universe():
            return ((PUSH_UNIVERSE, 0),)
        case Project(_, slot):
            return (*parts[0], (PROJECT, slot))
        case And():
            return _chain(INTERSECT, parts)
        case Or():
            return _chain(UNITE, parts)
        case Not():
            return (*parts[0], (NEGATE, 0))
    assert_never(node)


def _chain(opcode: int, parts: tuple[_Piece, ...]) -> _Piece:
    chained = list(parts[0])
    for part in parts[1:]:
        chained.extend(part)
        chained.append((opcode, 0))
    return tuple(chained)


def _stack_size(pieces: _Piece) -> int:
    alive = most = 0
    for opcode, _ in pieces:
        if opcode in (PUSH_ANCHOR, PUSH_UNIVERSE):
            alive += 1
        elif opcode in (INTERSECT, UNITE):
            alive -= 1
        most = max(most, alive)
    return most
