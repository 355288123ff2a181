"""Starts `azjax serve`, connects to it, and counts what visitors see."""

import asyncio
import collections
import contextlib
import dataclasses
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np

PATIENCE = 300.0  # time limit of an answer, including compilation (seconds)
NEWS = ("progress", "stage")  # types of messages that precede an answer


@contextlib.contextmanager
def served(*options: str) -> Iterator[str]:
    """Runs `azjax serve` with options on a free port; yields its address."""
    command = [sys.executable, "-m", "azjax", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = re.search(r"http://\S+", server.stdout.readline())
            if address is None:
                sys.exit("the server does not start")
            yield address[0]
        finally:
            server.kill()


def socket_of(url: str) -> str:
    """Returns the address of the WebSocket."""
    return f"ws{url.removeprefix('http')}socket"


@contextlib.asynccontextmanager
async def opened(
    url: str,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Opens a connection."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()


@dataclasses.dataclass
class Tally:
    """Counts of the visitors' requests, answers and errors."""

    games: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    lost_games: int = 0
    reconnections: int = 0
    pages: int = 0
    attacks: int = 0
    move_seconds: list[float] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Returns the printed summary."""
        milliseconds = 1000 * np.array(self.move_seconds or [np.nan])
        return {
            "games": dict(self.games),
            "moves": len(self.move_seconds),
            "lost_games": self.lost_games,
            "reconnections": self.reconnections,
            "pages": self.pages,
            "attacks": self.attacks,
            "median_move_ms": round(float(np.median(milliseconds)), 1),
            "p95_move_ms": round(float(np.quantile(milliseconds, 0.95)), 1),
            "longest_move_ms": round(float(milliseconds.max()), 1),
            "errors": self.errors[:10],
        }
