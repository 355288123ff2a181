"""Batched tree search over any model of a game.

It has the names of mctx, except those of Stochastic MuZero: a script changes only its
import, to `import azjax.search as mctx`. `gumbel_muzero_policy`, `muzero_policy` and
`search` have mctx's signatures and results; the other names are mctx's own objects.
`gumbel_policy` and `alphazero_policy` have the settings of `GumbelConfig` and
`AlphaZeroConfig`, some of which mctx does not have; training and players call
`SearchConfig.policy`. `uct_policy` needs no network. All policies call `search`.

Shapes: `B` games, `A` actions, `N` nodes of a tree, `M = B * N` nodes of all trees, `L`
lanes of a batch with keys of their own, `R` gathered nodes.

Example:
    Two players take 1 to 3 stones in turn; the one who takes the last stone wins. A
    model of this game that knows the rules only, and a search of 5 stones:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from azjax import search
    >>> def recurrent_fn(params, rng_key, action, stones):
    ...     left = stones - 1 - action
    ...     is_legal = jnp.arange(3) < left[:, None]
    ...     output = search.RecurrentFnOutput(
    ...         reward=jnp.where(left == 0, 1.0, 0.0),  # of the player who moved
    ...         discount=jnp.where(left == 0, 0.0, -1.0),  # the other one is next
    ...         prior_logits=jnp.where(is_legal, 0.0, jnp.finfo(jnp.float32).min),
    ...         value=jnp.zeros(left.shape),
    ...     )
    ...     return output, left
    >>> root = search.RootFnOutput(
    ...     prior_logits=jnp.zeros((1, 3)), value=jnp.zeros(1), embedding=jnp.array([5])
    ... )
    >>> output = search.gumbel_policy(
    ...     None, jax.random.key(0), root, recurrent_fn, 32, gumbel_scale=0.0
    ... )
    >>> output.action.tolist()  # takes one: with 4 stones the player to move loses
    [0]
"""

from mctx import (
    GumbelMuZeroExtraData,
    InteriorActionSelectionFn,
    LoopFn,
    RecurrentFn,
    RecurrentFnOutput,
    RecurrentState,
    RootActionSelectionFn,
    RootFnOutput,
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    muzero_action_selection,
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)

from azjax.search.alphazero import AlphaZeroConfig, alphazero_policy
from azjax.search.config import (
    MAX_NODES,
    SEARCHES,
    SearchConfig,
    register_search,
)
from azjax.search.conversion import ChanceTree, ProvenTree
from azjax.search.gumbel import GumbelConfig, gumbel_policy
from azjax.search.memory import search_bytes, tree_bytes
from azjax.search.muzero import gumbel_muzero_policy, muzero_policy
from azjax.search.roots import improved_value
from azjax.search.subtree import empty_tree, find, init_trees, subtree
from azjax.search.tree_search import SearchSlice, search
from azjax.search.types import Chance, ChanceModel, Model, PolicyOutput, Tree
from azjax.search.uct import uct_policy

__all__ = [
    "MAX_NODES",
    "SEARCHES",
    "AlphaZeroConfig",
    "Chance",
    "ChanceModel",
    "ChanceTree",
    "GumbelConfig",
    "GumbelMuZeroExtraData",
    "InteriorActionSelectionFn",
    "LoopFn",
    "Model",
    "PolicyOutput",
    "ProvenTree",
    "RecurrentFn",
    "RecurrentFnOutput",
    "RecurrentState",
    "RootActionSelectionFn",
    "RootFnOutput",
    "SearchConfig",
    "SearchSlice",
    "Tree",
    "alphazero_policy",
    "empty_tree",
    "find",
    "gumbel_muzero_interior_action_selection",
    "gumbel_muzero_policy",
    "gumbel_muzero_root_action_selection",
    "gumbel_policy",
    "improved_value",
    "init_trees",
    "muzero_action_selection",
    "muzero_policy",
    "qtransform_by_min_max",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
    "register_search",
    "search",
    "search_bytes",
    "subtree",
    "tree_bytes",
    "uct_policy",
]
