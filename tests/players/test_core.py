import copy
from typing import ClassVar

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compilations import compilations
from flax import struct
from players.engines import position

from azjax import games, players
from azjax.games.host import legal_actions
from azjax.players import AlphaZeroPlayer, NetworkPlayer, RandomPlayer, choose
from azjax.players.core import Choice, choose_with_carry, init_carry, start_session

TIC_TAC_TOE = games.make("tic_tac_toe")
KEY = jax.random.key(0)
KINDS = pytest.mark.parametrize("kind", ["random", "network", "alphazero"])


def make_player(kind, trained, seed=0):
    # New objects, as if loaded from another run directory.
    game, network = trained.game, copy.deepcopy(trained.network)
    variables = jax.tree.map(
        lambda leaf: leaf * np.float32(1 + seed / 10), trained.variables
    )
    if kind == "random":
        return RandomPlayer(game)
    if kind == "network":
        return NetworkPlayer(game, network, variables)
    return AlphaZeroPlayer(game, trained.search, 4, network, variables)


@KINDS
def test_every_player_has_its_weights_as_leaves_and_returns_a_legal_choice(
    kind, trained, states
):
    player = make_player(kind, trained)
    leaves = jax.tree.leaves(player)
    num_weights = len(jax.tree.leaves(trained.variables))
    assert len(leaves) == (0 if kind == "random" else num_weights)
    chex.assert_type(leaves, jnp.float32)
    choice = jax.device_get(choose(player, KEY, states))
    legal = np.asarray(jax.jit(jax.vmap(trained.game.legal_action_mask))(states))
    chex.assert_shape(choice[:3], [(3,), (3, 9), (3,)])
    chex.assert_type(choice[:3], [jnp.int32, jnp.float32, jnp.float32])
    assert legal[np.arange(3), choice.action].all()
    assert (choice.policy >= 0).all()
    assert (choice.policy[~legal] == 0).all()
    np.testing.assert_allclose(choice.policy.sum(axis=-1), 1, rtol=1e-5)
    assert (np.abs(choice.value) <= 1).all()
    if kind == "random":
        assert choice.draw is None
    else:
        chex.assert_shape(choice.draw, (3,))
        assert ((choice.draw > 0) & (choice.draw < 1)).all()


@pytest.mark.parametrize("kind", ["network", "alphazero"])
def test_other_settings_but_not_new_weights_are_compiled_again(kind, trained, states):
    first, second = (make_player(kind, trained, seed) for seed in (1, 2))
    before = choose(first, KEY, states)
    with compilations() as names:
        after = choose(second, KEY, states)
    assert names == []
    assert (np.asarray(before.value) != np.asarray(after.value)).any()
    if kind == "alphazero":
        with compilations() as names:
            choose(first.replace(simulations=5), KEY, states)
        assert len(names) == 1


@pytest.mark.parametrize("kind", ["random", "network"])
def test_a_player_without_a_carry_chooses(kind, trained, states):
    player = make_player(kind, trained)
    assert init_carry(player, states) is None
    choice, carry = choose_with_carry(player, KEY, states, None)
    chex.assert_trees_all_equal(choice, choose(player, KEY, states))
    assert carry is None


def test_the_carry_is_passed_from_move_to_move_and_init_carry_compiled_once(states):
    traced = []

    @struct.dataclass
    class CountingPlayer:
        """Plays move n at its n-th call, from 0."""

        def init_carry(self, states):
            traced.append(None)
            return jnp.zeros(states.terminated.shape, jnp.int32)

        def choose_with_carry(self, rng_key, states, carry):
            del rng_key
            nothing = jnp.zeros((*carry.shape, 9))
            return Choice(carry, nothing, nothing[:, 0]), carry + 1

    for _ in range(2):
        carry = init_carry(CountingPlayer(), states)
    assert len(traced) == 1
    for number in range(3):
        choice, carry = choose_with_carry(CountingPlayer(), KEY, states, carry)
        np.testing.assert_array_equal(choice.action, [number] * 3)


@pytest.mark.parametrize("in_session", [False, True])
def test_equal_pytrees_of_different_classes_are_different_players(in_session, after):
    """JAX sometimes takes players of such classes for each other."""
    traced = []

    def player_of_new_class(number):
        @struct.dataclass
        class FixedPlayer:
            def choose(self, rng_key, states):
                del rng_key, states
                traced.append(number)
                nothing = jnp.zeros((1, 9))
                return Choice(jnp.zeros(1, jnp.int32), nothing, nothing[:, 0])

        return FixedPlayer()

    states = after([])
    for player in list(map(player_of_new_class, range(40))):
        if in_session:
            session = start_session(player, TIC_TAC_TOE, seed=0)
            session.choose(jax.tree.map(lambda leaf: leaf[0], states), [])
        else:
            choose(player, KEY, states)
    assert traced == list(range(40))


# Sessions


def position_after(moves):
    return position(TIC_TAC_TOE, moves)


def start_random(seed):
    player = players.RandomPlayer(TIC_TAC_TOE)
    return players.start_session(player, TIC_TAC_TOE, seed)


def test_a_compiled_player_chooses_in_one_game():
    session = start_random(0)
    decision = session.choose(position_after([4]), [4])
    assert decision.action in {0, 1, 2, 3, 5, 6, 7, 8}
    assert decision.policy.shape == (9,)
    assert decision.value == 0
    assert decision.analysis is None
    assert decision.draw is None
    session.close()


def test_the_seed_determines_the_moves_of_a_session():
    first, again, other = (
        [session.choose(TIC_TAC_TOE.init(), []).action for _ in range(12)]
        for session in map(start_random, (3, 3, 4))
    )
    assert first == again != other


TACTIC = [0, 3, 1, 4]  # the first player has cells 0 and 1 and takes 2


@pytest.fixture(scope="module")
def decisions():
    """The decisions of a search in the first position and in a tactical one."""
    player = players.load("alphazero:pretrained?simulations=64", TIC_TAC_TOE)
    session = players.start_session(player, TIC_TAC_TOE, seed=0)
    return [session.choose(position_after(moves), moves) for moves in ([], TACTIC)]


def test_a_search_returns_its_analysis(decisions):
    state, decision = position_after(TACTIC), decisions[1]
    analysis = decision.analysis
    legal = np.asarray(TIC_TAC_TOE.legal_action_mask(state))
    assert decision.action == 2
    assert analysis.prior.shape == analysis.visits.shape == (9,)
    assert analysis.prior.sum() == pytest.approx(1, abs=1e-5)
    assert (analysis.prior[~legal] == 0).all()
    assert analysis.visits.sum() == 64
    assert (analysis.visits[~legal] == 0).all()
    assert analysis.action_values[2] == 1
    assert analysis.line.tolist() == [2] + [-1] * 15
    network = players.load("network:pretrained", TIC_TAC_TOE)
    alone = players.start_session(network, TIC_TAC_TOE, seed=0).choose(state, [])
    assert decision.draw == pytest.approx(alone.draw, rel=1e-5, abs=1e-5)
    assert 0 < alone.draw < 1


def test_the_line_is_a_legal_sequence_of_moves(decisions):
    line = [action for action in decisions[0].analysis.line.tolist() if action >= 0]
    assert line[0] == decisions[0].action
    assert len(line) >= 3
    for count, action in enumerate(line):
        state = position_after(line[:count])
        assert action in legal_actions(TIC_TAC_TOE, state)


@struct.dataclass
class Traced:
    """Plays the first legal move and counts traces."""

    num_traces: ClassVar[int] = 0

    def choose(self, rng_key, states):
        del rng_key
        Traced.num_traces += 1
        legal = jax.vmap(TIC_TAC_TOE.legal_action_mask)(states)
        action = legal.argmax(axis=-1).astype(np.int32)
        return players.Choice(action, legal.astype(np.float32), np.zeros(1))


def test_compile_choice_compiles_what_sessions_run():
    players.compile_choice(Traced(), TIC_TAC_TOE)
    assert Traced.num_traces == 1
    session = players.start_session(Traced(), TIC_TAC_TOE, seed=1)
    for moves in ((), (0, 4)):
        assert session.choose(position_after(moves), moves).action == len(moves) // 2
    assert Traced.num_traces == 1
