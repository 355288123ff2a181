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
from azjax.training.replay import Eligibility
from azjax.training.self_play import (
    Games,
    SelfPlayMetrics,
    Trajectory,
    mean_of_lanes,
)
from azjax.training.stored_games import StoredGames

UPDATES = "the update"  # name of the phase


def train_iteration(
    algorithm: Algorithm,
    config: TrainConfig,
    state: TrainState,
    share: float,
    enter: Callable[[str], None] = lambda phase: None,
    *,
    kept: KeptGames | None = None,
    stored: StoredGames | None = None,
    waits: bool = False,
) -> tuple[TrainState, dict[str, Any]]:
    """Plays or reads T moves in every slot, stores them in the replay, and updates the
    network.

    The host enqueues all programs before it waits for the first one, so that the device
    is never idle between them.

    Args:
        algorithm: the jitted functions.
        config: the settings that it was made with.
        state: donated.
        share: fraction of the run that is done, in [0, 1].
        enter: called with the name of each phase when it begins.
        kept: writes the games; None: they are not kept.
        stored: gives the next moves of the slots with stored games.
        waits: whether the host waits for self-play before it enqueues the updates; for
            the first updates, because `azjax.training.clock` stands still while their
            programs are compiled.

    Returns:
        The state and the metrics: scalars by name, among them `newly`, `delay` and
        `waiting` of `Eligibility`; no losses if no update was made, because a lane has
        no eligible position.
    """
    iteration = int(state.iteration) + 1
    play_keys, update_keys = algorithm.make_keys(state.rng_key, state.iteration)
    num_simulations, counts = config.self_play.simulations_at(share), {}
    if stored is not None and not config.played_slots:
        enter("reading games")
        games, parts, played = state.games, [], None
    else:
        enter("self-play")
        games, parts, played = _play(
            algorithm, state, num_simulations, play_keys, iteration=iteration, kept=kept
        )
    if stored is not None:
        chunk, counts = stored.chunk()
        parts.append(chunk)
        del chunk
    if waits:
        jax.block_until_ready(played)
    replay = algorithm.insert(state.iteration, state.replay, *parts)
    del parts  # frees their memory for the updates
    state = dataclasses.replace(
        state, games=games, replay=replay, iteration=state.iteration + 1
    )
    num_positions = iteration * config.chunk_positions
    updates = None
    if num_positions >= config.replay.min_positions:
        if waits:
            enter(UPDATES)
        state, updates = _learn(
            algorithm, config, state, share, update_keys, iteration=iteration
        )
    metrics = counts
    if played is not None:
        metrics = {"simulations": np.int32(num_simulations)}
        metrics |= _with_counts(mean_of_lanes(jax.device_get(played)), counts)
    if updates is None:
        waiting = {"newly": 0, "delay": 0.0, "waiting": num_positions}
        return state, metrics | jax.tree.map(np.asarray, waiting)
    if not waits:
        enter(UPDATES)
    eligibility, rows = jax.device_get(updates)
    metrics |= {name: np.sum(count) for name, count in eligibility._asdict().items()}
    metrics |= jax.tree.map(lambda *values: np.mean(values), *rows or [{}])
    return state, metrics


def _play(
    algorithm: Algorithm,
    state: TrainState,
    num_simulations: int,
    play_keys: jax.Array,
    *,
    iteration: int,
    kept: KeptGames | None,
) -> tuple[Games, list[Trajectory], SelfPlayMetrics]:
    """Enqueues self-play; the games of `state` are donated."""
    # A copy of the moves, because self-play is given the games.
    ply = jnp.copy(state.games.moves)
    games, trajectory, played, policy_values = algorithm.self_play(
        state.learner.averaged, np.int32(num_simulations), state.games, play_keys
    )
    if kept is not None:
        kept.add(iteration, num_simulations, ply, trajectory, policy_values)
    return games, [trajectory], algorithm.lanes.replicate(played)


def _with_counts(metrics: dict[str, Any], counts: dict[str, Any]) -> dict[str, Any]:
    """Adds the finished games of the slots with stored games, if any, and the first
    player's score in them."""
    if not counts:
        return metrics
    played, added = metrics["games"], counts["games"]
    total = played * metrics["first_player_score"]
    total += added * counts["first_player_score"]
    return metrics | {
        "games": played + added,
        "first_player_score": total / max(played + added, 1),
    }


def _learn(
    algorithm: Algorithm,
    config: TrainConfig,
    state: TrainState,
    share: float,
    update_keys: jax.Array,
    *,
    iteration: int,
) -> tuple[TrainState, tuple[Eligibility, list[dict[str, jax.Array]]]]:
    """Finds the eligible positions and enqueues the updates of an iteration; returns
    the counts of positions and the metrics of each update."""
    num_moves = iteration * config.self_play.moves_per_chunk
    window = config.window_moves(iteration)
    replay, index, eligibility = algorithm.make_index(
        np.int32(num_moves), np.int32(window), state.replay
    )
    learner, sampler = state.learner, algorithm.prepare(state.sampler, index)
    lanes, rows = algorithm.lanes, []
    eligibility = lanes.replicate(eligibility)
    # Each lane needs an eligible position. The oldest one of the window surely is, if
    # enough moves follow it; in the first iterations, games may have ended before.
    if (
        min(num_moves, window) > algorithm.horizon
        or jax.device_get(lanes.replicate(index.lengths)).any(axis=1).all()
    ):
        for _ in range(config.updates_per_iteration):
            gradients, sampler = algorithm.gradient(
                learner, sampler, (replay, index), update_keys
            )
            learner, row = lanes.wait(
                algorithm.update(learner, np.float32(share), lanes.wait(gradients))
            )
            rows.append(row)
    state = dataclasses.replace(state, learner=learner, replay=replay, sampler=sampler)
    return state, (eligibility, rows)
