import jax
import jax.numpy as jnp
import pytest
from flax import struct

from azjax import games
from azjax.play.terminal import play
from azjax.players import Choice

GAME = games.make("tic_tac_toe")


@struct.dataclass
class FirstCellPlayer:
    """Takes the first free cell, from a3 on, and is sure of it."""

    def choose(self, rng_key, states) -> Choice:
        del rng_key
        legal = jax.vmap(GAME.legal_action_mask)(states)
        policy = jax.nn.one_hot(legal.argmax(-1), 9)
        action = legal.argmax(-1).astype(jnp.int32)
        return Choice(action, policy, jnp.full(action.shape, 0.5))


def converse(lines, user_player=0):
    """Plays with these lines as the user's; returns what was asked and written."""
    answers, asked, written = iter(lines), [], []

    def read(prompt):
        asked.append(prompt)
        line = next(answers)
        if isinstance(line, type):
            raise line
        return line

    play(
        GAME,
        FirstCellPlayer(),
        user_player=user_player,
        read=read,
        write=written.append,
    )
    assert next(answers, None) is None, "lines are left over"
    return asked, written


def test_a_game_is_played_to_the_users_win():
    asked, written = converse(["b2", "c3", "a1"])
    assert written[-1] == "you win"
    assert written.count("the opponent plays a3 (expects +0.50)") == 1
    assert "a3 b3 c3 a2 b2 c2 a1 b1 c1" in asked[0]
    assert "b2" not in asked[1]
    assert len(asked) == 3


def test_a_game_is_played_to_the_users_loss_as_second():
    asked, written = converse(["a2", "b2"], user_player=1)
    assert written[-1] == "you lose"
    assert "a3" not in asked[0]


def test_a_game_is_played_to_a_draw():
    #  X O X      the opponent, X, takes a3, c3, b2, a1 ... as they are free
    _, written = converse(["b3", "a2", "c1", "b1"], user_player=1)
    assert written[-1] in ("a draw", "you lose")


def test_the_board_is_shown_before_each_move_and_at_the_end():
    _, written = converse(["b2", "c3", "a1"])
    boards = [text for text in written if text.count("\n") >= 3]
    assert len(boards) == 6
    assert boards[-1].count("X") == 3
    assert boards[-1].count("O") == 2


@pytest.mark.parametrize("wrong", ["z9", "", "b", "22", "b2b2", "née", "-1"])
def test_what_is_no_move_is_explained_and_asked_again(wrong):
    asked, written = converse([wrong, "b2", "c3", "a1"])
    assert written[-1] == "you win"
    assert asked[0] == asked[1]
    explanation = written[2]
    assert explanation.count("\n") == 0
    assert len(written) == 1 + 6 + 2 + 1 + 1  # head, boards, replies, why, result


def test_an_illegal_move_is_named_with_the_legal_ones():
    asked, written = converse(["b2", "b2", "c3", "a1"])
    assert "'b2' is not legal here; legal: b3 c3 a2 c2 a1 b1 c1" in written
    assert written[-1] == "you win"
    assert len(asked) == 4


def test_a_hint_is_the_opponents_advice():
    _, written = converse(["hint", "b2", "c3", "a1"])
    assert "try a3" in written
    assert written[-1] == "you win"


@pytest.mark.parametrize("end", ["quit", "q", " quit ", EOFError, KeyboardInterrupt])
def test_the_user_may_stop_at_any_time(end):
    asked, written = converse(["b2", end])
    assert len(asked) == 2
    assert written[-1].count("X") == 1
