import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from azjax.play.server import Limits, PlayerRegistry, make_catalog
from azjax.play.server.app import HEADERS, make_app

URL, SOCKET = "http://localhost:8000", "ws://localhost:8000/socket"
TOKEN = "sesame & open; \u00e9\u00e8 0123"


@pytest.fixture(scope="module")
def client_of(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")

    def make(token):
        catalog = make_catalog(["tic_tac_toe"], (), directory)
        app = make_app(
            PlayerRegistry(catalog, Limits()), names=["localhost"], token=token
        )
        return TestClient(app, base_url=URL)

    return make


@pytest.fixture(scope="module")
def free(client_of):
    with client_of(None) as client:
        yield client


@pytest.fixture(scope="module")
def guarded_client(client_of):
    with client_of(TOKEN) as client:
        yield client


@pytest.fixture
def guarded(guarded_client):
    guarded_client.cookies.clear()
    return guarded_client


FOREIGN = (
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "",
    "[",
    "::1",
)
OWN = ("localhost", "LOCALHOST:1", "192.168.1.5:8000", "[::1]:80", "[fe80::1]")


@pytest.mark.parametrize(
    ("host", "status"),
    [(host, 421) for host in (*FOREIGN, "", "[", "::1")]
    + [(host, 200) for host in OWN],
)
def test_only_own_host_names_and_ip_addresses_are_accepted(free, host, status):
    assert free.get("/lobby.json", headers={"host": host}).status_code == status


@pytest.mark.parametrize("path", ["/", "/lobby.json", "/app.js", "/nothing"])
def test_requests_without_the_token_are_rejected(guarded, path):
    for query in ("", "?token=", "?token=wrong", "?token=%ff"):
        answer = guarded.get(f"{path}{query}")
        assert answer.status_code == 401
        assert answer.text == "a token is required: add ?token=TOKEN to the address"
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


def test_without_the_token_there_is_no_websocket(guarded):
    with pytest.raises(WebSocketDisconnect), guarded.websocket_connect(SOCKET):
        pass


def test_the_token_is_given_once_and_leaves_the_address(guarded):
    address = "/play/tic_tac_toe/"
    answer = guarded.get(
        address,
        params={"player": "a b", "token": TOKEN},
        follow_redirects=False,
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{address}?player=a+b"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "sesame" not in cookie
    assert guarded.get(address).status_code == 200
    with guarded.websocket_connect(SOCKET) as socket:
        socket.send_json({"id": 1, "method": "stop", "params": {}})
        assert socket.receive_json()["kind"] == "answer"


def test_a_program_sends_the_token_in_a_header(client_of):
    with client_of("0123456789abcdef") as client:
        for given, status in (("0123456789abcdef", 200), ("0123456789abcdee", 401)):
            headers = {"authorization": f"Bearer {given}"}
            assert client.get("/lobby.json", headers=headers).status_code == status


@pytest.mark.parametrize("cookie", ["", "x", TOKEN.encode().hex()])
def test_a_forged_cookie_is_rejected(guarded, cookie):
    headers = {"cookie": f"azjax-token={cookie}"}
    assert guarded.get("/", headers=headers).status_code == 401


def test_the_token_never_redirects_to_another_server(guarded):
    answer = guarded.get(
        f"{URL}//evil.example/", params={"token": TOKEN}, follow_redirects=False
    )
    assert answer.headers["location"] == "/evil.example/"
