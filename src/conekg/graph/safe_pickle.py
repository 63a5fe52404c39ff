"""The only reader of pickles from elsewhere: plain containers and plain values, nothing else.

A pickle is a program, and loading one the usual way runs it. Public benchmark releases are
pickles nevertheless, so they are read by an unpickler that knows only the few harmless classes
such data is made of and refuses every other name.
"""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any

from conekg.errors import DataError

_PLAIN = {
    kind.__name__: kind for kind in (dict, set, frozenset, tuple, list, int, str, float, bool)
}
ALLOWED: dict[tuple[str, str], type] = {
    **{("builtins", name): kind for name, kind in _PLAIN.items()},
    **{("__builtin__", name): kind for name, kind in _PLAIN.items()},
    ("collections", "defaultdict"): collections.defaultdict,
}
"""Every class that a pickle may name; `builtins` is Python 3's name, `__builtin__` Python 2's."""


class RefusedError(pickle.UnpicklingError):
    """A pickle that names something other than a plain container or value."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> type:
        allowed = ALLOWED.get((module_name, global_name))
        if allowed is None:
            raise RefusedError(f"it asks for {module_name}.{global_name}")
        return allowed

    def persistent_load(self, pid: Any) -> Any:
        raise RefusedError("it refers to an object outside the file")


def load_pickle(path: str | Path) -> Any:
    """The content of a pickle made of dict, set, tuple, list, int, str and the like.

    No code from the file is run. Raises `DataError` where the pickle names another class or is
    damaged.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _PlainUnpickler(file).load()
    except FileNotFoundError:
        raise DataError("no such file", path=str(path)) from None
    except RefusedError as error:
        raise DataError(
            f"refused to unpickle: {error}",
            path=str(path),
            hint="accepted: dict, set, frozenset, tuple, list, int, str, float, bool, None and "
            "defaultdict; the file may be hostile or of another kind",
        ) from error
    except _BROKEN as error:
        raise DataError(
            f"not a readable pickle: {error}",
            path=str(path),
            hint="is it complete, and of a BetaE or Query2Box release?",
        ) from error


# What the unpickler raises on damaged input, by its documentation and by trial.
_BROKEN = (
    pickle.UnpicklingError,
    OSError,
    EOFError,
    AttributeError,
    ImportError,
    LookupError,
    TypeError,
    ValueError,
    OverflowError,
    MemoryError,
    RecursionError,
)
