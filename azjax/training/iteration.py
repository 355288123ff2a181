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
    rng_key: of the run; never changed, since every draw folds in a counter.
    iteration: `[]` int32; iterations done.
    """

    learner: LearnerState
    games: Games
    replay: Replay
    sampler: Any
    rng_key: jax.Array
    iteration: jax.Array


class Hooks(NamedTuple):
    """Parts of the algorithm that a user can replace; None stands for ours.

    loss: `(prediction, batch)` to the losses of the heads by name; `head_losses`.
    value_target: how value targets are computed; `lambda_target`.
    sampler: which positions a batch holds; `uniform_sampler`.
    """

    loss: Loss | None = None
    value_target: ValueTarget | None = None
    sampler: Sampler | None = None


class Algorithm(NamedTuple):
    """The jitted functions of a run, without arrays.

    init: `init(variables) -> TrainState`, the state before the first iteration.
    self_play: `self_play(num_simulations)` returns `(variables, games, rng_key) ->
        (games, chunk, metrics)`.
    insert: `(replay, chunk, iteration) -> replay`.
    make_index: `(replay, num_moves, window) -> (replay, index, eligibility)`.
    prepare: of the sampler, `(sampler_state, index) -> sampler_state`.
    learn: `(learner, sampler_state, (replay, index), rng_key, progress) -> (learner,
        sampler_state, metrics)`; samples a batch and makes an update.
    """

    init: Callable[[Variables], TrainState]
    self_play: Callable[[int], Callable]
    insert: Callable[..., Replay]
    make_index: Callable[..., tuple[Replay, Index, Eligibility]]
    prepare: Callable[[Any, Index], Any]
    learn: Callable[..., tuple[LearnerState, Any, dict[str, jax.Array]]]


def make_algorithm(
    config: TrainConfig,
    game: Game,
    network: Network,
    *,
    optimizer: optax.GradientTransformation | None = None,
    parts: Parts | None = None,
    hooks: Hooks = Hooks(),  # noqa: B008
) -> Algorithm:
    """Returns the functions of a run with these settings; nothing is compiled yet.

    Raises:
        ValueError: a hook is of another type, or the replay is too small for the value
            target.
    """
    _check_hooks(hooks)
    auxiliary = (parts or Parts()).auxiliary
    optimizer = optimizer or make_optimizer(config.learner)
    loss = hooks.loss or make_loss(config.learner, parts)
    sampler = hooks.sampler or uniform_sampler(config.learner.batch_size)
    value_target = hooks.value_target or lambda_target(
        config.learner.trace, game.max_moves
    )
    config.check_replay(value_target.horizon)
    update = make_update(network, optimizer, loss, averaging=config.learner.averaging)

    def learn(learner, sampler_state, positions, rng_key, progress):
        replay, index = positions
        draw_key = jax.random.fold_in(rng_key, learner.updates)
        draw = sampler.choose(sampler_state, index, draw_key)
        batch = make_batch(game, replay, index, draw, auxiliary)
        learner, metrics, sample_loss = update(learner, batch, progress)
        sampler_state = sampler.update(sampler_state, batch.draw, sample_loss)
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
        learn=jax.jit(learn, donate_argnums=(0, 1)),
    )


def _check_hooks(hooks: Hooks) -> None:
    if hooks.loss is not None and not callable(hooks.loss):
        raise ValueError(f"loss must be a function: {hooks.loss!r}")
    for name, hook, kind in (
        ("value_target", hooks.value_target, ValueTarget),
        ("sampler", hooks.sampler, Sampler),
    ):
        if hook is not None and not isinstance(hook, kind):
            raise ValueError(f"{name} must be a {kind.__name__}: {hook!r}")


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
        num_games=config.self_play.games,
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
    progress: float,
    enter: Callable[[str], None] = lambda phase: None,
) -> tuple[TrainState, dict[str, Any]]:
    """Plays one chunk in every game, stores it, and updates the network.

    Args:
        algorithm: the functions.
        config: the settings with which it was made.
        state: donated.
        progress: the share of the run that is over, in [0, 1].
        enter: called with each phase when it begins.

    Returns:
        The state and the metrics: numbers by name, among them `newly`, `delay` and
        `waiting` of `Eligibility`; there are no losses where nothing was learnt yet.
    """
    play_key, update_key = jax.random.split(
        jax.random.fold_in(state.rng_key, state.iteration)
    )
    simulations = config.self_play.simulations_at(progress)
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
    positions = iteration * config.chunk_positions
    if positions < config.replay.min_positions:
        waiting = {"newly": 0, "delay": 0.0, "waiting": positions}
        return state, metrics | jax.tree.map(np.asarray, waiting)
    enter("the update")
    replay, index, eligibility = algorithm.make_index(
        state.replay,
        jnp.int32(iteration * config.self_play.moves_per_chunk),
        jnp.int32(config.window_moves(iteration)),
    )
    learner, sampler = state.learner, algorithm.prepare(state.sampler, index)
    seen = []
    if int(index.size) > 0:
        for _ in range(config.updates_per_iteration):
            learner, sampler, losses = algorithm.learn(
                learner,
                sampler,
                (replay, index),
                update_key,
                jnp.float32(progress),
            )
            seen.append(losses)
    metrics |= jax.device_get(eligibility._asdict())
    losses = jax.device_get(seen or [{}])
    metrics |= jax.tree.map(lambda *values: np.mean(values), *losses)
    state = dataclasses.replace(state, learner=learner, replay=replay, sampler=sampler)
    return state, metrics
