"""The on-device store of positions: for each game slot a ring of its moves."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game
from azjax.games.symmetry import Symmetry
from azjax.networks import AuxiliaryHead
from azjax.training.self_play import Trajectory
from azjax.training.stored_policy import action_dtype, expand_policy, store_policy
from azjax.training.targets import ValueTarget


@struct.dataclass
class Replay:
    """The newest chunks of self-play: `R` rows, each a move in each of `B` game slots.

    A slot holds one game after the other.

    chunk: leaves `[R, B, ...]`; R is a multiple of a chunk's length, and chunk i of
        the run lies in the rows from (i mod number of chunks) * length.
    was_eligible: `[R, B]` bool; whether an index held the position.
    """

    chunk: Trajectory
    was_eligible: jax.Array


class Index(NamedTuple):
    """Which positions can be sampled, and their value targets.

    In each slot the eligible positions are the oldest ones of the window, without a
    gap: if one can be sampled, so can all before it.

    first: `[]` int32; the row of the window's oldest move.
    lengths: `[B]` int32; eligible positions of each slot, in the rows from `first` on.
    is_new: `[R, B]` bool; whether a position is eligible for the first time.
    value_target: `[R, B, 3]` float16; meaningful where a position is eligible. Rows
        that have not been written count as the oldest.
    last: `[R, B]` int32; the row of the last move of the position's game, -1 where that
        is not known; None unless an auxiliary head needs it.
    """

    first: jax.Array
    lengths: jax.Array
    is_new: jax.Array
    value_target: jax.Array
    last: jax.Array | None

    @property
    def size(self) -> jax.Array:
        """`[]` int32; all eligible positions."""
        return self.lengths.sum(dtype=jnp.int32)

    @property
    def is_eligible(self) -> jax.Array:
        """`[R, B]` bool; whether a position can be sampled."""
        rows = jnp.arange(self.value_target.shape[0], dtype=jnp.int32)
        return ((rows - self.first) % rows.size)[:, None] < self.lengths


class Eligibility(NamedTuple):
    """Counts of the positions since the last index, scalars.

    newly: positions that are eligible for the first time.
    delay: moves made in their slots after them, those of later games included, summed.
    waiting: positions in the window that have not been eligible yet.
    """

    newly: jax.Array
    delay: jax.Array
    waiting: jax.Array


class Targets(NamedTuple):
    """Training targets of the heads.

    policy: `[N, A]` float32; all 0 where there is no target.
    value: `[N, 3]` float32; win, draw and loss for the player to move.
    auxiliary: the target of each auxiliary head, by name, leaves `[N, ...]`.
    """

    policy: jax.Array
    value: jax.Array
    auxiliary: dict[str, Any]


class Sample(NamedTuple):
    """N positions of the replay that a sampler chose.

    row: `[N]` int32.
    slot: `[N]` int32.
    weight: `[N]` float32; of each position in the loss, 1 on average.
    """

    row: jax.Array
    slot: jax.Array
    weight: jax.Array


class Batch(NamedTuple):
    """The positions of an update.

    observation: `[N, H, W, C]` float32.
    legal_action_mask: `[N, A]` bool.
    targets: of all heads.
    has_ended: `[N]` bool; whether the final position of the game is known, without
        which the auxiliary heads have no target; all False if there are no such heads.
    sample: where the positions lie in the replay, and their weights in the loss.
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
    """Returns room for `num_chunks` chunks, with so many entries of each policy."""
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
            reward=jnp.zeros(shape, jnp.float32),
            terminated=jnp.zeros(shape, bool),
        ),
        was_eligible=jnp.zeros(shape, bool),
    )


def insert(replay: Replay, chunk: Trajectory, iteration: jax.Array) -> Replay:
    """Writes chunk `iteration` (`[]` int32) of the run over the oldest one. Both may
    have axes in front."""
    rows = chunk.terminated.ndim - 2
    length = chunk.terminated.shape[rows]
    num_chunks = replay.chunk.terminated.shape[rows] // length
    start = (iteration % num_chunks) * length
    # The new rows are a replay of their own, which is laid over the large one.
    return jax.tree.map(
        lambda store, new: jax.lax.dynamic_update_slice_in_dim(store, new, start, rows),
        replay,
        Replay(chunk, jnp.zeros_like(chunk.terminated)),
    )


def make_index(
    replay: Replay,
    num_moves: jax.Array,
    window: jax.Array,
    *,
    value_target: ValueTarget,
    finds_ends: bool = False,
) -> tuple[Replay, Index, Eligibility]:
    """Computes which positions can be sampled, and their value targets.

    A position is eligible once its game has ended, or `value_target.horizon` moves have
    followed it.

    Args:
        replay: the store.
        num_moves: `[]` int32; moves of each slot written since the run began.
        window: `[]` int32; only the newest `window` moves of each slot are sampled.
        value_target: how value targets are computed.
        finds_ends: whether the index holds the last move of each position's game.

    Returns:
        The replay with the eligible positions marked, the index, and the counts.

    Raises:
        ValueError: the value targets have another shape.
    """
    chunk = replay.chunk
    capacity = chunk.terminated.shape[0]
    oldest = num_moves % capacity
    in_time_order = functools.partial(jnp.roll, shift=-oldest, axis=0)
    in_rows = functools.partial(jnp.roll, shift=oldest, axis=0)

    moves = (chunk.reward, chunk.terminated, chunk.value, chunk.draw_probability)
    targets = value_target.compute(*map(in_time_order, moves)).astype(jnp.float16)
    if targets.shape != (*chunk.terminated.shape, 3):
        raise ValueError(
            f"value_target.compute must return {(*chunk.terminated.shape, 3)} of "
            f"{chunk.terminated.shape} moves: it returned {targets.shape}"
        )
    # The move that ends each position's game, counted from the oldest move; `capacity`
    # where it has not been made.
    age = jnp.arange(capacity, dtype=jnp.int32)[:, None]
    end = _next_end(in_time_order(chunk.terminated))
    followers = capacity - 1 - age
    is_eligible = in_rows((end < capacity) | (followers >= value_target.horizon))

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
    index = Index(
        first=first,
        lengths=is_eligible.sum(axis=0, dtype=jnp.int32),
        is_new=is_new,
        value_target=in_rows(targets),
        last=last,
    )
    return Replay(chunk, was_eligible), index, eligibility


def _next_end(terminated: jax.Array) -> jax.Array:
    """Returns `[T, B]` int32, the first row from each one on that ends a game, T where
    there is none; `terminated` is `[T, B]` bool."""

    def step(end, row):
        number, terminated = row
        end = jnp.where(terminated, number, end)
        return end, end

    rows = jnp.arange(len(terminated), dtype=jnp.int32)
    none = jnp.full_like(terminated[0], len(terminated), jnp.int32)
    return jax.lax.scan(step, none, (rows, terminated), reverse=True)[1]


def locate(index: Index, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns row and slot, `[N]` each, of eligible positions by number.

    Args:
        index: of the eligible positions.
        number: `[N]` int32; from 0 to `index.size` - 1.
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

    The positions are independent of each other, so equal parts of the batch, one for
    each symmetry, are as good as drawing the symmetries. They reorder the positions:
    `Batch.sample` has the new order. Where there are fewer positions than symmetries,
    each position has another one, drawn with the key.

    Args:
        game: the game.
        replay: the store.
        index: of the store; with ends if there are auxiliary heads.
        sample: the positions.
        auxiliary: heads whose targets are computed.
        rng_key: consumed by a batch of fewer positions than symmetries; not used by
            others.

    Raises:
        ValueError: there are auxiliary heads, and the index has no ends; or there are
            fewer positions than symmetries, and no key.
    """
    position = (sample.row, sample.slot)
    state, stored = jax.tree.map(
        lambda leaf: leaf[position], (replay.chunk.state, replay.chunk.policy)
    )
    has_ended = jnp.zeros_like(sample.weight, bool)
    targets = Targets(
        policy=expand_policy(stored, game.num_actions),
        value=index.value_target[position].astype(jnp.float32),
        auxiliary={},  # filled below
    )
    if auxiliary:
        if index.last is None:
            raise ValueError("auxiliary heads need an index made with finds_ends=True")
        last = index.last[position]
        has_ended = last >= 0
        chunk = replay.chunk
        before, action = jax.tree.map(
            lambda leaf: leaf[last, sample.slot], (chunk.state, chunk.action)
        )
        final_state = jax.vmap(game.step)(before, action.astype(jnp.int32))
        for head in auxiliary:
            target = jax.vmap(head.target)(state, final_state)
            targets.auxiliary[head.name] = jax.vmap(_zero_unless)(has_ended, target)
    batch = Batch(
        observation=jax.vmap(game.observe)(state),
        legal_action_mask=jax.vmap(game.legal_action_mask)(state),
        targets=targets,
        has_ended=has_ended,
        sample=sample,
    )
    if sample.row.size < len(game.symmetries):
        return _under_drawn_symmetries(batch, game.symmetries, auxiliary, rng_key)
    parts = [
        _transform(
            jax.tree.map(lambda leaf: leaf[first :: len(game.symmetries)], batch),  # noqa: B023
            symmetry,
            auxiliary,
        )
        for first, symmetry in enumerate(game.symmetries)
    ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def _under_drawn_symmetries(
    batch: Batch,
    symmetries: Sequence[Symmetry],
    auxiliary: Sequence[AuxiliaryHead],
    rng_key: jax.Array | None,
) -> Batch:
    """Returns a batch of fewer positions than symmetries, each under another one."""
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


def _zero_unless(condition: jax.Array, tree: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jnp.where(condition, leaf, jnp.zeros_like(leaf)), tree
    )


def _transform(
    batch: Batch, symmetry: Symmetry, auxiliary: Sequence[AuxiliaryHead]
) -> Batch:
    """Returns the batch of the positions that a symmetry makes of these."""
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
