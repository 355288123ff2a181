import contextlib
import gc
import itertools
import threading
import time

import pytest
from coin_toss import CoinToss
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from azjax import games
from azjax.play.incremental_search import IncrementalSearch
from azjax.play.server import PlayerRegistry, ServerLimits, make_catalog
from azjax.play.server.app import make_app
from azjax.play.server.connection import RateLimiter
from azjax.play.server.search_workers import SearchWorker

URL, SOCKET = "http://localhost:8000", "ws://localhost:8000/socket"


class Page:
    """Sends requests as the page does."""

    def __init__(self, socket):
        self.socket, self.id = socket, 0
        self.stages = []

    def send(self, method, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params}
        self.socket.send_json(message)
        return self.id

    def receive(self, number):
        """Returns the next message with a number."""
        while True:
            message = self.socket.receive_json()
            if message["id"] == number:
                return message

    def ask(self, method, **params):
        """Returns the kind of the answer, the answer, and the messages before it."""
        number, progress = self.send(method, **params), []
        while True:
            message = self.receive(number)
            if message["kind"] == "stage":
                self.stages.append(message["value"])
            elif message["kind"] == "progress":
                progress.append(message["value"])
            else:
                return message["kind"], message["value"], progress


@contextlib.contextmanager
def connected(registry):
    app = make_app(registry, names=["localhost"])
    with (
        TestClient(app, base_url=URL) as client,
        client.websocket_connect(SOCKET) as socket,
    ):
        yield Page(socket)


@pytest.fixture(scope="module")
def client(registry):
    with TestClient(make_app(registry, names=["localhost"]), base_url=URL) as client:
        with client.websocket_connect(SOCKET) as socket:
            page = Page(socket)
            page.ask("start", game="tic_tac_toe", player="alphazero:pretrained")
            decide(page, simulations=50)  # compiles the search
        yield client


@pytest.fixture
def page(client):
    with client.websocket_connect(SOCKET) as socket:
        yield Page(socket)


@pytest.fixture
def started(page):
    page.ask("start", game="tic_tac_toe", player="random")
    return page


@pytest.fixture
def pair(client, started):
    """Two started connections."""
    with client.websocket_connect(SOCKET) as socket:
        other = Page(socket)
        other.ask("start", game="tic_tac_toe", player="random")
        yield started, other


def decide(page, actions=(), simulations=None):
    return page.ask("decide", actions=list(actions), simulations=simulations)


def test_start_describes_game_and_player(page):
    kind, told, _ = page.ask("start", game="tic_tac_toe", player="alphazero:pretrained")
    assert kind == "answer"
    assert told["game"] == "tic_tac_toe"
    assert told["player"] == "AlphaZero"
    assert told["simulations"] == 64
    assert told["strengths"] == [1, 25, 50, 64, 100, 200, 400, 800, 1600]
    assert told["search"] == "It uses Gumbel search, as in the arena."
    for simulations in (0, 7, 3200, 10**15):
        kind, error, _ = decide(page, (), simulations)
        assert kind == "error"
        assert error.startswith("simulations must be one of 1, 25, 50, 64, 100")
    # Another game and player.
    _, told, _ = page.ask("start", game="connect_four", player="random")
    assert (told["strengths"], told["simulations"]) == ([], None)
    assert told["width"] == 7
    assert len(page.ask("position", actions=[3, 3])[1]["cells"]) == 42


def test_the_first_position_is_sent_while_the_rules_compile(catalog, monkeypatch):
    may_compile, registry = threading.Event(), PlayerRegistry(catalog, ServerLimits())

    def compile_rules(offer, rules=registry.rules):
        assert may_compile.wait(30)
        return rules(offer)

    monkeypatch.setattr(registry, "rules", compile_rules)
    with connected(registry) as page:
        number = page.send("start", game="tic_tac_toe", player="random")
        assert page.receive(number)["kind"] == "stage"
        preview = page.receive(number)
        assert preview["kind"] == "progress"
        assert registry.activity.num_starts == 1
        may_compile.set()
        answer = page.receive(number)
        assert answer["kind"] == "answer"
        assert registry.activity.num_starts == 0
        described = preview["value"]["description"]
        assert described.items() <= answer["value"].items()
        _, position, _ = page.ask("position", actions=[])
        assert preview["value"]["position"] == {**position, "moves": []}
        assert page.ask("start", game="tic_tac_toe", player="random")[2] == []
        assert page.stages == []


def test_a_decision_reports_that_the_search_is_compiled(catalog, monkeypatch):
    registry = PlayerRegistry(catalog, ServerLimits())
    monkeypatch.setattr(SearchWorker, "warm_up", lambda *_: None)
    with connected(registry) as page:
        page.ask("start", game="tic_tac_toe", player="random")
        page.stages.clear()
        assert decide(page)[0] == "answer"
        assert page.stages == ["Compiling the search"]
        assert decide(page)[0] == "answer"
        assert page.stages == ["Compiling the search"]


def test_a_whole_game_is_played(page):
    page.ask("start", game="tic_tac_toe", player="alphazero:pretrained")
    actions = []
    while True:
        _, position, _ = page.ask("position", actions=actions)
        if position["isOver"]:
            break
        kind, decision, progress = decide(page, actions, 50)
        assert kind == "answer"
        assert decision["simulations"] == 50
        assert sum(move["visits"] for move in decision["moves"]) == 50
        assert all(news["simulations"] < 50 for news in progress)
        assert decision["action"] in [move["action"] for move in position["moves"]]
        actions.append(decision["action"])
    assert position["rewards"] == [0, 0]  # a game against itself is a draw


def test_only_offered_games_and_players_can_be_started_and_nothing_goes_before(page):
    for method in ("position", "decide"):
        kind, error, _ = page.ask(method, actions=[], simulations=1)
        assert (kind, error) == ("error", "the first message must be start")
    for game, player, error in (
        ("chess", "random", "unknown game 'chess'; known games: tic_tac_toe, con"),
        ("../tic_tac_toe", "random", "unknown game"),
        ("tic_tac_toe", "gtp:sh", "unknown player 'gtp:sh'; known players: alph"),
        ("tic_tac_toe", "alphazero:/etc", "unknown player"),
        ("tic_tac_toe", "human", "unknown player"),
    ):
        kind, text, _ = page.ask("start", game=game, player=player)
        assert kind == "error"
        assert text.startswith(error)
    start = {"game": "tic_tac_toe", "player": "random", "setup": "x"}
    kind, text, _ = page.ask("start", **start)
    assert (kind, text) == (
        "error",
        "positions of tic_tac_toe cannot be set up: it has no FEN",
    )
    assert page.ask("start", game="tic_tac_toe", player="random")[0] == "answer"


def test_positions_and_moves_are_answered_and_illegal_ones_are_errors(started):
    for method in ("position", "replay", "decide"):
        kind, error, _ = started.ask(method, actions=[4, 4], simulations=None)
        assert kind == "error"
        assert error.startswith("action 4, number 2, is not legal")
    assert started.ask("position", actions=[4])[0] == "answer"
    kind, error, _ = started.ask("position", actions=[0] * 10)
    assert (kind, error) == ("error", "actions must have at most 9 entries: 10")
    kind, error, _ = decide(started, [0, 3, 1, 4, 2])
    assert (kind, error) == ("error", "the game is over")
    assert started.ask("parse", actions=[4], text=" A3 ")[:2] == ("answer", 0)
    kind, error, _ = started.ask("parse", actions=[4], text="b2")
    assert (kind, error[:24]) == ("error", "'b2' is not legal here; ")
    kind, moves, _ = started.ask("replay", actions=[4, 0])
    assert kind == "answer"
    assert moves == [
        {"action": 4, "text": "b2", "player": 0},
        {"action": 0, "text": "a3", "player": 1},
    ]


@pytest.mark.parametrize("method", ["stop", "decide"])
def test_a_decision_is_cancelled_by_a_stop_or_a_newer_request(
    page, method, monkeypatch
):
    may_go_on, search_slice = threading.Event(), IncrementalSearch.search

    def search(*args):
        assert may_go_on.wait(30)
        return search_slice(*args)

    monkeypatch.setattr(IncrementalSearch, "search", search)
    page.ask("start", game="tic_tac_toe", player="alphazero:pretrained")
    older = page.send("decide", actions=[], simulations=400)
    params = {"actions": [], "simulations": 25} if method == "decide" else {}
    newer = page.send(method, **params)
    answers = {}
    while len(answers) < 2:
        message = page.socket.receive_json()
        if message["kind"] == "answer":
            answers[message["id"]] = message["value"]
        if older in answers:
            may_go_on.set()
    assert answers[older] is None
    told = answers[newer]
    assert told is None if method == "stop" else told["simulations"] == 25


def test_the_tree_is_sent_on_request(page):
    page.ask("start", game="tic_tac_toe", player="alphazero:pretrained")
    params = {"actions": [0, 3, 1, 4], "simulations": 100}
    _, decision, progress = page.ask("decide", **params, tree=True)
    assert not any("tree" in told for told in progress)
    won = max(decision["tree"], key=lambda node: node["visits"])
    assert (won["parent"], won["text"], won["value"]) == (-1, "c3", 1)
    assert "tree" not in page.ask("decide", **params)[1]
    page.ask("start", game="tic_tac_toe", player="random")
    assert page.ask("decide", **params, tree=True)[1]["tree"] == []


def test_malformed_messages_are_errors_and_too_many_close_the_connection(
    page, registry
):
    page.socket.send_bytes(b"\xff")
    assert page.socket.receive_json()["kind"] == "error"
    assert page.ask("stop")[0] == "answer"
    for text in itertools.islice(
        itertools.cycle(("{", "[]", "\0", "x" * 1000)), registry.limits.bad_messages
    ):
        page.socket.send_text(text)
        message = page.socket.receive_json()
        assert (message["id"], message["kind"]) == (None, "error")
    with pytest.raises(WebSocketDisconnect) as closed:
        page.socket.receive_json()
    assert closed.value.code == 1008


def test_only_the_servers_own_pages_can_connect(client):
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://localhost:8001"},
        {"host": "evil.example", "origin": "http://evil.example"},
        {"host": "evil.example"},
    ):
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect(SOCKET, headers=headers),
        ):
            pass
    headers = {"host": "localhost:8000", "origin": "http://localhost:8000"}
    with client.websocket_connect(SOCKET, headers=headers) as socket:
        assert Page(socket).ask("stop")[0] == "answer"


@pytest.fixture
def failing_catalog(dying, tmp_path):
    """A catalog with tic-tac-toe and an external player that fails."""
    return make_catalog(["tic_tac_toe"], ["tic_tac_toe=dying"], tmp_path)


def test_a_forfeit_is_an_error_and_the_player_stays_usable(
    failing_catalog, dying, capsys
):
    with connected(PlayerRegistry(failing_catalog, ServerLimits())) as page:
        page.ask("start", game="tic_tac_toe", player="dying")
        assert decide(page)[1]["action"] == 0
        dying.is_dead = True
        kind, error, _ = decide(page, [0])
        assert (kind, error) == ("error", "the opponent failed")
        assert "the engine died" in capsys.readouterr().err
        dying.is_dead = False
        assert decide(page, [0])[1]["action"] == 1
    assert dying.num_closed == dying.num_sessions == 2


def test_a_resignation_is_an_answer_and_the_session_stays_open(failing_catalog, dying):
    with connected(PlayerRegistry(failing_catalog, ServerLimits())) as page:
        page.ask("start", game="tic_tac_toe", player="dying")
        dying.is_beaten = True
        assert decide(page) == ("answer", {"resigns": True}, [])
        dying.is_beaten = False
        assert decide(page)[1]["action"] == 0
    assert dying.num_sessions == dying.num_closed == 1


@pytest.mark.parametrize("limit", ["start_seconds", "idle_seconds"])
def test_an_idle_connection_is_closed(failing_catalog, limit):
    with connected(
        PlayerRegistry(failing_catalog, ServerLimits(**{limit: 0.05}))
    ) as page:
        if limit == "idle_seconds":
            page.ask("start", game="tic_tac_toe", player="dying")
        with pytest.raises(WebSocketDisconnect) as closed:
            page.socket.receive_json()
    assert closed.value.code == 1001


def test_a_full_server_first_closes_connections_without_a_game(failing_catalog):
    app = make_app(
        PlayerRegistry(failing_catalog, ServerLimits(connections=2)),
        names=["localhost"],
    )
    with TestClient(app, base_url=URL) as client, contextlib.ExitStack() as stack:

        def connect():
            return Page(stack.enter_context(client.websocket_connect(SOCKET)))

        first, idle = connect(), connect()
        first.ask("start", game="tic_tac_toe", player="dying")
        idle.ask("stop")
        newcomer = connect()
        newcomer.ask("start", game="tic_tac_toe", player="dying")
        with pytest.raises(WebSocketDisconnect) as closed:
            idle.socket.receive_json()
        assert closed.value.code == 1013
        # Both have started: the connection with the longest silence is closed.
        newcomer.ask("position", actions=[])
        another = connect()
        with pytest.raises(WebSocketDisconnect):
            first.socket.receive_json()
        assert another.ask("stop")[0] == "answer"
        assert newcomer.ask("position", actions=[])[0] == "answer"


@pytest.mark.parametrize(
    ("limit", "method", "params"),
    [
        ("decisions", "decide", {"actions": [], "simulations": None}),
        ("reviews", "review", {"actions": [4, 0], "player": "dying"}),
    ],
)
def test_too_many_requests_are_rejected(failing_catalog, dying, limit, method, params):
    registry = PlayerRegistry(failing_catalog, ServerLimits(**{limit: 1}))
    app = make_app(registry, names=["localhost"])
    with (
        TestClient(app, base_url=URL) as client,
        client.websocket_connect(SOCKET) as one,
        client.websocket_connect(SOCKET) as other,
    ):
        first, second = Page(one), Page(other)
        for page in (first, second):
            page.ask("start", game="tic_tac_toe", player="dying")
        dying.may_go_on.clear()
        number = first.send(method, **params)
        first.ask("position", actions=[])  # so that the request has started
        kind, error, _ = second.ask(method, **params)
        assert kind == "error"
        assert error.startswith("the server is busy")
        dying.may_go_on.set()
        value = first.receive(number)["value"]
        assert method == "decide" or value == "the reviewer gives no expected results"
        deadline = time.monotonic() + 30
        while decide(second)[0] == "error":
            assert time.monotonic() < deadline


def test_a_game_is_read_and_reviewed(started):
    kind, game, _ = started.ask("read", text="a1 b1 b2")
    assert (kind, game["actions"]) == ("answer", [6, 7, 4])
    player = "alphazero:pretrained"
    request = {"actions": game["actions"], "player": player}
    kind, found, moves = started.ask("review", **request)
    assert kind == "answer"
    assert [move["mark"] for move in moves] == ["", "??", ""]
    assert len(found["summaries"]) == 2
    assert started.ask("review", actions=[], player=player)[2] == []
    for method, params, error in (
        ("read", {"text": "<script>"}, "line 1: move 1: '<script>' is no action"),
        ("review", {"actions": [4, 4], "player": "greedy"}, "action 4, number 2, is"),
        ("review", {"actions": [4], "player": "uci:sh"}, "unknown player 'uci:sh'"),
        ("review", {"actions": [4], "player": ""}, "unknown player ''"),
    ):
        kind, text, _ = started.ask(method, **params)
        assert kind == "error"
        assert text.startswith(error)


def test_a_review_is_cancelled_by_a_decision(failing_catalog, dying):
    registry = PlayerRegistry(failing_catalog, ServerLimits())
    with connected(registry) as page:
        page.ask("start", game="tic_tac_toe", player="dying")
        dying.may_go_on.clear()
        review = page.send("review", actions=[4, 0], player="dying")
        while registry.activity.num_reviews == 0:
            page.ask("position", actions=[])
        decision = page.send("decide", actions=[], simulations=None)
        assert page.receive(review)["value"] is None
        dying.may_go_on.set()
        assert page.receive(decision)["kind"] == "answer"
        assert registry.activity.num_reviews == 0


def test_a_review_ends_with_its_connection(failing_catalog, dying):
    registry = PlayerRegistry(failing_catalog, ServerLimits())
    with connected(registry) as page:
        page.ask("start", game="tic_tac_toe", player="dying")
        dying.may_go_on.clear()
        page.send("review", actions=[4, 0], player="dying")
        page.ask("position", actions=[])
    assert registry.activity.num_reviews == registry.activity.num_decisions == 0
    dying.may_go_on.set()


def test_a_review_that_fails_after_its_connection_is_silent(
    failing_catalog, monkeypatch, caplog
):
    has_begun, may_fail, has_failed = (threading.Event() for _ in range(3))

    def fail(*_):
        has_begun.set()
        assert may_fail.wait(30)
        has_failed.set()
        raise ValueError

    monkeypatch.setattr("azjax.play.server.client.describe_review", fail)
    registry = PlayerRegistry(failing_catalog, ServerLimits())
    with TestClient(make_app(registry, names=["localhost"]), base_url=URL) as client:
        with client.websocket_connect(SOCKET) as socket:
            page = Page(socket)
            page.ask("start", game="tic_tac_toe", player="dying")
            page.send("review", actions=[4, 0], player="dying")
            assert has_begun.wait(30)
        may_fail.set()
        assert has_failed.wait(30)
        client.get("/lobby.json")  # after the end of the review
    gc.collect()
    assert caplog.messages == []


def test_the_rate_limiter_delays_messages_after_the_burst():
    limiter = RateLimiter(per_second=10, burst=3)
    waits = [limiter.wait() for _ in range(5)]
    assert waits[:3] == [0, 0, 0]
    assert 0 < waits[3] <= 0.1 < waits[4] <= 0.2


FAILED = "internal server error; try again in a moment"


def test_an_error_is_sent_only_to_the_client_that_caused_it(pair, monkeypatch):
    asking, other = pair
    start = ("start", {"game": "tic_tac_toe", "player": "random"})
    decision = ("decide", {"actions": [], "simulations": None})
    for place, (method, params) in (
        ("registry.PlayerRegistry.describe", start),
        ("positions.describe_position", ("position", {"actions": []})),
        ("positions.Rules.state", decision),
        ("registry.LoadedPlayer.worker", decision),
        ("client.describe_decision", decision),
    ):
        for error in (RuntimeError("RESOURCE_EXHAUSTED"), MemoryError(), KeyError(1)):

            def fail(*_, error=error, **__):
                raise error

            with monkeypatch.context() as patch:
                patch.setattr(f"azjax.play.server.{place}", fail)
                assert asking.ask(method, **params)[:2] == ("error", FAILED), place
    for page in (asking, other):
        assert decide(page)[0] == "answer"


def test_a_decision_that_is_not_json_is_an_error(started, monkeypatch):
    monkeypatch.setattr(
        "azjax.play.server.client.describe_decision",
        lambda *_, **__: {"value": float("nan")},
    )
    assert decide(started)[0] == "error"


def test_the_server_draws_the_outcomes_of_chance(tmp_path, monkeypatch):
    monkeypatch.setitem(games.registry._GAMES, "coin_toss", CoinToss)
    registry = PlayerRegistry(make_catalog(["coin_toss"], (), tmp_path), ServerLimits())
    with connected(registry) as page:
        _, _, progress = page.ask("start", game="coin_toss", player="random")
        assert progress[0]["position"]["moves"] == []
        kind, position, _ = page.ask("roll", actions=[])
        assert (kind, position["last"]["action"] in (9, 10)) == ("answer", True)
        answer = page.ask("decide", actions=[], simulations=None)
        assert answer[:2] == (
            "error",
            "the position waits for chance: nobody is to move",
        )
        answer = page.ask("roll", actions=[9])
        assert answer[:2] == ("error", "the position does not wait for chance")
        kind, decision, _ = page.ask("decide", actions=[9, 4, 10], simulations=None)
        assert (kind, decision["action"] in range(9)) == ("answer", True)
        kind, _, told = page.ask("review", actions=[9, 4, 10], player="greedy")
        assert (kind, [move["text"] for move in told]) == (
            "answer",
            ["heads", "b2", "tails"],
        )
        assert [len(move["bestCells"]) for move in told] == [0, 1, 0]
