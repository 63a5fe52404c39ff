"""`conekg serve`: answer questions with a trained run over HTTP, with a page at `/`."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from conekg.cli.console import say, warn
from conekg.cli.options import CheckpointOption, DeviceOption
from conekg.cli.training_report import why_no_probabilities
from conekg.errors import ConeKGError, ConfigError

KEY_VARIABLE = "CONEKG_API_KEY"
EXTRA_MODULES = frozenset({"fastapi", "fastapi_offline", "pydantic", "starlette", "uvicorn"})


def serve(
    run: Annotated[Path, typer.Argument(help="The run folder to answer from.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this machine can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8000,
    checkpoint: CheckpointOption = "best",
    device: DeviceOption = "auto",
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar=KEY_VARIABLE,
            help="Require this key from every client. Set it in the environment to keep it out of "
            "process lists.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also answer to this host name, such as a proxy's; may be repeated. Without it, a "
            "server that only this machine can reach answers to localhost, any other to all names.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Change a limit, such as timeout_s=5; may be repeated. docs/http-api.md lists "
            "all limits.",
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            help="How many processes answer, each with the whole model in memory. One process "
            "keeps little more than one core busy.",
        ),
    ] = 1,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log one line per request.")
    ] = False,
) -> None:
    """Answer questions over HTTP and on a page in the browser.

    On Ctrl-C or SIGTERM it finishes the requests it has accepted, then stops.
    """
    try:
        from conekg.serving.hosts import host_names, hosts_of, is_loopback
        from conekg.serving.limits import limits_from_settings
        from conekg.serving.processes import serve_processes
        from conekg.serving.server import make_server, open_sockets
        from conekg.serving.worker import Ready, Settings, load_app
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_MODULES:
            raise
        raise ConeKGError(
            f"serving needs {error.name}, which is not installed",
            hint="pip install 'conekg[serve]'",
        ) from None

    api_key = _checked_key(api_key)
    limits = limits_from_settings(limit or [])
    allowed = host_names(allow_host or [])

    def report_ready(ready: Ready) -> None:
        if not ready.calibrated:
            warn(why_no_probabilities(run, checkpoint))
        if not is_loopback(address) and api_key is None:
            warn(f"every client that can reach {host} may ask questions; --api-key requires a key")
        shown = f"[{host}]" if ":" in host else host
        say(f"ask at http://{shown}:{bound_port}/ (Ctrl-C stops)")

    with ExitStack() as opened:
        sockets = open_sockets(host, port, processes)
        for listening in sockets:
            opened.enter_context(listening)
        address, bound_port = sockets[0].getsockname()[:2]
        hosts = hosts_of(host, address, allowed)
        settings = Settings(run, checkpoint, device, limits, api_key, access_log, hosts)
        say(f"loading {run}")
        if processes > 1:
            serve_processes(settings, sockets, report_ready)
            return
        app, ready = load_app(settings)
        server = make_server(
            app, limits, on_ready=lambda: report_ready(ready), access_log=access_log
        )
        with suppress(KeyboardInterrupt):  # by a Ctrl-C just after the server's orderly end
            server.run(sockets=sockets)


def _checked_key(given: str | None) -> str | None:
    """The API key without white space around it; `ConfigError` if it is empty."""
    # Typer ignores an empty variable, such as from a secret that was not filled in. Serving without
    # a key then would be a mistake.
    key = os.environ.get(KEY_VARIABLE) if given is None else given
    if key is None:
        return None
    key = key.strip()  # one from a file may end in a line break; the values of headers have none
    if not key:
        raise ConfigError(
            f"the API key is empty; give one by --api-key or {KEY_VARIABLE}, or unset "
            f"{KEY_VARIABLE} to serve without a key",
            key="api_key",
        )
    return key
