"""All functions work with 64-bit types enabled, and return the same types."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games import random_action
from azjax.games.core import initial_states
from azjax.networks import DenseTrunkConfig, NetworkConfig, QNetworkConfig
from azjax.players import (
    AlphaZeroPlayer,
    GreedyPlayer,
    MCTSPlayer,
    MinimaxPlayer,
    NetworkPlayer,
    RandomPlayer,
    first_network,
)
from azjax.players.model import evaluate, make_recurrent_fn, make_root
from azjax.search import (
    SEARCHES,
    GumbelConfig,
    find,
    gumbel_muzero_policy,
    improved_value,
    init_trees,
    muzero_policy,
    subtree,
)
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    train,
)
from azjax.training.config import FitConfig, QConfig, QEvaluationConfig
from azjax.training.q_learning import train_q
from azjax.training.self_play import make_self_play, start_games

GAME = games.make("tic_tac_toe")
NETWORK = NetworkConfig(
    trunk=DenseTrunkConfig(width=8, num_blocks=1, stem_channels=8, window=3)
)


@functools.cache
def made_network():
    """Returns a network, and zeros as its variables: only their types matter."""
    networks = []

    def make():
        network, variables = first_network(0, GAME, NETWORK)
        networks.append(network)
        return variables

    shapes = jax.eval_shape(make)
    return networks[0], jax.tree.map(
        lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes
    )


def assert_same_types(function):
    """Traces a function with and without 64-bit types, without compilation."""
    results = []
    for is_enabled in (False, True):
        with jax.enable_x64(is_enabled):
            leaves = jax.tree.leaves_with_path(jax.eval_shape(function))
        results.append(
            {jax.tree_util.keystr(path): (x.shape, x.dtype) for path, x in leaves}
        )
    assert results[0] == results[1]


def first_states():
    return initial_states(GAME, 2)


GAMES = (
    *("breakthrough:5", "chess", "connect_four", "go:3", "go:size=3,superko=True"),
    *("gomoku:4,4,3", "hex:3", "kalah:3,3", "othello", "tic_tac_toe", "ur:2"),
)


@pytest.mark.parametrize("name", GAMES)
def test_a_game_has_the_same_types(name):
    game = games.make(name)

    def play():
        start = game.init()

        def move(_, state):
            if game.num_outcomes:
                state = game.chance_step(state, 0)
            return game.step(state, jnp.argmax(game.legal_action_mask(state)))

        state = jax.lax.fori_loop(0, 3, move, start)
        names = ("legal_action_mask", "observe", "rewards", "evaluate", "board")
        if game.num_outcomes:
            names += ("chance",)
        return state, *(getattr(game, name)(state) for name in names)

    assert_same_types(play)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_moves"),
    [
        *(("go:size=3,superko=True", 12), ("go:5", 30), ("chess", 20), ("othello", 60)),
        ("kalah", 60),
    ],
)
def test_a_game_has_the_same_moves_and_results(name, num_moves):
    game = games.make(name)

    def play(rng_key):
        def move(state, key):
            legal = game.legal_action_mask(state)
            after = game.step(state, random_action(key, legal[None])[0])
            return after, (state, legal, game.observe(state), game.rewards(state))

        return jax.lax.scan(move, game.init(), jax.random.split(rng_key, num_moves))

    results = []
    for is_enabled in (False, True):
        with jax.enable_x64(is_enabled):
            results.append(jax.device_get(jax.jit(play)(jax.random.key(5))))
    jax.tree.map(np.testing.assert_array_equal, *results)


ALL_SETTINGS = {"tree_reuse_nodes": 4, "use_solver": True}


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("gumbel", ALL_SETTINGS),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("gumbel", {}), ("alphazero", {}), ("alphazero", ALL_SETTINGS))
        ),
    ],
)
def test_a_search_has_the_same_types(algorithm, settings):
    config = SEARCHES.find(algorithm)(**settings)
    network, variables = made_network()

    def search():
        states = first_states()
        output = config.policy(explores=True)(
            variables,
            jax.random.key(0),
            make_root(GAME, *evaluate(GAME, network, variables, states), states),
            make_recurrent_fn(GAME, network),
            4,
            invalid_actions=~jax.vmap(GAME.legal_action_mask)(states),
            max_depth=GAME.max_moves,
            tree=init_trees(config, states, GAME.num_actions, 4),
        )
        tree = output.search_tree
        kept = subtree(tree, jnp.array([1, 1], jnp.int32), max_nodes=3)
        return output, improved_value(output), kept, find(tree, states)

    assert_same_types(search)


@pytest.mark.parametrize(
    "policy",
    [gumbel_muzero_policy, pytest.param(muzero_policy, marks=pytest.mark.slow)],
)
def test_a_root_in_float64_is_searched_in_float32(policy):
    network, variables = made_network()

    def search():
        states = first_states()
        root: Any = make_root(GAME, *evaluate(GAME, network, variables, states), states)
        root = root.replace(
            prior_logits=root.prior_logits.astype(float), value=root.value.astype(float)
        )
        model = make_recurrent_fn(GAME, network)
        return policy(variables, jax.random.key(0), root, model, 4)

    assert_same_types(search)


SLOW_PLAYERS = ("greedy", "minimax", "mcts")
PLAYERS = {
    "random": lambda *_: RandomPlayer(GAME),
    "greedy": lambda *_: GreedyPlayer(GAME),
    "minimax": lambda *_: MinimaxPlayer(GAME, 2),
    "mcts": lambda *_: MCTSPlayer(GAME, 4),
    "network": lambda *network: NetworkPlayer(GAME, *network, temperature=0.5),
    "alphazero": lambda *network: AlphaZeroPlayer(GAME, GumbelConfig(), 4, *network),
}


@pytest.mark.parametrize(
    "kind",
    [
        *("random", "network", "alphazero"),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW_PLAYERS),
    ],
)
def test_a_player_has_the_same_types(kind):
    player = PLAYERS[kind](*made_network())
    assert_same_types(lambda: player.choose(jax.random.key(0), first_states()))


@pytest.mark.slow
def test_self_play_has_the_same_types():
    config = SelfPlayConfig(
        num_games=4,
        moves_per_chunk=3,
        num_simulations=(2,),
        full_search_fraction=0.5,
        fast_simulations=2,
    )

    def play():
        network, variables = first_network(0, GAME, NETWORK)
        run = make_self_play(GAME, network, GumbelConfig(), config)
        games_ = start_games(GAME, config.num_games, jax.random.key(0))
        return run(variables, jnp.int32(2), games_, jax.random.key(1))[:2]

    assert_same_types(play)


@pytest.mark.slow
def test_runs_of_both_kinds_learn_with_64_bit_types(tmp_path):
    config = TrainConfig(
        game="tic_tac_toe",
        iterations=2,
        run_dir=str(tmp_path / "run"),
        network=NETWORK,
        self_play=SelfPlayConfig(num_games=8, moves_per_chunk=6, num_simulations=(2,)),
        replay=ReplayConfig(capacity=256, min_window=256, min_positions=16),
        learner=LearnerConfig(batch_size=16, replay_ratio=1.0),
        evaluation=EvaluationConfig(
            num_evaluations=1, num_positions=32, num_simulations=2, opponents=()
        ),
        checkpoint=CheckpointConfig(every_minutes=0.0),
    )
    q_config = QConfig(
        game="tic_tac_toe",
        iterations=2,
        run_dir=str(tmp_path / "q"),
        network=QNetworkConfig(form="pair", separate=False, hidden=(8, 8)),
        learning="offline",
        games=8,
        moves=4,
        fit=FitConfig(sweeps=2, batch_size=16, max_epochs=2),
        evaluation=QEvaluationConfig(num_evaluations=1, opponents=()),
    )
    with jax.enable_x64(True):
        assert train(config).finished
        assert train_q(q_config).finished
