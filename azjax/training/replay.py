"""The on-device replay, for each game slot a ring buffer of its moves, and the samplers
that choose the positions of a batch."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game
from azjax.games.chance import after_outcome
from azjax.games.core import select
from azjax.games.symmetry import Symmetry
from azjax.networks import AuxiliaryHead
from azjax.training.self_play import Trajectory
from azjax.training.stored_policy import action_dtype, expand_policy, store_policy
from azjax.training.targets import ValueTarget


@struct.dataclass
class Replay:
    """The newest chunks of self-play: `R` rows, each with a move in each of `B` slots.

    A slot holds one game after the other.

    chunk: stored moves, leaves `[R, B, ...]` (checkpoints store this name). R is a
        multiple of the chunk length; chunk i of the run starts at row (i mod number of
        chunks) * length.
    was_eligible: `[R, B]` bool; whether the position has been eligible.
    """

    chunk: Trajectory
    was_eligible: jax.Array


class Index(NamedTuple):
    """The eligible positions and their value targets.

    In each slot the eligible positions are the oldest ones of the window, without gaps:
    if a position is eligible, so are all earlier ones.

    first: `[]` int32; row of the window's oldest move.
    lengths: `[B]` int32; number of eligible positions in each slot, from `first` on.
    is_new: `[R, B]` bool; whether a position is eligible for the first time.
    value_target: `[R, B, 3]` float16; valid for eligible positions. Rows
        not yet written come first in time order and are never eligible.
    last: `[R, B]` int32; row of the last move of the position's game, -1 if unknown;
        None unless an auxiliary head needs it.
    """

    first: jax.Array
    lengths: jax.Array
    is_new: jax.Array
    value_target: jax.Array
    last: jax.Array | None

    @property
    def size(self) -> jax.Array:
        """`[]` int32; number of eligible positions."""
        return self.lengths.sum(dtype=jnp.int32)

    @property
    def is_eligible(self) -> jax.Array:
        """`[R, B]` bool; whether a position can be sampled."""
        rows = jnp.arange(self.value_target.shape[0], dtype=jnp.int32)
        return ((rows - self.first) % rows.size)[:, None] < self.lengths


class Eligibility(NamedTuple):
    """Counts of positions, scalars.

    newly: positions that became eligible since the last index.
    delay: sum over these positions of the moves made in their slots since them.
    waiting: positions in the window that have not been eligible yet.
    """

    newly: jax.Array
    delay: jax.Array
    waiting: jax.Array


class Targets(NamedTuple):
    """Training targets of the heads.

    policy: `[N, A]` float32; all 0 without a target.
    value: `[N, 3]` float32; win, draw and loss for the player to move.
    auxiliary: targets of the auxiliary heads by name, leaves `[N, ...]`.
    """

    policy: jax.Array
    value: jax.Array
    auxiliary: dict[str, Any]


class Sample(NamedTuple):
    """N sampled positions of the replay.

    row: `[N]` int32.
    slot: `[N]` int32.
    weight: `[N]` float32; weight in the loss, 1 on average.
    """

    row: jax.Array
    slot: jax.Array
    weight: jax.Array


class Batch(NamedTuple):
    """The positions of an update.

    observation: `[N, H, W, C]` float32.
    legal_action_mask: `[N, A]` bool.
    targets: of all heads.
    has_ended: `[N]` bool; whether the auxiliary heads have a target; all False without
        auxiliary heads.
    sample: the sampled positions, in the order of the batch.
    """

    observation: jax.Array
    legal_action_mask: jax.Array
    targets: Targets
    has_ended: jax.Array
    sample: Sample


def empty_replay(
    game: Game,
    *,
    num_chunks: int,
    moves_per_chunk: int,
    num_games: int,
    policy_entries: int,
) -> Replay:
    """Returns a replay for `num_chunks` chunks, with `policy_entries` entries per
    policy.

    Example:
        >>> replay = training.empty_replay(
        ...     games.make("gomoku"),
        ...     num_chunks=2,
        ...     moves_per_chunk=8,
        ...     num_games=4,
        ...     policy_entries=32,
        ... )
        >>> replay.chunk.policy.probability.shape  # of 225 actions
        (16, 4, 32)
    """
    shape = (num_chunks * moves_per_chunk, num_games)
    policy, _ = store_policy(jnp.zeros(game.num_actions, jnp.float32), policy_entries)
    state, policy = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, shape + leaf.shape).copy(),
        (game.init(), policy),
    )
    return Replay(
        chunk=Trajectory(
            state=state,
            action=jnp.zeros(shape, action_dtype(game.num_actions)),
            policy=policy,
            value=jnp.zeros(shape, jnp.float32),
            draw_probability=jnp.zeros(shape, jnp.float32),
            regret=jnp.zeros(shape, jnp.float32),
            reward=jnp.zeros(shape, jnp.float32),
            terminated=jnp.zeros(shape, bool),
            outcome=jnp.zeros(shape, jnp.int16) if game.num_outcomes else None,
        ),
        was_eligible=jnp.zeros(shape, bool),
    )


def insert(replay: Replay, trajectory: Trajectory, iteration: jax.Array) -> Replay:
    """Overwrites the oldest chunk with chunk `iteration` (`[]` int32) of the run. Both
    arguments may have leading axes.

    Example:
        >>> replay = training.insert(replay, trajectory, 3)  # the second of two chunks
        >>> bool((replay.chunk.action[9:] == trajectory.action).all())
        True
    """
    axis = trajectory.terminated.ndim - 2  # of the rows
    length = trajectory.terminated.shape[axis]
    num_chunks = replay.chunk.terminated.shape[axis] // length
    start = (iteration % num_chunks) * length
    return jax.tree.map(
        lambda store, new: jax.lax.dynamic_update_slice_in_dim(store, new, start, axis),
        replay,
        Replay(trajectory, jnp.zeros_like(trajectory.terminated)),
    )


def make_index(
    replay: Replay,
    num_moves: jax.Array,
    window: jax.Array,
    *,
    value_target: ValueTarget,
    finds_ends: bool = False,
) -> tuple[Replay, Index, Eligibility]:
    """Computes the eligible positions and their value targets.

    A position is eligible once its game has ended, or `value_target.horizon` moves have
    followed it.

    Args:
        replay: the stored moves.
        num_moves: `[]` int32; moves written to each slot since the start of the run.
        window: `[]` int32; positions are eligible among the newest `window` moves.
        value_target: computes the value targets.
        finds_ends: whether the index contains the last move of each position's game.

    Returns:
        The replay with `was_eligible` updated, the index, and the counts.

    Raises:
        ValueError: the value targets have the wrong shape.

    Example:
        The positions of a chunk are eligible, or wait for the end of their game:

        >>> replay, index, eligibility = training.make_index(
        ...     replay, num_moves=9, window=9, value_target=value_target
        ... )
        >>> int(index.size + eligibility.waiting)
        36
    """
    moves = replay.chunk
    capacity = moves.terminated.shape[0]
    oldest = num_moves % capacity
    in_time_order = functools.partial(jnp.roll, shift=-oldest, axis=0)
    in_rows = functools.partial(jnp.roll, shift=oldest, axis=0)

    # In time order: when each position's game ends, and how many moves follow it.
    targets = _value_targets(jax.tree.map(in_time_order, moves), value_target)
    time = jnp.arange(capacity, dtype=jnp.int32)[:, None]  # 0 is the oldest move
    # The move that ends each position's game; `capacity` if it has not been made.
    ending = jnp.where(in_time_order(moves.terminated), time, capacity)
    end = jax.lax.cummin(ending, axis=0, reverse=True)
    followers = capacity - 1 - time
    is_eligible = in_rows((end < capacity) | (followers >= value_target.horizon))

    # In the order of the rows again: only positions of the window are eligible.
    length = jnp.minimum(jnp.minimum(window, num_moves), capacity)
    first = (num_moves - length) % capacity
    place = (jnp.arange(capacity, dtype=jnp.int32) - first) % capacity
    in_window = (place < length)[:, None]
    is_eligible &= in_window
    is_new = is_eligible & ~replay.was_eligible
    was_eligible = replay.was_eligible | is_eligible
    moves_after = (length - 1 - place).astype(jnp.float32)
    eligibility = Eligibility(
        newly=is_new.sum(dtype=jnp.int32),
        delay=(moves_after * is_new.sum(axis=1)).sum(),
        waiting=(in_window & ~was_eligible).sum(dtype=jnp.int32),
    )
    last = None
    if finds_ends:
        last = in_rows(jnp.where(end < capacity, (end + oldest) % capacity, -1))
    lengths = is_eligible.sum(axis=0, dtype=jnp.int32)
    index = Index(first, lengths, is_new, in_rows(targets), last)
    return Replay(moves, was_eligible), index, eligibility


def _value_targets(moves: Trajectory, value_target: ValueTarget) -> jax.Array:
    """Returns `[R, B, 3]` float16 targets of moves in time order."""
    targets = value_target.compute(moves)
    shape = (*moves.terminated.shape, 3)
    if targets.shape != shape:
        raise ValueError(
            f"value_target.compute must return {shape} for {shape[:2]} moves: "
            f"it returned {targets.shape}"
        )
    return targets.astype(jnp.float16)


def locate(index: Index, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns row and slot, `[N]` each, of eligible positions by number.

    Args:
        index: of the replay.
        number: `[N]` int32; from 0 to `index.size` - 1.

    Example:
        >>> row, slot = training.locate(index, jnp.arange(index.size))
        >>> bool(index.is_eligible[row, slot].all())
        True
    """
    ends = jnp.cumsum(index.lengths, dtype=jnp.int32)
    slot = jnp.searchsorted(ends, number, side="right")
    place = number - (ends - index.lengths)[slot]
    return (index.first + place) % index.value_target.shape[0], slot


def make_batch(
    game: Game,
    replay: Replay,
    index: Index,
    sample: Sample,
    auxiliary: Sequence[AuxiliaryHead] = (),
    *,
    rng_key: jax.Array | None = None,
) -> Batch:
    """Returns observations and targets of positions, each under a symmetry of the game.

    Position i gets symmetry i mod S. As the sampler draws positions independently, this
    replaces drawing symmetries at random. The batch is reordered by symmetry;
    `Batch.sample` has the new order. If N < S, N different random symmetries are used.

    Args:
        game: the game.
        replay: the stored moves.
        index: of the replay; with `last` if there are auxiliary heads.
        sample: the positions.
        auxiliary: heads whose targets are computed.
        rng_key: needed with fewer positions than symmetries, and then consumed.

    Raises:
        ValueError: `index.last` or `rng_key` is missing.

    Example:
        >>> sample = sampler.choose((), index, jax.random.key(0), 16)
        >>> batch = training.make_batch(game, replay, index, sample)
        >>> batch.observation.shape
        (16, 3, 3, 2)
        >>> bool((batch.targets.policy[~batch.legal_action_mask] == 0).all())
        True
    """
    position = (sample.row, sample.slot)
    state, stored = jax.tree.map(
        lambda leaf: leaf[position], (replay.chunk.state, replay.chunk.policy)
    )
    has_ended, auxiliary_targets = jnp.zeros_like(sample.weight, bool), {}
    if auxiliary:
        has_ended, auxiliary_targets = _auxiliary_targets(
            game, replay, index, sample, auxiliary
        )
    targets = Targets(
        policy=expand_policy(stored, game.num_actions),
        value=index.value_target[position].astype(jnp.float32),
        auxiliary=auxiliary_targets,
    )
    batch = Batch(
        observation=jax.vmap(game.observe)(state),
        legal_action_mask=jax.vmap(game.legal_action_mask)(state),
        targets=targets,
        has_ended=has_ended,
        sample=sample,
    )
    num_symmetries = len(game.symmetries)
    if sample.row.size < num_symmetries:
        return _under_random_symmetries(batch, game.symmetries, auxiliary, rng_key)
    # Each symmetry maps its own part of the batch. If one was drawn for each position,
    # all images of all positions would be computed.
    parts = [
        jax.tree.map(lambda leaf: leaf[first::num_symmetries], batch)  # noqa: B023
        for first in range(num_symmetries)
    ]
    images = [
        _transform(part, symmetry, auxiliary)
        for part, symmetry in zip(parts, game.symmetries, strict=True)
    ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *images)


def _auxiliary_targets(
    game: Game,
    replay: Replay,
    index: Index,
    sample: Sample,
    auxiliary: Sequence[AuxiliaryHead],
) -> tuple[jax.Array, dict[str, Any]]:
    """Returns `[N]` whether each position's game has ended by the rules, and the
    targets by name.

    A target is 0 where it has not: the last position of a resigned or agreed game does
    not show who would own what.
    """
    if index.last is None:
        raise ValueError("auxiliary heads need an index made with finds_ends=True")
    position = (sample.row, sample.slot)
    state = jax.tree.map(lambda leaf: leaf[position], replay.chunk.state)
    last = index.last[position]
    # The final position is not stored: it follows from the last move.
    chunk = replay.chunk
    before, action, outcome = jax.tree.map(
        lambda leaf: leaf[last, sample.slot], (chunk.state, chunk.action, chunk.outcome)
    )
    final_state = jax.vmap(game.step)(before, action.astype(jnp.int32))
    if outcome is not None:
        final_state = after_outcome(game, final_state, outcome)
    has_ended = (last >= 0) & final_state.terminated
    targets = {}
    for head in auxiliary:
        target = jax.vmap(head.target)(state, final_state)
        targets[head.name] = jax.vmap(select)(
            has_ended, target, jax.tree.map(jnp.zeros_like, target)
        )
    return has_ended, targets


def _under_random_symmetries(
    batch: Batch,
    symmetries: Sequence[Symmetry],
    auxiliary: Sequence[AuxiliaryHead],
    rng_key: jax.Array | None,
) -> Batch:
    """Returns a batch of fewer positions than symmetries, each under a random one."""
    size = batch.sample.row.size
    if rng_key is None:
        raise ValueError(
            f"rng_key must be given for a batch of {size} positions: the game has "
            f"{len(symmetries)} symmetries"
        )
    drawn = jax.random.permutation(rng_key, len(symmetries))[:size]
    images = [_transform(batch, symmetry, auxiliary) for symmetry in symmetries]
    return jax.tree.map(
        lambda *leaves: jnp.stack(leaves)[drawn, jnp.arange(size)], *images
    )


def _transform(
    batch: Batch, symmetry: Symmetry, auxiliary: Sequence[AuxiliaryHead]
) -> Batch:
    """Returns the batch of the positions' images under a symmetry."""
    targets = batch.targets
    return batch._replace(
        observation=symmetry.observation(batch.observation),
        legal_action_mask=batch.legal_action_mask[:, symmetry.actions],
        targets=targets._replace(
            policy=targets.policy[:, symmetry.actions],
            auxiliary={
                head.name: head.transform(symmetry, targets.auxiliary[head.name])
                for head in auxiliary
            },
        ),
    )


class Sampler(NamedTuple):
    """Pure functions that sample positions; the state is part of a checkpoint.

    `R` is the number of rows of the replay, `B` the number of its slots. Each lane has
    its own replay and state; the functions are vmapped over the lanes.

    init: `init((R, B))` returns the initial state, a pytree of arrays.
    prepare: `prepare(state, index)` returns the state after an iteration's self-play,
        which overwrote positions and made others eligible (`index.is_new`).
    choose: `choose(state, index, rng_key, N)` returns a `Sample` of N positions,
        independent of each other; the key is consumed. Eligibility
        (`index.is_eligible`) is not checked.
    update: `update(state, sample, loss)` returns the state after an update, with the
        loss `[N]` of each position.
    """

    init: Callable[[tuple[int, ...]], Any]
    prepare: Callable[[Any, Index], Any]
    choose: Callable[[Any, Index, jax.Array, int], Sample]
    update: Callable[[Any, Sample, jax.Array], Any]


def uniform_sampler() -> Sampler:
    """Returns the sampler that draws eligible positions uniformly, with replacement."""

    def choose(state, index: Index, rng_key: jax.Array, size: int):
        del state
        number = jax.random.randint(rng_key, (size,), 0, index.size, jnp.int32)
        return Sample(*locate(index, number), jnp.ones(size, jnp.float32))

    return Sampler(
        init=lambda shape: (),
        prepare=lambda state, index: state,
        choose=choose,
        update=lambda state, sample, loss: state,
    )


def draw_batch(
    game: Game,
    state: Any,
    replay: Replay,
    index: Index,
    rng_key: jax.Array,
    *,
    sampler: Sampler,
    size: int,
    auxiliary: Sequence[AuxiliaryHead] = (),
) -> Batch:
    """Samples a batch of one lane.

    Args:
        game: the game.
        state: the sampler's state.
        replay: of the lane.
        index: of the replay.
        rng_key: consumed.
        sampler: chooses the positions.
        size: of the batch.
        auxiliary: heads whose targets are computed.

    Raises:
        ValueError: the sampler returns the wrong number of positions.
    """
    symmetry_key = None
    if size < len(game.symmetries):
        rng_key, symmetry_key = jax.random.split(rng_key)
    sample = sampler.choose(state, index, rng_key, size)
    if sample.row.shape != (size,):
        raise ValueError(
            f"sampler.choose must return {size} positions: it returned "
            f"{sample.row.shape}"
        )
    return make_batch(game, replay, index, sample, auxiliary, rng_key=symmetry_key)
