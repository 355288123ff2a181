"""Conversion between the search's storage of trees and `mctx.Tree`."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import mctx

from azjax.search.nodes import (
    NO_PARENT,
    UNVISITED,
    Evaluation,
    Nodes,
    Statistics,
    encode_link,
    linked_entry,
)
from azjax.search.packing import Table
from azjax.search.score_bounds import Bounds, is_proven, move_bounds, turned
from azjax.search.types import Tree


@chex.dataclass(frozen=True)
class ProvenTree(Tree):
    """A tree with proven bounds of its nodes.

    lower, upper: `[B, N]` int16; bounds of the score for the player to move, see
        `azjax.search.score_bounds`.
    """

    lower: Any
    upper: Any


@chex.dataclass(frozen=True)
class ChanceTree(Tree):
    """A tree with chance nodes.

    is_chance: `[B, N]` bool; whether a node is a chance node. Its children are those of
        the outcomes, and its prior logits their log-probabilities.
    """

    is_chance: Any


def root_bounds(tree: ProvenTree) -> Bounds:
    """Returns `[B, A]` int16 bounds of the root's moves."""
    legal = ~tree.root_invalid_actions.astype(bool)
    children = tree.children_index[:, tree.ROOT_INDEX]
    discounts = tree.children_discounts[:, tree.ROOT_INDEX]

    def of_moves(lower, upper, child, discount, legal):
        entry = jnp.maximum(child, 0)
        bounds = turned(Bounds(lower[entry], upper[entry]), discount)
        number = jnp.where(child >= 0, jnp.arange(child.size), -1)
        return move_bounds(bounds, number, legal)

    return jax.vmap(of_moves)(tree.lower, tree.upper, children, discounts, legal)


def from_tree(tree: Tree) -> Nodes:
    """Returns the nodes of a tree, without the selected actions."""
    batch_size, num_nodes, _ = tree.children_index.shape
    size = batch_size * num_nodes
    base = jnp.arange(batch_size, dtype=jnp.int32)[:, None] * num_nodes

    def flat(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(size, *leaf.shape[2:])

    # Node numbers of one game become entries of all games.
    parent = flat(jnp.where(tree.parents >= 0, tree.parents + base, NO_PARENT))
    action = flat(tree.action_from_parent)

    def from_edges(numbers: jax.Array) -> jax.Array:
        return jnp.where(parent >= 0, flat(numbers)[parent, action], 0)

    # A tree stores reward and discount at the edge, the nodes store them at the child.
    evaluation = Evaluation(
        raw_value=flat(tree.raw_values),
        reward=from_edges(tree.children_rewards),
        discount=from_edges(tree.children_discounts),
        parent=parent,
        action=action,
        prior=flat(tree.children_prior_logits).astype(jnp.float32),
    )
    if isinstance(tree, ChanceTree):
        evaluation = evaluation._replace(is_chance=flat(tree.is_chance))
    child = tree.children_index
    child = flat(jnp.where(child >= 0, child + base[..., None], UNVISITED))
    # Links say below which children simulations can continue.
    expands, bounds = evaluation.discount != 0, None
    if isinstance(tree, ProvenTree):
        own = Bounds(flat(tree.lower), flat(tree.upper))
        bounds = turned(own, evaluation.discount)
        expands &= ~is_proven(bounds)
    statistics = Statistics(
        visits=flat(tree.node_visits),
        value=flat(tree.node_values),
        next_action=jnp.zeros(size, jnp.int32),
        next_link=jnp.full(size, UNVISITED, jnp.int32),
        link=jnp.where(child >= 0, encode_link(child, expands[child]), UNVISITED),
        edge_visits=flat(tree.children_visits),
        qvalue=flat(
            tree.children_rewards + tree.children_discounts * tree.children_values
        ),
    )
    return Nodes(
        statistics=Table.of(statistics),
        evaluation=Table.of(evaluation),
        state=Table.of(jax.tree.map(flat, tree.embeddings)),
        bounds=bounds,
    )


def to_tree(
    nodes: Nodes, num_nodes: int, root_invalid_actions: jax.Array, extra_data: Any
) -> Tree:
    """Returns the trees as `mctx.Tree`, as `ProvenTree` with the solver, or as
    `ChanceTree` with chance.

    Args:
        nodes: the trees.
        num_nodes: N.
        root_invalid_actions: `[B, A]`; stored in the tree.
        extra_data: stored in the tree.
    """
    statistics, evaluation = nodes.statistics.all(), nodes.evaluation.all()
    child = linked_entry(statistics.link)

    def batch(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(-1, num_nodes, *leaf.shape[1:])

    def index(entry: jax.Array) -> jax.Array:
        return batch(jnp.where(entry >= 0, entry % num_nodes, entry))

    def to_edges(numbers: jax.Array) -> jax.Array:
        """Returns `[B, N, A]` numbers of the children, 0 where there is none."""
        if not nodes.statistics.is_packed:
            return batch(jnp.where(child >= 0, numbers[jnp.maximum(child, 0)], 0))
        # A gather would read all M * A numbers even where only the roots' are used.
        parent = jnp.where(evaluation.parent >= 0, evaluation.parent, nodes.size)
        edges = jnp.zeros(child.shape, numbers.dtype)
        return batch(edges.at[parent, evaluation.action].set(numbers, mode="drop"))

    fields = {
        "node_visits": batch(statistics.visits),
        "raw_values": batch(evaluation.raw_value),
        "node_values": batch(statistics.value),
        "parents": index(evaluation.parent),
        "action_from_parent": batch(evaluation.action),
        "children_index": index(child),
        "children_prior_logits": batch(evaluation.prior),
        "children_values": to_edges(statistics.value),
        "children_visits": batch(statistics.edge_visits),
        "children_rewards": to_edges(evaluation.reward),
        "children_discounts": to_edges(evaluation.discount),
        "embeddings": jax.tree.map(batch, nodes.state.all()),
        "root_invalid_actions": root_invalid_actions,
        "extra_data": extra_data,
    }
    if evaluation.is_chance is not None:
        return ChanceTree(**fields, is_chance=batch(evaluation.is_chance))
    if nodes.bounds is None:
        return mctx.Tree(**fields)
    lower, upper = turned(nodes.bounds, evaluation.discount)
    return ProvenTree(**fields, lower=batch(lower), upper=batch(upper))
