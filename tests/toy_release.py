"""A benchmark folder with eight edges in the format of the public releases, for tests."""

from __future__ import annotations

import pickle
from pathlib import Path

ENTITIES = {0: "/m/a", 1: "/m/b", 2: "/m/c"}
SIGNED = {0: "+/film/director", 1: "-/film/director", 2: "+/won", 3: "-/won"}
REVERSED = {0: "film:director", 1: "film:director_reverse"}
EDGES = {
    "train": [(0, 0, 1), (1, 1, 0), (1, 2, 2), (2, 3, 1)],
    "valid": [(0, 2, 2), (2, 3, 0)],
    "test": [(2, 1, 1), (1, 0, 2)],
}


def write_folder(folder: Path, relations: dict[int, str] = SIGNED, style: str = "pkl") -> Path:
    """Write the benchmark into `folder`, which is returned.

    `style` is the form of the files of names: `pkl` (id to name), `inverted` (name to id) or the
    same as text, `tsv` and `inverted tsv`.
    """
    folder.mkdir(exist_ok=True)
    for split, edges in EDGES.items():
        text = "".join("\t".join(map(str, edge)) + "\n" for edge in edges)
        (folder / f"{split}.txt").write_text(text)
    for stem, names in (("ent", ENTITIES), ("rel", relations)):
        if style == "tsv":
            text = "".join(f"{i}\t{n}\n" for i, n in names.items())
            (folder / f"id2{stem}.tsv").write_text(text)
        elif style == "inverted tsv":
            text = "".join(f"{n}\t{i}\n" for i, n in names.items())
            (folder / f"{stem}2id.tsv").write_text(text)
        elif style == "inverted":
            (folder / f"{stem}2id.pkl").write_bytes(pickle.dumps({n: i for i, n in names.items()}))
        else:
            (folder / f"id2{stem}.pkl").write_bytes(pickle.dumps(names))
    return folder
