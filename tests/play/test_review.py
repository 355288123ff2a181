import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coin_toss import CoinToss
from flax import struct

from azjax import games, players
from azjax.games.host import first_state, next_state
from azjax.play.review import POSITIONS_AT_ONCE, exact_text, review, summaries
from azjax.players import Choice, ForfeitError, MoveDecision
from azjax.players.simple import perfect_player

GAME = games.make("tic_tac_toe")


def actions_of(game, moves):
    state, actions = first_state(game), []
    for text in moves.split():
        actions.append(game.text_to_action(state, text))
        state = next_state(game, state, actions[-1])
    return actions


def test_the_mistakes_of_a_game_are_marked():
    # b1 loses against a1 and the middle; b3 overlooks the second line of three.
    moves = actions_of(GAME, "a1 b1 b2 c3 a3 a2 c1")
    found = list(review(GAME, moves, players.load("minimax:5", GAME)))
    assert [move.player for move in found] == [0, 1, 0, 1, 0, 1, 0]
    assert " ".join(move.text for move in found) == "a1 b1 b2 c3 a3 a2 c1"
    assert [move.before for move in found] == [0, 0, 1, 1, 1, 1, 1]
    assert [move.after for move in found] == [0, 1, 1, 1, 1, 1, 1]
    assert [move.mark for move in found] == ["", "??", "", "", "", "", ""]
    assert [move.loss for move in found] == [0, 1, 0, 0, 0, 0, 0]
    assert found[1].best != "b1"
    assert found[1].best == GAME.action_to_text(None, found[1].best_action)
    assert found[1].exact_before is None
    assert exact_text(found[1]) == ""
    assert summaries(GAME, found) == [
        "crosses: 0 ?!, 0 ?, 0 ??; loses 0.000 a move",
        "rings: 0 ?!, 0 ?, 1 ??; loses 0.333 a move",
    ]


def test_values_are_those_of_the_first_player():
    # The second player wins: O has a3, b3, c3.
    moves = actions_of(GAME, "a1 a3 b1 b3 c2 c3")
    found = list(review(GAME, moves, players.load("minimax:5", GAME)))
    assert found[4].after == -1
    assert found[5].before == found[5].after == -1
    # c2 in place of c1, which wins.
    assert (found[4].before, found[4].loss, found[4].mark) == (1, 2, "??")
    assert found[4].best == "c1"


def test_moves_are_reviewed_when_they_are_asked_for():
    engine = _Engine(value=0.25)
    moves = review(GAME, [0, 4, 8], engine)
    assert engine.num_choices == 0
    next(moves)
    assert engine.num_choices == 2
    moves.close()
    assert engine.is_closed


@struct.dataclass
class _Counter:
    """A player whose value for player 0 is 1/100 of the number of discs."""

    game: games.Game = struct.field(pytree_node=False)

    def choose(self, rng_key, states):
        discs = (jax.vmap(self.game.board)(states) >= 0).sum(axis=(1, 2))
        value = discs * (1 - 2 * states.current_player) / 100
        return Choice(jnp.full(len(discs), 6), jnp.zeros((len(discs), 7)), value)


def test_outcomes_have_no_mark_and_moves_are_judged_before_them():
    game = CoinToss()
    reviewer = _Solver([None, -0.25, None, 1, None, {9: -1, 10: 0}])
    # heads, X b2, tails, X a1, edge: it is the turn of O, who wins.
    first, *_, move, last = review(game, [9, 4, 10, 0, 11], reviewer)
    assert (first.player, first.text, first.best, first.mark) == (
        -1,
        "heads",
        "heads",
        "",
    )
    assert (first.before, first.after, first.loss) == (-0.25, -0.25, 0)
    # After the move it is the turn of O, who wins by the edge.
    assert (move.player, move.before, move.after) == (0, 1, (5 * -1 + 2 * 0 - 1) / 8)
    assert (move.loss, move.mark) == (1.75, "??")
    assert (last.before, last.after, last.loss, last.mark) == (-0.75, -1, 0, "")
    assert exact_text(last) == ""
    assert summaries(game, [first, move, last])[0].endswith("1 ??; loses 1.750 a move")


def test_a_long_game_is_reviewed_in_batches():
    game = games.make("connect_four")
    moves = actions_of(game, "1 1 1 1 1 1 2 2 2 2 2 2 3 3 3 3 3 3 5 5")
    found = list(review(game, moves, _Counter(game)))
    assert len(found) == len(moves) > POSITIONS_AT_ONCE
    values = [[move.before, move.after] for move in found]
    exact = [[ply / 100, (ply + 1) / 100] for ply in range(len(moves))]
    np.testing.assert_allclose(values, exact, rtol=1e-5)


class _Solver:
    """A player that knows the results for player 0 of the positions, in order; one
    may depend on the last move."""

    def __init__(self, results):
        self.results = results

    def start_session(self, game, seed):
        del game, seed
        return self

    def choose(self, state, moves):
        sign = 1 - 2 * int(state.current_player)
        result = self.results[len(moves)]
        value = result[moves[-1]] if isinstance(result, dict) else result
        return MoveDecision(0, value=sign * value)

    def close(self):
        pass


def test_exact_results_decide_what_is_a_mistake():
    solver = _Solver([1, 0, 1, -1, -1])
    found = list(review(GAME, [0, 8, 4, 7], _Engine(value=0.25), solver))
    assert [move.mark for move in found] == ["?", "?", "??", ""]
    texts = [exact_text(move) for move in found]
    assert texts == ["win to draw", "draw to loss", "win to loss", "win"]


def test_a_solver_decides_what_is_a_mistake():
    pytest.importorskip("bitbully")
    game = games.make("connect_four")
    reviewer, solver = _Engine(value=0.0, action=0), perfect_player(game)
    # The first player wins from the middle, and loses from the edge.
    found = list(review(game, actions_of(game, "4 1"), reviewer, solver))
    assert [(move.exact_before, move.exact_after) for move in found] == [(1, 1), (1, 1)]
    assert [move.mark for move in found] == ["", ""]
    found = list(review(game, actions_of(game, "1 1"), reviewer, solver))
    assert (found[0].exact_before, found[0].exact_after) == (1, -1)
    assert found[0].mark == "??"


class _Engine:
    """An external player that may lack values, or fail."""

    def __init__(self, value=None, error=None, action=8):
        self.value, self.error, self.is_closed = value, error, False
        self.action = action
        self.num_choices = 0

    def start_session(self, game, seed):
        del game, seed
        return self

    def choose(self, state, moves):
        del state
        self.num_choices += 1
        if self.error and moves:
            raise self.error
        return MoveDecision(self.action, value=self.value)

    def close(self):
        self.is_closed = True


@pytest.mark.parametrize(("value", "loss", "mark"), [(0.25, 0.5, "??"), (0.125, 0, "")])
def test_a_move_of_the_reviewer_is_marked_if_it_proves_to_be_a_blunder(
    value, loss, mark
):
    _, second = review(GAME, [0, 8], _Engine(value=value))
    assert second.best_action == second.action
    assert (second.loss, second.mark) == (loss, mark)


def test_an_external_player_reviews():
    engine = _Engine(value=0.25)
    first, second = review(GAME, [0, 8], engine)
    assert engine.is_closed
    # Its values are for the player to move.
    assert (first.before, first.after, second.after) == (0.25, -0.25, 0.25)
    assert (first.loss, first.mark, first.best) == (0.5, "??", second.text)


@pytest.mark.parametrize(
    ("reviewer", "message"),
    [
        (players.HumanPlayer(), "a person cannot review"),
        (_Engine(), "gives no expected results"),
        (_Engine(0.0, ForfeitError("it died")), "cannot go on: it died"),
    ],
)
def test_reviewers_without_values_are_refused(reviewer, message):
    with pytest.raises(ValueError, match=message):
        list(review(GAME, [0, 8], reviewer))
