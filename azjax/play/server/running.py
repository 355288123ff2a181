"""The HTTP server: its socket and its main loop.

It does not protect against attacks below HTTP, such as thousands of silent connections:
put a web server in front of it.
"""

import contextlib
import os
import socket

import uvicorn
from starlette.applications import Starlette

from azjax.checks import check_int
from azjax.play.server.limits import Limits

SPARE_FILES = 2200  # open files in addition to the WebSockets
QUEUE = 2048  # connections that are not accepted yet
GRACE = 1  # from an interruption to closing the connections (seconds)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket.

    Raises:
        ValueError: the host or port is invalid or in use.
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
        KeyboardInterrupt: SIGINT was received.
    """
    raise_file_limit(limits.connections + SPARE_FILES)
    make_server(app, limits).run(sockets=[listener])


def make_server(app: Starlette, limits: Limits) -> uvicorn.Server:
    """Returns a configured server that is not running."""
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


def raise_file_limit(needed: int) -> None:
    """Raises the process's limit of open files to `needed`, or as far as allowed."""
    try:
        import resource  # noqa: PLC0415  # missing on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        top = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
