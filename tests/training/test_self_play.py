import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_games import batched
from training.tiny_runs import TINY_NETWORK
from untrained import untrained

from azjax import games
from azjax.players.model import evaluate, make_root
from azjax.search import AlphaZeroConfig, GumbelConfig, empty_tree
from azjax.training import SelfPlayConfig
from azjax.training.self_play import (
    SelfPlay,
    after_moves,
    make_self_play,
    random_openings,
    random_positions,
    start_games,
)

GAME = games.make("tic_tac_toe")
CONFIG = SelfPlayConfig(
    num_games=8,
    moves_per_chunk=12,
    num_simulations=(2, 3),
    temperature_moves=3,
    initial_position_fraction=0.5,
    short_opening_fraction=0.25,
    short_opening_moves=2,
    long_opening_moves=4,
)
CAPPED = dataclasses.replace(
    CONFIG, num_simulations=(8,), full_search_fraction=0.25, fast_simulations=2
)
SEARCHES = {"gumbel": GumbelConfig(), "alphazero": AlphaZeroConfig()}

first_games = jax.jit(start_games, static_argnums=(0, 1))


def make_play(game, search, config, **settings):
    """Returns a function that plays the first chunk of a key, on the host."""
    network, variables = untrained(game, TINY_NETWORK)
    play = make_self_play(game, network, search, config, **settings)

    def play_chunk(num_simulations, start, rng_key):
        start = jax.device_put(start, may_alias=False)  # is donated
        played = play(variables, np.int32(num_simulations), start, rng_key)
        return jax.device_get(played)

    return play_chunk


def of_moves(function, moves):
    """Returns a batched function of the positions of moves, `[T, B, ...]`."""
    shape = moves.terminated.shape
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), moves.state)
    found = np.asarray(function(states))
    return found.reshape(*shape, *found.shape[1:])


def legal_of(moves, game=GAME):
    return of_moves(batched(game).legal_action_mask, moves)


def count_stones(states, game=GAME):
    return np.asarray(batched(game).observe(states)).sum((-3, -2, -1))


@functools.cache
def played(algorithm):
    """Returns the start, two consecutive chunks, the first one again, and a chunk with
    shorter searches. A chunk is the games after it, the moves, their metrics and the
    values of their actions.
    """
    play = make_play(GAME, SEARCHES[algorithm], CONFIG)
    start = jax.device_get(first_games(GAME, CONFIG.num_games, jax.random.key(1)))
    keys = jax.random.split(jax.random.key(2), 2)
    first = play(3, start, keys[0])
    second = play(3, first[0], keys[1])
    return start, (first, second), play(3, start, keys[0]), play(2, start, keys[0])


@pytest.fixture(
    scope="module",
    params=["gumbel", pytest.param("alphazero", marks=pytest.mark.slow)],
)
def run(request):
    return played(request.param)


@pytest.fixture(scope="module")
def joined(run):
    """Returns both chunks as one of 24 moves."""
    first, second = run[1]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), first[1], second[1])


def test_only_legal_moves_are_played(joined):
    """Each move leads to the next position, or to the end of the game."""
    assert not joined.state.terminated.any()
    steps = jax.jit(
        jax.vmap(jax.vmap(jax.vmap(GAME.step, (None, 0)), (0, None)), (0, None))
    )
    after = steps(joined.state, np.arange(9))  # [T, B, A]
    following = jax.tree.map(lambda leaf: leaf[1:, :, None], joined.state)
    same = jax.tree.map(lambda a, b: np.asarray(a)[:-1] == b, after, following)
    is_successor = functools.reduce(np.logical_and, jax.tree.leaves(same))
    ended = joined.terminated[:-1]
    assert ((is_successor & legal_of(joined)[:-1]).any(-1) | ended).all()
    # The loser of an illegal move is its mover: no such reward occurs.
    assert (joined.reward >= 0).all()
    assert (joined.reward[~joined.terminated] == 0).all()


def test_a_finished_game_is_replaced_immediately(joined):
    stones = of_moves(count_stones, joined)
    ended = joined.terminated[:-1]
    assert joined.terminated.sum() > 8
    assert (stones[1:][ended] <= CONFIG.long_opening_moves).all()
    assert (np.diff(stones, axis=0)[~ended] == 1).all()


def test_games_are_carried_from_chunk_to_chunk(run):
    start, ((carried, moves, *_), (_, following, *_)), *_ = run
    for games_before, chunk in ((start, moves), (carried, following)):
        first = jax.tree.map(lambda leaf: leaf[0], chunk.state)
        jax.tree.map(np.testing.assert_array_equal, first, games_before.state)


def test_policies_are_distributions_over_legal_moves(run, joined):
    policy = joined.policy.probability
    np.testing.assert_allclose(policy.astype(np.float32).sum(-1), 1, atol=5e-3)
    assert (policy[~legal_of(joined)] == 0).all()
    assert run[1][1][2].policy_mass_lost == 0


def test_the_value_is_the_mean_of_the_visited_actions_values(run, joined):
    values = np.concatenate([chunk[3] for chunk in run[1]]).astype(np.float32)
    is_visited = np.isfinite(values)
    assert is_visited[legal_of(joined)].mean() < 1
    assert (values[~is_visited] == -np.inf).all()
    policy = np.where(is_visited, joined.policy.probability, 0).astype(np.float32)
    total = (policy * np.where(is_visited, values, 0)).sum(-1)
    np.testing.assert_allclose(total / policy.sum(-1), joined.value, atol=3e-3)
    assert (np.abs(joined.value) <= 1).all()
    assert ((joined.draw_probability >= 0) & (joined.draw_probability <= 1)).all()


def test_only_sampled_moves_have_a_regret(joined):
    """Moves after `temperature_moves` are the search's best ones."""
    assert ((joined.regret >= 0) & (joined.regret <= 2)).all()
    since = np.zeros(joined.terminated.shape, int)
    for move in range(1, len(since)):
        since[move] = np.where(joined.terminated[move - 1], 0, since[move - 1] + 1)
    is_sampled = since < CONFIG.temperature_moves
    assert (joined.regret[~is_sampled] == 0).all()


def test_some_sampled_moves_have_a_regret():
    """Searches of 3 simulations by PUCT hardly look at a second move."""
    chunks = played("gumbel")[1]
    assert np.mean([np.mean(moves.regret > 0) for _, moves, *_ in chunks]) > 0.05


def test_the_same_key_plays_the_same_chunk(run):
    _, (first, _), again, _ = run
    jax.tree.map(np.testing.assert_array_equal, again, first)


def test_the_metrics_agree_with_the_chunk(run):
    _, (_, (_, moves, metrics, _)), _, (_, _, of_short, _) = run
    assert metrics.games == moves.terminated.sum()
    first_moved = np.where(moves.state.current_player == 0, 1, -1)
    score = (moves.reward * first_moved).sum() / moves.terminated.sum()
    assert float(metrics.first_player_score) == pytest.approx(float(score), abs=1e-6)
    assert metrics.policy_entropy > 0
    # One program makes searches of several lengths.
    assert (metrics.root_visits, of_short.root_visits) == (3, 2)


def test_a_random_position_is_not_finished_and_keeps_its_limit():
    game = games.make("connect_four")
    limits = np.arange(500) % (game.max_moves + 1)
    draw = jax.jit(random_positions, static_argnums=0)
    state = jax.device_get(draw(game, jax.random.key(0), limits))
    stones = count_stones(state, game)
    assert not state.terminated.any()
    assert (stones <= np.minimum(limits, 3 * game.max_moves // 4)).all()
    assert len(set(stones.tolist())) > 5


def test_openings_follow_the_configured_mixture():
    config = SelfPlayConfig(
        initial_position_fraction=0.5,
        short_opening_fraction=0.5,
        short_opening_moves=1,
        long_opening_moves=6,
    )
    make = jax.jit(random_openings, static_argnums=(0, 1, 3))
    stones = count_stones(make(GAME, config, jax.random.key(0), 2000))
    # Half of the short ones are also empty: lengths are drawn from 0 to the limit.
    assert stones.max() == 1
    assert (stones == 0).mean() == pytest.approx(0.75, abs=0.05)


def test_the_first_games_are_spread_over_all_stages():
    start = jax.device_get(first_games(GAME, 200, jax.random.key(0)))
    assert not start.state.terminated.any()
    assert not start.moves.any()
    assert set(count_stones(start.state).tolist()) == {0, 1, 2, 3, 4, 5, 6}


# Searches that explore


@pytest.fixture(scope="module")
def explored():
    """Returns searches of the initial position with exploration, by PUCT."""
    network, variables = untrained(GAME, TINY_NETWORK)
    config = SelfPlayConfig(num_games=32)
    search_all = SelfPlay(GAME, network, AlphaZeroConfig(), config).search_all

    @jax.jit
    def search_first(variables, rng_key):
        states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 32), GAME.init())
        root = make_root(GAME, *evaluate(GAME, network, variables, states), states)
        return search_all(variables, jnp.int32(16), rng_key, root, None)

    return jax.device_get(search_first(variables, jax.random.key(0)))


def test_puct_plays_the_most_visited_move_where_it_explores(explored):
    """In its first moves, self-play samples from the policy instead."""
    played = explored.policy[np.arange(32), explored.edge]
    np.testing.assert_array_equal(played, explored.policy.max(axis=-1))


def test_noise_makes_puct_search_the_same_position_differently(explored):
    assert len(np.unique(explored.policy, axis=0)) > 1


def test_the_value_is_the_mean_of_the_qvalues_under_the_policy(explored):
    """Actions without visits have the value itself, so they do not change the mean."""
    mean = (explored.policy * explored.qvalues).sum(axis=-1)
    np.testing.assert_allclose(mean, explored.value, atol=1e-5)
    assert np.ptp(explored.qvalues, axis=-1).max() > 0


def test_the_policy_of_puct_is_above_0_at_visited_actions(explored):
    np.testing.assert_array_equal(explored.is_visited, explored.policy > 0)
    assert not explored.is_visited.all()


# Searches of two lengths


@pytest.fixture(scope="module")
def capped():
    """Returns the same chunk twice, with sparse policies and reused trees."""
    search = GumbelConfig(tree_reuse_nodes=20, use_solver=True)
    play = make_play(GAME, search, CAPPED, policy_entries=2)
    start = first_games(GAME, CAPPED.num_games, jax.random.key(1))
    return [play(8, start, jax.random.key(2))[1:] for _ in range(2)]


@pytest.mark.slow
def test_full_searches_store_policies_and_vary_from_move_to_move(capped):
    moves, metrics, policy_values = capped[0]
    probability = moves.policy.probability
    assert probability.shape == policy_values.shape == (12, 8, 2)
    total = probability.astype(np.float32).sum(axis=-1)
    has_policy = (probability != 0).any(axis=-1)
    np.testing.assert_array_equal(
        has_policy.sum(axis=1), CAPPED.full_games_of(CAPPED.num_games)
    )
    np.testing.assert_allclose(total[has_policy], 1, atol=5e-3)
    np.testing.assert_array_equal(total[~has_policy], 0)
    # The largest two of nine entries have at least two ninths.
    assert 0 < metrics.policy_mass_lost < 7 / 9
    assert len(np.unique(has_policy, axis=0)) > 3
    assert (has_policy.sum(axis=0) > 0).sum() > CAPPED.num_games // 2


@pytest.mark.slow
def test_games_with_fast_searches_follow_the_rules_and_are_deterministic(capped):
    jax.tree.map(np.testing.assert_array_equal, *capped)
    moves, metrics, _ = capped[0]
    assert (moves.reward >= 0).all()
    assert (np.abs(moves.value) <= 1).all()
    grew = np.diff(of_moves(count_stones, moves), axis=0)
    assert (grew[~moves.terminated[:-1]] == 1).all()
    assert metrics.games == moves.terminated.sum()


@pytest.mark.slow
def test_fast_searches_may_have_more_visits_with_reused_trees():
    """In the first stage of a run, searches can be shorter than `fast_simulations`."""
    network, variables = untrained(GAME, TINY_NETWORK)
    search = GumbelConfig(tree_reuse_nodes=4)
    config = dataclasses.replace(CAPPED, fast_simulations=8)
    play = make_self_play(GAME, network, search, config)
    start = first_games(GAME, CAPPED.num_games, jax.random.key(1))
    jax.eval_shape(play, variables, np.int32(2), start, jax.random.key(2))


# Kept trees


def test_a_finished_game_is_followed_by_an_empty_tree():
    """Else by the tree below the move."""
    moves = np.arange(9)
    first = jax.device_get(GAME.init())
    after = jax.device_get(jax.jit(jax.vmap(GAME.step, (None, 0)))(first, moves))
    states = jax.tree.map(lambda leaf: np.stack([leaf] * 4), first)
    make = jax.jit(functools.partial(empty_tree, num_actions=9, num_nodes=20))
    tree = jax.tree.map(np.array, make(states))
    # Of four games, after the first search.
    tree.node_visits[:, 0], tree.node_visits[:, 1:10] = 10, 1
    tree.parents[:, 1:10] = 0
    tree.action_from_parent[:, 1:10] = moves
    tree.children_index[:, 0] = 1 + moves
    tree.children_visits[:, 0] = 1
    for leaf, new in zip(*map(jax.tree.leaves, (tree.embeddings, after)), strict=True):
        leaf[:, 1:10] = new
    action, finished = np.array([0, 0, 1, 1]), np.array([False, True, False, True])
    keep = jax.jit(functools.partial(after_moves, max_nodes=5))
    kept = jax.device_get(keep(tree, action, None, finished))
    np.testing.assert_array_equal(kept.node_visits[finished], 0)
    np.testing.assert_array_equal(kept.children_index[finished], -1)
    np.testing.assert_array_equal(kept.node_visits[~finished, 0], 1)
    roots = jax.tree.map(lambda leaf: leaf[~finished, 0], kept.embeddings)
    expected = jax.tree.map(lambda leaf: leaf[action[~finished]], after)
    jax.tree.map(np.testing.assert_array_equal, roots, expected)


class FewLegalActions(games.TicTacToe):
    """Tic-tac-toe among 512 actions, of which action `50 * cell` marks a cell."""

    num_actions = 512
    max_legal_actions = 9
    symmetries = games.Game.symmetries

    def step(self, state, action):
        is_cell = (action % 50 == 0) & (action >= 0)
        return super().step(state, jnp.where(is_cell, action // 50, -1))

    def legal_action_mask(self, state):
        legal = super().legal_action_mask(state)
        return jnp.zeros(512, bool).at[50 * jnp.arange(9)].set(legal)


@pytest.mark.slow
def test_games_with_few_legal_actions_are_played_by_edges_with_reused_trees():
    """Moves, policies and values are those of actions; trees add root visits."""
    game = FewLegalActions()
    search = GumbelConfig(tree_reuse_nodes=20)
    config = dataclasses.replace(CONFIG, num_simulations=(8,))
    play = make_play(game, search, config, policy_entries=12)
    start = first_games(game, CONFIG.num_games, jax.random.key(1))
    _, moves, metrics, values = play(8, start, jax.random.key(2))
    assert not moves.state.terminated.any()
    legal = legal_of(moves, game)
    assert np.take_along_axis(legal, moves.action[..., None].astype(int), 2).all()
    is_legal = np.take_along_axis(legal, moves.policy.action.astype(int), 2)
    np.testing.assert_array_equal(moves.policy.probability[~is_legal], 0)
    total = moves.policy.probability.astype(np.float32).sum(-1)
    np.testing.assert_allclose(total, 1, atol=5e-3)
    np.testing.assert_array_equal(values[~is_legal], -np.inf)
    assert (np.isfinite(values).sum(-1) >= 1).all()
    assert 8 < metrics.root_visits < 8 + 20
