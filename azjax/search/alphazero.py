"""AlphaZero's search: PUCT with Dirichlet noise at the root."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp

from azjax.search.config import SearchConfig, register_search
from azjax.search.keys import draw, split_keys
from azjax.search.roots import (
    allowed_actions,
    dirichlet_noise,
    in_float32,
    legal_actions,
    log_of,
    mask_invalid_actions,
    policy_output,
    sample_action,
)
from azjax.search.selection import pruned_visits, puct_root_selection, puct_selection
from azjax.search.tree_search import search
from azjax.search.types import Model, PolicyOutput, RootFnOutput
from azjax.settings import Fraction, Within


@register_search("alphazero")
@dataclasses.dataclass(frozen=True)
class AlphaZeroConfig(SearchConfig):
    """Settings of AlphaZero's search, PUCT.

    Silver et al. 2018, "A general reinforcement learning algorithm that masters chess,
    shogi, and Go through self-play", and its pseudocode, which maps values in [-1, 1]
    to [0, 1].

    Attributes:
        c_init: exploration at few visits.
        c_base: visits at which exploration has grown markedly.
        first_play_reduction: the Q-value of an unvisited action is the node's value
            minus this times sqrt(prior of the visited actions) (Leela Zero); None: a
            loss (AlphaZero). It holds at noisy roots of self-play too, where KataGo has
            0; no recipe of azjax sets it in self-play.
        forced_playouts: in self-play, visited root actions get at least
            sqrt(this * prior * visits) visits, and visits that were only forced are
            removed from the action weights (Wu 2019, "Accelerating Self-Play Learning
            in Go", section 3.2: 2); 0: none.
        dirichlet_alpha: concentration of the root noise; None: 10 / the number of legal
            moves, about AlphaZero's value.
        dirichlet_fraction: weight of the noise in the root prior.
    """

    title: ClassVar[str] = "PUCT search"
    c_init: Annotated[float, Within(ge=0)] = 1.25
    c_base: Annotated[float, Within(ge=1)] = 19652.0
    first_play_reduction: Annotated[float | None, Within(ge=0)] = None
    forced_playouts: Annotated[float, Within(ge=0)] = 0.0
    dirichlet_alpha: Annotated[float | None, Within(gt=0)] = None
    dirichlet_fraction: Fraction = 0.25

    @property
    def _puct_settings(self) -> dict[str, Any]:
        """The settings of `puct_scores`."""
        return {
            "c_init": self.c_init,
            "c_base": self.c_base,
            "first_play_reduction": self.first_play_reduction,
        }

    def policy(self, explores: bool) -> Callable[..., PolicyOutput]:
        """Returns `alphazero_policy` with these settings; noise and forced playouts
        only if it explores."""
        return functools.partial(
            alphazero_policy,
            **self._puct_settings,
            forced_playouts=self.forced_playouts if explores else 0.0,
            dirichlet_alpha=self.dirichlet_alpha,
            dirichlet_fraction=self.dirichlet_fraction if explores else 0.0,
            temperature=0.0,
            use_solver=self.use_solver,
        )


def alphazero_policy(
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: Model,
    num_simulations: int,
    *,
    invalid_actions: jax.Array | None = None,
    c_init: float = 1.25,
    c_base: float = 19652.0,
    first_play_reduction: float | None = None,
    forced_playouts: float = 0.0,
    dirichlet_alpha: float | None = None,
    dirichlet_fraction: float | jax.Array = 0.25,
    temperature: float | jax.Array = 1.0,
    **search_settings: Any,
) -> PolicyOutput:
    """Searches by PUCT with Dirichlet noise at the root.

    The action weights are the normalized visit counts. Ties go to the action with the
    lowest number. `c_init` to `dirichlet_fraction` are explained in `AlphaZeroConfig`.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: one key, or `[L]` for L lanes of the batch; consumed.
        root: prior logits `[B, A]` and values `[B]`, converted to float32; states
            `[B, ...]`.
        recurrent_fn: the model; illegal actions have the lowest prior logits.
        num_simulations: at least 1.
        invalid_actions: `[B, A]`, nonzero where illegal at the root; required where any
            action is. The noise is drawn over the legal actions.
        temperature: of sampling from the visit counts; 0 takes the most visited.
        **search_settings: `max_depth`, `tree`, `use_solver` and `search_slice` of
            `search`.

    Example:
        A search for play, without noise and with the most visited action:

        >>> output = search.alphazero_policy(
        ...     None,
        ...     jax.random.key(0),
        ...     root,
        ...     recurrent_fn,
        ...     32,
        ...     dirichlet_fraction=0.0,
        ...     temperature=0.0,
        ... )
        >>> output.action.tolist()
        [0]
    """
    settings = AlphaZeroConfig(
        c_init, c_base, first_play_reduction, forced_playouts, dirichlet_alpha
    )._puct_settings
    action_key, dirichlet_key, search_key = split_keys(rng_key, 3)
    root = in_float32(root)
    # The noise is mixed with probabilities, not with logits.
    prior = jax.nn.softmax(mask_invalid_actions(root.prior_logits, invalid_actions))
    noise = draw(
        functools.partial(dirichlet_noise, alpha=dirichlet_alpha),
        dirichlet_key,
        legal_actions(root, invalid_actions),
    )
    noisy = (1 - dirichlet_fraction) * prior + dirichlet_fraction * noise
    tree = search(
        params,
        search_key,
        root=root.replace(
            prior_logits=mask_invalid_actions(log_of(noisy), invalid_actions)
        ),
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=functools.partial(
            puct_root_selection, forced_playouts=forced_playouts, **settings
        ),
        interior_action_selection_fn=functools.partial(puct_selection, **settings),
        num_simulations=num_simulations,
        invalid_actions=invalid_actions,
        caches_selection=True,
        **search_settings,
    )
    # Visits that were only forced are no evidence, nor are those of moves that turned
    # out to be proven losses.
    visits = tree.children_visits[:, tree.ROOT_INDEX].astype(jnp.float32)
    if forced_playouts:
        prune = functools.partial(
            pruned_visits, forced_playouts=forced_playouts, **settings
        )
        visits = jax.vmap(prune, in_axes=(0, None))(tree, tree.ROOT_INDEX)
    allowed = allowed_actions(tree)
    visits = jnp.where(allowed, visits, 0.0)
    # If no allowed action was visited, all of them get the same weight.
    visits = jnp.where(visits.sum(axis=-1, keepdims=True) > 0, visits, allowed)
    weights = visits / jnp.maximum(visits.sum(axis=-1, keepdims=True), 1.0)
    sample = functools.partial(sample_action, temperature=temperature)
    return policy_output(draw(sample, action_key, weights), weights, tree)
