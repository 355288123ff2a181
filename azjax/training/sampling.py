"""Samplers: choose the replay positions of a batch."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games import Game
from azjax.networks import AuxiliaryHead
from azjax.training.replay import Batch, Index, Replay, Sample, locate, make_batch


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
