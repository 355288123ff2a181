"""One iteration of AlphaZero: self-play, storage, updates."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from azjax.games import Game
from azjax.networks import Network, Parts, Variables
from azjax.training.config import TrainConfig
from azjax.training.learner import (
    LearnerState,
    Loss,
    init_learner,
    make_loss,
    make_optimizer,
    make_update,
)
from azjax.training.replay import (
    Eligibility,
    Index,
    Replay,
    empty_replay,
    insert,
    make_batch,
    make_index,
)
from azjax.training.sampling import Sampler, uniform_sampler
from azjax.training.self_play import Games, make_self_play, start_games
from azjax.training.targets import ValueTarget, lambda_target


@struct.dataclass
class TrainState:
    """The complete state of a run; a checkpoint stores it.

    learner: parameters, their average, the optimizer's state.
    games: in progress.
    replay: positions to learn from.
    sampler: the state of the sampler.
    rng_key: of the run; never changed, since a counter is folded in for every use.
    iteration: `[]` int32; iterations done.
    """

    learner: LearnerState
    games: Games
    replay: Replay
    sampler: Any
    rng_key: jax.Array
    iteration: jax.Array


class Algorithm(NamedTuple):
    """The functions of a run, without arrays; `init` and `self_play` are not jitted.

    init: `init(variables) -> TrainState`, the state before the first iteration.
    self_play: `self_play(num_simulations)` returns the jitted `(variables, games,
        rng_key) -> (games, chunk, metrics)`, made once for each number.
    insert: `(replay, chunk, iteration) -> replay`.
    make_index: `(replay, num_moves, window) -> (replay, index, eligibility)`.
    prepare: of the sampler, `(sampler_state, index) -> sampler_state`.
    update: `(learner, sampler_state, (replay, index), rng_key, share) -> (learner,
        sampler_state, metrics)`; samples a batch and updates the network with it. The
        key may be the same for all updates: their count is folded in.
    """

    init: Callable[[Variables], TrainState]
    self_play: Callable[[int], Callable]
    insert: Callable[..., Replay]
    make_index: Callable[..., tuple[Replay, Index, Eligibility]]
    prepare: Callable[[Any, Index], Any]
    update: Callable[..., tuple[LearnerState, Any, dict[str, jax.Array]]]


def make_algorithm(
    config: TrainConfig,
    game: Game,
    network: Network,
    *,
    optimizer: optax.GradientTransformation | None = None,
    parts: Parts | None = None,
    loss: Loss | None = None,
    value_target: ValueTarget | None = None,
    sampler: Sampler | None = None,
) -> Algorithm:
    """Returns the functions of a run with these settings; nothing is compiled yet.

    Args:
        config: the run's settings.
        game: what is learnt.
        network: its structure, with the auxiliary heads of `parts`.
        optimizer: in place of AdamW with its schedule.
        parts: modules of the user's own in the network, and auxiliary heads.
        loss: in place of `head_losses`.
        value_target: in place of `lambda_target`.
        sampler: in place of `uniform_sampler`.

    Raises:
        ValueError: an argument is of another type, or the replay is too small for the
            value target.
    """
    _check_types(loss, value_target, sampler)
    auxiliary = (parts or Parts()).auxiliary
    optimizer = optimizer or make_optimizer(config.learner)
    loss = loss or make_loss(config.learner, parts)
    sampler = sampler or uniform_sampler(config.learner.batch_size)
    value_target = value_target or lambda_target(
        config.learner.td_lambda, game.max_moves
    )
    config.check_replay(value_target.horizon)
    update_network = make_update(
        network, optimizer, loss, ema_decay=config.learner.ema_decay
    )

    def update(learner, sampler_state, positions, rng_key, share):
        replay, index = positions
        sample_key = jax.random.fold_in(rng_key, learner.updates)
        sample = sampler.choose(sampler_state, index, sample_key)
        batch = make_batch(game, replay, index, sample, auxiliary)
        learner, metrics, sample_loss = update_network(learner, batch, share)
        sampler_state = sampler.update(sampler_state, batch.sample, sample_loss)
        return learner, sampler_state, metrics

    index = functools.partial(
        make_index, value_target=value_target, finds_ends=bool(auxiliary)
    )
    return Algorithm(
        init=functools.partial(_init, config, game, optimizer, sampler),
        self_play=functools.cache(
            lambda num_simulations: make_self_play(
                game,
                network,
                config.search,
                config.self_play,
                num_simulations=num_simulations,
                policy_entries=config.replay.policy_entries,
            )
        ),
        insert=jax.jit(insert, donate_argnums=0),
        make_index=jax.jit(index, donate_argnums=0),
        prepare=jax.jit(sampler.prepare, donate_argnums=0),
        update=jax.jit(update, donate_argnums=(0, 1)),
    )


def _check_types(loss: object, value_target: object, sampler: object) -> None:
    if loss is not None and not callable(loss):
        raise ValueError(f"loss must be a function: {loss!r}")
    if value_target is not None and not isinstance(value_target, ValueTarget):
        raise ValueError(f"value_target must be a ValueTarget: {value_target!r}")
    if sampler is not None and not isinstance(sampler, Sampler):
        raise ValueError(f"sampler must be a Sampler: {sampler!r}")


def _init(
    config: TrainConfig,
    game: Game,
    optimizer: optax.GradientTransformation,
    sampler: Sampler,
    variables: Variables,
) -> TrainState:
    run_key, games_key = jax.random.split(jax.random.key(config.seed + 1))
    replay = empty_replay(
        game,
        num_chunks=config.replay_chunks,
        moves_per_chunk=config.self_play.moves_per_chunk,
        num_games=config.self_play.num_games,
        policy_entries=config.replay.policy_entries,
    )
    state = TrainState(
        learner=init_learner(variables, optimizer),
        games=jax.jit(start_games, static_argnums=(0, 1))(
            game, config.self_play, games_key
        ),
        replay=replay,
        # Copies: an update donates its state, and no array twice.
        sampler=jax.tree.map(jnp.copy, sampler.init(jnp.shape(replay.was_eligible))),
        rng_key=run_key,
        iteration=jnp.int32(0),
    )
    # Placed as a checkpoint's arrays are, or a run that goes on is compiled again.
    return jax.device_put(state, jax.devices()[0])


def train_iteration(
    algorithm: Algorithm,
    config: TrainConfig,
    state: TrainState,
    share: float,
    enter: Callable[[str], None] = lambda phase: None,
) -> tuple[TrainState, dict[str, Any]]:
    """Plays a chunk of T moves in every slot, stores it, and updates the network.

    Args:
        algorithm: the functions.
        config: the settings with which it was made.
        state: donated.
        share: of the run that is over, in [0, 1].
        enter: called with each phase when it begins.

    Returns:
        The state and the metrics: numbers by name, among them `newly`, `delay` and
        `waiting` of `Eligibility`; there are no losses where nothing was learnt yet.
    """
    play_key, update_key = jax.random.split(
        jax.random.fold_in(state.rng_key, state.iteration)
    )
    simulations = config.self_play.simulations_at(share)
    # Another number of simulations is compiled first, hence another phase.
    enter(f"self-play with {simulations} simulations")
    games, chunk, played = algorithm.self_play(simulations)(
        state.learner.averaged, state.games, play_key
    )
    replay = algorithm.insert(state.replay, chunk, state.iteration)
    del chunk  # the updates need its memory
    state = dataclasses.replace(
        state, games=games, replay=replay, iteration=state.iteration + 1
    )
    metrics = {"simulations": np.int32(simulations)}
    metrics |= jax.device_get(played._asdict())

    iteration = int(state.iteration)
    num_positions = iteration * config.chunk_positions
    if num_positions < config.replay.min_positions:
        waiting = {"newly": 0, "delay": 0.0, "waiting": num_positions}
        return state, metrics | jax.tree.map(np.asarray, waiting)
    enter("the update")
    replay, index, eligibility = algorithm.make_index(
        state.replay,
        jnp.int32(iteration * config.self_play.moves_per_chunk),
        jnp.int32(config.window_moves(iteration)),
    )
    learner, sampler = state.learner, algorithm.prepare(state.sampler, index)
    update_metrics, run_share = [], jnp.float32(share)
    if int(index.size) > 0:
        for _ in range(config.updates_per_iteration):
            learner, sampler, row = algorithm.update(
                learner, sampler, (replay, index), update_key, run_share
            )
            update_metrics.append(row)
    metrics |= jax.device_get(eligibility._asdict())
    update_metrics = jax.device_get(update_metrics or [{}])
    metrics |= jax.tree.map(lambda *values: np.mean(values), *update_metrics)
    state = dataclasses.replace(state, learner=learner, replay=replay, sampler=sampler)
    return state, metrics
