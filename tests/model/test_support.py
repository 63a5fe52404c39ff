"""Which queries a model can answer is known before any work is done."""

from __future__ import annotations

import pytest

from conekg.errors import UnsupportedOperatorError
from conekg.model.beta import Beta
from conekg.model.box import Box
from conekg.model.catalog import MODELS
from conekg.model.cone import Cone
from conekg.model.gqe import Gqe
from conekg.model.support import check_supported, is_supported, missing_operators
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES, STRUCTURES
from conekg.query.tree import Anchor, Or, Project, Universe


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_answers_the_positive_structures(name: str) -> None:
    check_supported(MODELS[name].model, [STRUCTURES[s] for s in POSITIVE_STRUCTURES])


@pytest.mark.parametrize("structure", NEGATION_STRUCTURES)
def test_negation_needs_a_model_that_has_it(structure: str) -> None:
    having = {n for n, entry in MODELS.items() if is_supported(entry.model, STRUCTURES[structure])}
    assert having == {n for n, entry in MODELS.items() if entry.model.can_negate}
    assert having & {"cone", "gqe", "box", "beta", "emql"} == {"cone", "beta"}


def test_the_error_names_model_operator_and_shape() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"'box' lacks negation.*shape 2in") as found:
        check_supported(Box, [STRUCTURES["2i"], STRUCTURES["2in"]])
    assert "cone" in str(found.value.hint)


def test_unions_by_de_morgan_need_negation() -> None:
    union = Or((Project(Anchor(0), 1), Project(Anchor(2), 3)))
    assert is_supported(Gqe, union)
    assert missing_operators(Gqe, union, "demorgan") == ("negation",)
    assert is_supported(Cone, union, "demorgan")


def test_the_hint_for_unions_by_de_morgan_is_dnf() -> None:
    with pytest.raises(UnsupportedOperatorError, match="shape 2u need by De Morgan's law") as found:
        check_supported(Gqe, [STRUCTURES["2u"]], "demorgan")
    assert "dnf" in str(found.value.hint)
    with pytest.raises(UnsupportedOperatorError) as found:
        check_supported(Beta, [Or((Project(Anchor(0), 1), Universe()))], "demorgan")
    assert "dnf" not in str(found.value.hint)


def test_the_universe_needs_a_cone() -> None:
    query = Project(Universe(), 0)
    assert is_supported(Cone, query)
    assert missing_operators(Beta, query) == ("the set of all entities",)
    with pytest.raises(UnsupportedOperatorError, match="the set of all entities"):
        check_supported(Box, [query])
