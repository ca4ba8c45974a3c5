"""The explorer's addresses: pages, and JSON under /api. The only file that imports FastAPI and Uvicorn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Literal

from consilience.errors import EngineUnavailableError, InputError, UnknownNameError
from consilience.report.environment import look
from consilience.server import shapes
from consilience.server.catalogue import ObjectQuery, QueryTimeoutError, SourceQuery
from consilience.server.explorer import Explorer
from consilience.server.guard import App, Guard, allowed_hosts
from consilience.server.pages import Pages
from consilience.server.reviews import AnswersUnavailableError

try:
    import uvicorn
    from fastapi import FastAPI, Query, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
    from pydantic import Field
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise EngineUnavailableError(
        f"The explorer cannot run: {error}. Install what it needs with `pip install 'consilience[server]'`."
    ) from error

CONNECTIONS, IDLE = 100, 5
"""Connections at a time, and seconds without a request after which one is closed."""
MOST = 2**31 - 1
Id = Annotated[str | None, Query(max_length=2_000, description="The id, as text.")]
Number = Annotated[
    int | None, Query(ge=0, le=MOST, description="The place among all, from 0; used where given.")
]
Text = Annotated[str, Query(max_length=1_000, description="A part of it, in upper or lower case.")]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Which page of the list, from 1.")]
Size = Annotated[int, Query(ge=1, le=200, description="Rows of a page.")]
Least = Annotated[float | None, Query(ge=0, le=1, description="Reliable at least so much, from 0 to 1.")]
Most = Annotated[float | None, Query(ge=0, le=1, description="Reliable at most so much, from 0 to 1.")]
Differs = Annotated[bool | None, Query(description="Whether the majority of claims says otherwise.")]
Reviewed = Annotated[bool | None, Query(description="Whether a reviewer answered it.")]
Known = Annotated[bool | None, Query(description="Whether its truth was given.")]
Group = Annotated[
    int | None, Query(ge=0, le=MOST, description="A group's number; 0 are sources on their own.")
]
ObjectOrder = Annotated[
    Literal["object", "uncertainty", "claims"], Query(description="What they are sorted by.")
]
SourceOrder = Annotated[
    Literal["reliability", "unreliability", "source", "claims"], Query(description="What they are sorted by.")
]
WholeNumber = Annotated[int, Field(strict=True)]
REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"description": why}
    for status, why in (
        (400, "What was asked for cannot be"), (401, "No token"), (403, "Not from here, or without the header"),
        (404, "There is none"), (405, "Not this method"), (408, "Too slow a body"), (409, "One is running"),
        (413, "Too large a body"), (414, "Too long a query"), (421, "Not the name of this server"),
        (503, "Not now: it took too long, or answers cannot be read or stored"),
    )
}  # fmt: skip


@dataclass
class NewAnswer:
    """The truth of an object, named by `number` or `id`."""

    value: str
    id: str | None = None
    number: WholeNumber | None = None

    def __post_init__(self) -> None:
        _check_body(self.id, self.number, self.value)


@dataclass
class Skip:
    """An object to leave alone, named by `number` or `id`."""

    id: str | None = None
    number: WholeNumber | None = None

    def __post_init__(self) -> None:
        _check_body(self.id, self.number)


@dataclass
class Undo:
    """An answer or a skip to take back, by the `entry` that it was given when it was stored."""

    entry: Annotated[int, Field(ge=1, le=2**63 - 1)]


def _check_body(identity: str | None, number: int | None, value: str | None = None) -> None:
    """An object must be named; and JSON can say half a character, which no store can keep."""
    if identity is None and number is None:
        raise ValueError("say which object: its `id` or its `number`")
    for text in (identity, value):
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise ValueError("a text holds half of a character (a lone surrogate); send whole ones") from None


def application(explorer: Explorer) -> FastAPI:
    """All addresses over one explorer; without a guard."""
    app = FastAPI(
        title="consilience explorer",
        description="A saved result as JSON. A request that changes something needs the header `X-Consilience: 1`.",
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=REFUSED,
    )
    _add_errors(app, explorer)
    _add_json(app, explorer)
    _add_pages(app, explorer)
    return app


def guarded(explorer: Explorer, host: str = "127.0.0.1", token: str | None = None) -> App:
    """The application behind its guard, as it is served at this address."""
    return Guard(application(explorer), allowed_hosts(host), token)


def server(app: App) -> uvicorn.Server:
    """A server of this app, as `serve` runs it."""
    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)


class Impatient(H11Protocol):
    """A connection that is closed when no request has come, or not all of its head, for IDLE seconds.

    Uvicorn has a limit for the time between requests alone: connections that never say a word, or a letter now and
    then, would be kept for ever, and after CONNECTIONS of them nobody else be let in.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From now on a request is expected."""
        super().connection_made(transport)
        self._expect()

    def handle_events(self) -> None:
        """Bytes have come; with the head of a request complete, it is our turn."""
        super().handle_events()
        if self._is_answering():
            self._cancel()

    def on_response_complete(self) -> None:
        """The next request is expected, unless it is there."""
        super().on_response_complete()
        if not self._is_answering():
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        super().connection_lost(exc)
        self._cancel()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect(self) -> None:
        self._cancel()
        self._deadline = self.loop.call_later(IDLE, self.transport.close)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


def serve(
    explorer: Explorer, host: str, port: int, token: str | None, started: Callable[[int], None]
) -> None:
    """Serve until interrupted; `started` is told the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise InputError(
                f"Cannot listen on {host}, port {port}: {why}. Choose another with --port; 0 takes a free one."
            ) from None
        listener.listen(128)
        started(listener.getsockname()[1])
        try:
            server(guarded(explorer, host, token)).run(sockets=[listener])
        except KeyboardInterrupt:
            pass  # how a server ends
        finally:
            explorer.close()


def _add_json(app: FastAPI, explorer: Explorer) -> None:
    """The same data as on the pages, as JSON."""

    @app.get("/api/result")
    def about() -> shapes.About:
        """The result as a whole: sizes, model, settings, warnings."""
        return explorer.about()

    @app.get("/api/objects")
    def objects(
        text: Text = "", value: Text = "", differs: Differs = None, reviewed: Reviewed = None,
        known: Known = None, order: ObjectOrder = "object", page: PageNumber = 1, size: Size = 50,
    ) -> shapes.Objects:  # fmt: skip
        """Objects by part of their id (`text`) and of their decision (`value`), page by page. `differs`: whether the
        majority says otherwise, of those whose truth was found and not given (`known`)."""
        return explorer.objects(ObjectQuery(text, value, differs, reviewed, known, order), page, size)

    @app.get("/api/object")
    def object_(id: Id = None, number: Number = None) -> shapes.ObjectShape:
        """One object: its candidates, the voices of its groups in nats, and what would be decided without each.

        `before`, the `nats` of all voices and `others` add up: for two candidates the sum of all differences is the
        logarithm of their odds (but for a fit by the paper's mean-field, which does not take objects apart)."""
        _check_named("object", id, number)
        return explorer.object(id, number)

    @app.get("/api/sources")
    def sources(
        text: Text = "", group: Group = None, least: Least = None, most: Most = None,
        order: SourceOrder = "reliability", page: PageNumber = 1, size: Size = 50,
    ) -> shapes.Sources:  # fmt: skip
        """Sources by part of their name, group and reliability, page by page."""
        return explorer.result.catalogue.sources(SourceQuery(text, group, least, most, order), page, size)

    @app.get("/api/source")
    def source(
        id: Id = None, number: Number = None, page: PageNumber = 1, size: Size = 50
    ) -> shapes.SourceShape:
        """One source: a page of its claims, its mates, and values that it shares with them though they are wrong."""
        _check_named("source", id, number)
        result = explorer.result
        return result.source(result.source_number(id, number), page, size)

    @app.get("/api/groups")
    def groups() -> list[shapes.GroupRow]:
        """Groups, the largest first; at most a thousand."""
        return explorer.result.groups()

    @app.get("/api/group")
    def group(
        number: Annotated[int, Query(ge=1, le=MOST, description="The group's number.")],
        page: PageNumber = 1,
        size: Size = 50,
    ) -> shapes.GroupShape:
        """One group: a page of its members, and values that they share though they are wrong."""
        return explorer.result.group(number, page, size)

    @app.get("/api/queue")
    def queue(size: Size = 20) -> shapes.Queue:
        """The objects most worth checking: those whose truth is expected to move most decisions."""
        return explorer.queue(size)

    @app.get("/api/reviews")
    def answers(page: PageNumber = 1, size: Size = 50) -> shapes.Answers:
        """Answers and skips that count, the last first."""
        return explorer.answers(page, size)

    @app.post("/api/reviews", status_code=201)
    def answer(given: NewAnswer) -> shapes.Answer:
        """Store the truth of an object. When this answers, it is on the disk."""
        return explorer.answer(given.id, given.number, given.value)

    @app.post("/api/reviews/skip", status_code=201)
    def skip(given: Skip) -> shapes.Answer:
        """Leave an object alone: it goes from the queue."""
        return explorer.answer(given.id, given.number, None)

    @app.post("/api/reviews/undo")
    def undo(given: Undo) -> shapes.Answer:
        """Take one answer or skip back, named by its entry; what was answered before it counts again."""
        return explorer.undo(given.entry)

    @app.get("/api/refit")
    def refit_state() -> shapes.RefitState:
        """How the refit goes."""
        return explorer.refitting.state()

    @app.post("/api/refit", status_code=202)
    def refit() -> shapes.RefitState:
        """Fit again with the answers as known truths, in the background; one at a time."""
        started = explorer.refit()
        if started is None:
            raise Running("A refit is running: wait for it or cancel it.")
        return started

    @app.delete("/api/refit")
    def cancel() -> shapes.RefitState:
        """Stop the refit; the result stays as it was."""
        explorer.refitting.cancel()
        return explorer.refitting.state()


def _add_pages(app: FastAPI, explorer: Explorer) -> None:
    """Pages for people."""
    pages = Pages(explorer)
    static = {
        "look.css": ("text/css", look()),
        "explorer.css": ("text/css", _static("explorer.css")),
        "explorer.js": ("text/javascript", _static("explorer.js")),
        "icon.svg": ("image/svg+xml", _static("icon.svg")),
    }

    def page(path: str) -> Callable[..., Any]:
        return app.get(path, response_class=HTMLResponse, include_in_schema=False)

    @page("/")
    def overview() -> str:
        return pages.overview()

    @page("/objects")
    def objects(
        text: Text = "", value: Text = "", differs: Annotated[str, Query(pattern="^(|yes|no)$")] = "",
        reviewed: Annotated[str, Query(pattern="^(|yes|no)$")] = "",
        known: Annotated[str, Query(pattern="^(|yes|no)$")] = "", order: ObjectOrder = "object",
        page: PageNumber = 1,
    ) -> str:  # fmt: skip
        query = ObjectQuery(text, value, _flag(differs), _flag(reviewed), _flag(known), order)
        return pages.objects(query, page)

    @page("/object")
    def object_(
        id: Id = None, number: Number = None, against: Annotated[int | None, Query(ge=1, le=10_000)] = None
    ) -> str:
        _check_named("object", id, number)
        return pages.object(id, number, against)

    @page("/sources")
    def sources(
        text: Text = "", group: str = "", least: str = "", most: str = "", order: SourceOrder = "reliability",
        page: PageNumber = 1,
    ) -> str:  # fmt: skip
        # A form sends empty fields, which stand for no condition.
        query = SourceQuery(text, _whole(group), _per_cent(least), _per_cent(most), order)
        return pages.sources(query, page)

    @page("/source")
    def source(id: Id = None, number: Number = None, page: PageNumber = 1) -> str:
        _check_named("source", id, number)
        return pages.source(id, number, page)

    @page("/groups")
    def groups() -> str:
        return pages.groups()

    @page("/group")
    def group(number: Annotated[int, Query(ge=1, le=MOST)], page: PageNumber = 1) -> str:
        return pages.group(number, page)

    @page("/review")
    def review() -> str:
        return pages.review()

    @page("/api")
    def interface() -> str:
        return pages.interface(app.openapi())

    @app.get("/static/{name}", include_in_schema=False)
    def static_file(name: str) -> Response:
        if name not in static:
            raise UnknownNameError("file", name, static)
        kind, content = static[name]
        return Response(content, media_type=kind)


class Running(Exception):
    """A refit was asked for while one is running."""


def _add_errors(app: FastAPI, explorer: Explorer) -> None:
    """Errors in JSON for programs, as a page for people; never with the inside of the program."""
    pages = Pages(explorer)

    def told(request: Request, status: int, why: str) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": why}, status)
        if request.url.path.startswith("/static/"):
            return PlainTextResponse(why, status)
        return HTMLResponse(pages.error(status, why), status)

    @app.exception_handler(404)
    def missing(request: Request, error: Exception) -> Response:
        return told(request, 404, "There is no such page.")

    @app.exception_handler(UnknownNameError)
    def unknown(request: Request, error: UnknownNameError) -> Response:
        return told(request, 404, str(error))

    @app.exception_handler(InputError)
    def wrong(request: Request, error: InputError) -> Response:
        return told(request, 400, str(error))

    @app.exception_handler(Running)
    def running(request: Request, error: Running) -> Response:
        return told(request, 409, str(error))

    @app.exception_handler(QueryTimeoutError)
    @app.exception_handler(AnswersUnavailableError)
    def not_now(request: Request, error: Exception) -> Response:
        return told(request, 503, str(error))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        faults = [{key: each[key] for key in ("loc", "msg", "type")} for each in error.errors()]
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": faults}, 422)
        why = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in faults)
        return HTMLResponse(pages.error(422, why), 422)


def _static(name: str) -> str:
    return files("consilience.server").joinpath("static", name).read_text("utf-8")


def _check_named(what: str, identity: str | None, number: int | None) -> None:
    """A page about nothing in particular is a question that lacks a word."""
    if identity is None and number is None:
        why = f"say which {what}: /{what}?id=… with its id, or /{what}?number=… with its place, from 0"
        raise RequestValidationError([{"loc": ("query", "id"), "msg": why, "type": "missing"}])


def _flag(text: str) -> bool | None:
    return {"yes": True, "no": False}.get(text)


def _whole(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise InputError(
            f"{text[:40]!r} is no number of a group: write 1, 2, …, or 0 for sources on their own."
        )
    return int(text)


def _per_cent(text: str) -> float | None:
    if not text:
        return None
    try:
        given = float(text)
    except ValueError:
        given = -1.0
    if not 0 <= given <= 100:
        raise InputError(f"{text[:40]!r} is no reliability: write per cent, from 0 to 100.")
    return given / 100
