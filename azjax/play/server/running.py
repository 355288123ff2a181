"""The server itself: its socket, and how it runs until it is interrupted."""

import functools
import os
import socket

import uvicorn
from starlette.applications import Starlette

from azjax.play.server.connections import Connection, Connections, allow_files
from azjax.play.server.limits import Limits

SPARE_FILES = 200  # for everything else than connections
QUEUE = 2048  # connections that wait to be let in
AT_ONCE = 64  # of them let in, before it is read what others ask for
GRACE = 1  # after an interruption, until visitors are cut off (seconds)


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket to which visitors can connect.

    Raises:
        ValueError: there is no such host or port, or it is taken.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"--port must be from 0 to 65535: {port}")
    try:
        if not host:
            raise UnicodeError
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=QUEUE)
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number and number > 0 else "no such host"
        raise ValueError(
            f"cannot listen at --host {host} --port {port}: {reason}"
        ) from None


def run_server(app: Starlette, listener: socket.socket, limits: Limits) -> None:
    """Serves until SIGINT or SIGTERM.

    Raises:
        KeyboardInterrupt: it was SIGINT.
    """
    allow_files(limits.connections + limits.visitors + SPARE_FILES)
    make_server(app, limits).run(sockets=[listener])


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # asyncio has made the queue as short as what it takes from it at once.
        for listener in sockets or ():
            listener.listen(QUEUE)


def make_server(app: Starlette, limits: Limits) -> uvicorn.Server:
    """Returns a server that has not begun to run."""
    config = uvicorn.Config(
        app,
        http=functools.partial(Connection, Connections(limits)),  # pyright: ignore
        ws="websockets-sansio",
        ws_max_size=limits.message_bytes,
        ws_per_message_deflate=False,
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=AT_ONCE,
        timeout_graceful_shutdown=GRACE,
    )
    return _Server(config)
