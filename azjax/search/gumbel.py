"""Gumbel search: sequential halving at the root, deterministic selection below it."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
import mctx

from azjax.search.config import MAX_NODES, SearchConfig, register_search
from azjax.search.keys import draw, split_keys
from azjax.search.roots import (
    allowed_actions,
    in_float32,
    mask_invalid_actions,
    policy_output,
)
from azjax.search.selection import (
    GumbelRoot,
    gumbel_root_selection,
    sequential_halving_scores,
)
from azjax.search.tree_search import SearchSlice, search
from azjax.search.types import Model, PolicyOutput, RootFnOutput, Tree
from azjax.settings import Within


@register_search("gumbel")
@dataclasses.dataclass(frozen=True)
class GumbelConfig(SearchConfig):
    """Settings of Gumbel search (Danihelka et al. 2022, "Policy improvement by planning
    with Gumbel"), which learns with few simulations.

    Attributes:
        max_num_considered_actions: root actions that enter sequential halving.
        value_scale: weight of the values against the prior logits.
        rescale_values: whether to rescale the values of each node to [0, 1] first; the
            paper does so for Atari, not for Go.
    """

    title: ClassVar[str] = "Gumbel search"
    max_num_considered_actions: Annotated[int, Within(1, MAX_NODES)] = 16
    value_scale: Annotated[float, Within(ge=0)] = 0.1
    rescale_values: bool = True

    @property
    def _qtransform(self) -> Callable[..., Any]:
        """`(tree, node_index)` to the `[A]` completed and scaled Q-values of a node."""
        return functools.partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=self.value_scale,
            rescale_values=self.rescale_values,
        )

    def policy(self, explores: bool) -> Callable[..., PolicyOutput]:
        """Returns the search with these settings; noise only if it explores."""
        return functools.partial(
            search_by_gumbel,
            qtransform=self._qtransform,
            max_num_considered_actions=self.max_num_considered_actions,
            gumbel_scale=1.0 if explores else 0.0,
            use_solver=self.use_solver,
        )


def gumbel_policy(
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: Model,
    num_simulations: int,
    *,
    invalid_actions: jax.Array | None = None,
    max_num_considered_actions: int = 16,
    gumbel_scale: float | jax.Array = 1.0,
    value_scale: float = 0.1,
    rescale_values: bool = True,
    **search_settings: Any,
) -> PolicyOutput:
    """Searches with Gumbel sequential halving at the root.

    Danihelka et al. 2022, "Policy improvement by planning with Gumbel", sections 3 to
    5. The root actions with the highest prior logits plus Gumbel noise get equally many
    visits, and the worse half is dropped, until two actions remain. The improved policy
    (equation 11) is softmax(prior logits + scaled completed Q-values); the scale grows
    with the visits. Sequential halving ignores the visits of a starting tree.
    The Q-value of an unvisited action is completed by the node's network value averaged
    with the Q-values of the visited actions (appendix D). Below the root, the selected
    action is the one whose visits are furthest behind this policy. The result is that
    of `mctx.gumbel_muzero_policy`.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: one key, or `[L]` for L lanes of the batch; consumed.
        root: prior logits `[B, A]` and values `[B]`, converted to float32; states
            `[B, ...]`.
        recurrent_fn: the model; illegal actions have the lowest prior logits.
        num_simulations: at least 1.
        invalid_actions: `[B, A]`, nonzero where illegal at the root.
        max_num_considered_actions: root actions that enter sequential halving.
        gumbel_scale: scale of the root's Gumbel noise; 0 for evaluation.
        value_scale: weight of the values against the prior logits.
        rescale_values: whether to rescale the values of each node to [0, 1] first.
        **search_settings: `max_depth`, `tree`, `use_solver` and `search_slice` of
            `search`. Trees that are kept from move to move start from `init_trees` or
            `empty_tree`.

    Returns:
        The action, the improved policy (`action_weights`), and the tree.

    Example:
        Self-play samples from the improved policy, here without the first action:

        >>> output = search.gumbel_policy(
        ...     None,
        ...     jax.random.key(0),
        ...     root,
        ...     recurrent_fn,
        ...     32,
        ...     invalid_actions=jnp.array([[True, False, False]]),
        ... )
        >>> output.action_weights[:, 0].tolist()
        [0.0]
    """
    config = GumbelConfig(max_num_considered_actions, value_scale, rescale_values)
    return search_by_gumbel(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        invalid_actions=invalid_actions,
        qtransform=config._qtransform,
        max_num_considered_actions=max_num_considered_actions,
        gumbel_scale=gumbel_scale,
        **search_settings,
    )


def search_by_gumbel(
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: Model,
    num_simulations: int,
    *,
    qtransform: Callable[..., Any],
    max_num_considered_actions: int,
    gumbel_scale: float | jax.Array,
    invalid_actions: jax.Array | None = None,
    tree: Tree | None = None,
    search_slice: SearchSlice | None = None,
    **search_settings: Any,
) -> PolicyOutput:
    """Searches as `gumbel_policy` does, with any transformation of the Q-values.

    The other arguments are those of `gumbel_policy`, which checks them, and `search`.

    Args:
        qtransform: `(tree, node_index)` to the `[A]` completed Q-values of a node; it
            reads the statistics of that node only.
    """
    root = in_float32(root)
    logits = mask_invalid_actions(root.prior_logits, invalid_actions)
    root = root.replace(prior_logits=logits)
    rng_key, gumbel_key = split_keys(rng_key, 2)
    # One draw for the whole search: the noise is part of the scores of all phases of
    # the halving and of the final choice.
    gumbel = gumbel_scale * draw(
        lambda key, like: jax.random.gumbel(key, like.shape, like.dtype),
        gumbel_key,
        logits,
    )
    # The halving does not count the visits of a reused tree, but those of earlier
    # slices of the same search.
    total = jnp.full(root.value.shape, num_simulations, jnp.int32)
    kept_visits = jnp.zeros(gumbel.shape, jnp.int32)
    if tree is not None:
        kept_visits = tree.children_visits[:, tree.ROOT_INDEX]
    if search_slice is not None:
        total = search_slice.total
        is_first = (search_slice.made == 0)[:, None]
        kept_visits = jnp.where(is_first, kept_visits, 0)
    searched = search(
        params,
        rng_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=functools.partial(
            gumbel_root_selection,
            max_num_considered_actions=max_num_considered_actions,
            qtransform=qtransform,
        ),
        interior_action_selection_fn=functools.partial(
            mctx.gumbel_muzero_interior_action_selection, qtransform=qtransform
        ),
        num_simulations=num_simulations,
        invalid_actions=invalid_actions,
        extra_data=GumbelRoot(
            root_gumbel=gumbel, kept_visits=kept_visits, num_simulations=total
        ),
        caches_selection=True,
        tree=tree,
        search_slice=search_slice,
        **search_settings,
    )
    # The action is one that the halving kept to its end. The policy covers all actions.
    at_root = searched.ROOT_INDEX
    logits = searched.children_prior_logits[:, at_root]
    visits = searched.children_visits[:, at_root] - kept_visits
    qvalues = jnp.asarray(jax.vmap(qtransform, in_axes=(0, None))(searched, at_root))
    allowed = allowed_actions(searched)
    most_visits = jnp.where(allowed, visits, 0).max(axis=-1, keepdims=True)
    scores = sequential_halving_scores(most_visits, gumbel, logits, qvalues, visits)
    action = jnp.argmax(jnp.where(allowed, scores, -jnp.inf), axis=-1)
    improved = jax.nn.softmax(mask_invalid_actions(logits + qvalues, ~allowed))
    return policy_output(action.astype(jnp.int32), improved, searched)
