import json
import re
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from azjax.play.page_files import media_type, read_page
from azjax.play.server import PlayerRegistry, ServerLimits, make_catalog
from azjax.play.server.app import HEADERS, make_app

NAMES = ("localhost",)
URL = "http://localhost:8000"


@pytest.fixture(scope="module")
def runs_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")
    (directory / "first").mkdir()
    config = {"format": 10, "game": "tic_tac_toe"}
    (directory / "first/config.json").write_text(json.dumps(config))
    (directory / "secret").write_text("root: a secret")
    return directory


@pytest.fixture(scope="module")
def client(runs_directory):
    catalog = make_catalog(["tic_tac_toe", "go:size=5"], (), runs_directory)
    app = make_app(PlayerRegistry(catalog, ServerLimits()), names=NAMES)
    with TestClient(app, base_url=URL, raise_server_exceptions=True) as client:
        yield client


def test_the_lobby_lists_games_players_and_runs(client):
    told = client.get("/lobby.json").json()
    assert [game["key"] for game in told["games"]] == ["tic_tac_toe", "go:5"]
    assert told["games"][1]["title"] == "Go 5x5"
    picture = client.get(f"/play/{told['games'][1]['key']}/picture.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.startswith("<svg")
    players = told["games"][0]["players"]
    assert players[0] == {
        "name": "alphazero:pretrained",
        "title": "AlphaZero",
        "about": "strong: 64 simulations a move",
        "rating": None,
    }
    assert told["runs"] == [
        {
            "key": "first",
            "game": "tic_tac_toe",
            "title": "first: Tic Tac Toe",
            "state": "stopped",
            "share": None,
        }
    ]


def test_a_game_has_the_page_and_its_own_configuration(client):
    page = client.get("/play/go:5/")
    assert page.status_code == 200
    assert page.text == read_page()["index.html"].decode()
    config = client.get(f"/play/{quote('go:5', safe='')}/config.json").json()
    assert config["engine"] == "server"
    assert config["socket"] == "/socket"
    assert config["game"] == "go:5"
    assert [player["name"] for player in config["players"]] == [
        *("mcts:1600", "greedy", "random")
    ]


@pytest.mark.parametrize("folder", ["", "play/tic_tac_toe/", "runs/first/"])
def test_every_file_of_the_page_is_served_under_every_page(client, folder):
    for name, content in read_page().items():
        answer = client.get(f"/{folder}{name}")
        assert answer.status_code == 200
        assert answer.content == content
        assert answer.headers["content-type"].split(";")[0] == media_type(name)


@pytest.mark.parametrize("address", ["/play/tic_tac_toe", "/runs/first"])
def test_an_address_without_slash_redirects_to_the_page(client, address):
    answer = client.get(f"{address}?watch", follow_redirects=True)
    assert answer.status_code == 200
    assert answer.url.path == f"{address}/"
    assert answer.url.query == b"watch"


@pytest.mark.parametrize("spelling", ["go:size=5", "go:5,komi=7.5", "go%3A5%2C7.5"])
@pytest.mark.parametrize("file", ["", "config.json", "picture.svg"])
def test_another_spelling_of_a_game_redirects_to_its_key(client, spelling, file):
    answer = client.get(f"/play/{spelling}/{file}?player=a%26b", follow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["location"] == f"../go%3A5/{file}?player=a%26b"
    answer = client.get(f"/play/{spelling}/{file}?player=a%26b", follow_redirects=True)
    assert answer.status_code == 200
    assert answer.url.path == f"/play/go:5/{file}"


@pytest.mark.parametrize("name", ["go", "go:19", "go:size", "hex:5", "tic_tac_toe:1"])
def test_an_unknown_game_is_not_found(client, name):
    assert client.get(f"/play/{name}/").status_code == 404


def test_scripts_are_served_as_scripts():
    assert media_type("vendor/ort/ort.mjs") == "text/javascript"
    assert media_type("app.js") == "text/javascript"
    assert media_type("style.css") == "text/css"
    assert media_type("index.html") == "text/html"
    assert media_type("icon.svg") == "image/svg+xml"


def test_the_addresses_of_games_and_runs_show_their_pages(client):
    for address, name in (("/", "lobby.html"), ("/runs/first/", "run.html")):
        assert client.get(address).content == read_page()[name]


def test_a_run_without_metrics_is_shown(client):
    told = client.get("/runs/first/run.json").json()
    assert told == {
        "game": "tic_tac_toe",
        "title": "first: Tic Tac Toe",
        "state": "stopped",
        "share": None,
        "numbers": [],
        "plot": None,
        "players": [],
        "play": None,
    }
    assert client.get("/runs/first/learning.png").status_code == 404


def test_the_plot_of_a_run_is_not_cached_by_the_browser(client, runs_directory):
    (runs_directory / "first/plots").mkdir()
    (runs_directory / "first/plots/learning.png").write_bytes(b"PNG")
    answer = client.get("/runs/first/learning.png")
    assert answer.content == b"PNG"
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "address",
    [
        *("/", "/lobby.json", "/play/tic_tac_toe/", "/play/tic_tac_toe/app.js"),
        *("/nothing", "/runs/first/run.json", "/play/nothing/"),
    ],
)
def test_every_response_has_the_content_security_policy(client, address):
    headers = client.get(address).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS


def test_the_content_security_policy_equals_that_of_the_page():
    page = read_page()["index.html"].decode()
    written = re.search(r'Content-Security-Policy"\s+content="([^"]+)"', page)
    assert HEADERS["Content-Security-Policy"].startswith(written[1])


@pytest.mark.parametrize(
    "address",
    [
        "/play/../../etc/passwd",
        "/play/%2e%2e/%2e%2e/etc/passwd",
        "/play/tic_tac_toe/../../../../etc/passwd",
        "/play/tic_tac_toe/..%2f..%2f..%2fetc%2fpasswd",
        "/play/tic_tac_toe/..\\..\\etc\\passwd",
        "/play/tic_tac_toe/%5c..%5cetc",
        "/play/tic_tac_toe/app.js%00.html",
        "/play/%00/",
        "/play/tic_tac_toe%00/",
        "/play/TIC_TAC_TOE/",
        "/play/chess/",
        "/runs/../secret",
        "/runs/%2e%2e/run.json",
        "/runs/./run.json",
        "/runs/secret/",
        "/runs/secret/run.json",
        "/runs/first%2f..%2fsecret/run.json",
        "/runs/first/config.json",
        "/runs/first/metrics.jsonl",
        "/package.json",
        "/vendor/ort/README.md",
        "//etc/passwd",
        "/%ff%fe",
        "/" + "a" * 5000,
    ],
)
def test_an_unknown_address_is_not_found(client, address):
    answer = client.get(URL + address)
    assert answer.status_code == 404
    assert "root:" not in answer.text


@pytest.mark.parametrize("address", ["/play/draughts/", "/runs/<b>/", "/x", "//x"])
def test_browsers_receive_a_not_found_page(client, address):
    answer = client.get(URL + address, headers={"accept": "text/html,*/*;q=0.8"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.content == read_page()["missing.html"]
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert 'href="/"' in answer.text
    program = client.get(URL + address, headers={"accept": "application/json"})
    assert (program.status_code, program.text) == (404, "not found")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_only_reading_methods_are_allowed(client, method):
    answer = client.request(method, "/lobby.json", content=b"x" * 100_000)
    assert answer.status_code == 405


SOCKET = "ws://localhost:8000/socket"
TOKEN = "sesame & open; \u00e9\u00e8 0123"


@pytest.fixture(scope="module")
def client_of(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")

    def make(token):
        catalog = make_catalog(["tic_tac_toe"], (), directory)
        app = make_app(
            PlayerRegistry(catalog, ServerLimits()), names=["localhost"], token=token
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
    *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"),
    *("", "[", "::1"),
)
OWN = ("localhost", "LOCALHOST:1", "192.168.1.5:8000", "[::1]:80", "[fe80::1]")


@pytest.mark.parametrize(
    ("host", "status"),
    [(host, 421) for host in FOREIGN] + [(host, 200) for host in OWN],
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
