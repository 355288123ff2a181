"""Starts `azjax serve` and connects to it."""

import asyncio
import contextlib
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

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
