"""One client that sends its requests over a WebSocket."""

import asyncio
import contextlib
import json
import time
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from azjax.play.server.client import Client, ClosedError, ThreadPools
from azjax.play.server.registry import PlayerRegistry

CLOSE_SECONDS = 2.0  # for the closing handshake
GOING_AWAY, POLICY_VIOLATION, TRY_AGAIN_LATER = 1001, 1008, 1013  # RFC 6455, 7.4.1


class RateLimiter:
    """A token bucket.

    Args:
        per_second: tokens that are added each second.
        burst: capacity.
    """

    def __init__(self, per_second: float, burst: int):
        self._per_second, self._burst = per_second, float(burst)
        self._tokens, self._updated = float(burst), time.monotonic()

    def wait(self) -> float:
        """Takes a token; returns the seconds until the next message may be read."""
        now = time.monotonic()
        self._tokens += (now - self._updated) * self._per_second
        self._tokens, self._updated = min(self._tokens, self._burst) - 1, now
        return max(0.0, -self._tokens / self._per_second)


class Connection(Client):
    """Answers the requests of one WebSocket until it closes.

    last_message: time of the last message (seconds, monotonic clock).

    Args:
        socket: accepted.
        registry: the players.
        pools: run blocking functions.
    """

    def __init__(self, socket: WebSocket, registry: PlayerRegistry, pools: ThreadPools):
        super().__init__(registry, pools)
        self.last_message = time.monotonic()
        self._socket = socket
        self._sending = asyncio.Lock()

    async def serve(self) -> None:
        """Answers requests until the connection closes."""
        limits, num_bad = self._limits, 0
        limiter = RateLimiter(limits.messages_per_second, limits.message_burst)
        try:
            while True:
                patience = limits.idle_seconds if self.game else limits.start_seconds
                try:
                    async with asyncio.timeout(patience):
                        received = await self._socket.receive()
                except TimeoutError:
                    reason = "the connection was idle too long"
                    return await self.close(GOING_AWAY, reason)
                if received["type"] == "websocket.disconnect":
                    return
                self.last_message = time.monotonic()
                text = received.get("text") or received.get("bytes") or b""
                num_bad += not await self.answer(text)
                if num_bad > limits.bad_messages:
                    reason = "too many malformed messages"
                    return await self.close(POLICY_VIOLATION, reason)
                await asyncio.sleep(limiter.wait())
        except (ClosedError, WebSocketDisconnect):
            pass
        finally:
            self.stop()

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """The connection with the lowest rank is closed first if there are too many."""
        return self.game is not None, self.is_deciding, self.last_message

    async def close(self, code: int, reason: str) -> None:
        """Closes the connection, even if the client does not react."""
        with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._socket.close(code, reason)

    async def send(self, id: int | None, kind: str, value: Any) -> None:
        """Sends a message; closes the connection if the client does not receive it.

        Raises:
            ClosedError: the connection is closed.
        """
        text = json.dumps({"id": id, "kind": kind, "value": value}, allow_nan=False)
        try:
            async with asyncio.timeout(self._limits.send_seconds), self._sending:
                await self._socket.send_text(text)
        except TimeoutError:
            await self.close(GOING_AWAY, "the client does not receive messages")
            raise ClosedError from None
        except (RuntimeError, WebSocketDisconnect):  # closed, perhaps by another task
            raise ClosedError from None
