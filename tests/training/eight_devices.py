"""Computes the results for `test_lanes.py` on up to 8 CPU devices; prints JSON.

python eight_devices.py GAME ITERATIONS NUMBER ...      compares numbers of devices
python eight_devices.py GAME --learn-from DIR FRACTION ITERATIONS NUMBER ...
                                                        the same, with stored games in
                                                        a fraction of the slots
python eight_devices.py GAME                            computes the other results
"""

import dataclasses
import functools
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from azjax import games
from azjax.networks import ConvTrunkConfig, DenseTrunkConfig, NetworkConfig
from azjax.players import first_network
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    make_algorithm,
    train_iteration,
)
from azjax.training.config import MAX_LENGTH
from azjax.training.game_reader import GameReader
from azjax.training.lanes import abstract_state, spread_lanes
from azjax.training.run.checkpoints import Checkpoints, digest

COLLECTIVES = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)"
    r"(?:-start)?\("
)
TRUNKS = {
    "tic_tac_toe": DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3),
    "go:5": ConvTrunkConfig(num_blocks=1, channels=8),
    "ur:2": DenseTrunkConfig(width=32, num_blocks=1, stem_channels=8, window=3),
}


def settings(game: str) -> TrainConfig:
    """Returns small settings."""
    return TrainConfig(
        game=game,
        iterations=MAX_LENGTH,
        network=NetworkConfig(TRUNKS[game]),
        self_play=SelfPlayConfig(num_games=16, moves_per_chunk=8, num_simulations=(4,)),
        replay=ReplayConfig(capacity=512, min_window=512, min_positions=256),
        learner=LearnerConfig(batch_size=32, replay_ratio=0.5, td_lambda=0.2),
        evaluation=EvaluationConfig(num_evaluations=1),
    )


def compare(config: TrainConfig, iterations: int, *numbers: int) -> dict:
    """Returns digests and metrics of runs on different numbers of devices."""
    exact = dataclasses.replace(config, exact_lanes=True)
    runs = [run(exact, number, iterations)[1] for number in numbers]
    return {"exact": runs, "resumed": resumed(exact, numbers, iterations)[1]}


def other_results(game: str) -> dict:
    """Returns the share of moves that differ by rounding, the collectives, and the
    devices of 1, 6 and 16 lanes."""
    found, config = {}, settings(game)
    found["devices"] = [
        spread_lanes(number, one_by_one=False).mesh.size for number in (1, 6, 16)
    ]
    states = [run(config, number, 1)[0][0] for number in (1, 8)]
    actions = [np.asarray(state.replay.chunk.action) for state in states]
    found["other_actions"] = float(np.mean(actions[0] != actions[1]))
    found["collectives"] = collectives(config)
    return found


@functools.cache
def make(config: TrainConfig, number: int):
    """Returns the algorithm on a number of devices, and its first variables."""
    game, (network, variables) = games.make(config.game), make_network(config.game)
    devices = jax.devices()[:number]
    return make_algorithm(config, game, network, devices=devices), variables


@functools.cache
def make_network(game: str):
    """Returns the untrained network of a game and its variables."""
    return first_network(0, games.make(game), NetworkConfig(TRUNKS[game]))


def run(config: TrainConfig, number: int, iterations: int, state=None, cursor=None):
    """Returns the state after some iterations with the cursor of the stored games, and
    a digest of it with metrics."""
    algorithm, variables = make(config, number)
    state = algorithm.init(variables) if state is None else state
    stored, rows = None, []
    if config.learn_from:
        stored = GameReader(config, games.make(config.game), algorithm.lanes)
        stored.seek(cursor or stored.cursor)
    for _ in range(iterations):
        state, metrics = train_iteration(
            algorithm, config, state, 0.5, game_reader=stored
        )
        rows.append({name: float(value) for name, value in metrics.items()})
    return (state, stored and stored.cursor), [digest(state), rows]


def resumed(config: TrainConfig, numbers: Sequence[int], iterations: int):
    """Does the same, with a checkpoint and other devices after each iteration."""
    state, cursor, facts, rows = None, None, None, []
    with tempfile.TemporaryDirectory() as folder:
        for iteration in range(iterations):
            number = numbers[iteration % len(numbers)]
            checkpoints = Checkpoints(Path(folder), keep=1)
            with checkpoints:
                if state is not None:
                    algorithm, variables = make(config, number)
                    shapes = abstract_state(
                        lambda: algorithm.init(variables),  # noqa: B023
                        algorithm.shardings,
                    )
                    restored = checkpoints.restore(shapes, print)
                    assert restored is not None
                    state, cursor = restored[0], restored[1]["cursor"]
                (state, cursor), facts = run(config, number, 1, state, cursor)
                rows += facts[1]
                progress = {"iteration": iteration + 1, "cursor": cursor}
                checkpoints.save(state, progress, mistakes=None)
    assert facts is not None
    return state, [facts[0], rows]


def collectives(config: TrainConfig) -> dict[str, list[str]]:
    """Returns the collectives of each phase on 8 devices."""
    algorithm, variables = make(config, 8)
    state = algorithm.init(variables)
    keys, update_keys = algorithm.make_keys(state.rng_key, state.iteration)
    play = algorithm.self_play
    arguments = (state.learner.averaged, np.int32(4), state.games, keys)
    _, trajectory, *_ = jax.eval_shape(play, *arguments)
    texts = {"self_play": play.lower(*arguments).compile().as_text()}
    trajectory = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=algorithm.lanes.by_lane
        ),
        trajectory,
    )
    iteration = np.int32(1)
    lowered = algorithm.insert.lower(iteration, state.replay, trajectory)
    texts["insert"] = lowered.compile().as_text()
    index = (iteration, iteration, state.replay)
    texts["make_index"] = algorithm.make_index.lower(*index).compile().as_text()
    _, found, _ = algorithm.make_index(*index)
    replay = algorithm.init(variables).replay
    drawn = (state.learner, state.sampler, (replay, found), update_keys)
    texts["gradient"] = algorithm.gradient.lower(*drawn).compile().as_text()
    gradients, _ = algorithm.gradient(*drawn)
    lowered = algorithm.update.lower(state.learner, np.float32(0), gradients)
    texts["update"] = lowered.compile().as_text()
    return {name: COLLECTIVES.findall(text) for name, text in texts.items()}


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    chosen = settings(name)
    if "--learn-from" in words:
        _, source, fraction, *words = words
        chosen = dataclasses.replace(
            chosen, learn_from=(source,), stored_fraction=float(fraction)
        )
    found = compare(chosen, *map(int, words)) if words else other_results(name)
    print(json.dumps(found))
