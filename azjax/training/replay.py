"""The on-device store of positions: for each game slot a ring of its moves."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.training.self_play import Chunk
from azjax.training.stored_policy import expand_policy, store_policy
from azjax.training.targets import result_targets


@struct.dataclass
class Replay:
    """The newest chunks of self-play, `C` moves of `B` games.

    chunk: leaves `[C, B, ...]`; C is a multiple of a chunk's length, and chunk i of
        the run lies at the moves from (i mod number of chunks) * length.
    was_eligible: `[C, B]` bool; whether an index held the position.
    """

    chunk: Chunk
    was_eligible: jax.Array


class Index(NamedTuple):
    """Which positions can be drawn, and their value targets.

    In each game the eligible positions are the oldest ones of the window, without a
    gap: if one can be drawn, so can all before it.

    first: `[]` int32; the row of the window's oldest move.
    lengths: `[B]` int32; eligible positions of each game, in the rows from `first` on.
    result: `[C, B, 3]` float16; the value target of every position.
    """

    first: jax.Array
    lengths: jax.Array
    result: jax.Array

    @property
    def size(self) -> jax.Array:
        """`[]` int32; all eligible positions."""
        return self.lengths.sum(dtype=jnp.int32)


class Eligibility(NamedTuple):
    """What became of the positions since the last index, scalars.

    newly: positions that are eligible for the first time.
    delay: moves made in their games after them, summed.
    waiting: positions in the window that have not been eligible yet.
    """

    newly: jax.Array
    delay: jax.Array
    waiting: jax.Array


class Batch(NamedTuple):
    """What an update learns from.

    observation: `[N, H, W, C]` float32.
    legal_action_mask: `[N, A]` bool.
    policy_target: `[N, A]` float32; all 0 where there is none.
    result_target: `[N, 3]` float32; win, draw and loss for the player to move.
    """

    observation: jax.Array
    legal_action_mask: jax.Array
    policy_target: jax.Array
    result_target: jax.Array


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
        chunk=Chunk(
            state=state,
            policy=policy,
            value=jnp.zeros(shape, jnp.float32),
            draw=jnp.zeros(shape, jnp.float32),
            reward=jnp.zeros(shape, jnp.float32),
            terminated=jnp.zeros(shape, bool),
        ),
        was_eligible=jnp.zeros(shape, bool),
    )


def insert(replay: Replay, chunk: Chunk, iteration: jax.Array) -> Replay:
    """Writes chunk `iteration` (`[]` int32) of the run over the oldest one."""
    length = chunk.terminated.shape[0]
    num_chunks = replay.chunk.terminated.shape[0] // length
    start = (iteration % num_chunks) * length
    return jax.tree.map(
        lambda store, new: jax.lax.dynamic_update_slice_in_dim(store, new, start, 0),
        replay,
        Replay(chunk, jnp.zeros_like(chunk.terminated)),
    )


def make_index(
    replay: Replay,
    num_moves: jax.Array,
    window: jax.Array,
    *,
    trace: float,
    horizon: int,
) -> tuple[Replay, Index, Eligibility]:
    """Computes which positions can be drawn, and their value targets.

    A position is eligible once its game has ended, or so many moves have followed that
    the rest has next to no weight in its target.

    Args:
        replay: the store.
        num_moves: `[]` int32; moves of each game written since the run began.
        window: `[]` int32; only the newest `window` moves of each game are drawn.
        trace: lambda of the value targets.
        horizon: moves that follow an eligible position of a game that has not ended.

    Returns:
        The replay with the eligible positions marked, the index, and what was counted.
    """
    chunk = replay.chunk
    capacity = chunk.terminated.shape[0]
    result, is_eligible = result_targets(
        chunk.reward,
        chunk.terminated,
        chunk.value,
        chunk.draw,
        trace=trace,
        horizon=horizon,
        oldest=num_moves % capacity,
    )
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
    index = Index(first, is_eligible.sum(axis=0, dtype=jnp.int32), result)
    return Replay(chunk, was_eligible), index, eligibility


def locate(index: Index, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns row and game, `[N]` each, of eligible positions by number.

    Args:
        index: what can be drawn.
        number: `[N]` int32; from 0 to `index.size` - 1.
    """
    ends = jnp.cumsum(index.lengths, dtype=jnp.int32)
    game = jnp.searchsorted(ends, number, side="right")
    place = number - (ends - index.lengths)[game]
    return (index.first + place) % index.result.shape[0], game


def sample(
    game: Game, replay: Replay, index: Index, rng_key: jax.Array, batch_size: int
) -> Batch:
    """Draws positions with replacement, each under a symmetry of the game.

    The draws are independent, so equal parts of the batch, one for each symmetry, are
    as good as drawing the symmetries. The key is consumed.
    """
    number = jax.random.randint(rng_key, (batch_size,), 0, index.size, jnp.int32)
    position = locate(index, number)
    state: State
    state, stored = jax.tree.map(
        lambda leaf: leaf[position], (replay.chunk.state, replay.chunk.policy)
    )
    policy = expand_policy(stored, game.num_actions)
    result = index.result[position].astype(jnp.float32)
    observation = jax.vmap(game.observe)(state)
    legal = jax.vmap(game.legal_action_mask)(state)
    stride = len(game.symmetries)
    parts = [
        (
            symmetry.observation(observation[first::stride]),
            legal[first::stride, symmetry.actions],
            policy[first::stride, symmetry.actions],
            result[first::stride],
        )
        for first, symmetry in enumerate(game.symmetries)
    ]
    return Batch(*(jnp.concatenate(part) for part in zip(*parts, strict=True)))
