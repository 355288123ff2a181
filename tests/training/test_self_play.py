import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import first_network
from azjax.search import AlphaZeroConfig, GumbelConfig, empty_tree
from azjax.training import SelfPlayConfig
from azjax.training.self_play import (
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
    initial_position_fraction=0.5,
    short_opening_fraction=0.25,
    short_opening_moves=2,
    long_opening_moves=4,
)
NETWORK = NetworkConfig(
    trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
)
SEARCHES = {
    "gumbel": GumbelConfig(),
    "alphazero": AlphaZeroConfig(),
}

first_games = jax.jit(start_games, static_argnums=(0, 1))
legal_actions = jax.jit(jax.vmap(jax.vmap(GAME.legal_action_mask)))


@jax.jit
def count_stones(states):
    return jax.vmap(jax.vmap(GAME.observe))(states).sum((-3, -2, -1))


@functools.cache
def played(algorithm):
    """Returns two consecutive chunks, with the games before and after them.

    Also returns the metrics of a trajectory with shorter searches, and the values of
    the actions in both chunks.
    """
    network, variables = first_network(0, GAME, NETWORK)
    play = make_self_play(GAME, network, SEARCHES[algorithm], CONFIG)
    start = first_games(GAME, CONFIG.num_games, jax.random.key(1))
    carried, chunks, values = jax.tree.map(jnp.copy, start), [], []
    for key in jax.random.split(jax.random.key(2), 2):
        carried, *made, metrics, policy_values = play(
            variables, jnp.int32(3), carried, key
        )
        chunks += made
        values.append(policy_values)
    again = play(
        variables,
        jnp.int32(3),
        jax.tree.map(jnp.copy, start),
        jax.random.split(jax.random.key(2), 2)[0],
    )
    short = play(
        variables, jnp.int32(2), jax.tree.map(jnp.copy, start), jax.random.key(2)
    )
    return start, chunks, carried, metrics, again[1], short[2], values


@pytest.fixture(
    scope="module",
    params=["gumbel", pytest.param("alphazero", marks=pytest.mark.slow)],
)
def run(request):
    return played(request.param)


@pytest.fixture(scope="module")
def joined(run):
    """Returns both chunks as one of 24 moves, in NumPy."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *run[1])


def test_only_legal_moves_are_played(joined):
    """Each move leads to the next position, or to the end of the game."""
    steps = jax.jit(
        jax.vmap(jax.vmap(jax.vmap(GAME.step, (None, 0)), (0, None)), (0, None))
    )
    after = steps(joined.state, jnp.arange(9))  # [T, B, A]
    legal = legal_actions(joined.state)
    following = jax.tree.map(lambda leaf: leaf[1:, :, None], joined.state)
    same = jax.tree.map(lambda a, b: np.asarray(a[:-1] == b), after, following)
    is_successor = functools.reduce(np.logical_and, jax.tree.leaves(same))
    continues = ~joined.terminated[:-1]
    assert ((is_successor & np.asarray(legal[:-1])).any(-1) | ~continues).all()
    # The loser of an illegal move is its mover: no such reward occurs.
    assert (joined.reward >= 0).all()


def test_no_position_in_a_chunk_is_finished(joined):
    assert not joined.state.terminated.any()


def test_a_finished_game_is_replaced_immediately(joined):
    stones = count_stones(joined.state)
    began = np.asarray(stones[1:])[joined.terminated[:-1]]
    assert joined.terminated.sum() > 8
    assert (began <= CONFIG.long_opening_moves).all()
    continues = ~joined.terminated[:-1]
    grew = np.asarray(stones[1:] - stones[:-1])
    assert (grew[continues] == 1).all()


def test_games_are_carried_from_chunk_to_chunk(run):
    start, chunks, *_ = run
    first = jax.tree.map(lambda leaf: leaf[0], chunks[0].state)
    jax.tree.map(np.testing.assert_array_equal, first, start.state)
    assert not run[2].state.terminated.any()


def test_only_the_last_move_of_a_game_has_a_reward(joined):
    assert (joined.reward[~joined.terminated] == 0).all()


def test_policies_are_distributions_over_legal_moves(joined):
    legal = legal_actions(joined.state)
    policy = joined.policy.probability
    np.testing.assert_allclose(policy.astype(np.float32).sum(-1), 1, atol=5e-3)
    assert (policy[~np.asarray(legal)] == 0).all()


def test_values_lie_in_their_range(joined):
    assert (np.abs(joined.value) <= 1).all()
    assert ((joined.draw_probability >= 0) & (joined.draw_probability <= 1)).all()


def test_the_value_is_the_mean_of_the_visited_actions_values(run, joined):
    values = np.concatenate(run[6]).astype(np.float32)
    is_visited = np.isfinite(values)
    assert is_visited[np.asarray(legal_actions(joined.state))].mean() < 1
    assert (values[~is_visited] == -np.inf).all()
    policy = np.where(is_visited, joined.policy.probability, 0).astype(np.float32)
    total = (policy * np.where(is_visited, values, 0)).sum(-1)
    np.testing.assert_allclose(total / policy.sum(-1), joined.value, atol=3e-3)


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
    assert np.mean([np.mean(chunk.regret > 0) for chunk in chunks]) > 0.05


def test_the_same_key_plays_the_same_chunk(run):
    jax.tree.map(np.testing.assert_array_equal, run[4], run[1][0])


def test_the_metrics_agree_with_the_chunk(run):
    trajectory, metrics = run[1][1], run[3]
    assert metrics.games == trajectory.terminated.sum()
    first_moved = np.where(trajectory.state.current_player == 0, 1, -1)
    score = (trajectory.reward * first_moved).sum() / trajectory.terminated.sum()
    assert float(metrics.first_player_score) == pytest.approx(float(score), abs=1e-6)
    assert metrics.policy_entropy > 0


def num_stones(state, game=GAME):
    observe = jax.jit(jax.vmap(game.observe))
    return np.asarray(observe(state)).sum((-3, -2, -1))


@pytest.mark.parametrize("name", ["connect_four", "gomoku:6,6,5", "tic_tac_toe"])
def test_a_random_position_is_not_finished_and_keeps_its_limit(name):
    game = games.make(name)
    limits = jnp.arange(500) % (game.max_moves + 1)
    draw = jax.jit(random_positions, static_argnums=0)
    state = draw(game, jax.random.key(0), limits)
    stones = num_stones(state, game)
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
    stones = num_stones(make(GAME, config, jax.random.key(0), 2000))
    # Half of the short ones are also empty: lengths are drawn from 0 to the limit.
    assert stones.max() == 1
    assert (stones == 0).mean() == pytest.approx(0.75, abs=0.05)


def test_the_first_games_are_spread_over_all_stages():
    config = SelfPlayConfig(num_games=200)
    start = first_games(GAME, config.num_games, jax.random.key(0))
    assert not start.state.terminated.any()
    assert (start.moves == 0).all()
    assert set(num_stones(start.state).tolist()) == {0, 1, 2, 3, 4, 5, 6}


def test_dense_policies_lose_no_mass(run):
    assert run[3].policy_mass_lost == 0


# Searches of two lengths


CAPPED = dataclasses.replace(
    CONFIG, num_simulations=(8,), full_search_fraction=0.25, fast_simulations=2
)


@pytest.fixture(scope="module")
def capped():
    """Returns two chunks from the same key, with sparse policies, their metrics and the
    values of the actions."""
    network, variables = first_network(0, GAME, NETWORK)
    search = GumbelConfig(tree_reuse_nodes=20, use_solver=True)
    play = make_self_play(GAME, network, search, CAPPED, policy_entries=2)
    start = first_games(GAME, CAPPED.num_games, jax.random.key(1))
    rest = (jnp.int32(8), start, jax.random.key(2))
    play = play.lower(variables, *rest).compile()
    return [play(variables, *jax.tree.map(jnp.copy, rest))[1:] for _ in range(2)]


@pytest.mark.slow
def test_each_full_search_stores_a_policy_target(capped):
    trajectory, *_ = jax.device_get(capped[0])
    probability = trajectory.policy.probability
    total = probability.astype(np.float32).sum(axis=-1)
    has_policy = (probability != 0).any(axis=-1)
    np.testing.assert_array_equal(
        has_policy.sum(axis=1), CAPPED.full_games_of(CAPPED.num_games)
    )
    np.testing.assert_allclose(total[has_policy], 1, atol=5e-3)
    np.testing.assert_array_equal(total[~has_policy], 0)


@pytest.mark.slow
def test_the_dropped_policy_mass_is_measured(capped):
    trajectory, metrics, policy_values = capped[0]
    assert trajectory.policy.probability.shape == policy_values.shape == (12, 8, 2)
    # The largest two of nine entries have at least two ninths.
    assert 0 < metrics.policy_mass_lost < 7 / 9


@pytest.mark.slow
def test_full_searches_vary_from_move_to_move(capped):
    has_policy = (np.asarray(capped[0][0].policy.probability) != 0).any(axis=-1)
    assert len(np.unique(has_policy, axis=0)) > 3
    assert (has_policy.sum(axis=0) > 0).sum() > CAPPED.num_games // 2


@pytest.mark.slow
def test_games_with_fast_searches_follow_the_rules(capped):
    trajectory, metrics, _ = jax.device_get(capped[0])
    assert (trajectory.reward >= 0).all()
    assert (np.abs(trajectory.value) <= 1).all()
    stones = count_stones(trajectory.state)
    continues = ~trajectory.terminated[:-1]
    assert (np.asarray(stones[1:] - stones[:-1])[continues] == 1).all()
    assert metrics.games == trajectory.terminated.sum()


@pytest.mark.slow
def test_self_play_with_reused_trees_and_fast_searches_is_deterministic(capped):
    jax.tree.map(np.testing.assert_array_equal, *capped)


def test_fast_searches_may_have_more_visits_with_reused_trees():
    """In the first stage of a run, searches can be shorter than `fast_simulations`."""
    network, variables = first_network(0, GAME, NETWORK)
    play = make_self_play(
        GAME,
        network,
        GumbelConfig(tree_reuse_nodes=4),
        dataclasses.replace(CAPPED, fast_simulations=8),
    )
    start = first_games(GAME, CAPPED.num_games, jax.random.key(1))
    rest = (jnp.int32(2), start, jax.random.key(2))
    jax.eval_shape(play, variables, *rest)


# Kept trees


@pytest.mark.slow
def test_reused_trees_add_root_visits():
    network, variables = first_network(0, GAME, NETWORK)
    config = dataclasses.replace(CONFIG, num_simulations=(8,))
    search = GumbelConfig(tree_reuse_nodes=20)
    play = make_self_play(GAME, network, search, config)
    start = first_games(GAME, CONFIG.num_games, jax.random.key(1))
    rest = (jnp.int32(8), start, jax.random.key(2))
    play = play.lower(variables, *rest).compile()
    _, trajectory, metrics, _ = play(variables, *rest)
    assert 8 < metrics.root_visits < 8 + 20
    assert not trajectory.state.terminated.any()
    total = trajectory.policy.probability.astype(np.float32).sum(-1)
    np.testing.assert_allclose(total, 1, atol=5e-3)


def test_root_visits_equal_simulations_without_tree_reuse(run):
    assert run[3].root_visits == 3


def test_one_program_makes_searches_of_several_lengths(run):
    assert run[5].root_visits == 2


def test_a_finished_game_is_followed_by_an_empty_tree(searched):
    tree, states = searched
    action = jnp.array([0, 0, 1, 1])
    finished = jnp.array([False, True, False, True])
    keep = jax.jit(functools.partial(after_moves, max_nodes=5))
    kept = jax.device_get(keep(tree, action, finished))
    np.testing.assert_array_equal(kept.node_visits[finished], 0)
    np.testing.assert_array_equal(kept.children_index[finished], -1)
    after = jax.device_get(jax.jit(jax.vmap(GAME.step))(states, action))
    for game in (0, 2):
        moved_to = tree.children_index[game, 0, action[game]]
        assert moved_to > 0
        assert kept.node_visits[game, 0] == tree.node_visits[game, moved_to]
        jax.tree.map(
            lambda leaf, wanted, game=game: np.testing.assert_array_equal(
                leaf[game, 0], wanted[game]
            ),
            kept.embeddings,
            after,
        )


@pytest.fixture(scope="module")
def searched():
    """Returns trees of four games after their first search, and the games."""
    return jax.device_get(jax.jit(make_searched)())


def make_searched():
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), GAME.init())
    tree = empty_tree(states, 9, 20)
    moves = jnp.arange(9)
    after = jax.vmap(GAME.step, (None, 0))(GAME.init(), moves)
    return (
        tree.replace(
            node_visits=tree.node_visits.at[:, 0].set(10).at[:, 1:10].set(1),
            parents=tree.parents.at[:, 1:10].set(0),
            action_from_parent=tree.action_from_parent.at[:, 1:10].set(moves),
            children_index=tree.children_index.at[:, 0].set(1 + moves),
            children_visits=tree.children_visits.at[:, 0].set(1),
            embeddings=jax.tree.map(
                lambda leaf, new: leaf.at[:, 1:10].set(new), tree.embeddings, after
            ),
        ),
        states,
    )


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


@pytest.mark.parametrize("reuse", [0, 20])
def test_games_with_few_legal_actions_are_played_by_edges(reuse):
    """Moves, policies and values are those of actions, also with reused trees."""
    game = FewLegalActions()
    network, variables = first_network(0, game, NETWORK)
    search = GumbelConfig(tree_reuse_nodes=reuse)
    config = dataclasses.replace(CONFIG, num_simulations=(8,))
    play = make_self_play(game, network, search, config, policy_entries=12)
    start = start_games(game, CONFIG.num_games, jax.random.key(1))
    _, moves, metrics, values = play(variables, jnp.int32(8), start, jax.random.key(2))
    moves, values = jax.device_get((moves, values))
    legal = np.asarray(jax.vmap(jax.vmap(game.legal_action_mask))(moves.state))
    assert np.take_along_axis(legal, moves.action[..., None].astype(int), 2).all()
    is_legal = np.take_along_axis(legal, moves.policy.action.astype(int), 2)
    np.testing.assert_array_equal(moves.policy.probability[~is_legal], 0)
    np.testing.assert_allclose(moves.policy.probability.sum(-1), 1, atol=1e-2)
    np.testing.assert_array_equal(values[~is_legal], -np.inf)
    visited = np.isfinite(values).sum(-1)
    assert (visited >= 1).all()
    assert (metrics.root_visits > 8) == (reuse > 0)
