"""`conekg serve`: a trained run behind HTTP, with the page at its root."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from conekg.cli.console import say, warn
from conekg.errors import ConeKGError, ConfigError

if TYPE_CHECKING:
    from conekg.graph.knowledge_graph import Split
    from conekg.sampling.query_set import QuerySet
    from conekg.training.run import Run

EXTRA_MODULES = frozenset({"fastapi", "fastapi_offline", "pydantic", "starlette", "uvicorn"})


def serve(
    run: Annotated[Path, typer.Argument(help="The run folder to answer from.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reachable from here only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    checkpoint: Annotated[
        Literal["best", "last"], typer.Option(help="Which weights of the run.")
    ] = "best",
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="CONEKG_API_KEY",
            help="Ask every client for this key. Set it in the environment to keep it out of "
            "process lists.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="Change a limit, such as timeout_s=5; docs/http-api.md lists them."),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log one line for each request.")
    ] = False,
) -> None:
    """Answer questions over HTTP, and on a page in the browser.

    Stops on Ctrl-C or SIGTERM after the requests it has accepted are answered.
    """
    try:
        from conekg.serving.http import create_app
        from conekg.serving.limits import limits_from_settings
        from conekg.serving.server import is_loopback, make_server, open_socket
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_MODULES:
            raise
        raise ConeKGError(
            f"serving needs {error.name}, which is not installed",
            hint="pip install 'conekg[serve]'",
        ) from None
    from conekg.answering.engine import Answerer
    from conekg.serving.examples import examples_of
    from conekg.training.run import open_run

    if api_key is not None and not api_key.strip():
        raise ConfigError("the API key is empty", key="api_key")
    limits = limits_from_settings(limit or [])
    with open_socket(host, port) as listening:
        say(f"loading {run}")
        examples = _example_queries(open_run(run))
        answerer = Answerer.open(run, which=checkpoint, device=device)
        if answerer.calibration is None:
            warn(f"no probabilities: `conekg calibrate {run} --checkpoint {checkpoint}` fits them")
        app = create_app(
            answerer,
            limits=limits,
            api_key=api_key,
            examples=examples_of(answerer.graph, examples, can_negate=answerer.model.can_negate),
        )
        if not is_loopback(host) and api_key is None:
            warn(f"anybody who can reach {host} may ask; --api-key asks for a key")
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        server = make_server(
            app,
            limits,
            on_ready=lambda: say(f"ask at {address} (Ctrl-C stops)"),
            access_log=access_log,
        )
        with suppress(KeyboardInterrupt):  # raised again once the last answer is out
            server.run(sockets=[listening])


def _example_queries(run: Run) -> QuerySet | None:
    """The queries of the run to draw examples from: held-out ones where there are any."""
    splits: tuple[Split, ...] = ("test", "valid", "train")
    for split in splits:
        if run.has_queries(split):
            return run.queries(split)
    return None
