"""The on-device store of positions: for each game slot a ring of its moves."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.training.self_play import Chunk
from azjax.training.targets import result_targets


@struct.dataclass
class Replay:
    """The newest chunks of self-play, `C` moves of `B` games.

    chunk: leaves `[C, B, ...]`; C is a multiple of a chunk's length, and chunk i of
        the run lies at the moves from (i mod number of chunks) * length.
    """

    chunk: Chunk


class Index(NamedTuple):
    """Which positions can be drawn, and what their results were.

    position: `[C * B]` int32; the first `size` are flat indices of positions whose
        game is finished and which lie in the window; the rest is filler.
    size: `[]` int32.
    result: `[C * B, 3]` float32; the value target of every position.
    """

    position: jax.Array
    size: jax.Array
    result: jax.Array


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
    game: Game, *, num_chunks: int, moves_per_chunk: int, num_games: int
) -> Replay:
    """Returns room for `num_chunks` chunks."""
    shape = (num_chunks * moves_per_chunk, num_games)
    state = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, shape + leaf.shape).copy(), game.init()
    )
    return Replay(
        Chunk(
            state=state,
            policy=jnp.zeros((*shape, game.num_actions), jnp.float16),
            value=jnp.zeros(shape, jnp.float32),
            draw=jnp.zeros(shape, jnp.float32),
            reward=jnp.zeros(shape, jnp.float32),
            terminated=jnp.zeros(shape, bool),
        )
    )


def insert(replay: Replay, chunk: Chunk, iteration: jax.Array) -> Replay:
    """Writes chunk `iteration` (`[]` int32) of the run over the oldest one."""
    length = chunk.terminated.shape[0]
    num_chunks = replay.chunk.terminated.shape[0] // length
    start = (iteration % num_chunks) * length
    return Replay(
        jax.tree.map(
            lambda store, new: jax.lax.dynamic_update_slice_in_dim(
                store, new, start, 0
            ),
            replay.chunk,
            chunk,
        )
    )


def make_index(
    replay: Replay,
    num_moves: jax.Array,
    window: jax.Array,
    *,
    trace: float,
) -> Index:
    """Finds what can be drawn and computes its value targets.

    Args:
        replay: the store.
        num_moves: `[]` int32; moves of each game written since the run began.
        window: `[]` int32; only the newest `window` moves of each game are drawn.
        trace: lambda of the value targets.
    """
    chunk = replay.chunk
    capacity, num_games = chunk.terminated.shape
    # Row i of the rolled arrays is the i-th oldest; the store's next row to be written
    # holds the oldest.
    oldest = num_moves % capacity
    rows = (oldest + jnp.arange(capacity)) % capacity
    result, is_known = result_targets(
        chunk.reward[rows],
        chunk.terminated[rows],
        chunk.value[rows],
        chunk.draw[rows],
        trace,
    )
    age = capacity - jnp.arange(capacity)  # the newest move is 1 move old
    is_eligible = is_known & (age <= jnp.minimum(window, num_moves))[:, None]
    flat = rows[:, None] * num_games + jnp.arange(num_games)
    (chosen,) = jnp.nonzero(
        is_eligible.ravel(), size=capacity * num_games, fill_value=0
    )
    unrolled = jnp.zeros_like(result).at[rows].set(result, unique_indices=True)
    return Index(
        position=flat.ravel()[chosen],
        size=is_eligible.sum(dtype=jnp.int32),
        result=unrolled.reshape(-1, 3),
    )


def sample(
    game: Game, replay: Replay, index: Index, rng_key: jax.Array, batch_size: int
) -> Batch:
    """Draws positions with replacement, each under a symmetry of the game.

    The draws are independent, so equal parts of the batch, one for each symmetry, are
    as good as drawing the symmetries. The key is consumed.
    """
    draw = jax.random.randint(rng_key, (batch_size,), 0, index.size)
    position = index.position[draw]
    state: State
    state, policy = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[position],
        (replay.chunk.state, replay.chunk.policy),
    )
    observation = jax.vmap(game.observe)(state)
    legal = jax.vmap(game.legal_action_mask)(state)
    stride = len(game.symmetries)
    parts = [
        (
            symmetry.observation(observation[first::stride]),
            legal[first::stride, symmetry.actions],
            policy[first::stride, symmetry.actions].astype(jnp.float32),
            index.result[position[first::stride]],
        )
        for first, symmetry in enumerate(game.symmetries)
    ]
    return Batch(*(jnp.concatenate(part) for part in zip(*parts, strict=True)))
