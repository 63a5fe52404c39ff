from __future__ import annotations

import collections
import contextlib
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import DataError
from conekg.graph.safe_pickle import load_pickle

keys = st.integers() | st.text(max_size=3) | st.booleans() | st.none()
values = st.recursive(
    keys | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=3)
        | st.tuples(inner, inner)
        | st.sets(keys, max_size=3)
        | st.frozensets(keys, max_size=3)
    ),
    max_leaves=12,
)


@given(value=values, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_containers_come_back_from_every_protocol(
    value: Any, protocol: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("pickles") / "plain.pkl"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    assert load_pickle(path) == value


def test_default_dictionaries_are_read(tmp_path: Path) -> None:
    value = collections.defaultdict(set, {("e", ("r",)): {(1, (2,))}})
    path = tmp_path / "queries.pkl"
    path.write_bytes(pickle.dumps(value))
    assert load_pickle(path) == value


class Hostile:
    """Unpickled the usual way, this makes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


def test_a_hostile_pickle_runs_nothing(tmp_path: Path) -> None:
    path, target = tmp_path / "hostile.pkl", tmp_path / "owned"
    content = pickle.dumps({"id": [Hostile(target)]})
    pickle.loads(content)
    assert target.exists(), "the pickle would do harm"
    target.unlink()
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"refused to unpickle: it asks for (posix|nt|os).system"):
        load_pickle(path)
    assert not target.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cbuiltins\n__import__\n(S'os'\ntR.",
        b"cbuiltins\ngetattr\n(cbuiltins\ndict\nS'fromkeys'\ntR.",
        b"ccollections\nOrderedDict\n)R.",
        b"Pexternal\n.",
        pickle.dumps(np.arange(3)),
        pickle.dumps(Path("x")),
    ],
)
def test_every_other_class_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.pkl"
    path.write_bytes(content)
    with pytest.raises(DataError, match="refused to unpickle"):
        load_pickle(path)


def test_a_pickle_that_recurses_too_deep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.pkl"
    nested_list = b"]" * 5000 + b"a" * 4999
    path.write_bytes(b"\x80\x02c__builtin__\nstr\n" + nested_list + b"\x85R.")  # str(nested_list)
    with pytest.raises(DataError, match="not a readable pickle"):
        load_pickle(path)


@given(content=st.binary(max_size=40))
def test_garbage_is_a_data_error(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("garbage") / "garbage.pkl"
    path.write_bytes(b"\x80\x04" + content)
    with contextlib.suppress(DataError):  # any other failure would be a bug
        load_pickle(path)


def test_truncated_and_missing_pickles_are_data_errors(tmp_path: Path) -> None:
    path = tmp_path / "short.pkl"
    path.write_bytes(pickle.dumps({1: "one", 2: "two"})[:-4])
    with pytest.raises(DataError, match=r"(?s)not a readable pickle.*is it complete"):
        load_pickle(path)
    with pytest.raises(DataError, match="no such file"):
        load_pickle(tmp_path / "absent.pkl")
