import sys
import types

import numpy as np
import pytest

from azjax import games, players
from azjax.games.host import first_state, legal_actions, next_state, rewards
from azjax.players import PerfectPlayer

CONNECT_FOUR = games.make("connect_four")


class FakeSolver:
    """A solver that scores moves 1 and 4 of a position with `n` discs `2 - n`."""

    def score_all_moves(self, board):
        top = 2 - len(board)
        return {0: top - 3, 1: top, 2: top - 1, 4: top}


@pytest.fixture
def fake(monkeypatch):
    module = types.SimpleNamespace(BitBully=FakeSolver, Board=list)
    monkeypatch.setitem(sys.modules, "bitbully", module)


def test_the_best_moves_are_equally_likely_and_the_seed_determines_the_choice(fake):
    sessions = [PerfectPlayer().start_session(CONNECT_FOUR, seed) for seed in (1, 1, 2)]
    first, again, other = (
        [session.choose(CONNECT_FOUR.init(), []) for _ in range(40)]
        for session in sessions
    )
    actions = [decision.action for decision in first]
    assert set(actions) == {1, 4}
    np.testing.assert_array_equal(first[0].policy, [0, 0.5, 0, 0, 0.5, 0, 0])
    assert actions == [decision.action for decision in again]
    assert actions != [decision.action for decision in other]


@pytest.mark.parametrize(("moves", "value"), [([], 1), ([3, 3], 0), ([3] * 5, -1)])
def test_the_value_is_the_exact_result(moves, value, fake):
    session = PerfectPlayer().start_session(CONNECT_FOUR, seed=0)
    assert session.choose(CONNECT_FOUR.init(), moves).value == value
    session.close()


def test_perfect_loads_an_external_player_of_connect_four(fake):
    player = players.load("perfect", CONNECT_FOUR)
    assert isinstance(player, players.ExternalPlayer)
    with pytest.raises(ValueError, match="'perfect' cannot be compiled"):
        players.load_compiled("perfect", CONNECT_FOUR)
    othello, message = games.make("othello"), "plays connect_four only, not othello"
    with pytest.raises(ValueError, match=message):
        players.load("perfect", othello)
    with pytest.raises(ValueError, match=message):
        player.start_session(othello, seed=0)


def test_a_missing_solver_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    with pytest.raises(ValueError, match=r"pip install 'azjax\[solver\]'"):
        players.load("perfect", CONNECT_FOUR)


def play(first, second, seed):
    """Returns the result of the first player."""
    sessions = [
        players.start_session(player, CONNECT_FOUR, seed + 1000 * place)
        for place, player in enumerate((first, second))
    ]
    state, moves = first_state(CONNECT_FOUR), []
    while not state.terminated:
        action = sessions[len(moves) % 2].choose(state, moves).action
        assert action in legal_actions(CONNECT_FOUR, state)
        state = next_state(CONNECT_FOUR, state, action)
        moves.append(action)
    return rewards(CONNECT_FOUR, state)[0]


def test_the_solver_prefers_fast_wins_and_late_losses():
    session = PerfectPlayer().start_session(CONNECT_FOUR, seed=0)
    state = CONNECT_FOUR.init()
    assert session.choose(state, []).action == 3
    assert session.choose(state, []).value == 1
    assert session.choose(state, [0, 6, 0, 6, 0, 6]).action == 0  # wins
    assert session.choose(state, [0, 6, 0, 6, 0]).action == 0  # blocks
    assert session.choose(state, [2, 0, 3, 0, 4]).value == -1


def test_it_wins_when_it_moves_first():
    opponent = players.load("random", CONNECT_FOUR)
    assert play(PerfectPlayer(), opponent, seed=0) == 1


@pytest.mark.slow
@pytest.mark.parametrize("opponent", ["random", "greedy", "minimax:4", "mcts:200"])
def test_it_wins_all_of_twenty_games_in_which_it_moves_first(opponent):
    player = PerfectPlayer()
    opponent = players.load(opponent, CONNECT_FOUR)
    assert sum(play(player, opponent, seed) for seed in range(20)) == 20
