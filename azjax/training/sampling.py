"""Samplers: which positions of the replay a batch holds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.training.replay import Index, Sample, locate


class Sampler(NamedTuple):
    """Pure functions that choose positions; the state is part of a checkpoint.

    `R` is the number of rows of the replay, `B` the number of its game slots.

    init: `init((R, B))` returns the first state, a pytree of arrays.
    prepare: `prepare(state, index)` returns the state after an iteration's self-play:
        positions have been overwritten, others have become eligible (`index.is_new`).
    choose: `choose(state, index, rng_key)` returns the `Sample` of N positions, each
        drawn independently of the others; the key is consumed. That they are eligible
        (`index.is_eligible`) is not checked. `updates_per_iteration` follows from
        `learner.batch_size`, which should be N.
    update: `update(state, sample, loss)` returns the state after an update, in which
        each position had the loss `[N]`.
    """

    init: Callable[[tuple[int, ...]], Any]
    prepare: Callable[[Any, Index], Any]
    choose: Callable[[Any, Index, jax.Array], Sample]
    update: Callable[[Any, Sample, jax.Array], Any]


def uniform_sampler(batch_size: int) -> Sampler:
    """Returns the sampler of N eligible positions, uniformly and with replacement."""

    def choose(state, index: Index, rng_key: jax.Array):
        del state
        number = jax.random.randint(rng_key, (batch_size,), 0, index.size, jnp.int32)
        return Sample(*locate(index, number), jnp.ones(batch_size, jnp.float32))

    return Sampler(
        init=lambda shape: (),
        prepare=lambda state, index: state,
        choose=choose,
        update=lambda state, sample, loss: state,
    )
