"""A game with chance, through search and training."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from coin_toss import CoinToss
from training.tiny_runs import config, train_on_stored_games

from azjax import games
from azjax.arena.exhaustive import solve
from azjax.data.rows import from_table
from azjax.devices import tracing_for
from azjax.games import registry
from azjax.games.core import initial_states
from azjax.games.host import first_state, next_state, rewards
from azjax.games.random_moves import play_random_moves
from azjax.networks import QNetworkConfig, init_q_network
from azjax.players import MCTSPlayer, choose
from azjax.players.model import is_illegal, make_root, recurrent_fn_of
from azjax.search import (
    AlphaZeroConfig,
    GumbelConfig,
    improved_value,
    init_trees,
    search_bytes,
    tree_bytes,
)
from azjax.training.game_reader import make_check, moves_of
from azjax.training.q_learning import make_self_play_move, start_q_games
from azjax.training.self_play import Trajectory, after_moves
from azjax.training.targets import lambda_returns
from azjax.training.territory import training_network

GAME = CoinToss()
KEY = jax.random.key(0)


def guess(game, sharpness, states):
    """Returns logits and results, fixed functions of the positions; with a sharpness of
    0 all legal actions are equally likely and all results are even."""
    legal = jax.vmap(game.legal_action_mask)(states)
    seen = jax.vmap(game.observe)(states).reshape(len(legal), -1)
    weights = np.random.default_rng(0).normal(size=(18, 10))
    drawn = sharpness * jnp.sin(seen @ weights)
    logits = jnp.where(legal, 2 * drawn[:, 1:], jnp.finfo(jnp.float32).min)
    win = (1 + drawn[:, :1]) / 2
    return logits, jnp.concatenate([win, 0 * win, 1 - win], axis=1)


@functools.partial(
    jax.jit, static_argnums=(0, 1, 2), static_argnames=("platform", "sharpness")
)
def search(
    game, config, num_simulations, states, *, tree=None, platform="cpu", sharpness=1.0
):
    """Searches with a model of `guess`, and returns the output."""
    evaluate = functools.partial(guess, game, sharpness)
    with tracing_for(platform):
        root = make_root(game, *evaluate(states), states)
        return config.policy(explores=False)(
            None,
            KEY,
            root,
            recurrent_fn_of(game, lambda variables, key, states: evaluate(states)),
            num_simulations,
            invalid_actions=is_illegal(root.prior_logits),
            max_depth=game.max_moves,
            tree=tree,
        )


@functools.partial(jax.jit, static_argnums=(0, 1))
def positions(game, number, num_moves):
    """Returns positions after random moves, none of which waits for chance."""
    states = initial_states(game, number)
    return play_random_moves(game, KEY, states, jnp.full(number, num_moves))


def nodes_of(tree):
    """Yields the used nodes of all trees, as (tree without batch axis, index)."""
    for game in range(len(tree.node_visits)):
        one = jax.tree.map(lambda leaf: leaf[game], tree)  # noqa: B023
        for node in np.flatnonzero(one.node_visits):
            yield one, node


def state_of(tree, node):
    return jax.tree.map(lambda leaf: leaf[node], tree.embeddings)


@pytest.fixture(scope="module", params=[GumbelConfig(), AlphaZeroConfig()])
def searched(request):
    output = search(GAME, request.param, 100, positions(GAME, 4, 2))
    return request.param, jax.device_get(output.search_tree)


def check_chance_nodes(tree):
    """The outcomes of chance nodes were visited as often as the rule says, and the
    values are their weighted means; the other nodes do not wait. Returns the number of
    chance nodes."""
    num_chance = 0
    for one, node in nodes_of(tree):
        assert bool(one.embeddings.waits[node]) == one.is_chance[node]
        if not one.is_chance[node]:
            continue
        num_chance += 1
        visits = one.children_visits[node]
        assert visits.sum() == one.node_visits[node] > 0
        probability = np.asarray(GAME.chance(state_of(one, node)))
        np.testing.assert_allclose(
            np.exp(one.children_prior_logits[node])[:3], probability, rtol=1e-6
        )
        expected = np.zeros(9, int)
        for _ in range(visits.sum()):
            expected[np.argmax(probability / (expected[:3] + 1))] += 1
        np.testing.assert_array_equal(visits, expected)
        values = one.children_rewards + one.children_discounts * one.children_values
        weights = probability * (visits[:3] > 0)
        mean = (weights * values[node, :3]).sum() / weights.sum()
        np.testing.assert_allclose(one.node_values[node], mean, atol=1e-5)
    return num_chance


def test_chance_nodes_have_the_likeliest_outcomes_and_their_weighted_value(searched):
    assert check_chance_nodes(searched[1]) > 100


class MixedToss(CoinToss):
    """A coin that falls on behalf of the player who moved, after marks in the corners
    and the centre; there is no coin after the other marks."""

    name = "mixed_toss"

    def step(self, state, action):
        after = super().step(state, action)
        waits = after.waits & (action % 2 == 0)
        player = jnp.where(waits, state.current_player, after.current_player)
        return dataclasses.replace(after, waits=waits, current_player=player)


class Reference:
    """PUCT with chance nodes, in plain Python, one position at a time."""

    def __init__(self, game, config):
        self.game, self.config = game, config
        self.evaluate = jax.jit(functools.partial(guess, game, 1.0))
        self.chance = jax.jit(game.chance)

    def look(self, state):
        """Returns the prior, 0 where illegal, and the value."""
        states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
        logits, [[win, _, loss]] = self.evaluate(states)
        return np.asarray(jax.nn.softmax(logits[0])), float(win - loss)

    def node(self, state, reward=0.0, sign=0.0):
        chance = np.asarray(self.chance(state))
        node = {"state": state, "reward": reward, "sign": sign, "children": {}}
        if chance.any():
            return node | {"chance": chance, "visits": 0, "value": 0.0}
        prior, value = self.look(state)
        value = 0.0 if state.terminated else value
        return node | {"chance": None, "prior": prior, "visits": 0, "value": value}

    def qvalue(self, child):
        return child["reward"] + child["sign"] * child["value"]

    def select(self, node):
        counts = np.zeros(9)
        for move, child in node["children"].items():
            counts[move] = child["visits"]
        if node["chance"] is not None:
            return int(np.argmax(node["chance"] / (counts[:3] + 1)))
        values = np.full(9, -1.0)
        for move, child in node["children"].items():
            values[move] = self.qvalue(child)
        visits, base = node["visits"], self.config.c_base
        rate = self.config.c_init + np.log((visits + base + 1) / base)
        exploration = np.sqrt(visits) * rate * node["prior"] / (counts + 1)
        scores = (values + 1) / 2 + exploration
        return int(np.argmax(np.where(node["prior"] > 0, scores, -np.inf)))

    def after(self, node, move):
        state = node["state"]
        offset = 0 if node["chance"] is None else 9
        after = next_state(self.game, state, offset + move)
        mover, sign = int(state.current_player), 1.0
        if int(after.current_player) != mover:
            sign = -1.0
        if after.terminated:
            return self.node(after, rewards(self.game, after)[mover], 0.0)
        return self.node(after, 0.0, sign)

    def search(self, state, num_simulations):
        """Returns the visits and values of the root's moves."""
        root = self.node(state)
        root["visits"] = 1
        for _ in range(num_simulations):
            path, is_new = [root], False
            while not is_new or path[-1]["chance"] is not None:
                if path[-1]["state"].terminated:
                    break
                move = self.select(path[-1])
                is_new = move not in path[-1]["children"]
                if is_new:
                    path[-1]["children"][move] = self.after(path[-1], move)
                path.append(path[-1]["children"][move])
            backup = path[-1]["value"]
            for node in reversed(path):
                if node is not path[-1]:
                    mean = node["value"] * node["visits"] + backup
                    node["value"] = mean / (node["visits"] + 1)
                node["visits"] += 1
                if node["chance"] is not None:
                    weights = [node["chance"][move] for move in node["children"]]
                    values = [self.qvalue(child) for child in node["children"].values()]
                    node["value"] = np.average(values, weights=weights)
                backup = node["reward"] + node["sign"] * backup
        visits, values = np.zeros(9, int), np.zeros(9)
        for move, child in root["children"].items():
            visits[move], values[move] = child["visits"], self.qvalue(child)
        return visits, values


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("game", [GAME, MixedToss()], ids=repr)
def test_a_search_is_that_of_plain_python(game, platform):
    config, states = AlphaZeroConfig(), positions(game, 4, 1)
    tree = search(game, config, 120, states, platform=platform).search_tree
    for row in range(4):
        state = jax.tree.map(lambda leaf: np.asarray(leaf)[row], states)  # noqa: B023
        visits, values = Reference(game, config).search(state, 120)
        np.testing.assert_array_equal(tree.children_visits[row, 0], visits)
        np.testing.assert_allclose(tree.summary().qvalues[row], values, atol=1e-5)


@pytest.mark.slow
def test_a_program_for_an_accelerator_makes_the_same_tree(searched):
    config, expected = searched
    platform = "tpu" if isinstance(config, AlphaZeroConfig) else "gpu"
    states = positions(GAME, 4, 2)
    found = search(GAME, config, 100, states, platform=platform).search_tree
    for name in ("children_index", "node_visits", "node_values", "is_chance"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), atol=2e-6
        )


class OneOutcome(CoinToss):
    """Tic-tac-toe with a coin that changes nothing."""

    name = "one_outcome"
    num_outcomes = 1

    def chance(self, state):
        return state.waits.astype(jnp.float32)[None]


@pytest.mark.slow
def test_with_one_outcome_the_search_is_that_of_the_game_without_chance():
    trees = []
    for game in OneOutcome(), games.make("tic_tac_toe"):
        states = initial_states(game, 2)
        if game.num_outcomes:
            states = jax.vmap(game.chance_step)(states, jnp.zeros(2, jnp.int32))
        trees.append(search(game, AlphaZeroConfig(), 64, states).search_tree)
    found, expected = trees
    root = found.ROOT_INDEX
    np.testing.assert_array_equal(
        found.children_visits[:, root], expected.children_visits[:, root]
    )
    np.testing.assert_allclose(
        found.summary().qvalues, expected.summary().qvalues, atol=2e-6
    )


@pytest.fixture(scope="module")
def late():
    """16 positions of perhaps four more moves, with the exact values of the actions."""
    solution = solve(GAME)
    states = solution.states
    rows = np.flatnonzero((solution.num_moves == 5) & ~states.terminated)
    rows = rows[np.linspace(0, len(rows) - 1, 16).astype(int)]
    return (
        jax.tree.map(lambda leaf: leaf[rows], states),
        solution.action_values[rows],
    )


@pytest.mark.slow
@pytest.mark.parametrize("config", [GumbelConfig(), AlphaZeroConfig()])
def test_searches_converge_to_the_exact_values(config, late):
    states, exact = late
    output = search(GAME, config, 1000, states, sharpness=0.0)
    best, chosen = np.nanmax(exact, axis=1), exact[np.arange(16), output.action]
    assert (best - chosen).mean() < 0.01
    assert np.abs(improved_value(output) - best).mean() < 0.1


@pytest.mark.slow
def test_uct_plays_out_with_chance(late):
    states, exact = late
    choice = choose(MCTSPlayer(GAME, 600), KEY, states)
    chosen = exact[np.arange(16), choice.action]
    assert (np.nanmax(exact, axis=1) - chosen).mean() < 0.02
    assert np.abs(choice.value - np.nanmax(exact, axis=1)).mean() < 0.1


@pytest.mark.slow
def test_the_subtree_after_a_move_and_its_outcome_goes_on(searched):
    config, tree = searched
    move = tree.children_visits[:, 0].argmax(axis=1)
    chance_node = tree.children_index[np.arange(4), 0, move]
    below = tree.children_index[np.arange(4), chance_node, 0]
    assert (below > 0).all()
    trees, heads = jax.tree.map(jnp.asarray, tree), jnp.zeros(4, jnp.int16)
    kept = after_moves(trees, move, heads, jnp.zeros(4, bool), max_nodes=160)
    states = jax.tree.map(lambda leaf: leaf[np.arange(4), below], tree.embeddings)
    goes_on = ~states.terminated
    after = jax.device_get(search(GAME, config, 20, states, tree=kept).search_tree)
    for row in np.flatnonzero(goes_on):
        before = tree.node_visits[row, below[row]]
        assert kept.node_visits[row, 0] == before
        assert after.node_visits[row, 0] == before + 20
    assert check_chance_nodes(after) > check_chance_nodes(kept)


def test_trees_have_room_for_two_nodes_a_simulation():
    config, states = GumbelConfig(tree_reuse_nodes=16), initial_states(GAME, 4)
    trees = jax.eval_shape(lambda: init_trees(config, states, 9, 32, has_chance=True))
    assert trees.node_visits.shape == (4, 16 + 2 * 32)
    needed = search_bytes(config, states, 9, 32, has_chance=True)
    assert needed > 1.5 * tree_bytes(trees)  # kept, and of this search


def check_refusal_of_other_outcomes(directory):
    """A stored move must have an outcome if, and only if, the rules wait for one."""
    files = sorted((directory / "games").iterdir())
    rows = from_table(pq.read_table(files[0]).drop_columns(["seed", "run"]), GAME)
    moves = moves_of(rows, GAME, policy_entries=9)
    follows = (np.diff(rows.game) == 0) & (np.diff(rows.ply) == 1)
    here = np.flatnonzero(follows & ~rows.terminated[:-1])
    state = moves.trajectory.state
    after = jax.tree.map(lambda leaf: leaf[here + 1], state)
    moves = jax.tree.map(lambda leaf: leaf[here], moves)
    check = make_check(GAME)
    check(moves, after)
    for outcome in -1, 2:
        other = np.full_like(moves.trajectory.outcome, outcome)
        with pytest.raises(ValueError, match="the rules do not allow"):
            check(
                moves._replace(trajectory=moves.trajectory._replace(outcome=other)),
                after,
            )


def test_q_learning_draws_outcomes_after_each_move():
    network, params = init_q_network(KEY, (3, 3, 2), 9, QNetworkConfig(hidden=(4,)))
    move = make_self_play_move(GAME, network)

    @jax.jit
    def play():
        keys = jax.random.split(KEY, 30)
        return jax.lax.scan(
            lambda games, key: move(params, games, jnp.float32(1), key),
            start_q_games(GAME, 16, jax.random.key(1)),
            keys,
        )[1]

    moves = jax.device_get(play())
    goes_on = ~moves.next_state.terminated
    assert not moves.state.waits.any()
    assert not moves.next_state.waits.any()
    is_same = moves.next_state.current_player == moves.state.current_player
    assert 0.2 < is_same[goes_on].mean() < 0.4  # tails, 2 of 7
    np.testing.assert_array_equal(
        moves.discount[goes_on], np.where(is_same, 1, -1)[goes_on]
    )


def test_a_lucky_end_does_not_excuse_a_bad_move():
    zeros = np.zeros((2, 1), np.float32)
    state = jax.tree.map(lambda leaf: np.stack([leaf[None]] * 2), first_state(GAME))
    moves = Trajectory(
        state=state,
        action=None,
        policy=None,
        value=zeros - 0.5,
        draw_probability=zeros,
        regret=zeros + 1,
        reward=zeros + 1,
        terminated=zeros == 0,
        outcome=np.array([[2], [-1]]),
    )
    target = np.asarray(lambda_returns(moves, td_lambda=1.0), np.float32)[:, 0]
    np.testing.assert_array_equal(target[:, 0] - target[:, 2], [-0.5, 1])


@pytest.mark.slow
def test_a_run_keeps_the_outcomes_and_another_run_learns_from_them(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(registry._GAMES, GAME.name, CoinToss)
    player, ended, outcome, follows = train_on_stored_games(
        tmp_path, GAME.name, 6, "player", "terminated", "outcome"
    )
    assert set(outcome[:-1][follows]) == {0, 1}
    np.testing.assert_array_equal(
        (player[1:] == player[:-1])[follows], (outcome[:-1] == 1)[follows]
    )
    assert set(outcome[ended]) == {-1, 2}
    check_refusal_of_other_outcomes(tmp_path / "first")


def test_the_solver_is_refused_in_games_with_chance(monkeypatch):
    monkeypatch.setitem(registry._GAMES, GAME.name, CoinToss)
    settings = config("unused", game=GAME.name, search=GumbelConfig(use_solver=True))
    with pytest.raises(ValueError, match=r"use_solver must be False.*coin_toss"):
        training_network(settings, GAME, None)
