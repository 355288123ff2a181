"""Players without a search."""

import dataclasses
import sys
import types
import unittest.mock

import chex
import jax
import numpy as np
import pytest
from coin_toss import CoinToss
from players.engines import position

from azjax import games, players
from azjax.games.host import first_state, legal_actions, next_state, rewards
from azjax.networks import QNetworkConfig, every_action_value, init_q_network
from azjax.players import NetworkPlayer, PerfectPlayer, QPlayer, RandomPlayer, choose
from azjax.players.simple import epsilon_greedy

TIC_TAC_TOE, CONNECT_FOUR = games.make("tic_tac_toe"), games.make("connect_four")

# At random

# Column 1 is full; the other six are empty.
NUM_GAMES = 3000


def test_legal_moves_are_equally_likely_with_value_0_and_no_key_is_used_twice():
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (NUM_GAMES,)),
        position(CONNECT_FOUR, [0] * 6),
    )
    with jax.debug_key_reuse(True):  # the reuse of a key raises an error
        compiled = jax.jit(RandomPlayer(CONNECT_FOUR).choose)
        choice = jax.device_get(compiled(jax.random.key(0), states))
    counts = np.bincount(choice.action, minlength=7)
    assert counts[0] == 0
    # Six standard deviations of a binomial count.
    expected = NUM_GAMES / 6
    np.testing.assert_allclose(counts[1:], expected, atol=6 * np.sqrt(expected * 5 / 6))
    np.testing.assert_allclose(choice.policy[0], [0, *[1 / 6] * 6], rtol=1e-6)
    np.testing.assert_array_equal(choice.value, 0)


# By a network's policy


def preferring(trained, policy_bias, value_bias, temperature=0.0) -> NetworkPlayer:
    """A player whose network has constant outputs."""
    variables = jax.tree.map(np.zeros_like, trained.variables)
    variables.params["policy_head"]["linear"]["bias"] = np.float32(policy_bias)
    variables.params["value_head"]["linear"]["bias"] = np.float32(value_bias)
    return NetworkPlayer(trained.game, trained.network, variables, temperature)


def chosen(player, states, seed=0):
    return jax.device_get(choose(player, jax.random.key(seed), states))


def test_the_legal_move_with_the_highest_logit_is_chosen(trained, states):
    # a3 is occupied in all three positions, b2 in two of them.
    player = preferring(trained, [9.0, 0, 0, 0, 8, 7, 0, 0, 0], [0.0, 0, 0])
    choice = chosen(player, states)
    np.testing.assert_array_equal(choice.action, [4, 5, 5])


def test_the_policy_is_a_softmax_over_legal_moves_and_the_value_win_minus_loss(
    trained, states
):
    logits = np.log([9.0, 1, 1, 1, 3, 1, 1, 1, 1]), np.log([0.5, 0.3, 0.2])
    choice = chosen(preferring(trained, *logits), states)
    np.testing.assert_allclose(choice.policy[0] * 10, [0, 1, 1, 1, 3, 1, 1, 1, 1], 1e-5)
    np.testing.assert_allclose(choice.policy[1] * 7, [0, 1, 1, 1, 0, 1, 1, 1, 1], 1e-5)
    np.testing.assert_allclose(choice.value, [0.3] * 3, rtol=1e-5)
    np.testing.assert_allclose(choice.draw, [0.3] * 3, rtol=1e-5)


def test_the_key_has_no_effect(trained, states):
    player = NetworkPlayer(trained.game, trained.network, trained.variables)
    chex.assert_trees_all_equal(chosen(player, states, 1), chosen(player, states, 2))


def test_with_a_temperature_moves_are_sampled_from_the_policy(trained):
    # A temperature of 0.5 squares the odds: 1 to 9 and 16 instead of 1 to 3 and 4.
    number = 2600
    player = preferring(trained, np.log([1.0, 3, 4, *[1e-9] * 6]), [0.0] * 3, 0.5)
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (number,)), trained.game.init()
    )
    choice = chosen(player, states)
    expected = np.array([1, 9, 16]) / 26
    np.testing.assert_allclose(choice.policy[0, :3], expected, rtol=1e-5)
    counts = np.bincount(choice.action, minlength=9)
    assert counts[:3].sum() == number
    # Six standard deviations of a binomial count.
    spread = 6 * np.sqrt(number * expected * (1 - expected))
    assert (abs(counts[:3] - number * expected) < spread).all()


def test_at_any_temperature_moves_are_legal(trained, states):
    legal = np.asarray(jax.jit(jax.vmap(trained.game.legal_action_mask))(states))
    for temperature in (1e-30, 100.0):
        player = preferring(trained, [90.0, *[0] * 8], [0.0] * 3, temperature)
        choice = chosen(player, states)
        assert legal[np.arange(3), np.asarray(choice.action)].all()
        assert (np.asarray(choice.policy)[~legal] == 0).all()
        np.testing.assert_allclose(choice.policy.sum(axis=1), 1, rtol=1e-5)


def test_with_symmetries_the_outputs_are_averaged_over_them(trained):
    # A linear policy that prefers the left column prefers no column on the average.
    player = preferring(trained, [5.0, 0, 0, 6, 0, 0, 7, 0, 0], [0.0] * 3)
    states = jax.tree.map(lambda leaf: leaf[None], trained.game.init())
    averaged = dataclasses.replace(player, use_symmetries=True)
    board = chosen(averaged, states).policy.reshape(3, 3)
    np.testing.assert_allclose(board, np.rot90(board), rtol=1e-5)
    assert board[0, 0] > board[0, 1] > board[1, 1]
    # The corners have 5 and 7, of four, the edges 6.
    odds = np.log(board[0, 0] / board[1, 1]), np.log(board[0, 1] / board[1, 1])
    np.testing.assert_allclose(odds, [12 / 4, 6 / 4], rtol=1e-5)


# By action values

CONFIG = QNetworkConfig(hidden=(8,))
legal_masks = jax.jit(jax.vmap(TIC_TAC_TOE.legal_action_mask))
draw = jax.jit(epsilon_greedy)


@pytest.fixture(scope="module")
def player():
    network, params = init_q_network(
        jax.random.key(0),
        TIC_TAC_TOE.observation_shape,
        TIC_TAC_TOE.num_actions,
        CONFIG,
    )
    return QPlayer(TIC_TAC_TOE, network, jax.tree.map(lambda leaf: leaf + 0.1, params))


def test_the_best_legal_move_is_chosen(player, states):
    choice = choose(player, jax.random.key(0), states)
    observation = jax.jit(jax.vmap(TIC_TAC_TOE.observe))(states)
    values = np.asarray(
        jax.jit(every_action_value, static_argnums=0)(
            player.network, player.params, observation, states.current_player
        )
    )
    legal = np.asarray(legal_masks(states))
    for row in range(3):
        best = max(np.flatnonzero(legal[row]), key=lambda action: values[row, action])
        assert choice.action[row] == best
        assert choice.value[row] == pytest.approx(values[row, best])
        np.testing.assert_array_equal(choice.policy[row], np.eye(9)[best])


def test_an_illegal_move_with_a_high_value_is_not_chosen():
    values = np.float32([[-np.inf, -0.9, -np.inf, -0.99]] * 20_000)
    for epsilon, actions in ((0.0, {1}), (1.0, {1, 3})):
        found = draw(jax.random.key(1), values, epsilon)
        assert set(np.asarray(found).tolist()) == actions


def test_epsilon_is_the_fraction_of_random_moves():
    values = np.float32([[0.1, 0.5, -np.inf, 0.2]] * 20_000)
    found = np.asarray(draw(jax.random.key(2), values, 0.3))
    shares = np.bincount(found, minlength=4) / len(found)
    # A random move is each of the three legal ones with equal probability; five
    # standard deviations are less than 0.02.
    np.testing.assert_allclose(shares, [0.1, 0.8, 0.0, 0.1], atol=0.02)


def test_moves_are_sampled_from_the_policy_by_the_key(player, states):
    random = QPlayer(TIC_TAC_TOE, player.network, player.params, 0.3)
    choice, again = (choose(random, jax.random.key(7), states) for _ in range(2))
    chex.assert_trees_all_equal(choice, again)
    policy, legal = np.asarray(choice.policy), np.asarray(legal_masks(states))
    np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-6)
    least = policy.min(axis=1, where=legal, initial=1)
    np.testing.assert_allclose(least, 0.3 / legal.sum(axis=1), atol=1e-6)
    assert (policy[~legal] == 0).all()


# A person


def ask(*answers):
    """Returns the decision after these answers, and the output."""
    written, source = [], unittest.mock.Mock(side_effect=answers)
    session = players.HumanPlayer(source, written.append).start_session(
        TIC_TAC_TOE, seed=0
    )
    try:
        return session.choose(TIC_TAC_TOE.init(), []), written
    finally:
        session.close()


def test_the_board_is_printed_before_asking():
    decision, written = ask("b2")
    assert decision == players.MoveDecision(4)
    assert written == ["\n" + TIC_TAC_TOE.to_text(TIC_TAC_TOE.init())]


def test_the_outcome_of_chance_is_printed_below_the_board():
    game, written = CoinToss(), []
    human = players.HumanPlayer(lambda prompt: "b2", written.append)
    session = human.start_session(game, seed=0)
    session.choose(position(game, [9]), [9])
    moves = [9, 0, 10]  # the player who moved first moves again
    state = position(game, moves)
    session.choose(state, moves)
    board = game.to_text(state, last_action=0)
    assert written == [f"\n{game.to_text(game.init())}\nheads", f"\n{board}\ntails"]


def test_invalid_input_is_explained_and_asked_again():
    decision, written = ask("", "z9", " B2 ")
    assert decision.action == 4
    assert "'z9' is no action of tic_tac_toe" in written[2]


@pytest.mark.parametrize(
    ("answer", "reason"), [("resign", "resigned"), (EOFError, "end of input")]
)
def test_resigning_or_the_end_of_input_forfeits(answer, reason):
    with pytest.raises(players.ForfeitError, match=reason):
        ask(answer)


def test_human_loads_a_human_player():
    player = players.load("human")
    assert isinstance(player, players.HumanPlayer)
    assert isinstance(player, players.ExternalPlayer)
    with pytest.raises(ValueError, match="unknown player 'human:x'"):
        players.load("human:x")


# The perfect player


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
    othello, message = (
        games.make("othello"),
        "plays connect_four, and ur .*, not othello",
    )
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
def test_it_wins_all_of_ten_games_in_which_it_moves_first(opponent):
    player = PerfectPlayer()
    opponent = players.load(opponent, CONNECT_FOUR)
    assert sum(play(player, opponent, seed) for seed in range(10)) == 10
