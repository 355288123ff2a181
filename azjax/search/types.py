"""The types of mctx; `Any` for type checkers, which cannot see their fields. Models
with chance have types of their own."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

if TYPE_CHECKING:
    GumbelMuZeroExtraData = PolicyOutput = RecurrentFnOutput = RootFnOutput = Tree = Any
else:
    from mctx import (
        GumbelMuZeroExtraData,
        PolicyOutput,
        RecurrentFnOutput,
        RootFnOutput,
        Tree,
    )


class Chance(NamedTuple):
    """States that wait for chance, between the moves and the positions after them.

    waits: `[B]` bool; whether the move led to such a state. Elsewhere the other fields
        are ignored, and where the action of the model was an outcome of chance.
    reward: `[B]` float32; of the move, for the player who made it.
    discount: `[B]` float32; between this player's value and that of the state.
    logits: `[B, A]` float32; log-probabilities of the outcomes, the first K of the
        actions; the lowest float where an outcome is impossible.
    outcome: `[B]` int32; the outcome that leads to the evaluated position; a likeliest
        one.
    embedding: the states, leaves `[B, ...]`.
    """

    waits: jax.Array
    reward: jax.Array
    discount: jax.Array
    logits: jax.Array
    outcome: jax.Array
    embedding: Any


@dataclasses.dataclass(frozen=True)
class ChanceModel:
    """A model with chance, in place of a `recurrent_fn` of mctx.

    `recurrent_fn(params, rng_key, action, embedding)` returns the output, the
    embedding, and the `Chance` of the move. Where the embedding is that of a `Chance`,
    `action` is an outcome. Where the move leads to a state that waits for chance, the
    output and the embedding are those of the position after `Chance.outcome`, with the
    reward and discount of this outcome: a simulation that reaches a new chance node
    goes on by an outcome, so that no network is called for states that wait. No two
    outcomes follow each other.
    """

    recurrent_fn: Callable[..., Any]


Model = Callable[..., Any] | ChanceModel  # a `recurrent_fn` of mctx, or with chance

__all__ = [
    "Chance",
    "ChanceModel",
    "GumbelMuZeroExtraData",
    "Model",
    "PolicyOutput",
    "RecurrentFnOutput",
    "RootFnOutput",
    "Tree",
]
