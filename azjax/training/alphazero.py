"""AlphaZero: an iteration of self-play, storage and updates, and its programs.

The docstring of `azjax.training` explains shapes and terms of JAX.
"""

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, cast

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from azjax.devices import REPLICATED
from azjax.games import Game
from azjax.networks import CustomModules, Network, Variables
from azjax.search.keys import merge_batch, split_batch
from azjax.training.config import TrainConfig
from azjax.training.game_reader import GameReader
from azjax.training.lanes import Lanes, abstract_array, spread_lanes
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
    Eligibility,
    Index,
    Replay,
    Sampler,
    draw_batch,
    empty_replay,
    insert,
    make_index,
    uniform_sampler,
)
from azjax.training.run import clock
from azjax.training.run.game_writer import GameWriter
from azjax.training.self_play import (
    Games,
    SelfPlay,
    SelfPlayMetrics,
    Trajectory,
    mean_of_lanes,
    start_games,
)
from azjax.training.targets import ValueTarget, lambda_target

UPDATES = "the update"  # name of the phase


@struct.dataclass
class TrainState:
    """The complete training state; a checkpoint stores it.

    learner: parameters, their average, the optimizer state.
    games: games of self-play in progress, leaves `[L, B / L, ...]` for L lanes; without
        those of stored games if self-play fills a part of the slots.
    replay: stored positions, leaves `[L, R, B / L, ...]`.
    sampler: the sampler's state, leaves `[L, ...]`.
    rng_key: the run's key; constant; the iteration number is folded in, and for updates
        also the update count.
    iteration: `[]` int32; completed iterations.
    """

    learner: LearnerState
    games: Games
    replay: Replay
    sampler: Any
    rng_key: jax.Array
    iteration: jax.Array


class Algorithm(NamedTuple):
    """The functions of an iteration; all but `init` are jitted.

    Keys, games, trajectories, replay, index and self-play metrics have a leading lane
    axis, `[L, ...]`; replicated arguments come first, see `Lanes.jit`. With one lane on
    one device, `jax.vmap` over the lanes and the methods of `Lanes` change no number.

    lanes: the placement of the lanes on the devices.
    horizon: moves after which a position surely is eligible; see `ValueTarget`.
    init: `init(variables) -> TrainState`, the initial state.
    make_keys: `(rng_key, iteration) -> (play_keys, update_keys)`.
    self_play: `(variables, num_simulations, games, keys) -> (games, trajectory,
        metrics, policy_values)`.
    insert: `(iteration, replay, *trajectories) -> replay`; a chunk in one or several
        parts, which are joined along the slots of each lane.
    make_index: `(num_moves, window, replay) -> (replay, index, eligibility)`; finds the
        eligible positions and computes their value targets.
    prepare: the sampler's `(sampler_state, index) -> sampler_state`.
    gradient: `(learner, sampler_state, (replay, index), keys) -> (gradients,
        sampler_state)`; samples a batch; `gradients` is a `Gradient` for each device,
        or for each lane with exact lanes, along the leading axis. Pass the same keys
        for all updates of an iteration: the update count is folded in.
    update: `(learner, progress, gradients) -> (learner, metrics)`; averages the
        gradients and applies them. It is a separate program, because XLA takes four
        times as long to compile the gradient and a reduction over TPUs in one.
    """

    lanes: Lanes
    horizon: int
    init: Callable[[Variables], TrainState]
    make_keys: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
    self_play: Callable[..., tuple[Games, Trajectory, SelfPlayMetrics, jax.Array]]
    insert: Callable[..., Replay]
    make_index: Callable[..., tuple[Replay, Index, Eligibility]]
    prepare: Callable[[Any, Index], Any]
    gradient: Callable[..., tuple[Gradient, Any]]
    update: Callable[..., tuple[LearnerState, dict[str, jax.Array]]]

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


def train_iteration(
    algorithm: Algorithm,
    config: TrainConfig,
    state: TrainState,
    progress: float,
    enter: Callable[[str], None] = lambda phase: None,
    *,
    game_writer: GameWriter | None = None,
    game_reader: GameReader | None = None,
    waits: bool = False,
) -> tuple[TrainState, dict[str, Any]]:
    """Plays or reads T moves in every slot, stores them in the replay, and updates the
    network.

    The host enqueues all programs before it waits for the first one, so that the device
    is never idle between them.

    Args:
        algorithm: the jitted functions.
        config: the settings that it was made with.
        state: donated, except for the games.
        progress: fraction of the run that is done, in [0, 1].
        enter: called with the name of each phase when it begins, of the updates
            when the host has enqueued them, unless it `waits`.
        game_writer: writes the games; None: they are not stored.
        game_reader: gives the next moves of the slots with stored games.
        waits: whether the host waits for self-play before it enqueues the updates; for
            the first updates, because `azjax.training.run.clock` stands still while
            their programs are compiled.

    Returns:
        The state and the metrics: scalars by name, among them `newly`, `delay` and
        `waiting` of `Eligibility`; no losses if no update was made, because there are
        fewer than `min_positions` or a lane has no eligible position.
    """
    lanes, iteration = algorithm.lanes, int(state.iteration) + 1
    play_keys, update_keys = algorithm.make_keys(state.rng_key, state.iteration)

    # Play: T moves in every slot.
    games, parts = state.games, []
    played: SelfPlayMetrics | None = None
    num_simulations = config.self_play.simulations_at(progress)
    if config.played_slots:
        enter("self-play")
        ply = games.moves
        games, trajectory, played, policy_values = algorithm.self_play(
            state.learner.averaged, np.int32(num_simulations), games, play_keys
        )
        parts.append(trajectory)
        if game_writer is not None:
            game_writer.add(iteration, num_simulations, ply, trajectory, policy_values)
        del trajectory
        played = lanes.replicate(played)
    else:
        enter("reading games")
    counts: dict[str, Any] = {}
    if game_reader is not None:
        chunk, counts = game_reader.chunk()
        parts.append(chunk)
        del chunk
    if waits:
        jax.block_until_ready(played)

    # Store.
    replay = algorithm.insert(state.iteration, state.replay, *parts)
    del parts  # frees their memory for the updates
    learner, sampler = state.learner, state.sampler

    # Compute the value targets, and learn from the eligible positions of the window.
    num_positions = iteration * config.chunk_positions
    eligibility: Eligibility | None = None
    rows: list[dict[str, jax.Array]] = []  # metrics of the updates
    if num_positions >= config.replay.min_positions:
        if waits:
            enter(UPDATES)
        num_moves = iteration * config.self_play.moves_per_chunk
        window = config.window_moves(iteration)
        replay, index, eligibility = algorithm.make_index(
            np.int32(num_moves), np.int32(window), replay
        )
        sampler = algorithm.prepare(sampler, index)
        eligibility = lanes.replicate(eligibility)
        # Each lane needs an eligible position. The oldest one of the window surely is,
        # if enough moves follow it; in the first iterations, games may have ended
        # before.
        if (
            min(num_moves, window) > algorithm.horizon
            or jax.device_get(lanes.replicate(index.lengths)).any(axis=1).all()
        ):
            for _ in range(config.updates_per_iteration):
                gradients, sampler = algorithm.gradient(
                    learner, sampler, (replay, index), update_keys
                )
                learner, row = lanes.wait(
                    algorithm.update(
                        learner, np.float32(progress), lanes.wait(gradients)
                    )
                )
                rows.append(row)
    state = TrainState(
        learner, games, replay, sampler, state.rng_key, state.iteration + 1
    )

    # Wait for the metrics.
    metrics = counts
    if played is not None:
        metrics = mean_of_lanes(jax.device_get(played))
        if counts:  # finished games of the slots with stored games, and their score
            total = metrics["games"] * metrics["first_player_score"]
            total += counts["games"] * counts["first_player_score"]
            metrics["games"] += counts["games"]
            metrics["first_player_score"] = total / max(metrics["games"], 1)
        metrics = {"simulations": np.int32(num_simulations), **metrics}
    if eligibility is None:
        waiting = {"newly": 0, "delay": 0.0, "waiting": num_positions}
        return state, metrics | jax.tree.map(np.asarray, waiting)
    if not waits:
        enter(UPDATES)
    counted, rows = jax.device_get((eligibility._asdict(), rows))
    metrics |= {name: np.sum(count) for name, count in counted.items()}
    metrics |= jax.tree.map(lambda *values: np.mean(values), *(rows or [{}]))
    return state, metrics


def make_algorithm(
    config: TrainConfig,
    game: Game,
    network: Network,
    *,
    optimizer: optax.GradientTransformation | None = None,
    modules: CustomModules | None = None,
    loss: Loss | None = None,
    value_target: ValueTarget | None = None,
    sampler: Sampler | None = None,
    devices: Sequence[Any] | None = None,
) -> Algorithm:
    """Returns the functions of a run; nothing is compiled yet.

    Args:
        config: the run's settings.
        game: the game.
        network: its structure, with the auxiliary heads of `modules`.
        optimizer: replaces AdamW and its schedule.
        modules: custom network modules and auxiliary heads.
        loss: replaces `head_losses`, with its `value_weight` and the auxiliary losses.
        value_target: replaces `lambda_target`.
        sampler: replaces `uniform_sampler`.
        devices: the devices of the lanes; all by default.

    Raises:
        ValueError: an argument has the wrong type, the replay is too small for the
            value target, or the number of devices does not divide `num_lanes`.
    """
    if loss is not None and not callable(loss):
        raise ValueError(f"loss must be a function: {loss!r}")
    if value_target is not None and not isinstance(value_target, ValueTarget):
        raise ValueError(f"value_target must be a ValueTarget: {value_target!r}")
    if sampler is not None and not isinstance(sampler, Sampler):
        raise ValueError(f"sampler must be a Sampler: {sampler!r}")
    auxiliary, settings = (modules or CustomModules()).auxiliary, config.learner
    optimizer = optimizer or make_optimizer(settings)
    sampler = sampler or uniform_sampler()
    value_target = value_target or lambda_target(
        settings.td_lambda, game.max_moves, max_regret=settings.max_regret
    )
    config.check_replay(value_target.horizon)
    lanes = spread_lanes(
        config.num_lanes, one_by_one=config.exact_lanes, devices=devices
    )
    loss = loss or make_loss(settings, modules)
    play = SelfPlay(
        game, network, config.search, config.self_play, config.replay.policy_entries
    )
    # The initial state: what all devices share, and the lanes of each.
    lane_games = config.self_play.num_games // lanes.number
    # Not used if all slots hold stored games.
    lane_played = config.played_slots // lanes.number or lane_games

    # In one program, not one for each array.
    @functools.partial(jax.jit, out_shardings=lanes.replicated)
    def init_shared(variables: Variables):
        run_key, games_key = jax.random.split(jax.random.key(config.seed + 1))
        lane_keys = jax.random.split(games_key, lanes.number)
        return lane_keys, (init_learner(variables, optimizer), run_key, jnp.int32(0))

    def init_lane(rng_key: jax.Array):
        replay = empty_replay(
            game,
            num_chunks=config.replay_chunks,
            moves_per_chunk=config.self_play.moves_per_chunk,
            num_games=lane_games,
            policy_entries=config.replay.policy_entries,
        )
        sampler_state = sampler.init(jnp.shape(replay.was_eligible))
        return start_games(game, lane_played, rng_key), replay, sampler_state

    # Jitted, so that each device allocates only its own lanes.
    init_lanes = lanes.jit(jax.vmap(init_lane))

    def init(variables: Variables) -> TrainState:
        lane_keys, (learner, rng_key, iteration) = init_shared(variables)
        games, replay, sampler_state = init_lanes(lane_keys)
        return TrainState(learner, games, replay, sampler_state, rng_key, iteration)

    @functools.partial(jax.jit, out_shardings=lanes.by_lane)
    def make_keys(rng_key: jax.Array, iteration: jax.Array):
        """Returns the `[L]` keys of self-play and the `[L]` keys of the updates."""
        iteration_key = jax.random.fold_in(rng_key, iteration)
        play_key, update_key = jax.random.split(iteration_key)
        return tuple(
            jax.random.split(key, lanes.number) for key in (play_key, update_key)
        )

    def insert_parts(iteration: jax.Array, replay: Replay, *parts: Trajectory):
        trajectory = jax.tree.map(
            lambda *leaves: jnp.concatenate(leaves, axis=2), *parts
        )  # [L, T, B / L, ...]
        num_slots = replay.was_eligible.shape[2]
        # With fewer, JAX would write a part of the slots and leave the others.
        chex.assert_axis_dimension(trajectory.terminated, 2, num_slots)
        return insert(replay, trajectory, iteration)

    make_lane_index = functools.partial(
        make_index, value_target=value_target, finds_ends=bool(auxiliary)
    )

    def make_indices(num_moves: jax.Array, window: jax.Array, replay: Replay):
        return jax.vmap(make_lane_index, (0, None, None))(replay, num_moves, window)

    draw = functools.partial(
        draw_batch,
        game,
        sampler=sampler,
        size=settings.batch_size // config.num_lanes,
        auxiliary=auxiliary,
    )

    def gradient(learner, sampler_state, positions, keys):
        """Computes the gradient of the lanes of this device in one batch."""
        replay, index = positions
        keys = jax.vmap(jax.random.fold_in, (0, None))(keys, learner.updates)
        batch = jax.vmap(draw)(sampler_state, replay, index, keys)
        if lanes.platform == "tpu":
            # Fused into the convolutions, sampling would move four times as many bytes.
            batch = jax.lax.optimization_barrier(batch)
        found, sample_loss = compute_gradient(
            network, loss, learner.variables, merge_batch(batch), num_lanes=len(keys)
        )
        sample_loss = split_batch(sample_loss, len(keys))
        sampler_state = jax.vmap(sampler.update)(
            sampler_state, batch.sample, sample_loss
        )
        return jax.tree.map(lambda leaf: leaf[None], found), sampler_state

    # The gradients are averaged over lanes or devices, and applied in the same way on
    # each device.
    apply = functools.partial(apply_gradient, optimizer, settings.ema_decay)

    if lanes.one_by_one:
        # Two programs, so that the second is the same on any number of devices.
        mean_gradient, jitted_apply = lanes.mean(), jax.jit(apply, donate_argnums=0)

        def update_exactly(learner, progress, gradients):
            return jitted_apply(learner, progress, lanes.wait(mean_gradient(gradients)))

        jitted_update = update_exactly
    else:

        def update(learner, progress, gradients):
            gradient = jax.tree.map(lambda leaf: leaf[0], gradients)
            return apply(learner, progress, lanes.mean_of_devices(gradient))

        jitted_update = lanes.jit(
            update, num_replicated=2, out_specs=REPLICATED, donate_argnums=(0,)
        )

    return Algorithm(
        lanes=lanes,
        horizon=value_target.horizon,
        init=init,
        make_keys=make_keys,
        self_play=lanes.jit_network(play.play_chunk, num_replicated=2),
        insert=lanes.jit(insert_parts, num_replicated=1, donate_argnums=(1,)),
        make_index=lanes.jit(make_indices, num_replicated=2, donate_argnums=(2,)),
        prepare=lanes.jit(jax.vmap(sampler.prepare), donate_argnums=(0,)),
        gradient=lanes.jit_network(gradient, num_replicated=1, donate_argnums=(1,)),
        update=jitted_update,
    )


def compiled_ahead(
    algorithm: Algorithm, state: TrainState, *, plays: bool = True
) -> Algorithm:
    """Returns the functions, and compiles their largest programs in other threads; the
    first call that needs such a program waits for it.

    With exact lanes, several processes or another platform than a CPU, they are
    compiled when they are called.

    Args:
        algorithm: the functions of a run.
        state: returned by `abstract_state`.
        plays: whether self-play is among them.
    """
    lanes, jitted = algorithm.lanes, cast(Any, algorithm)
    if lanes.one_by_one or lanes.platform != "cpu" or jax.process_count() > 1:
        return algorithm

    # The results of one program are the arguments of the next. Their shapes are enough:
    # nothing is computed before the run calls the programs.
    def result_of(lowered: Any) -> Any:
        return jax.tree.map(
            lambda leaf: abstract_array(leaf, lanes.by_lane), lowered.out_info
        )

    lowered_keys = jitted.make_keys.lower(state.rng_key, state.iteration)
    play_keys, update_keys = result_of(lowered_keys)

    def compile_self_play() -> None:
        variables, games = state.learner.averaged, state.games
        jitted.self_play.lower(variables, np.int32(0), games, play_keys).compile()

    def compile_update() -> None:
        index = jitted.make_index.lower(np.int32(0), np.int32(0), state.replay)
        replay, found, _ = result_of(index)
        sampler = result_of(jitted.prepare.lower(state.sampler, found))
        gradient = jitted.gradient.lower(
            state.learner, sampler, (replay, found), update_keys
        )
        gradients, _ = result_of(gradient)
        update = jitted.update.lower(state.learner, np.float32(0), gradients)
        for lowered in (gradient, update, index):
            lowered.compile()

    def after(work: Future[None], function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            # The time of a run does not include compilation.
            with clock.stopped():
                work.result()
            return function(*args)

        return call

    # One thread for self-play, one for the programs after it.
    pool, self_play = ThreadPoolExecutor(2, "compilation"), algorithm.self_play
    if plays:
        self_play = after(pool.submit(compile_self_play), self_play)
    make_index = after(pool.submit(compile_update), algorithm.make_index)
    pool.shutdown(wait=False)
    return algorithm._replace(self_play=self_play, make_index=make_index)
