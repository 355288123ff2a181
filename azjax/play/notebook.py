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

_WIDGET_MARGIN = 2  # that ipywidgets leave around each widget (pixels)
_INDENTED = f"0 {MARGIN + _WIDGET_MARGIN}px"  # flush with the board in its picture


def play(
    game: Game, opponent: Player, *, user_player: int = 0, seed: int = 0
) -> ipywidgets.Widget:
    """Returns a board with a button for each action, for the notebook to display.

    Where every column has one action, its button stands below it.

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
        self.moves = [
            _button(
                game.action_to_text(action),
                functools.partial(self.play_on, action),
                width=f"{CELL_SIZE - 2 * _WIDGET_MARGIN}px",
            )
            for action in range(game.num_actions)
        ]
        self.hint = _button("hint", self.give_hint)
        begin = _button("new game, you begin", functools.partial(self.begin, 0))
        answer = _button("new game, you are second", functools.partial(self.begin, 1))
        self.widget = ipywidgets.VBox(
            [
                self.board,
                self.status,
                _row(self.moves, width=f"{CELL_SIZE * game.observation_shape[1]}px"),
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
            self.make_move(action)
            news = (
                f"The computer plays {self.game.action_to_text(action)} "
                f"and expects {float(choice.value[0]):+.2f}. "
            )
        self.show(news + self.what_next())

    def give_hint(self) -> None:
        """Says what the opponent would do in the user's place."""
        action = self.game.action_to_text(int(self.ask().action[0]))
        self.status.value = f"The computer would play {action}."

    def what_next(self) -> str:
        if self.state.terminated:
            result = float(self.game.rewards(self.state)[self.user_player])
            text = "You win" if result > 0 else "You lose" if result < 0 else "A draw"
            return f"<b>{text}.</b>"
        return f"Your move; you have the {('crosses', 'rings')[self.user_player]}."

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
        legal = np.asarray(self.game.legal_action_mask(self.state))
        for button, is_legal in zip(self.moves, legal, strict=True):
            button.disabled = not (is_users_turn and is_legal)
        self.hint.disabled = not is_users_turn


def _button(
    text: str, on_click: Callable[[], None], width: str = "auto"
) -> ipywidgets.Button:
    button = ipywidgets.Button(description=text, layout={"width": width})
    button.on_click(lambda _: on_click())
    return button


def _row(buttons: Sequence[ipywidgets.Button], width: str = "auto") -> ipywidgets.HBox:
    layout = {"width": width, "margin": _INDENTED, "flex_flow": "row wrap"}
    return ipywidgets.HBox(buttons, layout=layout)
