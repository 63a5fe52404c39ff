from __future__ import annotations

from hypothesis import given

from conekg.query.shape import STRUCTURES, Shape, shape_of
from conekg.query.tree import Anchor, And, Universe
from conekg.symbolic.program import (
    INTERSECT,
    NEGATE,
    PROJECT,
    PUSH_ANCHOR,
    PUSH_UNIVERSE,
    UNITE,
    compile_shape,
)
from strategies import shapes


def test_instructions_are_postfix_with_slots() -> None:
    program = compile_shape(STRUCTURES["inp"])
    assert program.instructions.tolist() == [
        [PUSH_ANCHOR, 0],
        [PROJECT, 0],
        [PUSH_ANCHOR, 1],
        [PROJECT, 1],
        [NEGATE, 0],
        [INTERSECT, 0],
        [PROJECT, 2],
    ]
    assert program.stack_size == 2
    assert not program.instructions.flags.writeable, "every query of the shape shares them"


def test_many_operands_are_chained_so_that_the_stack_holds_two_sets() -> None:
    shape = shape_of(And((Anchor(0), Anchor(0), Universe(), Anchor(0))))
    opcodes = compile_shape(shape).instructions[:, 0].tolist()
    assert opcodes == [
        PUSH_ANCHOR,
        PUSH_ANCHOR,
        INTERSECT,
        PUSH_UNIVERSE,
        INTERSECT,
        PUSH_ANCHOR,
        INTERSECT,
    ]
    assert compile_shape(shape).stack_size == 2


@given(shapes())
def test_a_program_leaves_one_set_and_needs_as_many_as_it_says(shape: Shape) -> None:
    program = compile_shape(shape)
    alive = most = 0
    for opcode in program.instructions[:, 0].tolist():
        if opcode in (PUSH_ANCHOR, PUSH_UNIVERSE):
            alive += 1
        elif opcode in (INTERSECT, UNITE):
            alive -= 1
        assert alive >= 1
        most = max(most, alive)
    assert alive == 1
    assert most == program.stack_size
