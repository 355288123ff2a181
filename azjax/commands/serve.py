"""`azjax serve`: serves every game and player in the browser."""

import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import tyro

from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.server import (
    PlayerRegistry,
    ServerLimits,
    make_catalog,
    start_compiling,
)
from azjax.program import INTERRUPTED
from azjax.settings import Within

MAX_MEMORY = 1e6  # GiB
MIN_TOKEN = 16  # letters; guesses are not rate-limited
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve_command(
    games: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    player: Annotated[
        tuple[str, ...],
        tyro.conf.arg(metavar="GAME=[NAME=]PLAYER"),
        tyro.conf.UseAppendAction,
    ] = (),
    runs: str = "runs",
    modules: ModulesOption = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    names: tuple[str, ...] = (),
    token: str | None = None,
    simulations_limit: Annotated[int, Within(ge=1)] = 1600,
    warm_up: bool = True,
    memory: float = 2.0,
) -> None:
    """Serve a web page to play on, to watch games and to follow runs.

    Args:
        games: game specs, as in `azjax games`; all games by default.
        player: a further player of a game, for example chess=mcts:1000 or, with its
            name on the page, go=gnu=gtp:COMMAND or chess=sf=uci:COMMAND; repeatable.
        runs: directory of the runs whose players and progress are shown.
        host: address to listen on; 0.0.0.0 accepts other machines.
        port: port to listen on; 0: any free one.
        names: further host names of this server, for example its domain behind a proxy.
        token: secret of the visitors, who open the address with ?token=TOKEN once.
        simulations_limit: maximum simulations per move.
        warm_up: compile all games in the background, so that pages open at once.
        memory: GiB for players, compiled searches (16 MiB each), rules, positions and
            compared runs; the least recently used are dropped. Search trees may take 2
            GiB more.
    """
    try:
        from azjax.play.server.app import make_app  # noqa: PLC0415  # an extra
        from azjax.play.server.running import listen, run_server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install 'azjax[web]'"
        ) from None
    if token is not None and len(token) < MIN_TOKEN:
        raise ValueError(f"--token must have {MIN_TOKEN} letters or more: {len(token)}")
    if not 0.1 <= memory <= MAX_MEMORY:
        raise ValueError(f"--memory must be from 0.1 to {MAX_MEMORY:g} GiB: {memory:g}")
    _tell("Loading the games.")
    enable_compilation_cache()
    limits = ServerLimits(
        simulations=simulations_limit, memory_bytes=int(memory * 2**30)
    )
    catalog = make_catalog(games, player, Path(runs), read_custom_modules(modules))
    listener = listen(host, port)
    names = (*LOOPBACK, host, socket.gethostname(), *names)
    registry = PlayerRegistry(catalog, limits)
    app = make_app(registry, names=names, token=token)
    shown = f"[{host}]" if ":" in host else host
    query = "" if token is None else f"?token={quote(token, safe='')}"
    print(f"http://{shown}:{listener.getsockname()[1]}/{query}", flush=True)
    print("Ctrl-C stops the server.", flush=True)
    if warm_up:
        start_compiling(registry, _tell)
        _tell("Compiling the games in the background; pages work meanwhile.")
    status = INTERRUPTED
    try:
        with contextlib.suppress(KeyboardInterrupt):
            run_server(app, listener, limits)
    except SystemExit as ended:  # by another signal
        status = int(ended.code or 0)
    sys.stdout.flush()
    os._exit(status)  # searches cannot be interrupted, and Python would join them


def _tell(text: str) -> None:
    """Prints progress to the terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
