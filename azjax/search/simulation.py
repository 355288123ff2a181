"""One simulation in every game: select a path, expand its leaf, back up the value."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from azjax.search.backup import Select, back_up
from azjax.search.nodes import (
    UNVISITED,
    Evaluation,
    Nodes,
    Rows,
    link_of_action,
    linked_entry,
)
from azjax.search.one_node import one_node_trees
from azjax.search.packing import Table
from azjax.search.paths import Paths
from azjax.search.solver import store_bounds
from azjax.search.types import Tree


@dataclasses.dataclass(frozen=True)
class Simulator:
    """The constants of a search, and the functions that make a simulation.

    params, recurrent_fn: the model.
    root_selection, interior_selection: see `search`.
    num_nodes: N.
    max_depth: longest path from the root (moves).
    caches_selection: see `search`.
    base: `[B]` int32; entries of the roots.
    root_evaluation: `Evaluation` of the roots, which a search does not change.
    invalid_actions: `[B, A]`; at the roots.
    extra_data: leaves `[B, ...]`.
    """

    params: Any
    recurrent_fn: Callable[..., Any]
    root_selection: Callable[..., Any]
    interior_selection: Callable[..., Any]
    num_nodes: int
    max_depth: int
    caches_selection: bool
    base: jax.Array
    root_evaluation: Evaluation
    invalid_actions: jax.Array
    extra_data: Any

    def simulate(  # noqa: PLR0917  # called from one place
        self,
        nodes: Nodes,
        paths: Paths,
        keys: jax.Array,
        expand_key: jax.Array,
        free: jax.Array,
        is_made: jax.Array,
    ) -> tuple[Nodes, Paths]:
        """Makes one simulation in each game.

        Args:
            nodes: the trees.
            paths: memory for the paths.
            keys: `[B]`; for the selections.
            expand_key: for the model.
            free: `[B]` int32; entries of the new nodes.
            is_made: `[]` or `[B]` bool; whether the game makes this simulation.
        """
        paths = self._select_path(nodes, paths, keys, free, is_made)
        nodes = self._expand(nodes, paths, expand_key)
        select: Select | None = self._select if self.caches_selection else None
        return back_up(nodes, paths, select)

    def first_free(self, nodes: Nodes) -> jax.Array:
        """Returns `[B]` int32, the entry after the last used node of each tree."""
        visits = nodes.statistics.all().visits
        used = visits.reshape(-1, self.num_nodes) > 0
        end = jnp.where(used, jnp.arange(1, self.num_nodes + 1, dtype=jnp.int32), 0)
        return self.base + end.max(axis=1)

    def select_everywhere(self, nodes: Nodes) -> Nodes:
        """Stores the selected action in every node, if `caches_selection`."""
        if not self.caches_selection:
            return nodes
        statistics = nodes.statistics.all()
        entry = jnp.arange(nodes.size, dtype=jnp.int32)
        action = self._select(nodes, Rows(entry, statistics, nodes.evaluation.all()))
        link = link_of_action(statistics, action)
        statistics = statistics._replace(next_action=action, next_link=link)
        return dataclasses.replace(nodes, statistics=Table.of(statistics))

    def _one_node_trees(self, nodes: Nodes, rows: Rows) -> Tree:
        """Returns `[B]` trees of one node each, one of each game."""
        return one_node_trees(nodes, rows, self.invalid_actions, self.extra_data)

    def _select(self, nodes: Nodes, rows: Rows) -> jax.Array:
        """Returns the `[R]` interior actions, independent of key and depth."""
        game = rows.entry // self.num_nodes
        extra_data = jax.tree.map(lambda leaf: leaf[game], self.extra_data)
        trees = one_node_trees(nodes, rows, self.invalid_actions[game], extra_data)
        key, node_index, depth = jax.random.key(0), jnp.int32(0), jnp.int32(1)
        return jax.vmap(
            lambda tree: self.interior_selection(key, tree, node_index, depth)
        )(trees)

    def _select_path(
        self,
        nodes: Nodes,
        paths: Paths,
        keys: jax.Array,
        free: jax.Array,
        is_made: jax.Array,
    ) -> Paths:
        """Selects actions from the roots down to nodes that are not expanded yet."""
        keys, action_keys = _split(keys)
        statistics = nodes.statistics[self.base]
        roots = Rows(self.base, statistics, self.root_evaluation)
        root_action = jax.vmap(
            lambda key, tree: self.root_selection(key, tree, jnp.int32(0))
        )(action_keys, self._one_node_trees(nodes, roots))

        def continues(state):
            depth, link = state[:2]
            return (link >= 0).any() & (depth < self.max_depth)

        def descend(state):
            depth, link, length, path, keys, action = state
            is_descending = link >= 0
            entry = jnp.maximum(link, 0)
            path = path.at[depth].set(entry)
            if self.caches_selection:
                next_link = nodes.statistics[entry].next_link
            else:
                keys, action_keys = _split(keys)
                rows = nodes.rows(entry)
                selected = jax.vmap(
                    self.interior_selection, in_axes=(0, 0, None, None)
                )(action_keys, self._one_node_trees(nodes, rows), jnp.int32(0), depth)
                action = jnp.where(is_descending, selected, action)
                next_link = link_of_action(rows.statistics, selected)
            link = jnp.where(is_descending, next_link, link)
            return depth + 1, link, length + (link >= 0), path, keys, action

        link = link_of_action(statistics, root_action)
        length = 1 + (link >= 0).astype(jnp.int32)
        _, link, length, path, _, action = jax.lax.while_loop(
            continues,
            descend,
            (jnp.int32(1), link, length, paths.node, keys, root_action),
        )
        # Where `max_depth` stopped the descent, one move too many was counted.
        length -= link >= 0
        parent = path[length - 1, jnp.arange(length.size)]
        if self.caches_selection:
            selected = nodes.statistics[parent].next_action
            action = jnp.where(length == 1, root_action, selected)
        is_new = link == UNVISITED
        leaf = jnp.where(is_new, free, linked_entry(link))
        has_room = leaf < self.base + self.num_nodes
        return dataclasses.replace(
            paths,
            node=path,
            length=length,
            parent=parent,
            action=action,
            leaf=leaf,
            is_new=is_new,
            is_terminal=link < UNVISITED,
            is_valid=(has_room | ~is_new) & is_made,
        )

    def _expand(self, nodes: Nodes, paths: Paths, rng_key: jax.Array) -> Nodes:
        """Evaluates the leaves and stores the model's outputs."""
        output, embedding = self.recurrent_fn(
            self.params, rng_key, paths.action, nodes.state[paths.parent]
        )
        is_evaluated = paths.is_valid & ~paths.is_terminal
        entry = jnp.where(is_evaluated, paths.leaf, nodes.size)
        nodes = store_bounds(nodes, entry, output)
        evaluation = Evaluation(
            raw_value=output.value,
            reward=output.reward,
            discount=output.discount,
            parent=paths.parent,
            action=paths.action,
            prior=output.prior_logits,
        )
        return dataclasses.replace(
            nodes,
            evaluation=nodes.evaluation.set(entry, evaluation),
            state=nodes.state.set(entry, embedding),
        )


def _split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits each of `[B]` keys in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]
