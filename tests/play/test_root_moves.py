import jax
import numpy as np
import pytest
from coin_toss import CoinToss
from untrained import TINY, untrained

from azjax import games, players
from azjax.games.host import first_state, legal_actions, legal_moves, next_state
from azjax.play.root_moves import RestrictedGame, restricted
from azjax.players import AlphaZeroPlayer, NetworkPlayer
from azjax.search import AlphaZeroConfig

GAME = games.make("tic_tac_toe")


def load(name):
    if name not in ("puct", "network"):
        return players.load_compiled(name, GAME)
    network, variables = untrained(GAME, TINY)
    if name == "network":
        return NetworkPlayer(GAME, network, variables, use_symmetries=True)
    search = AlphaZeroConfig(use_solver=True, tree_reuse_nodes=20)
    return AlphaZeroPlayer(GAME, search, 8, network, variables)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("puct", marks=pytest.mark.slow),
        *("network", "mcts:8", "minimax:2", "greedy", "random"),
    ],
)
def test_every_player_chooses_one_of_the_allowed_moves(name):
    state = first_state(GAME)
    for action in (0, 3, 1, 4):  # 2 wins
        state = next_state(GAME, state, action)
    game, allowed = RestrictedGame(GAME), np.isin(np.arange(9), [0, 6, 7])
    session = players.start_session(restricted(load(name)), game, 0)
    decision = session.choose(game.at(state, allowed), ())
    assert decision.action in (6, 7)  # 0 is taken
    assert not decision.policy[~np.isin(np.arange(9), [6, 7])].any()
    if decision.analysis is not None:
        assert not np.delete(decision.analysis.visits, [6, 7]).any()
        assert decision.analysis.line[0] == decision.action
        again = session.choose(game.at(state), ())
        assert again.analysis.visits.sum() == 8, "the tree is not reused"


def test_only_the_first_move_is_restricted():
    game, state = RestrictedGame(GAME), first_state(GAME)
    after = jax.jit(game.step)(game.at(state, np.arange(9) == 4), 4)
    assert legal_actions(game, after) == [0, 1, 2, 3, 5, 6, 7, 8]
    found, wanted = game.at(next_state(GAME, state, 4)), jax.device_get(after)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)


@pytest.mark.parametrize("unrestricted", [CoinToss(), games.make("kalah:3,3")])
def test_chance_and_extra_turns_are_those_of_the_game(unrestricted):
    game = RestrictedGame(unrestricted)
    assert game.num_outcomes == unrestricted.num_outcomes
    assert game.has_extra_turns == unrestricted.has_extra_turns
    state, wrapped = first_state(unrestricted), game.at(first_state(unrestricted))
    for _ in range(3):
        (move, *_) = legal_moves(unrestricted, state)
        assert legal_moves(game, wrapped)[0] == move
        state = next_state(unrestricted, state, move)
        wrapped = next_state(game, wrapped, move)
    jax.tree.map(np.testing.assert_array_equal, wrapped.state, state)
