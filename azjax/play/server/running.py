"""The HTTP server: its socket, its main loop, and limits below those of messages.

It does not protect against attacks by very many machines: put a web server in front.
"""

import asyncio
import contextlib
import os
import socket
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import Frame, Opcode
from websockets.server import ServerProtocol

from azjax.play.server.connection import POLICY_VIOLATION, RateLimiter
from azjax.play.server.limits import ServerLimits
from azjax.settings import check_int

SPARE_FILES = 2200  # open files in addition to the WebSockets
QUEUE = 2048  # connections that are not accepted yet
MAX_QUEUED = 1000  # messages of a client that are not read yet
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


def run_server(app: Starlette, listener: socket.socket, limits: ServerLimits) -> None:
    """Serves until SIGINT or SIGTERM.

    Raises:
        KeyboardInterrupt: SIGINT was received.
    """
    raise_file_limit(limits.connections + SPARE_FILES)
    make_server(app, limits).run(sockets=[listener])


def make_server(app: Starlette, limits: ServerLimits) -> uvicorn.Server:
    """Returns a configured server that is not running."""
    return _Server(_Config(app, limits))


class _Server(uvicorn.Server):
    """Ends in order at the first signal, within seconds, and ignores further ones."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            super().handle_exit(sig, frame)


class _Config(uvicorn.Config):
    """The server's settings, which its connections receive."""

    def __init__(self, app: Starlette, limits: ServerLimits):
        super().__init__(
            app,
            http=_HttpProtocol,
            ws=_SocketProtocol,
            ws_per_message_deflate=False,
            lifespan="on",
            log_level="error",
            access_log=False,
            server_header=False,
            backlog=QUEUE,
            timeout_graceful_shutdown=GRACE,
        )
        self.limits = limits


class _HttpProtocol(H11Protocol):
    """Closes a connection whose next request or response takes too long."""

    def __init__(self, config: _Config, *args: Any, **named: Any):
        super().__init__(config, *args, **named)
        self._seconds = config.limits.request_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(self._seconds, transport.abort)

    def on_response_complete(self) -> None:
        self._timer.cancel()
        self._timer = self.loop.call_later(self._seconds, self.transport.abort)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True  # its response must not follow this one
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._timer.cancel()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)


class _SocketProtocol(WebSocketsSansIOProtocol):
    """Closes a connection with too many frames, or whose client does not read."""

    def __init__(self, config: _Config, *args: Any, **named: Any):
        super().__init__(config, *args, **named)
        self.conn = _Frames(config.limits)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated:  # by a request that HTTP allows
            self.transport.close()

    def send_receive_event_to_app(self) -> None:
        super().send_receive_event_to_app()
        if self.queue.qsize() > MAX_QUEUED and not self.close_sent:
            self.conn.fail(POLICY_VIOLATION, "too many messages at once")
            self.handle_parser_exception()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        # `close` waits until the client has received all that was sent.
        self.loop.call_later(self.close_timeout, self.transport.abort)


class _Frames(ServerProtocol):
    """Limits the rate of frames that are no message of their own: pings, which are
    answered, pongs and fragments, which may be empty."""

    def __init__(self, limits: ServerLimits):
        super().__init__(max_size=limits.message_bytes)
        self._limiter = RateLimiter(limits.messages_per_second, limits.message_burst)

    def recv_frame(self, frame: Frame) -> None:
        is_message = frame.fin and frame.opcode in (Opcode.TEXT, Opcode.BINARY)
        if not is_message and self._limiter.wait() > 0:
            raise ProtocolError("too many control frames or fragments")
        super().recv_frame(frame)


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
