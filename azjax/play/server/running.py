"""The server itself: its socket, and how it runs until it is interrupted.

Nothing here limits what a stranger may do below the level of requests, such as opening
thousands of connections that say nothing: that is for the web server in front.
"""

import contextlib
import os
import socket

import uvicorn
from starlette.applications import Starlette

from azjax.checks import check_int
from azjax.play.server.limits import Limits

SPARE_FILES = 2200  # for everything else than visitors, such as loading files
QUEUE = 2048  # connections that wait to be let in
GRACE = 1  # after an interruption, until visitors are cut off (seconds)


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket to which visitors can connect.

    Raises:
        ValueError: there is no such host or port, or it is taken.
    """
    check_int("--port", port, 0, 65535)
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
    allow_files(limits.visitors + SPARE_FILES)
    make_server(app, limits).run(sockets=[listener])


def make_server(app: Starlette, limits: Limits) -> uvicorn.Server:
    """Returns a server that has not begun to run."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="websockets-sansio",
        ws_max_size=limits.message_bytes,
        ws_per_message_deflate=False,
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=QUEUE,
        timeout_graceful_shutdown=GRACE,
    )
    return uvicorn.Server(config)


def allow_files(needed: int) -> None:
    """Raises the number of files that the process may open, as far as it may."""
    try:
        import resource  # noqa: PLC0415  # there is none on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        top = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
