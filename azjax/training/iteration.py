"""One iteration of AlphaZero: self-play, storage, updates."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from azjax.devices import DIVIDED, REPLICATED
from azjax.games import Game
from azjax.networks import Network, Parts, Variables
from azjax.search.keys import merge_batch, split_batch
from azjax.training.config import TrainConfig
from azjax.training.lanes import Lanes, spread_lanes
from azjax.training.learner import (
    Gradient,
    LearnerState,
    Loss,
    apply_gradient,
    compute_gradient,
    init_learner,
    make_loss,
    make_optimizer,
)
from azjax.training.replay import (
    Batch,
    Eligibility,
    Index,
    Replay,
    empty_replay,
    insert,
    make_index,
)
from azjax.training.sampling import Sampler, draw_batch, uniform_sampler
from azjax.training.self_play import (
    Games,
    SelfPlayMetrics,
    Trajectory,
    make_self_play,
    mean_of_lanes,
    start_games,
)
from azjax.training.targets import ValueTarget, lambda_target


@struct.dataclass
class TrainState:
    """The complete state of a run; a checkpoint stores it.

    learner: parameters, their average, the optimizer's state.
    games: in progress, leaves `[L, B / L, ...]` of L lanes.
    replay: positions to learn from, leaves `[L, R, B / L, ...]`.
    sampler: the state of the sampler, leaves `[L, ...]`.
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
    """The functions of a run, without arrays; all but `init` are jitted.

    Keys, games, chunks, replay, index and metrics of self-play are those of all lanes:
    their leaves have an axis `[L, ...]` in front.

    lanes: how they lie on the devices.
    init: `init(variables) -> TrainState`, the state before the first iteration.
    make_keys: `(rng_key, iteration) -> (play_keys, update_keys)`.
    self_play: `(variables, num_simulations, games, keys) -> (games, chunk, metrics)`.
    insert: `(iteration, replay, chunk) -> replay`.
    make_index: `(num_moves, window, replay) -> (replay, index, eligibility)`.
    prepare: of the sampler, `(sampler_state, index) -> sampler_state`.
    update: `(learner, share, sampler_state, (replay, index), keys) -> (learner,
        sampler_state, metrics)`; samples a batch and updates the network with it. The
        keys may be the same for all updates: their count is folded in.
    """

    lanes: Lanes
    init: Callable[[Variables], TrainState]
    make_keys: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
    self_play: Callable[..., tuple[Games, Trajectory, SelfPlayMetrics]]
    insert: Callable[..., Replay]
    make_index: Callable[..., tuple[Replay, Index, Eligibility]]
    prepare: Callable[[Any, Index], Any]
    update: Callable[..., tuple[LearnerState, Any, dict[str, jax.Array]]]

    def shardings(self, state: TrainState) -> TrainState:
        """Returns the sharding of each leaf of a state, or of its shapes."""
        replicated, by_lane = self.lanes.replicated, self.lanes.by_lane
        of_fields: dict[str, Any] = {
            "learner": replicated,
            "games": by_lane,
            "replay": by_lane,
            "sampler": by_lane,
            "rng_key": replicated,
            "iteration": replicated,
        }
        return jax.tree.broadcast(TrainState(**of_fields), state)


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
    devices: Sequence[Any] | None = None,
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
        devices: that the lanes are spread over, all by default.

    Raises:
        ValueError: an argument is of another type, the replay is too small for the
            value target, or the number of devices does not divide that of the lanes.
    """
    _check_types(loss, value_target, sampler)
    auxiliary = (parts or Parts()).auxiliary
    optimizer = optimizer or make_optimizer(config.learner)
    sampler = sampler or uniform_sampler()
    value_target = value_target or lambda_target(
        config.learner.td_lambda, game.max_moves
    )
    config.check_replay(value_target.horizon)
    lanes = spread_lanes(
        config.num_lanes, one_by_one=config.exact_lanes, devices=devices
    )
    index = functools.partial(
        make_index, value_target=value_target, finds_ends=bool(auxiliary)
    )
    return Algorithm(
        lanes=lanes,
        init=functools.partial(
            _init,
            config=config,
            game=game,
            optimizer=optimizer,
            sampler=sampler,
            lanes=lanes,
        ),
        make_keys=jax.jit(
            functools.partial(_make_keys, config.num_lanes),
            out_shardings=lanes.by_lane,
        ),
        self_play=lanes.jit_products(
            make_self_play(
                game,
                network,
                config.search,
                config.self_play,
                policy_entries=config.replay.policy_entries,
            ),
            num_replicated=2,
        ),
        insert=lanes.jit(
            lambda iteration, replay, chunk: insert(replay, chunk, iteration),
            num_replicated=1,
            donate_argnums=(1,),
        ),
        make_index=lanes.jit(
            lambda num_moves, window, replay: jax.vmap(index, (0, None, None))(
                replay, num_moves, window
            ),
            num_replicated=2,
            donate_argnums=(2,),
        ),
        prepare=lanes.jit(jax.vmap(sampler.prepare), donate_argnums=(0,)),
        update=_make_update(
            lanes,
            gradient_of=functools.partial(
                compute_gradient, network, loss or make_loss(config.learner, parts)
            ),
            apply=functools.partial(
                apply_gradient, optimizer, config.learner.ema_decay
            ),
            sampler=sampler,
            batch_of=functools.partial(
                draw_batch,
                game,
                sampler=sampler,
                size=config.learner.batch_size // config.num_lanes,
                auxiliary=auxiliary,
            ),
        ),
    )


def _make_update(
    lanes: Lanes,
    *,
    gradient_of: Callable[..., tuple[Gradient, jax.Array]],
    apply: Callable[..., tuple[LearnerState, dict[str, jax.Array]]],
    sampler: Sampler,
    batch_of: Callable[..., Batch],
):
    """Returns the `update` of an `Algorithm`.

    Args:
        lanes: whose gradients are averaged.
        gradient_of: `(variables, batch, num_lanes=)` to the gradient and each
            position's loss.
        apply: `(learner, gradient, share) -> (learner, metrics)`.
        sampler: updates its state.
        batch_of: `(sampler_state, replay, index, rng_key) -> batch`, of one lane.
    """

    def gradient_of_lanes(learner, sampler_state, positions, keys):
        """Returns the mean gradient of some lanes, with an axis in front."""
        replay, index = positions
        keys = jax.vmap(jax.random.fold_in, (0, None))(keys, learner.updates)
        batch = jax.vmap(batch_of)(sampler_state, replay, index, keys)
        gradient, loss = gradient_of(
            learner.variables, merge_batch(batch), num_lanes=len(keys)
        )
        loss = split_batch(loss, len(keys))
        sampler_state = jax.vmap(sampler.update)(sampler_state, batch.sample, loss)
        return jax.tree.map(lambda leaf: leaf[None], gradient), sampler_state

    def update_at_once(learner, share, *laned):
        gradient, sampler_state = gradient_of_lanes(learner, *laned)
        gradient = lanes.mean_of_devices(jax.tree.map(lambda x: x[0], gradient))
        learner, metrics = apply(learner, gradient, share)
        return learner, sampler_state, metrics

    if not lanes.one_by_one:
        return lanes.jit(
            update_at_once,
            num_replicated=2,
            out_specs=(REPLICATED, DIVIDED, REPLICATED),
            donate_argnums=(0, 2),
        )
    gradient_by_lane = lanes.jit_products(gradient_of_lanes, num_replicated=1)
    mean_gradient, apply_alone = lanes.mean(), jax.jit(apply, donate_argnums=0)

    def update_by_lane(learner, share, *laned):
        # Waits twice: XLA:CPU can hang where a collective waits for other devices while
        # programs queue up behind it.
        gradient, sampler_state = jax.block_until_ready(
            gradient_by_lane(learner, *laned)
        )
        gradient = jax.block_until_ready(mean_gradient(gradient))
        learner, metrics = apply_alone(learner, gradient, share)
        return learner, sampler_state, metrics

    return update_by_lane


def _make_keys(
    num_lanes: int, rng_key: jax.Array, iteration: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns the keys of all lanes for self-play and for the updates, `[L]` each."""
    of_iteration = jax.random.fold_in(rng_key, iteration)
    play_key, update_key = jax.random.split(of_iteration)
    return jax.random.split(play_key, num_lanes), jax.random.split(
        update_key, num_lanes
    )


def _check_types(loss: object, value_target: object, sampler: object) -> None:
    if loss is not None and not callable(loss):
        raise ValueError(f"loss must be a function: {loss!r}")
    if value_target is not None and not isinstance(value_target, ValueTarget):
        raise ValueError(f"value_target must be a ValueTarget: {value_target!r}")
    if sampler is not None and not isinstance(sampler, Sampler):
        raise ValueError(f"sampler must be a Sampler: {sampler!r}")


def _init(
    variables: Variables,
    *,
    config: TrainConfig,
    game: Game,
    optimizer: optax.GradientTransformation,
    sampler: Sampler,
    lanes: Lanes,
) -> TrainState:
    run_key, games_key = jax.random.split(jax.random.key(config.seed + 1))
    num_games = config.self_play.num_games // lanes.number

    def init_lane(rng_key: jax.Array):
        replay = empty_replay(
            game,
            num_chunks=config.replay_chunks,
            moves_per_chunk=config.self_play.moves_per_chunk,
            num_games=num_games,
            policy_entries=config.replay.policy_entries,
        )
        first_state = sampler.init(jnp.shape(replay.was_eligible))
        return start_games(game, num_games, rng_key), replay, first_state

    # Compiled, so that no device ever holds the lanes of the others.
    init_lanes = lanes.jit(jax.vmap(init_lane))
    games, replay, sampler_state = init_lanes(jax.random.split(games_key, lanes.number))
    rest = (init_learner(variables, optimizer), run_key, jnp.int32(0))
    learner, rng_key, iteration = lanes.replicate(rest)
    return TrainState(learner, games, replay, sampler_state, rng_key, iteration)


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
    to_host = algorithm.lanes.to_host
    play_keys, update_keys = algorithm.make_keys(state.rng_key, state.iteration)
    simulations = config.self_play.simulations_at(share)
    enter("self-play")
    games, chunk, played = algorithm.self_play(
        state.learner.averaged, np.int32(simulations), state.games, play_keys
    )
    replay = algorithm.insert(state.iteration, state.replay, chunk)
    del chunk  # the updates need its memory
    state = dataclasses.replace(
        state, games=games, replay=replay, iteration=state.iteration + 1
    )
    metrics = {"simulations": np.int32(simulations)}
    metrics |= mean_of_lanes(to_host(played))

    iteration = int(state.iteration)
    num_positions = iteration * config.chunk_positions
    if num_positions < config.replay.min_positions:
        waiting = {"newly": 0, "delay": 0.0, "waiting": num_positions}
        return state, metrics | jax.tree.map(np.asarray, waiting)
    enter("the update")
    replay, index, eligibility = algorithm.make_index(
        np.int32(iteration * config.self_play.moves_per_chunk),
        np.int32(config.window_moves(iteration)),
        state.replay,
    )
    learner, sampler = state.learner, algorithm.prepare(state.sampler, index)
    counts, lengths = to_host((eligibility, index.lengths))
    metrics |= {name: np.sum(count) for name, count in counts._asdict().items()}
    update_metrics, run_share = [], np.float32(share)
    if lengths.any(axis=1).all():  # each lane has something to sample
        for _ in range(config.updates_per_iteration):
            learner, sampler, row = algorithm.update(
                learner, run_share, sampler, (replay, index), update_keys
            )
            update_metrics.append(row)
    update_metrics = jax.device_get(update_metrics or [{}])
    metrics |= jax.tree.map(lambda *values: np.mean(values), *update_metrics)
    state = dataclasses.replace(state, learner=learner, replay=replay, sampler=sampler)
    return state, metrics
