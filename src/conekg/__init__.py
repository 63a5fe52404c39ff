"""conekg answers first-order logical questions over incomplete knowledge graphs.

The names in `__all__` are the whole public interface. Each is imported when it is first used,
so that `import conekg` is quick and exact answers never load a deep-learning library.

    graph = conekg.load("geography")
    conekg.fit(graph, "runs/geography")
    conekg.ask("runs/geography", "France.borders & !Euro.^uses_currency")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from conekg.version import VERSION

if TYPE_CHECKING:
    from conekg.answering.answer import Answer, Question, RankedAnswer
    from conekg.answering.engine import Answerer, ask
    from conekg.answering.explain import explain
    from conekg.answering.explanation import Explanation
    from conekg.answering.fit import fit
    from conekg.errors import ConeKGError
    from conekg.graph.knowledge_graph import KnowledgeGraph
    from conekg.graph.source import open_graph as load
    from conekg.query.parse import parse_query
    from conekg.query.render import render_query
    from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
    from conekg.symbolic.engine import answer
    from conekg.training.run import open_run

__version__ = VERSION
__all__ = [
    "Anchor",
    "And",
    "Answer",
    "Answerer",
    "ConeKGError",
    "Explanation",
    "KnowledgeGraph",
    "Not",
    "Or",
    "Project",
    "Query",
    "Question",
    "RankedAnswer",
    "Universe",
    "__version__",
    "answer",
    "ask",
    "explain",
    "fit",
    "load",
    "open_run",
    "parse_query",
    "render_query",
]

_NAMES_BY_MODULE = {
    "conekg.answering.answer": ("Answer", "Question", "RankedAnswer"),
    "conekg.answering.engine": ("Answerer", "ask"),
    "conekg.answering.explain": ("explain",),
    "conekg.answering.explanation": ("Explanation",),
    "conekg.answering.fit": ("fit",),
    "conekg.errors": ("ConeKGError",),
    "conekg.graph.knowledge_graph": ("KnowledgeGraph",),
    "conekg.graph.source": ("open_graph",),
    "conekg.query.parse": ("parse_query",),
    "conekg.query.render": ("render_query",),
    "conekg.query.tree": ("Anchor", "And", "Not", "Or", "Project", "Query", "Universe"),
    "conekg.symbolic.engine": ("answer",),
    "conekg.training.run": ("open_run",),
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use, and keep it for the next use."""
    if name not in __all__:
        raise AttributeError(f"module 'conekg' has no attribute {name!r}")
    name_in_module = "open_graph" if name == "load" else name
    value = getattr(import_module(_MODULE_OF[name_in_module]), name_in_module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
