"""Games on the notebook's board, by its messages and in a browser."""

import importlib
import json
import queue
import re
import sys
import threading
import time

import jax
import jax.numpy as jnp
import pytest
from flax import struct
from untrained import untrained_player

from azjax import games
from azjax.games import Game, State
from azjax.play import notebook
from azjax.players import Choice, MoveDecision

PATIENCE = 30.0  # seconds; the machine can be loaded
YOURS = "#board[data-turn=user]"
OVER = "#board[data-turn=nobody]"

# A replacement for anywidget: the state of the board, and messages to and from the
# kernel.
HOST = """async ([program, state]) => {
  const blob = new Blob([program], { type: "text/javascript" });
  const { default: widget } = await import(URL.createObjectURL(blob));
  const listeners = new Set();
  window.sent = [];
  window.deliver = (message) => listeners.forEach((listener) => listener(message));
  const model = {
    get: (name) => state[name],
    on: (event, listener) => listeners.add(listener),
    off: (event, listener) => listeners.delete(listener),
    send: (message) => window.sent.push(message),
  };
  window.views = [];
  window.show = () => {
    const el = document.createElement("div");
    document.body.append(el);
    window.views.push(widget.render({ model, el }));
  };
  window.show();
}"""


@struct.dataclass
class FirstLegalMove:
    """Plays the legal action with the lowest number."""

    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        del rng_key
        legal = jax.vmap(self.game.legal_action_mask)(states)
        action = legal.argmax(axis=-1).astype(jnp.int32)
        policy = jax.nn.one_hot(action, self.game.num_actions)
        return Choice(action, policy, jnp.full(action.shape, 0.25))


class Waiting:
    """An external player that moves once `may_move` is set."""

    def __init__(self):
        self.may_move, self.is_asked = threading.Event(), threading.Event()
        self.is_closed = threading.Event()

    def start_session(self, game, seed):
        return self

    def choose(self, state, moves):
        self.is_asked.set()
        assert self.may_move.wait(PATIENCE)
        return MoveDecision(0, value=0.25)

    def close(self):
        self.is_closed.set()


@pytest.fixture
def waiting():
    player = Waiting()
    yield player
    player.may_move.set()


class Kernel:
    """A board, and the messages that it sends."""

    def __init__(self, spec, opponent=None, **options):
        game = games.make(spec)
        opponent = opponent or FirstLegalMove(game)
        self.show(notebook.play(game, opponent, **options))

    def show(self, board):
        """Shows a board."""
        self.board = board
        self.sent = queue.SimpleQueue()
        self.board.send = self.sent.put
        self.ids = iter(range(1000))
        self.answers = {}

    def receive(self, content):
        """Receives a message as from a page."""
        self.board._handle_custom_msg(json.loads(json.dumps(content)), [])

    def send_request(self, method, view=0, **params):
        id = next(self.ids)
        self.receive({"id": id, "method": method, "params": params, "view": view})
        return id

    def answer(self, id):
        """Returns the kind and the value of the answer to a message."""
        while id not in self.answers:
            message = self.sent.get(timeout=PATIENCE)
            if message["kind"] not in ("progress", "stage"):
                self.answers[message["id"]] = message["kind"], message["value"]
        return self.answers[id]

    def ask(self, method, **params):
        kind, value = self.answer(self.send_request(method, **params))
        assert kind == "answer", value
        return value


def test_start_describes_the_game_and_the_opponent():
    description = Kernel("connect_four").ask("start", game="", player="")
    assert description["title"] == "Connect Four"
    assert description["player"] == "FirstLegalMove"
    assert description["strengths"] == []


def test_game_and_opponent_can_be_texts():
    board = notebook.play("tic_tac_toe", "random")
    assert isinstance(board, notebook.Board)
    with pytest.raises(ValueError, match="unknown player 'chance'"):
        notebook.play("tic_tac_toe", "chance")


def test_the_default_opponent_is_that_of_the_terminal(monkeypatch):
    monkeypatch.setattr(notebook, "default_opponent", lambda game: f"nobody {game}")
    with pytest.raises(ValueError, match="unknown player 'nobody tic_tac_toe'"):
        notebook.play("tic_tac_toe")


def test_the_opponent_decides_in_the_requested_position():
    kernel = Kernel("connect_four")
    full = [0, 0, 0, 0, 0, 0]
    assert len(kernel.ask("position", actions=full)["moves"]) == 6
    decision = kernel.ask("decide", actions=full, simulations=None)
    assert decision["action"] == 1
    assert decision["value"] == 0.25


@pytest.fixture(scope="module")
def searching():
    """Returns a board with an opponent that searches."""
    player = untrained_player(games.make("tic_tac_toe")).player(60)
    kernel = Kernel("tic_tac_toe", player, seed=3)
    kernel.ask("decide", actions=[], simulations=100)  # compiles the search
    yield kernel
    kernel.board.close()


def test_an_opponent_that_searches_has_strengths(searching):
    kernel = searching
    description = kernel.ask("start", game="", player="")
    assert description["simulations"] == 60
    # A win in one move, with a proven value.
    request = {"actions": [0, 3, 1, 4], "simulations": 100}
    decision = kernel.ask("decide", **request)
    assert decision["action"] == 2
    assert sum(move["visits"] for move in decision["moves"]) >= 99


def test_only_boards_with_a_seed_have_the_same_rolls():
    kernels = {seed: Kernel("ur:1", seed=seed) for seed in (None, 3)}
    rolls = {
        seed: {
            json.dumps(kernel.ask("roll", view=view, actions=[])) for view in range(30)
        }
        for seed, kernel in kernels.items()
    }
    assert len(rolls[None]) > 1
    assert len(rolls[3]) == 1
    for kernel in kernels.values():
        kernel.board.close()


def test_a_cancelled_decision_is_answered_with_none(waiting):
    kernel = Kernel("tic_tac_toe", waiting)
    request = {"actions": [], "simulations": None}
    decision = kernel.send_request("decide", **request)
    stopped = kernel.send_request("stop")
    assert kernel.answer(decision) == kernel.answer(stopped) == ("answer", None)
    waiting.may_move.set()
    decisions = [kernel.send_request("decide", view=n, **request) for n in (1, 2)]
    for kind, value in map(kernel.answer, decisions):
        assert (kind, value["action"]) == ("answer", 0)
    assert kernel.answers[decision] == ("answer", None)  # not answered again


def test_invalid_requests_are_errors():
    kernel = Kernel("tic_tac_toe")
    request = {"actions": [0, 0], "simulations": None}
    for id, says in [
        (
            kernel.send_request("position", actions=[0, 0]),
            "action 0, number 2, is not legal",
        ),
        (kernel.send_request("decide", **request), "action 0, number 2, is not legal"),
        (kernel.send_request("explode"), "unknown method"),
    ]:
        kind, text = kernel.answer(id)
        assert kind == "error"
        assert says in text


class Cell:
    """A board in a cell of an open notebook in a browser."""

    def __init__(self, open_page, url, kernel):
        self.kernel = kernel
        self.visit = open_page(url)
        self.page = self.visit.page
        state = kernel.board.get_state(
            ["_esm", "_page", "_style", "_begins", "_reviewed"]
        )
        self.page.evaluate(HOST, [state.pop("_esm"), state])

    def wait_for(self, selector):
        """Relays messages until the page has a matching element."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for message in self.page.evaluate("sent.splice(0)"):
                self.kernel.receive(message)
            while not self.kernel.sent.empty():
                self.page.evaluate("deliver", self.kernel.sent.get())
            if self.page.locator(selector).count():
                return
            self.page.wait_for_timeout(20)
        raise TimeoutError(selector)

    def point(self, *cells):
        moves = int(self.visit.find("#board").get_attribute("data-moves"))
        for cell in cells:
            self.visit.target(cell).click()
        self.wait_for(f"{YOURS}[data-moves='{moves + 2}'], {OVER}")


@pytest.fixture
def cell(open_page, tmp_path):
    """Opens an empty page and shows a board on it; errors on the page fail the test."""
    (tmp_path / "index.html").write_text("<!doctype html><html><body></body></html>")
    opened = []

    def show(*args, **options):
        url = (tmp_path / "index.html").as_uri()
        kernel = Kernel(*args, **options) if isinstance(args[0], str) else args[0]
        opened.append(Cell(open_page, url, kernel))
        opened[-1].wait_for(YOURS if isinstance(args[0], str) else "#review-view")
        return opened[-1]

    yield show
    for each in opened:
        assert each.visit.problems == []


def test_a_game_is_played_to_its_end_in_a_cell(cell):
    one = cell("tic_tac_toe")
    for number in (4, 8):
        one.point(number)
    assert one.visit.status() == "Computer played b3. Your turn."
    one.point(6)
    assert one.visit.status() == "The computer wins."
    one.visit.find("#new-game").click()
    one.wait_for("#board[data-moves='0']")
    for number in (2, 4, 6):
        one.point(number)
    assert one.visit.status() == "You win!"
    moves = one.visit.find("#played button").all_inner_texts()
    assert moves == ["c3", "a3", "b2", "b3", "a1"]
    assert one.visit.find("#copy-link").is_hidden()
    one.visit.find("#first").click()
    one.wait_for("#board[data-ply='0']")
    one.visit.find("#last").click()
    one.visit.find("#analysis > summary").click()
    chances = "You 100% · draw 0% · Computer 0%"
    one.wait_for(f"#chances-text:text-is('{chances}')")
    assert one.visit.find("#moves tr").count() == 0, "nobody is to move"


def test_the_opponent_moves_first_if_the_user_is_second(cell):
    one = cell("tic_tac_toe", user_player=1)
    assert one.visit.status() == "Computer played a3. Your turn."
    one.visit.find("#analysis > summary").click()
    one.wait_for("#moves tr")
    assert re.match(r"Computer|You", one.visit.find("#chances-text").inner_text())


def test_two_views_of_a_board_are_independent(cell):
    one = cell("tic_tac_toe")
    one.point(4)
    one.page.evaluate("show()")
    one.wait_for(f"{YOURS}[data-moves='0']")
    assert one.visit.find(f"{YOURS}[data-moves='2']").count() == 1
    one.page.evaluate("views.forEach((close) => close())")


@pytest.fixture
def moves(tmp_path):
    """A file with two games of tic-tac-toe; in the second, b1 loses."""
    (tmp_path / "moves.txt").write_text("b2\na1 b1 b2 c3 a3 a2 c1\n")
    return tmp_path / "moves.txt"


def test_a_game_of_a_file_is_reviewed_in_a_cell(cell, moves):
    kernel = Kernel("tic_tac_toe")
    kernel.show(notebook.review(moves, "tic_tac_toe", "minimax:9", number=2))
    one = cell(kernel)
    one.wait_for("#summaries:text('loses')")
    assert one.visit.find("#played [data-mark='??']").all_inner_texts() == ["b1"]
    one.visit.find("#next-mistake").click()
    one.wait_for("#verdict:text('Blunder: b1 ?? loses 1.00 (+0.00 to +1.00)')")
    kernel.board.close()


def test_a_file_without_the_game_is_refused(moves):
    with pytest.raises(ValueError, match="has 2 games: there is no game 3"):
        notebook.review(moves, "tic_tac_toe", number=3)


def test_a_review_is_answered_and_cancelled(waiting):
    kernel = Kernel("tic_tac_toe")
    assert kernel.ask("read", text="b2 a1")["actions"] == [4, 6]
    found = kernel.ask("review", actions=[4, 6], player="")
    assert len(found["summaries"]) == 2
    kind, text = kernel.answer(kernel.send_request("review", actions=[4, 4], player=""))
    assert (kind, text[:27]) == ("error", "action 4, number 2, is not ")
    kernel = Kernel("tic_tac_toe", waiting)
    review = kernel.send_request("review", actions=[4], player="")
    stop = kernel.send_request("stop")
    assert kernel.answer(review) == kernel.answer(stop) == ("answer", None)


@pytest.mark.parametrize("view", [[], {}, None, "x", 1.5])
def test_a_view_without_a_number_is_not_answered(view):
    kernel = Kernel("tic_tac_toe")
    kernel.send_request("position", view=view, actions=[])
    kernel.answer(kernel.send_request("position", actions=[]))
    assert len(kernel.answers) == 1


def test_closing_a_board_cancels_its_decisions(waiting):
    kernel = Kernel("tic_tac_toe", waiting)
    kernel.send_request("decide", actions=[], simulations=None)
    kernel.ask("position", actions=[])
    assert waiting.is_asked.wait(PATIENCE)
    kernel.board.close()
    assert waiting.is_closed.wait(PATIENCE)
    waiting.may_move.set()
    kernel.send_request("position", actions=[])
    time.sleep(0.1)
    assert kernel.sent.empty()


def test_an_unexpected_error_is_answered(monkeypatch, capsys):
    def fail(*_):
        raise MemoryError

    kernel = Kernel("tic_tac_toe")
    monkeypatch.setattr("azjax.play.server.positions.describe_position", fail)
    id = kernel.send_request("position", actions=[])
    assert kernel.answer(id) == (
        "error",
        "internal server error; try again in a moment",
    )
    assert "MemoryError" in capsys.readouterr().err


def test_a_missing_anywidget_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, notebook.__name__)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'azjax\[notebook\]'"):
        importlib.import_module(notebook.__name__)
