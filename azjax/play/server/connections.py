"""Connections below the level of requests: none may stay for nothing.

uvicorn waits for a first request for ever, so that sockets which never send one would
use up the file descriptors.
"""

import asyncio
import contextlib
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from azjax.play.server.limits import Limits


class Connections:
    """The connections that are no WebSockets, the one that has waited longest first.

    Args:
        limits: how many there may be, and how long each may wait.
    """

    def __init__(self, limits: Limits):
        self.limits = limits
        self._waiting: dict[Connection, None] = {}

    def enter(self, connection: "Connection") -> None:
        """Takes a connection in, or puts it at the end again, and cuts off another if
        there are too many: one that has not asked for anything, if there is one."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None
        if len(self._waiting) > self.limits.connections:
            silent = (other for other in self._waiting if not other.is_answered)
            next(silent, next(iter(self._waiting))).cut_off()

    def leave(self, connection: "Connection") -> None:
        """Forgets a connection that is closed, or a WebSocket."""
        self._waiting.pop(connection, None)


class Connection(H11Protocol):
    """A connection that must always finish its next request in time."""

    def __init__(self, connections: Connections, **uvicorn_arguments: Any):
        super().__init__(**uvicorn_arguments)
        self._all = connections
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_answered(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore
        """Begins to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no more."""
        self._end()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begins to wait for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Leaves the connection to whoever serves the visitor, who can cut it off."""
        self._end()
        self.app_state = {**self.app_state, "abort": self.transport.abort}
        super().handle_websocket_upgrade(event)

    def cut_off(self) -> None:
        """Closes the connection whatever it is doing."""
        self._end()
        self.transport.abort()

    def _wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = self._all.limits.request_seconds
        self._deadline = self.loop.call_later(seconds, self._end_waiting)
        self._all.enter(self)

    def _end_waiting(self) -> None:
        """Cuts it off, unless it waits for this server."""
        if self.is_answered and not self.cycle.response_started:
            self._wait()
        else:
            self.cut_off()

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._all.leave(self)


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
