"""The HTTP application: its routes and its start and stop.

Each route passes its request to `service` and writes the response. `gate` handles errors, host
names, keys, body sizes and metrics.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from conekg.answering.engine import Answerer
from conekg.serving.body_route import BodyRoute, refuse_parameters, refuse_repeated
from conekg.serving.errors import describe_invalid, describe_status, error_response
from conekg.serving.gate import Gate
from conekg.serving.hosts import Hosts
from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics
from conekg.serving.rehearsal import rehearse
from conekg.serving.schemas import (
    AboutResponse,
    AskRequest,
    AskResponse,
    ConesRequest,
    ConesResponse,
    EntitiesQuery,
    EntitiesResponse,
    ErrorResponse,
    Example,
    ExplainRequest,
    ExplainResponse,
    HealthResponse,
    NeighborsQuery,
    NeighborsResponse,
    ParseRequest,
    ParseResponse,
    RelationsResponse,
)
from conekg.serving.scoring import Scorer
from conekg.serving.service import Service
from conekg.serving.share import Share, SharedMetrics
from conekg.symbolic.workers import available_cores
from conekg.version import VERSION

STATIC = Path(__file__).parent / "static"

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse}
    for status in (400, 401, 404, 408, 413, 415, 421, 422, 431, 500, 503, 504)
}
"""Every status that an API route may fail with; all have the one error shape."""


def create_app(
    answerer: Answerer,
    *,
    limits: Limits | None = None,
    api_key: str | None = None,
    examples: tuple[Example, ...] = (),
    share: Share | None = None,
    hosts: Hosts | None = None,
) -> FastAPI:
    """The application that serves one answerer.

    `hosts` are the host names it answers to, any if None. `share` is given in a server of several
    processes. Without `api_key` every client may ask.
    """
    limits = limits or Limits()
    own_limits = limits if share is None else share.limits(limits)
    metrics = Metrics()
    shared = None if share is None else SharedMetrics(metrics, share)
    cores = None if share is None else share.cores(available_cores())
    scorer = Scorer(answerer, own_limits, metrics, cores)
    service = Service(answerer, scorer, own_limits)
    about = AboutResponse(
        version=VERSION,
        graph=answerer.graph.name,
        num_entities=answerer.graph.num_entities,
        num_relations=len(answerer.graph.vocabulary.relations),
        num_facts=answerer.graph.adjacency("train").num_edges // 2,
        model=answerer.model.name,
        dimensions=answerer.model.dim,
        can_negate=answerer.model.can_negate,
        calibrated=answerer.calibration is not None,
        examples=list(examples),
        limits=asdict(limits),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Compile or load the loops and the names now: the first clients should not wait.
        await asyncio.to_thread(rehearse, answerer, limits.top_k)
        answerer.graph.vocabulary.entities.remember_names()
        answerer.graph.vocabulary.relations.remember_names()
        scorer.start()
        publishing = None if shared is None else asyncio.create_task(shared.keep_publishing())
        # The graph and the model stay until the end: keep the garbage collector from scanning them.
        gc.collect()
        gc.freeze()
        yield
        gc.unfreeze()
        # The server has answered every accepted request by now, but the scoring thread may still
        # work on one whose client has gone.
        await scorer.close()
        if publishing is not None:
            publishing.cancel()

    app: FastAPI = FastAPIOffline(
        docs_url=None,  # `_add_page` adds both pages, with relative addresses
        redoc_url=None,
        servers=[{"url": "./", "description": "the server of this description"}],
        title="conekg",
        version=about.version,
        summary="Answers first-order logical questions over an incomplete knowledge graph.",
        lifespan=lifespan,
        separate_input_output_schemas=False,
        # Behind a proxy, a redirect would lead to http:// and the proxy's name for this server.
        redirect_slashes=False,
        # The server has its own metrics, and looking for a telemetry provider costs every request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.is_stopping = False  # set by `Server.shutdown`; `Gate` then closes connections
    _add_error_handlers(app, limits)
    app.include_router(_api_routes(service, about, guarded=api_key is not None))
    app.include_router(_operator_routes(lambda: shared.total() if shared else metrics))
    _add_page(app)
    # Metrics are counted by route. A request refused before routing is matched by these paths.
    paths = frozenset(app.openapi()["paths"])
    app.add_middleware(
        Gate, limits=own_limits, metrics=metrics, api_key=api_key, paths=paths, hosts=hosts
    )
    return app


def _api_routes(service: Service, about: AboutResponse, *, guarded: bool) -> APIRouter:
    # Only for the OpenAPI description; it is the gate that checks the key.
    locks = [Security(HTTPBearer(auto_error=False))] if guarded else []
    router = APIRouter(prefix="/api", tags=["questions"], responses=ERRORS, dependencies=locks)

    async def ask(request: AskRequest) -> Response:
        """Ranked answers of a query."""
        return _json(await service.ask(request))

    async def explain(request: ExplainRequest) -> Response:
        """The best entities for each variable of a query, and a path that leads to an answer."""
        return _json(await service.explain(request))

    async def cones(request: ConesRequest) -> Response:
        """Some of the query's sector-cones, narrow to wide, with an answer's angles in them."""
        return _json(await service.cones(request))

    async def parse(request: ParseRequest) -> Response:
        """How a query, as text or as a tree, is understood: canonical text, words and tree."""
        return _json(await service.parse(request))

    for endpoint, response_model in (
        (ask, AskResponse),
        (explain, ExplainResponse),
        (cones, ConesResponse),
        (parse, ParseResponse),
    ):
        router.add_api_route(
            f"/{endpoint.__name__}",
            endpoint,
            methods=["POST"],
            response_model=response_model,
            route_class_override=BodyRoute,
        )

    bare, once = [Depends(refuse_parameters)], [Depends(refuse_repeated)]

    @router.get("/entities", dependencies=once)
    async def entities(query: Annotated[EntitiesQuery, Query()]) -> EntitiesResponse:
        """Entities whose name or label begins with `prefix`, ignoring case and accents."""
        return await service.entities(query)

    @router.get("/relations", dependencies=bare)
    async def relations() -> RelationsResponse:
        """All relations of the graph."""
        return service.relations

    @router.get("/graph/neighbors", dependencies=once)
    async def neighbors(query: Annotated[NeighborsQuery, Query()]) -> NeighborsResponse:
        """The facts about an entity, relation by relation, up to `limit` entities each."""
        return await service.neighbors(query)

    @router.get("/about", dependencies=bare, summary="About")
    async def about_server() -> AboutResponse:
        """The graph and model of this server, its limits, and example questions."""
        return about

    return router


def _json(body: BaseModel) -> Response:
    """A response body as JSON, without the validation and the copy that the framework makes."""
    return Response(body.model_dump_json(), media_type="application/json")


def _operator_routes(metrics: Callable[[], Metrics]) -> APIRouter:
    router = APIRouter(tags=["operation"], responses={421: ERRORS[421], 431: ERRORS[431]})

    @router.get("/health")
    async def health() -> HealthResponse:
        """Whether the server is up; it loads its model before it listens."""
        return HealthResponse(status="ok")

    @router.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses={401: ERRORS[401]},
        summary="Metrics",
    )
    async def metrics_text() -> PlainTextResponse:
        """Counts and times in Prometheus' text format."""
        return PlainTextResponse(metrics().render(), media_type="text/plain; version=0.0.4")

    return router


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    # All addresses are relative, so that the pages work below a path of a proxy.
    swagger = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=f"{app.title} - HTTP API",
        swagger_js_url="static-offline-docs/swagger-ui-bundle.js",
        swagger_css_url="static-offline-docs/swagger-ui.css",
        swagger_favicon_url="static-offline-docs/favicon.png",
    )
    redoc = get_redoc_html(
        openapi_url="openapi.json",
        title=f"{app.title} - HTTP API",
        redoc_js_url="static-offline-docs/redoc.standalone.js",
        redoc_favicon_url="static-offline-docs/favicon.png",
        with_google_fonts=False,
    )

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return swagger

    @app.get("/redoc", include_in_schema=False)
    async def other_docs() -> Response:
        return redoc

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _add_error_handlers(app: FastAPI, limits: Limits) -> None:
    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return error_response(describe_invalid(error.errors()), limits.retry_after_s)

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        body = describe_status(error.status_code, request.method, request.url.path)
        response = error_response(body, limits.retry_after_s)
        response.headers.update(error.headers or {})
        if response.headers.get("allow") == "GET":
            response.headers["allow"] = "GET, HEAD"  # the gate answers HEAD on every GET route
        return response

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
