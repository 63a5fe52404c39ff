"""Puts the pickles of an export in the place of an earlier export's, and never of others.

Which pickles are of an earlier export is what `exported_origin` says. Which files there are and
what they hold is left to the modules of the releases.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from conekg.errors import DataError, StoreError
from conekg.graph.knowledge_graph import Split
from conekg.graph.place import written_whole
from conekg.sampling.exported_origin import states_origin, write_origin
from conekg.sampling.query_set import QuerySet

PICKLE_PROTOCOL = 3
"""The protocol of the BetaE release; files written with it have the published sizes."""


def write_export(
    query_set: QuerySet,
    queries: Mapping[Path, object],
    answers: Mapping[Path, object],
    origin: Path,
    *,
    earlier: Mapping[Path, Iterable[Path]],
) -> list[Path]:
    """The files of an export, after writing them: what `queries` and `answers` hold for each path.

    `origin` is the file that is to say where the queries come from. `earlier` has the files of
    queries of the split that the folder holds, each with its files of answers. They are replaced,
    but stay where the new files cannot be written. At no time are queries in the folder without
    their origin, and none of the earlier ones are left beside the new, which could have fewer
    shapes. Raises `DataError` if some of them are no export's, and `StoreError` if a file cannot be
    written.
    """
    folder = path = origin.parent
    _check_exported(query_set.split, earlier, origin)
    contents = {**queries, **answers}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".export-", dir=folder) as name:
            draft = Path(name)
            for path, content in contents.items():
                with written_whole(draft / path.name) as file:
                    pickle.dump(content, file, protocol=PICKLE_PROTOCOL)
            path = origin
            write_origin(draft / path.name, query_set, [draft / each.name for each in queries])
            for path in (*earlier, *chain.from_iterable(earlier.values()), origin):
                path.unlink(missing_ok=True)
            files = [*contents, origin]
            for path in reversed(files):  # the origin comes first, queries last
                (draft / path.name).replace(path)
            return files
    except OSError as error:
        raise StoreError(f"cannot be written: {error.strerror or error}", path=str(path)) from error


def _check_exported(split: Split, queries: Iterable[Path], origin: Path) -> None:
    """Raise `DataError` unless all these files of queries are of the export that `origin` is about.

    Others may be a release's, which the exported ones would pass for.
    """
    others = [file.name for file in queries if not states_origin(origin, [file])]
    if others:
        raise DataError(
            f"holds {split} queries that may be a release's, so they are left alone",
            path=str(origin.parent),
            hint=f"choose another folder, or remove {', '.join(others)} there first",
        )
