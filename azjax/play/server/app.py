"""The web application: access control, its routes and their responses."""

import asyncio
import collections
import contextlib
import hashlib
import ipaddress
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import (
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from azjax.games import game_title
from azjax.play.page_files import media_type, read_page
from azjax.play.server.catalog import GameOffer, find_key, run_players
from azjax.play.server.client import ThreadPools
from azjax.play.server.comparing import MAX_RUNS, Comparisons
from azjax.play.server.connection import TRY_AGAIN_LATER, Connection
from azjax.play.server.registry import PlayerRegistry
from azjax.play.server.runs import (
    RunInfo,
    describe_progress,
    latest_numbers,
    plot_version,
    read_plot,
)
from azjax.play.server.search_workers import report

COOKIE = "azjax-token"
PARAMETER = "token"
COOKIE_SECONDS = 30 * 24 * 3600
HEADERS = {
    # The policy of index.html; other sites must not frame this page.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
        "img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
SOCKET = "/socket"


class Guard:
    """Middleware that rejects requests with a foreign host name or without the token,
    and adds security headers.

    A client sends the token once, as `?token=TOKEN` or in an `Authorization` header;
    from then on an HTTP-only cookie holds its digest.

    Args:
        app: the application.
        names: allowed host names; IP addresses are always allowed.
        token: required token; None requires none.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], token: str | None):
        self._app, self._names = app, {name.lower() for name in names}
        self._digest = None if token is None else _digest(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards or rejects a request."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        rejection = self._rejection(HTTPConnection(scope))
        if rejection is None:
            return await self._app(scope, receive, send_guarded)
        if scope["type"] == "websocket":
            return await WebSocket(scope, receive, send).close()
        return await rejection(scope, receive, send_guarded)

    def _rejection(self, request: HTTPConnection) -> Response | None:
        """Returns the rejecting response, None if the request is allowed."""
        try:
            host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
            if not host or host not in self._names:
                ipaddress.ip_address(host)  # not a name, so no DNS rebinding
        except ValueError:
            return PlainTextResponse("unknown host name", 421)
        if self._digest is None:
            return None
        if _is_same(request.cookies.get(COOKIE, ""), self._digest):
            return None
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _is_same(_digest(given), self._digest):
            return None
        given = request.query_params.get(PARAMETER, "")
        if not _is_same(_digest(given), self._digest):
            return PlainTextResponse(
                f"a token is required: add ?{PARAMETER}=TOKEN to the address", 401
            )
        # Sets the cookie and redirects to the address without the token.
        query = request.query_params.multi_items()
        rest = urlencode([(name, text) for name, text in query if name != PARAMETER])
        path = quote(f"/{request.scope['path'].lstrip('/')}")
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        response.set_cookie(
            COOKIE,
            self._digest,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
            secure=request.scope["scheme"] in ("https", "wss"),
        )
        return response


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _is_same(one: str, other: str) -> bool:
    """Compares in constant time."""
    return secrets.compare_digest(one.encode(), other.encode())


def make_app(
    registry: PlayerRegistry, *, names: Collection[str], token: str | None = None
) -> Starlette:
    """Returns the application.

    Args:
        registry: the games and players; closed with the application.
        names: allowed host names, without port; IP addresses are always allowed. Other
            names are rejected, because with DNS rebinding a foreign page could reach
            the server through a user's browser.
        token: required from all clients; None requires none.
    """
    site = _Site(registry)
    routes = [
        Route("/", site.page("lobby.html")),
        Route("/lobby.json", site.lobby_json),
        Route("/play/{game}", _add_slash),
        Route("/runs/{run}", _add_slash),
        Route("/compare/{game}", _add_slash),
        Route("/play/{game}/", site.page("index.html", site.game)),
        Route("/play/{game}/config.json", site.game_json),
        Route("/play/{game}/picture.svg", site.picture),
        Route("/play/{game}/{file:path}", site.file),
        Route("/runs/{run}/", site.page("run.html", site.run)),
        Route("/runs/{run}/run.json", site.run_json),
        Route("/runs/{run}/learning.png", site.plot),
        Route("/runs/{run}/{file:path}", site.file),
        Route("/compare/{game}/", site.page("compare.html", site.compared)),
        Route("/compare/{game}/compare.json", site.compare_json),
        Route("/compare/{game}/compare.png", site.compare_plot),
        Route("/compare/{game}/{file:path}", site.file),
        WebSocketRoute(SOCKET, site.connect),
        Route("/{file:path}", site.file),
    ]
    return Starlette(
        routes=routes,
        exception_handlers={404: site.not_found},
        middleware=[Middleware(Guard, names=names, token=token)],
        lifespan=site.lifespan,
    )


class _Site:
    """The responses of all routes."""

    def __init__(self, registry: PlayerRegistry):
        self._registry, self._catalog = registry, registry.catalog
        self._comparisons = Comparisons(registry.cache)
        self._page = read_page()
        self._connections: set[Connection] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._pools = ThreadPools(registry.limits.reviews)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Draws the lobby's pictures in advance; closes everything at the end."""

        async def draw_all() -> None:
            for offer in (await self._pools.run(self._catalog.games)).values():
                try:
                    await self._draw(offer)
                except Exception as error:  # clients of that game receive the error
                    report(error)

        drawing = asyncio.ensure_future(draw_all())
        yield
        drawing.cancel()
        self._pools.close()
        self._registry.close()

    def page(
        self, name: str, find: Callable[[Request], Awaitable[Any]] | None = None
    ) -> Callable[[Request], Awaitable[Response]]:
        """Returns the response of a file of the page, if `find` finds its subject."""

        async def respond(request: Request) -> Response:
            if find is not None:
                await find(request)
            return self._file(name)

        return respond

    async def file(self, request: Request) -> Response:
        return self._file(request.path_params["file"])

    async def not_found(self, request: Request, _: Exception) -> Response:
        """Returns an HTML page for browsers and plain text for other clients."""
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse("not found", 404)
        return Response(self._page["missing.html"], 404, media_type="text/html")

    async def lobby_json(self, request: Request) -> Response:
        del request
        return _json(await self._pools.run(self._describe_lobby))

    async def picture(self, request: Request) -> Response:
        picture = await self._draw(await self.game(request))
        return Response(picture, media_type="image/svg+xml")

    async def game_json(self, request: Request) -> Response:
        offer = await self.game(request)
        return _json(
            {
                "engine": "server",
                "socket": SOCKET,
                "game": offer.key,
                "title": game_title(offer.key),
                "players": _players(offer),
            }
        )

    async def run_json(self, request: Request) -> Response:
        run = await self.run(request)
        return _json(await self._pools.run(self._describe_run, run))

    async def plot(self, request: Request) -> Response:
        plot = await self._pools.run(read_plot, await self.run(request))
        if plot is None:
            raise HTTPException(404)
        return Response(plot, media_type="image/png")

    async def compare_json(self, request: Request) -> Response:
        runs, chosen = await self.compared(request)
        compared = await self._pools.run_shared(
            ("comparison", chosen), self._comparisons.describe, chosen
        )
        keys = {run.key for run in chosen}
        listed = [{"key": run.key, "isChosen": run.key in keys} for run in runs]
        title = game_title(repr(runs[0].game))
        return _json({"title": title, "runs": listed, "most": MAX_RUNS, **compared})

    async def compare_plot(self, request: Request) -> Response:
        _, chosen = await self.compared(request)
        plot = await self._pools.run_shared(
            ("plot", chosen), self._comparisons.draw, chosen
        )
        if plot is None:
            raise HTTPException(404)
        return Response(plot, media_type="image/png")

    async def connect(self, socket: WebSocket) -> None:
        # A WebSocket comes from this server's page, or from no page.
        origin = socket.headers.get("origin")
        try:
            is_ours = origin is None or (
                urlsplit(origin).netloc == socket.headers.get("host")
            )
        except ValueError:  # it is no URL
            is_ours = False
        if not is_ours:
            await socket.close()
            return
        if len(self._connections) >= self._registry.limits.connections:
            idlest = min(self._connections, key=lambda connection: connection.rank)
            self._connections.discard(idlest)
            closing = asyncio.create_task(
                idlest.close(TRY_AGAIN_LATER, "the server has too many connections")
            )
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        await socket.accept()
        connection = Connection(socket, self._registry, self._pools)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    def _file(self, name: str) -> Response:
        # All files are in memory: no path of a request reaches the file system.
        content = self._page.get(name)
        if content is None:
            raise HTTPException(404)
        return Response(content, media_type=media_type(name))

    async def game(self, request: Request) -> GameOffer:
        """Returns the game of an address.

        Raises:
            HTTPException: 404 for an unknown game; 308 to the address with the game's
                key, where the address has another text of the same game.
        """
        offers = await self._pools.run(self._catalog.games)
        name = request.path_params["game"]
        key = find_key(name, offers)
        if key is None:
            raise HTTPException(404)
        if key != name:
            file = request.url.path.rsplit("/", 1)[1]
            location = f"../{quote(key, safe='')}/{file}{_query(request)}"
            raise HTTPException(308, headers={"location": location})
        return offers[key]

    async def run(self, request: Request) -> RunInfo:
        runs = await self._pools.run(self._catalog.runs)
        name = request.path_params["run"]
        if name not in runs:
            raise HTTPException(404)
        return runs[name]

    async def compared(
        self, request: Request
    ) -> tuple[tuple[RunInfo, ...], tuple[RunInfo, ...]]:
        """Returns all runs of the game of an address, and those to compare: of the
        parameters `run`, or without them the first ones.

        Raises:
            HTTPException: 404 if the game has fewer than two runs.
        """
        runs = (await self._pools.run(self._catalog.runs)).values()
        name = request.path_params["game"]
        same = tuple(run for run in runs if repr(run.game) == name)
        if len(same) < 2:
            raise HTTPException(404)
        wanted = request.query_params.getlist("run")
        chosen = tuple(run for run in same if not wanted or run.key in wanted)
        return same, chosen[:MAX_RUNS]

    def _describe_lobby(self) -> dict[str, Any]:
        runs = self._catalog.runs().values()
        counts = collections.Counter(repr(run.game) for run in runs)
        return {
            "games": [
                {
                    "key": offer.key,
                    "title": game_title(offer.key),
                    "players": _players(offer),
                }
                for offer in self._catalog.games().values()
            ],
            "runs": [
                {
                    "key": run.key,
                    "game": repr(run.game),
                    "title": run.title,
                    **describe_progress(run),
                }
                for run in runs
            ],
            "comparisons": [
                {"key": key, "title": game_title(key), "runs": count}
                for key, count in counts.items()
                if count > 1
            ],
        }

    def _describe_run(self, run: RunInfo) -> dict[str, Any]:
        key = repr(run.game)
        offer = self._catalog.games().get(key)
        offered = () if offer is None else offer.players
        names = [player.name for player in run_players(run) if player.name in offered]
        play = None
        if names:
            player = quote(names[0], safe="")
            play = f"/play/{quote(key, safe='')}/?player={player}"
        return {
            "game": key,
            "title": run.title,
            **describe_progress(run),
            "numbers": list(latest_numbers(run)),
            "plot": plot_version(run),
            "players": names,
            "play": play,
        }

    async def _draw(self, offer: GameOffer) -> str:
        """Returns the picture of a game's first position."""
        key = ("preview", offer.key)
        preview = await self._pools.run_shared(key, self._registry.preview, offer)
        return preview.picture


async def _add_slash(request: Request) -> Response:
    """Redirects to the address with a slash, as the page uses relative addresses."""
    name = quote(request.url.path.rsplit("/", 1)[1], safe="")
    return RedirectResponse(f"{name}/{_query(request)}", 308)


def _query(request: Request) -> str:
    return f"?{request.url.query}" if request.url.query else ""


def _json(value: Any) -> Response:
    """Returns a response in ASCII, as names in untrusted files may be invalid text."""
    return Response(json.dumps(value, allow_nan=False), media_type="application/json")


def _players(offer: GameOffer) -> list[dict[str, Any]]:
    return [
        {
            "name": player.name,
            "title": player.title,
            "about": player.about,
            "rating": player.rating,
        }
        for player in offer.players.values()
    ]
