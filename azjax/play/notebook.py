"""A game against a player in a notebook, with buttons; needs ipywidgets."""

import functools
from collections.abc import Callable, Sequence

import ipywidgets
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import Game, State
from azjax.games.rendering import CELL_SIZE, MARGIN
from azjax.players import Choice, Player, start, think

MAX_BUTTONS = 100
_WIDGET_MARGIN = 2  # that ipywidgets leave around each widget (pixels)
_INDENTED = f"0 {MARGIN + _WIDGET_MARGIN}px"  # flush with the board in its picture


def play(
    game: Game, opponent: Player, *, user_player: int = 0, seed: int = 0
) -> ipywidgets.Widget:
    """Returns a board on which the user can play, for the notebook to display.

    Moves are buttons, below their columns where every column has one action; a game
    with more than a hundred actions has a line to type in, which offers legal moves.

    Args:
        game: what is played.
        opponent: who answers.
        user_player: 0 if the user begins the first game, 1 if the opponent does.
        seed: of the opponent's chance.
    """
    return _Match(game, opponent, user_player, seed).widget


class _Match:
    """One game after the other, and the widgets that show them."""

    def __init__(self, game: Game, opponent: Player, user_player: int, seed: int):
        self.game = game
        self.opponent = opponent
        self.step = jax.jit(game.step)
        self.rng_key = jax.random.key(seed)
        self.status = ipywidgets.HTML(layout={"margin": _INDENTED})
        self.board = ipywidgets.HTML()
        self.entry = _MoveEntry(game, self.play_on)
        self.hint = _button("hint", self.give_hint)
        begin = _button("new game, you begin", functools.partial(self.begin, 0))
        answer = _button("new game, you are second", functools.partial(self.begin, 1))
        self.widget = ipywidgets.VBox(
            [
                self.board,
                self.status,
                self.entry.widget,
                _row([self.hint, begin, answer]),
            ]
        )
        self.begin(user_player)

    def begin(self, user_player: int) -> None:
        """Starts a game; the opponent moves if it is the first."""
        self.user_player = user_player
        self.state, self.last_action = self.game.init(), None
        self.memory = start(self.opponent, self.states())
        self.answer()

    def play_on(self, action: int) -> None:
        """Makes the user's move and the opponent's."""
        self.make_move(action)
        self.answer()

    def answer(self) -> None:
        """Lets the opponent move until it is the user's turn or the game is over."""
        news = ""
        while not self.is_users_turn() and not self.state.terminated:
            self.show("The computer thinks ...")
            choice = self.ask()
            action = int(choice.action[0])
            news = (
                f"The computer plays {self.game.action_to_text(self.state, action)} "
                f"and expects {float(choice.value[0]):+.2f}. "
            )
            self.make_move(action)
        self.show(news + self.what_next())

    def give_hint(self) -> None:
        """Says what the opponent would do in the user's place."""
        action = self.game.action_to_text(self.state, int(self.ask().action[0]))
        self.status.value = f"The computer would play {action}."

    def what_next(self) -> str:
        if self.state.terminated:
            result = float(self.game.rewards(self.state)[self.user_player])
            text = "You win" if result > 0 else "You lose" if result < 0 else "A draw"
            return f"<b>{text}.</b>"
        names = self.game.style.names
        pieces = names if len(names) == 2 else ("white pieces", "black pieces")
        return f"Your move; you have the {pieces[self.user_player]}."

    def is_users_turn(self) -> bool:
        is_turn = self.state.current_player == self.user_player
        return bool(is_turn & ~self.state.terminated)

    def ask(self) -> Choice:
        self.rng_key, choose_key = jax.random.split(self.rng_key)
        choice, self.memory = think(
            self.opponent, choose_key, self.states(), self.memory
        )
        return choice

    def states(self) -> State:
        """Returns the position as a batch of one."""
        return jax.tree.map(lambda leaf: leaf[None], self.state)

    def make_move(self, action: int) -> None:
        self.state = self.step(self.state, jnp.int32(action))
        self.last_action = action

    def show(self, status: str) -> None:
        """Shows the position; what the user may not press is disabled."""
        self.status.value = status
        self.board.value = self.game.to_svg(self.state, self.last_action)
        is_users_turn = self.is_users_turn()
        self.entry.offer(self.state, is_users_turn)
        self.hint.disabled = not is_users_turn


class _MoveEntry:
    """Where the user enters moves: a button for each action, or where there are too
    many of them a line to type in, which offers the legal moves."""

    def __init__(self, game: Game, on_move: Callable[[int], None]):
        self.game, self.on_move = game, on_move
        self.state = game.init()
        self.buttons: list[ipywidgets.Button] = []
        self.line: ipywidgets.Combobox | None = None
        if game.num_actions <= MAX_BUTTONS:
            self.buttons = [
                _button(
                    game.action_to_text(self.state, action),
                    functools.partial(on_move, action),
                    width=f"{CELL_SIZE - 2 * _WIDGET_MARGIN}px",
                )
                for action in range(game.num_actions)
            ]
            width = f"{CELL_SIZE * game.observation_shape[1]}px"
            self.widget = _row(self.buttons, width=width)
        else:
            self.line = ipywidgets.Combobox(
                placeholder="your move", ensure_option=True, layout={"width": "140px"}
            )
            self.line.observe(self._read, "value")
            self.widget = _row([self.line])

    def offer(self, state: State, is_users_turn: bool) -> None:
        """Lets the user choose among the legal moves of a position, or wait."""
        self.state = state
        legal = np.asarray(self.game.legal_action_mask(state)) & is_users_turn
        for button, is_legal in zip(self.buttons, legal, strict=False):
            button.disabled = not is_legal
        if self.line is not None:
            self.line.value = ""
            self.line.disabled = not is_users_turn
            self.line.options = tuple(
                self.game.action_to_text(state, action)
                for action in np.flatnonzero(legal).tolist()
            )

    def _read(self, change: dict) -> None:
        if change["new"] in change["owner"].options:
            self.on_move(self.game.text_to_action(self.state, change["new"]))


def _button(
    text: str, on_click: Callable[[], None], width: str = "auto"
) -> ipywidgets.Button:
    button = ipywidgets.Button(description=text, layout={"width": width})
    button.on_click(lambda _: on_click())
    return button


def _row(widgets: Sequence[ipywidgets.Widget], width: str = "auto") -> ipywidgets.HBox:
    layout = {"width": width, "margin": _INDENTED, "flex_flow": "row wrap"}
    return ipywidgets.HBox(widgets, layout=layout)
