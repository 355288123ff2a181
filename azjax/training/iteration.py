"""One iteration of AlphaZero: self-play, storage, updates."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.training.algorithm import Algorithm, TrainState
from azjax.training.config import TrainConfig
from azjax.training.kept_games import KeptGames
from azjax.training.self_play import Games, Trajectory, mean_of_lanes
from azjax.training.stored_games import StoredGames


def train_iteration(
    algorithm: Algorithm,
    config: TrainConfig,
    state: TrainState,
    share: float,
    enter: Callable[[str], None] = lambda phase: None,
    *,
    kept: KeptGames | None = None,
    stored: StoredGames | None = None,
) -> tuple[TrainState, dict[str, Any]]:
    """Plays or reads T moves in every slot, stores them in the replay, and updates the
    network.

    Args:
        algorithm: the jitted functions.
        config: the settings that it was made with.
        state: donated.
        share: fraction of the run that is done, in [0, 1].
        enter: called with the name of each phase when it begins.
        kept: writes the games; None: they are not kept.
        stored: gives the next moves of the slots with stored games.

    Returns:
        The state and the metrics: scalars by name, among them `newly`, `delay` and
        `waiting` of `Eligibility`; no losses if no update was made, because a lane has
        no eligible position.
    """
    play_keys, update_keys = algorithm.make_keys(state.rng_key, state.iteration)
    if stored is not None and not config.played_slots:
        enter("reading games")
        trajectory, metrics = stored.chunk()
        games, parts = state.games, [trajectory]
    else:
        enter("self-play")
        games, parts, metrics = _play(
            algorithm, config, state, share, play_keys, kept=kept, stored=stored
        )
    replay = algorithm.insert(state.iteration, state.replay, *parts)
    del parts  # frees their memory for the updates
    state = dataclasses.replace(
        state, games=games, replay=replay, iteration=state.iteration + 1
    )
    num_positions = int(state.iteration) * config.chunk_positions
    if num_positions < config.replay.min_positions:
        waiting = {"newly": 0, "delay": 0.0, "waiting": num_positions}
        return state, metrics | jax.tree.map(np.asarray, waiting)
    enter("the update")
    state, update_metrics = _learn(algorithm, config, state, share, update_keys)
    return state, metrics | update_metrics


def _play(
    algorithm: Algorithm,
    config: TrainConfig,
    state: TrainState,
    share: float,
    play_keys: jax.Array,
    *,
    kept: KeptGames | None,
    stored: StoredGames | None,
) -> tuple[Games, list[Trajectory], dict[str, Any]]:
    """Plays a chunk and reads the slots with stored games, if any; the games of `state`
    are donated."""
    num_simulations = config.self_play.simulations_at(share)
    is_kept = kept is not None and kept.writer is not None
    # A copy, because self-play is given the games.
    ply = jnp.copy(state.games.moves) if is_kept else None
    games, trajectory, played, policy_values = algorithm.self_play(
        state.learner.averaged, np.int32(num_simulations), state.games, play_keys
    )
    if kept is not None and ply is not None:
        number = int(state.iteration) + 1
        kept.add(number, num_simulations, ply, trajectory, policy_values)
    metrics = {"simulations": np.int32(num_simulations)}
    metrics |= mean_of_lanes(algorithm.lanes.to_host(played))
    if stored is None:
        return games, [trajectory], metrics
    read, counts = stored.chunk()
    # The number of finished games of both parts, and the first player's mean score.
    played, added = metrics["games"], counts["games"]
    total = played * metrics["first_player_score"]
    total += added * counts["first_player_score"]
    metrics |= {
        "games": played + added,
        "first_player_score": total / max(played + added, 1),
    }
    return games, [trajectory, read], metrics


def _learn(
    algorithm: Algorithm,
    config: TrainConfig,
    state: TrainState,
    share: float,
    update_keys: jax.Array,
) -> tuple[TrainState, dict[str, Any]]:
    """Finds the eligible positions and makes the updates of an iteration."""
    iteration = int(state.iteration)
    replay, index, eligibility = algorithm.make_index(
        np.int32(iteration * config.self_play.moves_per_chunk),
        np.int32(config.window_moves(iteration)),
        state.replay,
    )
    learner, sampler = state.learner, algorithm.prepare(state.sampler, index)
    counts, lengths = algorithm.lanes.to_host((eligibility, index.lengths))
    metrics = {name: np.sum(count) for name, count in counts._asdict().items()}
    rows, wait = [], algorithm.lanes.wait
    if lengths.any(axis=1).all():  # each lane has an eligible position
        for _ in range(config.updates_per_iteration):
            gradients, sampler = algorithm.gradient(
                learner, sampler, (replay, index), update_keys
            )
            learner, row = wait(
                algorithm.update(learner, np.float32(share), wait(gradients))
            )
            rows.append(row)
    rows = jax.device_get(rows or [{}])
    metrics |= jax.tree.map(lambda *values: np.mean(values), *rows)
    state = dataclasses.replace(state, learner=learner, replay=replay, sampler=sampler)
    return state, metrics
