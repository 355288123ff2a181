"""One line, at once, where another process of a run has ended.

JAX finds that out after its heartbeat timeout, and aborts with many lines. Here each
process has a connection to the first one, which the system closes when a process ends,
however it ends. The first one tells the others which it was.
"""

import contextlib
import os
import secrets
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import jax

from azjax.training.distributed import from_first, gathered, is_first

GRACE = 2.0  # for an error that all processes raise together (seconds)
_CONNECT_SECONDS = 5.0  # per address
_WAIT = 0.2  # seconds
# The system asks a host that is silent for 10 s, and gives it up after 20 s.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2}
_HERE = b"+"  # the first process's answer to a process that connects
# The last line of a process begins with one of them: it left the context, by an error,
# or knows that another one has ended.
_LEFT, _FAILED, _ENDED = "left", "failed", "ended"
_LINE_BYTES = 1_000

Report = Callable[[str, str], None]


@contextlib.contextmanager
def ends_with_the_others() -> Iterator[None]:
    """A context in which one of several processes ends at once, with one line, when
    another one has ended or cannot be reached."""
    if not jax.distributed.is_initialized() or jax.process_count() == 1:
        yield
        return
    with _watching_others(_end_after):
        try:
            yield
        except RuntimeError as error:
            time.sleep(GRACE)  # the process that ended may be named meanwhile
            _print(
                f"process {jax.process_index()} cannot go on, most likely because "
                f"another process of the run has ended ({_line(error)})"
            )
            os._exit(1)  # in place of waiting for the others to say farewell


def _end_after(how: str, name: str) -> None:
    """Ends this process after another one."""
    _print(f"{name} has {how}")
    if how == _FAILED:
        jax.distributed.shutdown()  # it waits for this, or JAX aborts it
    os._exit(1)


def _print(reason: str) -> None:
    """Prints a line at once, on the standard error."""
    text = (
        f"azjax: {reason}: start all of them again, and the run goes on from its last "
        "checkpoint\n"
    )
    os.write(sys.stderr.fileno(), text.encode())


@contextlib.contextmanager
def _watching_others(report: Report) -> Iterator[None]:
    """A context in which `report` is called, by another thread, when a process has
    ended in it or left it by an error: with `ended` or `failed`, and a text that names
    the process. All processes enter together."""
    peers, has_left = _connect(), threading.Event()
    watching = threading.Thread(
        target=_watch, args=(peers, has_left, report), daemon=True
    )
    watching.start()
    farewell = _FAILED
    try:
        yield
        farewell = _LEFT
    finally:
        if farewell == _FAILED:
            time.sleep(GRACE / 4)  # the reason may be the end of another process
        has_left.set()
        for peer in peers.values():
            _send(peer.connection, farewell)


class _Peer(NamedTuple):
    """Another process: the connection to it, and a text that names it."""

    connection: socket.socket
    name: str


def _connect() -> dict[int, _Peer]:
    """Returns the other processes by their numbers: in the first one all that can
    reach it, elsewhere the first one, if it can be reached."""
    name = f"process {jax.process_index()} on {socket.gethostname()}"
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(_server()) if is_first() else None
        port = server.getsockname()[1] if server else 0
        values = [secrets.token_hex(16), name, _addresses(), port]
        token, first, addresses, port = from_first(values)
        if server is None:
            greeting = f"{token} {jax.process_index()} {name}\n"
            connection = _reach(addresses, port, greeting.encode())
            peers = {} if connection is None else {0: _Peer(connection, first)}
            gathered([True])
            return peers
        peers, have_tried = {}, threading.Event()
        accepting = threading.Thread(
            target=_accept, args=(server, token, peers, have_tried)
        )
        accepting.start()
        gathered([True])
        have_tried.set()
        accepting.join()
        return peers


def _server() -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", 0), family=socket.AF_INET6, dualstack_ipv6=True
        )
    return socket.create_server(("", 0))


def _addresses() -> list[str]:
    """Returns where others may reach this host."""
    addresses = [socket.gethostname(), "127.0.0.1"]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route,
    ):
        route.connect(("192.0.2.1", 9))  # sends nothing, and finds this host's address
        addresses.insert(0, route.getsockname()[0])
    return addresses


def _accept(
    server: socket.socket,
    token: str,
    peers: dict[int, _Peer],
    have_tried: threading.Event,
) -> None:
    """Adds the processes that show the token, until all have tried."""
    server.settimeout(_WAIT)
    while not have_tried.is_set():
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            connection.settimeout(_CONNECT_SECONDS)
            shown, _, rest = _read_line(connection).partition(" ")
            if not secrets.compare_digest(shown.encode(), token.encode()):
                connection.close()
                continue
            _wait_without_end(connection)
            number, _, name = rest.partition(" ")
            peers[int(number)] = _Peer(connection, name)
            connection.sendall(_HERE)


def _reach(addresses: list[str], port: int, greeting: bytes) -> socket.socket | None:
    """Returns a connection to the first process, None where no address leads there."""
    for address in addresses:
        with contextlib.suppress(OSError):
            connection = socket.create_connection((address, port), _CONNECT_SECONDS)
            if _is_accepted(connection, greeting):
                _wait_without_end(connection)
                return connection
            connection.close()
    return None


def _is_accepted(connection: socket.socket, greeting: bytes) -> bool:
    try:
        connection.sendall(greeting)
        return connection.recv(1) == _HERE
    except OSError:
        return False


def _wait_without_end(connection: socket.socket) -> None:
    """Removes the timeout. The system finds out when the other host is gone."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _watch(
    peers: Mapping[int, _Peer], has_left: threading.Event, report: Report
) -> None:
    """Waits until a process ends or fails, tells the others which, and reports it."""
    with selectors.DefaultSelector() as selector:
        for peer in peers.values():
            selector.register(peer.connection, selectors.EVENT_READ, peer)
        while selector.get_map():
            for key, _ in selector.select():
                peer = key.data
                selector.unregister(peer.connection)
                line = _read_line(peer.connection) or _ENDED
                if line == _LEFT:
                    continue
                # An error that all processes raise ends this one as well meanwhile.
                if has_left.wait(GRACE if line == _FAILED else 0):
                    return
                how, _, name = line.partition(" ")
                for other in peers.values():
                    _send(other.connection, f"{how} {name or peer.name}")
                report(how, name or peer.name)
                return


def _read_line(connection: socket.socket) -> str:
    """Returns what a process says until the end of the line, of its connection, or of
    the host."""
    data = b""
    with contextlib.suppress(OSError):
        while not data.endswith(b"\n") and len(data) < _LINE_BYTES:
            more = connection.recv(_LINE_BYTES - len(data))
            if not more:
                break
            data += more
    return data.decode(errors="replace").strip()


def _send(connection: socket.socket, line: str) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(f"{line}\n".encode())


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
