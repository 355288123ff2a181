"""The two ways AlphaZero searches: PUCT with Dirichlet noise, and Gumbel."""

import dataclasses
import functools
from typing import Any, Literal

import chex
import jax
import jax.numpy as jnp
import mctx


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How the tree is searched; how far is said beside it, in simulations.

    Attributes:
        algorithm: `gumbel` (Danihelka et al. 2022, "Policy improvement by planning with
            Gumbel"; learns with few simulations) or `alphazero` (Silver et al. 2018).
        max_considered_actions: Gumbel: root actions that enter sequential halving.
        value_scale: Gumbel: weight of the values against the prior logits.
        rescale_values: Gumbel: whether the values of each node are spread over [0, 1]
            first; the paper does so for Atari and not for Go.
        c_init: PUCT: exploration at few visits.
        c_base: PUCT: visits at which exploration has grown markedly.
        dirichlet_alpha: PUCT: concentration of the root noise (AlphaZero: about 10 /
            legal moves).
        dirichlet_fraction: PUCT: share of the noise in the root prior.
    """

    algorithm: Literal["gumbel", "alphazero"] = "gumbel"
    max_considered_actions: int = 16
    value_scale: float = 0.1
    rescale_values: bool = True
    c_init: float = 1.25
    c_base: float = 19652.0
    dirichlet_alpha: float = 1.0
    dirichlet_fraction: float = 0.25

    def __post_init__(self) -> None:
        """Checks the values."""
        if self.algorithm not in ("gumbel", "alphazero"):
            raise ValueError(
                f"search.algorithm must be gumbel or alphazero: {self.algorithm!r}"
            )
        for name, low in (
            ("max_considered_actions", 1),
            ("value_scale", 0.0),
            ("c_init", 0.0),
            ("c_base", 1.0),
        ):
            if not getattr(self, name) >= low:
                raise ValueError(
                    f"search.{name} must be >= {low}: {getattr(self, name)}"
                )
        if not self.dirichlet_alpha > 0:
            raise ValueError(
                f"search.dirichlet_alpha must be > 0: {self.dirichlet_alpha}"
            )
        if not 0 <= self.dirichlet_fraction <= 1:
            raise ValueError(
                "search.dirichlet_fraction must be between 0 and 1: "
                f"{self.dirichlet_fraction}"
            )


def gumbel_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    max_num_considered_actions: int = 16,
    gumbel_scale: float = 1.0,
    value_scale: float = 0.1,
    rescale_values: bool = True,
) -> mctx.PolicyOutput:
    """Searches by sequential halving at the root and completed Q-values below.

    Danihelka et al. 2022, "Policy improvement by planning with Gumbel", sections 3 to
    5. The action weights are the improved policy of equation 11.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed.
        root: priors `[B, A]` and values `[B]` in float32, states `[B, ...]`.
        recurrent_fn: the model; illegal moves have the lowest prior logits.
        num_simulations: at least 1.
        invalid_actions: `[B, A]`, nonzero where illegal at the root.
        max_depth: longest path in the tree, `num_simulations` by default.
        max_num_considered_actions: root actions that enter sequential halving.
        gumbel_scale: scale of the root's Gumbel noise; 0 for play without chance.
        value_scale: weight of the values against the prior logits.
        rescale_values: whether the values of each node are spread over [0, 1] first.
    """
    return mctx.gumbel_muzero_policy(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        invalid_actions=invalid_actions,
        max_depth=max_depth,
        qtransform=functools.partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=value_scale,
            rescale_values=rescale_values,
        ),
        max_num_considered_actions=max_num_considered_actions,
        gumbel_scale=gumbel_scale,
    )


def alphazero_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    c_init: float = 1.25,
    c_base: float = 19652.0,
    dirichlet_alpha: float = 0.3,
    dirichlet_fraction: float = 0.25,
    temperature: float = 1.0,
) -> mctx.PolicyOutput:
    """Searches by PUCT with Dirichlet noise at the root.

    Silver et al. 2018, "A general reinforcement learning algorithm that masters chess,
    shogi, and Go through self-play", and its pseudocode: values lie in [-1, 1] and are
    mapped to [0, 1]; an unvisited action counts as lost. The action weights are the
    visit counts, normalised. Ties are broken by the key, with or without noise.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed.
        root: priors `[B, A]` and values `[B]` in float32, states `[B, ...]`.
        recurrent_fn: the model; illegal moves have the lowest prior logits.
        num_simulations: at least 1.
        invalid_actions: `[B, A]`, nonzero where illegal at the root.
        max_depth: longest path in the tree, `num_simulations` by default.
        c_init: exploration at few visits.
        c_base: visits at which exploration has grown markedly.
        dirichlet_alpha: concentration of the root noise.
        dirichlet_fraction: share of the noise in the root prior; 0 for play without
            chance.
        temperature: of the choice among the visit counts; 0 takes the most visited.
    """
    return mctx.muzero_policy(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        invalid_actions=invalid_actions,
        max_depth=max_depth,
        qtransform=functools.partial(
            mctx.qtransform_by_min_max, min_value=-1.0, max_value=1.0
        ),
        dirichlet_fraction=dirichlet_fraction,
        dirichlet_alpha=dirichlet_alpha,
        pb_c_init=c_init,
        pb_c_base=c_base,
        temperature=temperature,
    )


def run_search(  # noqa: PLR0917  # the order is mctx's
    config: SearchConfig,
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    invalid_actions: jax.Array,
    noise: float,
) -> mctx.PolicyOutput:
    """Searches as `config` says.

    Args:
        config: the search's settings.
        params: passed on to `recurrent_fn`.
        rng_key: consumed.
        root: priors `[B, A]` and values `[B]` in float32, states `[B, ...]`.
        recurrent_fn: the model.
        num_simulations: at least 1.
        invalid_actions: `[B, A]` bool, True where illegal at the root.
        noise: 1 explores as in self-play, 0 plays the best move found.
    """
    chex.assert_type([root.prior_logits, root.value], jnp.float32)
    search = functools.partial(
        gumbel_policy if config.algorithm == "gumbel" else alphazero_policy,
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        invalid_actions=invalid_actions,
    )
    if config.algorithm == "gumbel":
        return search(
            max_num_considered_actions=config.max_considered_actions,
            gumbel_scale=noise,
            value_scale=config.value_scale,
            rescale_values=config.rescale_values,
        )
    return search(
        c_init=config.c_init,
        c_base=config.c_base,
        dirichlet_alpha=float(config.dirichlet_alpha),
        dirichlet_fraction=noise * config.dirichlet_fraction,
        temperature=noise,
    )


def improved_value(output: mctx.PolicyOutput) -> jax.Array:
    """Returns `[B]`, the value of the root under the policy that the search found.

    The mean of the visited actions' values, weighted by the action weights: unlike the
    root's own running mean it does not count the visits that exploration forced upon
    bad moves.
    """
    summary = output.search_tree.summary()
    weights = jnp.where(summary.visit_counts > 0, output.action_weights, 0.0)
    total = weights.sum(axis=-1)
    value = (weights * summary.qvalues).sum(axis=-1) / jnp.maximum(total, 1e-6)
    return jnp.where(total > 1e-6, value, summary.value)
