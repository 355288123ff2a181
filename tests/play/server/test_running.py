"""A running server on its own port."""

import contextlib
import socket

import pytest
from play.running_server import PATIENCE, RunningServer
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from azjax.play.server import ServerLimits
from azjax.play.server.running import listen


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """The port of a running server."""
    runs, limits = tmp_path_factory.mktemp("runs"), ServerLimits(message_bytes=1000)
    with RunningServer(["tic_tac_toe"], runs, limits=limits) as server:
        yield server.port


def opened(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def request(line="GET /lobby.json HTTP/1.1", *headers):
    return "\r\n".join([line, "Host: 127.0.0.1", *headers, "", ""]).encode()


def test_a_connection_can_send_several_requests(port):
    with opened(port) as connection:
        for _ in range(3):
            connection.sendall(request("HEAD /nothing HTTP/1.1"))
            assert connection.recv(10_000).startswith(b"HTTP/1.1 404")


def test_a_huge_body_is_rejected_without_waiting(port):
    with opened(port) as connection:
        head = request("POST /lobby.json HTTP/1.1", "Content-Length: 1000000000")
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 405")


CHUNKED = request("POST / HTTP/1.1", "Transfer-Encoding: chunked")
UPGRADE = (
    *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==",
)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        # A body that is not chunked, with the request and after its response.
        ((CHUNKED + b"zz\r\n",), b"400"),
        ((CHUNKED, b"zz\r\n"), b"405"),
        # More headers than WebSockets allow, and a body.
        ((request("GET /socket HTTP/1.1", *UPGRADE, *500 * ["X: y"]),), b""),
        ((request("GET /socket HTTP/1.1", *UPGRADE, "Content-Length: 1"), b"x"), b""),
    ],
)
def test_malformed_requests_are_refused_without_a_traceback(port, sent, answer, caplog):
    received = b""
    with opened(port) as connection:
        for part in sent:
            connection.sendall(part)
            received += connection.recv(10_000)
        while part := connection.recv(10_000):
            received += part
    assert received[9:12] == answer
    assert caplog.messages == []


def test_endless_headers_are_refused(port):
    with opened(port) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000_000)
        with contextlib.suppress(ConnectionError):
            assert connection.recv(1000).startswith(b"HTTP/1.1 4")


def test_a_message_that_is_too_long_ends_the_connection(port):
    with connect(f"ws://127.0.0.1:{port}/socket") as client:
        client.send("x" * 1001)
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(PATIENCE)
    assert closed.value.rcvd.code == 1009


def frame(opcode, content=b""):
    """Returns a masked WebSocket frame (RFC 6455, 5.2); 0x80 marks a last fragment."""
    return bytes([opcode, 0x80 | len(content)]) + bytes(4) + content


def receive(client, number):
    for _ in range(number):
        client.recv(PATIENCE)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (100_000 * frame(0x89), 1002),  # pings
        (10_000 * frame(0x89, b"x" * 125), 1002),
        (100_000 * frame(0x8A), 1002),  # pongs
        (frame(0x01) + 100_000 * frame(0x00), 1002),  # an endless text of empty parts
        (100_000 * (frame(0x02) + frame(0x80)), 1002),  # messages in two parts
        (100_000 * frame(0x81, b'{"id":1,"method":"stop","params":{}}'), 1008),
    ],
)
def test_floods_of_small_frames_end_the_connection(port, frames, code):
    with connect(f"ws://127.0.0.1:{port}/socket") as client:
        with contextlib.suppress(OSError):
            client.socket.sendall(frames)
        with pytest.raises(ConnectionClosed) as closed:
            receive(client, 200)
    assert closed.value.rcvd is None or closed.value.rcvd.code == code


def test_silent_and_slow_connections_are_closed(tmp_path):
    limits = ServerLimits(request_seconds=0.2)
    with RunningServer(["tic_tac_toe"], tmp_path, limits=limits) as server:
        for sent in (b"", b"GET / HTTP/1.1\r\nHost:", request("GET / HTTP/1.1")):
            with opened(server.port) as connection:
                connection.sendall(sent)
                with contextlib.suppress(ConnectionError):
                    while connection.recv(100_000):
                        pass


def test_an_unknown_address_has_no_websocket(port):
    with pytest.raises(Exception, match="403"):
        connect(f"ws://127.0.0.1:{port}/nothing")


@pytest.mark.parametrize(
    ("host", "port", "error"),
    [
        ("127.0.0.1", -1, "--port must be an int from 0 to 65535: -1"),
        ("127.0.0.1", 65536, "--port must be an int from 0 to 65535: 65536"),
        ("no.such.host.invalid", 0, "cannot listen at --host no.such.host.invalid"),
        ("", 0, "cannot listen at --host"),
        ("\0", 0, "cannot listen at --host"),
    ],
)
def test_an_invalid_host_or_port_is_an_error(host, port, error):
    with pytest.raises(ValueError, match=error):
        listen(host, port)


def test_a_port_in_use_is_an_error():
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ValueError, match=f"--port {port}: Address already in use"):
            listen("127.0.0.1", port)
