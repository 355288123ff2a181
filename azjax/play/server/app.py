"""The web application: which address shows what."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from azjax.play.page_files import media_type, read_page
from azjax.play.server.catalog import GameOffer, find_key, run_players
from azjax.play.server.connection import FULL, Connection
from azjax.play.server.describing import game_title
from azjax.play.server.guard import Guard
from azjax.play.server.house import House
from azjax.play.server.progress import describe_progress, newest_numbers
from azjax.play.server.runs import Run, plot_stamp, read_plot
from azjax.play.server.workers import Workers

SOCKET = "/socket"


def make_app(
    house: House, *, names: Collection[str], token: str | None = None
) -> Starlette:
    """Returns the application.

    Args:
        house: what there is to play with; closed with the application.
        names: by which visitors may call the server, without the port, beside any
            IP address. With other names a foreign page could reach the server through
            a visitor's browser (DNS rebinding).
        token: which visitors must know, if there is one.
    """
    site = _Site(house)
    routes = [
        Route("/", site.lobby),
        Route("/lobby.json", site.lobby_json),
        Route("/play/{game}", _with_slash),
        Route("/runs/{run}", _with_slash),
        Route("/play/{game}/", site.play),
        Route("/play/{game}/config.json", site.config),
        Route("/play/{game}/picture.svg", site.picture),
        Route("/play/{game}/{file:path}", site.file),
        Route("/runs/{run}/", site.run),
        Route("/runs/{run}/run.json", site.run_json),
        Route("/runs/{run}/learning.png", site.plot),
        Route("/runs/{run}/{file:path}", site.file),
        WebSocketRoute(SOCKET, site.visit),
        Route("/{file:path}", site.file),
    ]
    return Starlette(
        routes=routes,
        exception_handlers={404: site.missing},
        middleware=[Middleware(Guard, names=names, token=token)],
        lifespan=site.lifespan,
    )


class _Site:
    def __init__(self, house: House):
        self._house = house
        self._page = read_page()
        self._visitors: set[Connection] = set()
        self._farewells: set[asyncio.Task[None]] = set()
        self._workers = Workers()

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Draws the lobby's pictures before anybody asks; closes everything at the
        end."""
        drawing = asyncio.ensure_future(self._draw_all())
        yield
        drawing.cancel()
        self._workers.close()
        self._house.close()

    async def lobby(self, request: Request) -> Response:
        del request
        return self._file("lobby.html")

    async def play(self, request: Request) -> Response:
        await self._game(request)
        return self._file("index.html")

    async def run(self, request: Request) -> Response:
        await self._run(request)
        return self._file("run.html")

    async def file(self, request: Request) -> Response:
        return self._file(request.path_params["file"])

    async def missing(self, request: Request, _: Exception) -> Response:
        """Says to people, and to programs, that there is no such thing."""
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse("not found", 404)
        return Response(self._page["missing.html"], 404, media_type="text/html")

    async def lobby_json(self, request: Request) -> Response:
        del request
        return JSONResponse(await self._workers.do(self._describe_lobby))

    async def picture(self, request: Request) -> Response:
        picture = await self._draw(await self._game(request))
        return Response(picture, media_type="image/svg+xml")

    async def config(self, request: Request) -> Response:
        offer = await self._game(request)
        return JSONResponse(
            {
                "engine": "server",
                "socket": SOCKET,
                "game": offer.key,
                "title": game_title(offer.key),
                "players": _players(offer),
            }
        )

    async def run_json(self, request: Request) -> Response:
        run = await self._run(request)
        return JSONResponse(await self._workers.do(self._describe_run, run))

    async def plot(self, request: Request) -> Response:
        plot = await self._workers.do(read_plot, await self._run(request))
        if plot is None:
            raise HTTPException(404)
        return Response(plot, media_type="image/png")

    async def visit(self, socket: WebSocket) -> None:
        if not _is_same_origin(socket.headers):
            await socket.close()
            return
        if len(self._visitors) >= self._house.limits.visitors:
            idlest = min(self._visitors, key=lambda visitor: visitor.rank)
            self._visitors.discard(idlest)
            farewell = asyncio.create_task(
                idlest.drop(FULL, "there are too many visitors")
            )
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)
        await socket.accept()
        visitor = Connection(socket, self._house, self._workers)
        self._visitors.add(visitor)
        try:
            await visitor.serve()
        finally:
            self._visitors.discard(visitor)

    def _file(self, name: str) -> Response:
        # The page lies in memory: no path is ever taken from a request.
        content = self._page.get(name)
        if content is None:
            raise HTTPException(404)
        return Response(content, media_type=media_type(name))

    async def _game(self, request: Request) -> GameOffer:
        """Returns the game of an address.

        Raises:
            HTTPException: there is no such game, or the address names it by another
                text than its key, and leads to the page at the key.
        """
        offers = await self._workers.do(self._house.games)
        name = request.path_params["game"]
        key = find_key(name, offers)
        if key is None:
            raise HTTPException(404)
        if key != name:
            file = request.url.path.rsplit("/", 1)[1]
            location = f"../{quote(key, safe='')}/{file}{_query(request)}"
            raise HTTPException(308, headers={"location": location})
        return offers[key]

    async def _run(self, request: Request) -> Run:
        runs = await self._workers.do(self._house.runs)
        name = request.path_params["run"]
        if name not in runs:
            raise HTTPException(404)
        return runs[name]

    def _describe_lobby(self) -> dict[str, Any]:
        return {
            "games": [
                {
                    "key": offer.key,
                    "title": game_title(offer.key),
                    "players": _players(offer),
                }
                for offer in self._house.games().values()
            ],
            "runs": [
                {
                    "key": run.key,
                    "game": self._house.key_of(run.game) or repr(run.game),
                    "title": run.title,
                    **describe_progress(run),
                }
                for run in self._house.runs().values()
            ],
        }

    def _describe_run(self, run: Run) -> dict[str, Any]:
        key = self._house.key_of(run.game)
        offered = self._house.games()[key].players if key is not None else {}
        names = [player.name for player in run_players(run) if player.name in offered]
        play = None
        if key is not None and names:
            player = quote(names[0], safe="")
            play = f"/play/{quote(key, safe='')}/?player={player}"
        return {
            "game": key or repr(run.game),
            "title": run.title,
            **describe_progress(run),
            "numbers": newest_numbers(run),
            "plot": plot_stamp(run),
            "players": names,
            "play": play,
        }

    async def _draw_all(self) -> None:
        for offer in (await self._workers.do(self._house.games)).values():
            await self._draw(offer)

    async def _draw(self, offer: GameOffer) -> str:
        """Returns the picture of a game's first position."""
        key = ("preview", offer.key)
        preview = await self._workers.do_once(key, self._house.preview, offer)
        return preview.position["picture"]


async def _with_slash(request: Request) -> Response:
    """Leads to the page, whose files lie beside it."""
    name = quote(request.url.path.rsplit("/", 1)[1], safe="")
    return RedirectResponse(f"{name}/{_query(request)}", 308)


def _query(request: Request) -> str:
    return f"?{request.url.query}" if request.url.query else ""


def _players(offer: GameOffer) -> list[dict[str, Any]]:
    return [
        {"name": player.name, "title": player.title, "rating": player.rating}
        for player in offer.players.values()
    ]


def _is_same_origin(headers: Headers) -> bool:
    """Returns whether a WebSocket comes from this server's own page, or from none."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")
