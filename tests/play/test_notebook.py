"""Games played by pressing the buttons of the notebook's board."""

from collections.abc import Iterator

import ipywidgets
import jax
import jax.numpy as jnp
import pytest
from flax import struct

from azjax import games
from azjax.games import Game, State
from azjax.play import notebook
from azjax.players import Choice


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


class Page:
    """What a user sees, and can press."""

    def __init__(self, name: str, user_player: int = 0):
        game = games.make(name)
        self.widget = notebook.play(game, FirstLegalMove(game), user_player=user_player)

    def parts(self) -> Iterator[ipywidgets.Widget]:
        for child in self.widget.children:
            yield from getattr(child, "children", [child])

    def button(self, text: str) -> ipywidgets.Button:
        (button,) = [p for p in self.parts() if getattr(p, "description", "") == text]
        return button

    def press(self, *texts: str) -> None:
        for text in texts:
            assert not self.button(text).disabled
            self.button(text).click()

    def texts(self) -> str:
        return " ".join(p.value for p in self.parts() if hasattr(p, "value"))


def test_the_opponent_answers_a_move():
    page = Page("connect_four")
    assert "0 crosses, 0 rings" in page.texts()
    page.press("4")
    assert "1 crosses, 1 rings, last move 1" in page.texts()
    assert "The computer plays 1 and expects +0.25. Your move" in page.texts()


def test_the_opponent_begins_if_the_user_is_second():
    page = Page("connect_four", user_player=1)
    assert "1 crosses, 0 rings, last move 1" in page.texts()
    assert "you have the rings" in page.texts()


def test_a_full_column_cannot_be_chosen():
    page = Page("connect_four")
    page.press("2", "1", "2")
    assert not page.button("1").disabled
    page.press("1")
    assert "4 crosses, 4 rings" in page.texts()
    assert page.button("1").disabled
    assert not page.button("2").disabled


@pytest.mark.parametrize(
    ("moves", "result"),
    [(["b2", "c1", "c3", "c2"], "You win."), (["b1", "b2", "c2"], "You lose.")],
)
def test_the_result_is_shown_and_no_move_is_left(moves, result):
    page = Page("tic_tac_toe")
    page.press(*moves)
    assert result in page.texts()
    assert page.button("a1").disabled
    assert page.button("hint").disabled


def test_a_new_game_can_be_begun_at_any_time():
    page = Page("connect_four")
    page.press("4", "new game, you are second")
    assert "1 crosses, 0 rings" in page.texts()
    page.press("4", "new game, you begin")
    assert "0 crosses, 0 rings" in page.texts()
    assert "you have the crosses" in page.texts()


def test_a_hint_leaves_the_board_as_it_is():
    page = Page("connect_four")
    page.press("4", "hint")
    assert "1 crosses, 1 rings" in page.texts()
    assert "The computer would play 1." in page.texts()


def test_a_game_of_many_actions_has_a_line_that_offers_the_legal_moves():
    page = Page("gomoku:11,11,5")
    (line,) = [p for p in page.parts() if isinstance(p, ipywidgets.Combobox)]
    assert len(line.options) == 121
    line.value = "f6"
    assert "last move a11" in page.texts()
    assert line.value == ""
    assert len(line.options) == 119
    assert "f6" not in line.options
