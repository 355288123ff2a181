"""A game in which a move gives another turn, through all that assumes whose turn it is.

It is solved by exhaustive search, and by a negamax of this file that counts moves.
"""

import dataclasses
import functools
import re
from concurrent.futures import Future

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from extra_turn import CENTRE, CentreAgain
from flax import struct
from training.tiny_runs import train_on_stored_games

from azjax import arena, games
from azjax.arena.exhaustive import solve
from azjax.games import registry
from azjax.games.adapters.pettingzoo import to_pettingzoo
from azjax.games.host import first_state, legal_actions, next_state, rewards
from azjax.networks import QNetworkConfig, init_q_network
from azjax.play.review import review
from azjax.play.session import Session
from azjax.players import (
    Choice,
    GreedyPlayer,
    MCTSPlayer,
    MinimaxPlayer,
    RandomPlayer,
    choose,
)
from azjax.players.model import is_illegal, make_root, recurrent_fn_of
from azjax.search import AlphaZeroConfig, GumbelConfig, improved_value
from azjax.search.conversion import root_bounds
from azjax.search.score_bounds import WIN, Bounds, is_proven, proven_value
from azjax.training.q_learning import (
    make_move_against,
    make_self_play_move,
    start_q_games,
)
from azjax.training.self_play import Trajectory
from azjax.training.targets import lambda_returns

GAME = CentreAgain()
KEY = jax.random.key(0)
LINES = [0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124]


def moves_of(mine, theirs):
    return [cell for cell in range(9) if not (mine | theirs) >> cell & 1]


@functools.cache
def exact_score(mine, theirs):
    """Returns the score of a position for the player to move, as in `score_bounds`;
    marks are bits."""
    if any(line & theirs == line for line in LINES):
        return -WIN
    scores = [score_of_move(mine, theirs, cell) for cell in moves_of(mine, theirs)]
    return max(scores, default=0)


def score_of_move(mine, theirs, cell):
    after = mine | 1 << cell
    has_won = any(line & after == line for line in LINES)
    if cell == CENTRE and not has_won and moves_of(after, theirs):
        score = exact_score(after, theirs)  # the same player moves again
    else:
        score = -exact_score(theirs, after)
    return score - int(np.sign(score))


def scores_of(states):
    """Returns the exact scores of positions, for the players to move."""
    first, second = (np.asarray(word).astype(int) for (word,) in states.stones)
    is_first = np.asarray(states.current_player) == 0
    mine, theirs = np.where(is_first, (first, second), (second, first))
    flat = zip(mine.ravel().tolist(), theirs.ravel().tolist(), strict=True)
    return np.array([exact_score(*pair) for pair in flat]).reshape(mine.shape)


@pytest.fixture(scope="module")
def solution():
    return solve(GAME)


@pytest.fixture(scope="module")
def unfinished(solution):
    """The unfinished positions, and their exact results and those of the actions."""
    goes_on = ~solution.states.terminated
    return (
        jax.tree.map(lambda leaf: leaf[goes_on], solution.states),
        solution.values[goes_on],
        solution.action_values[goes_on],
    )


def test_the_contract_allows_extra_turns_to_games_that_declare_them(capsys):
    games.check(GAME)
    assert re.search(r", extra turns after \d\d of them, ", capsys.readouterr().out)

    class Undeclared(CentreAgain):
        name = "undeclared"
        has_extra_turns = False

    with pytest.raises(games.ContractError, match=r"take turns.*has_extra_turns"):
        games.check(Undeclared())


def test_exhaustive_search_finds_the_results_of_negamax(solution):
    np.testing.assert_array_equal(solution.values, np.sign(scores_of(solution.states)))
    # The first player wins by the centre only.
    assert solution.values[0] == 1
    np.testing.assert_array_equal(np.flatnonzero(solution.action_values[0] > 0), [4])


def some_of(unfinished, number, least_moves=0):
    """Returns so many of the unfinished positions after at least so many moves."""
    states, *known = unfinished
    marks = sum(np.bitwise_count(word) for (word,) in states.stones)
    rows = np.flatnonzero(marks >= least_moves)
    rows = rows[np.linspace(0, len(rows) - 1, number).astype(int)]
    return jax.tree.map(lambda leaf: leaf[rows], (states, *known))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("player", "least_moves"), [(MinimaxPlayer(GAME, 7), 2), (MCTSPlayer(GAME, 500), 0)]
)
def test_players_without_a_network_find_the_best_moves(player, least_moves, unfinished):
    states, values, action_values = some_of(unfinished, 128, least_moves)
    choice = choose(player, KEY, states)
    chosen = action_values[np.arange(len(values)), choice.action]
    np.testing.assert_array_equal(chosen, values)
    assert np.abs(choice.value - values).mean() < 0.15


def test_greedy_wins_at_once_or_avoids_the_opponents_wins(unfinished):
    states, values, _ = unfinished
    choice = choose(GreedyPlayer(GAME), KEY, states)
    assert (values[np.asarray(choice.value) == 1] == 1).all()
    assert (values[np.asarray(choice.value) == -1] == -1).all()
    # After the centre the opponent has no reply.
    after = next_state(GAME, first_state(GAME), CENTRE)
    assert int(after.current_player) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [AlphaZeroConfig(use_solver=True), GumbelConfig(use_solver=True)],
    ids=["alphazero", "gumbel"],
)
def test_searches_prove_results_and_converge_to_them(config, unfinished):
    states, values, action_values = some_of(unfinished, 64)

    def know_nothing(variables, rng_key, states):
        del variables, rng_key
        legal = jax.vmap(GAME.legal_action_mask)(states)
        logits = jnp.where(legal, 0.0, jnp.finfo(jnp.float32).min)
        return logits, jnp.full((len(legal), 3), 1 / 3)

    @functools.partial(jax.jit, static_argnums=0)
    def search(config, states):
        root = make_root(GAME, *know_nothing(None, None, states), states)
        return config.policy(explores=False)(
            None,
            KEY,
            root,
            recurrent_fn_of(GAME, know_nothing),
            300,
            invalid_actions=is_illegal(root.prior_logits),
            max_depth=GAME.max_moves,
        )

    output = search(config, states)
    tree = output.search_tree
    used, exact = np.asarray(tree.node_visits > 0), scores_of(tree.embeddings)
    assert (np.asarray(tree.lower) <= exact)[used].all()
    assert (np.asarray(tree.upper) >= exact)[used].all()
    bounds = Bounds(*(np.asarray(bound) for bound in (tree.lower, tree.upper)))
    is_known = (
        np.asarray(is_proven(bounds)) & used & ~np.asarray(tree.embeddings.terminated)
    )
    assert is_known[:, 0].mean() > 0.7
    np.testing.assert_array_equal(
        np.asarray(tree.node_values)[is_known], np.sign(exact)[is_known]
    )
    lower, upper = root_bounds(tree)
    for bound, kind in (lower, np.less_equal), (upper, np.greater_equal):
        is_searched = np.asarray(tree.children_index[:, 0] >= 0)
        assert kind(np.sign(bound), action_values)[is_searched].all()
    proven_root = is_known[:, 0]
    np.testing.assert_array_equal(
        np.asarray(proven_value(bounds))[:, 0][proven_root], values[proven_root]
    )
    # Without the solver the values converge.
    output = search(type(config)(), states)
    chosen = action_values[np.arange(64), output.action]
    assert (chosen == values).mean() > 0.95
    assert np.abs(improved_value(output) - values).mean() < 0.25


def random_games(number):
    """Yields the states, actions and results for player 0 of random games."""
    generator = np.random.default_rng(0)
    for _ in range(number):
        state, states, actions = first_state(GAME), [], []
        while not state.terminated:
            states.append(state)
            actions.append(int(generator.choice(legal_actions(GAME, state))))
            state = next_state(GAME, state, actions[-1])
        yield states, actions, rewards(GAME, state)[0]


def test_value_targets_are_the_result_for_the_player_to_move():
    states, _, results = zip(*random_games(20), strict=True)
    players = [[int(state.current_player) for state in game] for game in states]
    for game, result in zip(players, results, strict=True):
        sign = 1 - 2 * np.array(game)[:, None]
        ended = np.arange(len(game))[:, None] == len(game) - 1
        nothing = np.zeros(sign.shape, np.float32)
        moves = Trajectory(
            state=dataclasses.replace(
                first_state(GAME), current_player=np.array(game)[:, None]
            ),
            action=None,
            policy=None,
            value=nothing,
            draw_probability=nothing,
            regret=nothing,
            reward=np.where(ended, result * sign, 0).astype(np.float32),
            terminated=ended,
        )
        target = np.asarray(lambda_returns(moves, td_lambda=1.0), np.float32)
        np.testing.assert_array_equal(target[..., 0] - target[..., 2], result * sign)


@struct.dataclass
class CentrePlayer:
    """Takes the centre if it is free, else the last free cell."""

    game: games.Game = struct.field(pytree_node=False, default=GAME)

    def choose(self, rng_key, states):
        del rng_key
        legal = jax.vmap(self.game.legal_action_mask)(states)
        last = 8 - legal[:, ::-1].argmax(axis=1)
        action = jnp.where(legal[:, CENTRE], CENTRE, last).astype(jnp.int32)
        return Choice(action, legal.astype(jnp.float32), jnp.zeros(len(legal)))


@pytest.mark.parametrize("opponent", [None, CentrePlayer()])
def test_q_learning_takes_the_value_of_the_players_own_next_turn_as_it_is(opponent):
    network, params = init_q_network(KEY, (3, 3, 2), 9, QNetworkConfig(hidden=(4,)))
    move = make_self_play_move(GAME, network)
    if opponent:
        move = make_move_against(GAME, network, opponent)

    @jax.jit
    def play():
        def step(state, rng_key):
            return move(params, state, jnp.float32(1), rng_key)

        keys = jax.random.split(KEY, 40)
        return jax.lax.scan(step, start_q_games(GAME, 16, KEY), keys)[1]

    moves = play()
    learned = np.asarray(moves.is_move & (moves.discount != 0))
    is_same = np.asarray(moves.next_state.current_player == moves.state.current_player)
    np.testing.assert_array_equal(
        np.asarray(moves.discount)[learned], np.where(is_same, 1, -1)[learned]
    )
    again = learned & (np.asarray(moves.action) == CENTRE)
    assert is_same[again].all()
    if opponent:  # it has made all its moves before the learner's next one
        assert is_same[learned].all()
        marks = [
            sum(np.bitwise_count(word) for (word,) in state.stones)
            for state in (moves.state, moves.next_state)
        ]
        assert set((marks[1] - marks[0])[again]) == {1}
        assert 3 in (marks[1] - marks[0])[learned]  # its centre, and another one
    else:
        assert not is_same[learned & ~again].any()


@pytest.mark.slow
def test_matches_record_the_moves_and_results_of_both_players():
    players = MinimaxPlayer(GAME, 7), RandomPlayer(GAME)
    found = arena.play_match(GAME, *players, KEY, 64, opening_moves=2)
    assert not any(found.faults)
    num_again = 0
    for number, (row, result) in enumerate(
        zip(found.moves.tolist(), found.results.tolist(), strict=True)
    ):
        state, actions = first_state(GAME), [action for action in row if action >= 0]
        assert row[: len(actions)] == actions
        for place, action in enumerate(actions):
            # Minimax wins or holds every position that it can.
            assert action in legal_actions(GAME, state)
            num_again += action == CENTRE and place >= 2
            state = next_state(GAME, state, action)
        assert state.terminated
        assert result == rewards(GAME, state)[number % 2]
    assert num_again > 10
    assert found.results.mean() > 0.5


@pytest.mark.slow
def test_a_review_compares_the_values_for_the_player_who_moved():
    perfect = MinimaxPlayer(GAME, 9)
    for states, actions, _ in random_games(5):
        found = list(review(GAME, actions, perfect, perfect))
        for state, move in zip(states, found, strict=True):
            player = int(state.current_player)
            sign = 1 - 2 * player
            before = np.sign(scores_of(jax.tree.map(lambda leaf: leaf[None], state)))[0]
            assert (move.player, move.exact_before) == (player, sign * before)
            assert bool(move.mark) == (
                sign * (move.exact_before - move.exact_after) > 0
            )


def test_an_environment_and_its_agents_follow_the_turns():
    env = games.VectorEnv(GAME, num_envs=2)
    state, step = env.reset(KEY)
    state, step = env.step(state, np.array([CENTRE, 0], np.int32))
    np.testing.assert_array_equal(step.current_player, [0, 1])
    agents = to_pettingzoo(GAME)
    agents.reset()
    for action, agent in (CENTRE, "player_0"), (0, "player_1"), (1, "player_0"):
        agents.step(action)
        assert agents.agent_selection == agent


def test_a_person_moves_again_before_the_opponent_answers():
    def at_once(work, then):
        outcome = Future()
        outcome.set_result(work())
        then(outcome)

    session = Session(GAME, RandomPlayer(GAME), at_once, name="random", user=0)
    session.begin()
    session.do("b2")  # the centre
    assert (len(session.moves), session.is_persons_turn) == (1, True)
    session.do("a1")
    assert (len(session.moves), session.is_persons_turn) == (3, True)
    session.do("back")
    assert (len(session.moves), session.is_persons_turn) == (1, True)


@pytest.mark.slow
def test_stored_games_say_who_moved_and_teach_another_run(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._GAMES, GAME.name, CentreAgain)
    player, move, reward, follows = train_on_stored_games(
        tmp_path, GAME.name, 3, "player", "move", "reward"
    )
    again = follows & (move[:-1] == CENTRE)
    assert again.any()
    np.testing.assert_array_equal((player[1:] == player[:-1])[follows], again[follows])
    assert set(reward) == {0.0, 1.0}  # nobody loses by a legal move
