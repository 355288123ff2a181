"""One simulation in every game: select a path, expand its leaf, back up the value."""

import dataclasses
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.search.backup import Select, back_up
from azjax.search.keys import keys_of_games, split_keys
from azjax.search.nodes import (
    UNVISITED,
    Evaluation,
    Nodes,
    Rows,
    link_of_action,
    linked_entry,
)
from azjax.search.packing import Table
from azjax.search.paths import Paths
from azjax.search.solver import losing_actions, store_bounds
from azjax.search.types import Chance, RecurrentFnOutput, Tree


@dataclasses.dataclass(frozen=True)
class Simulator:
    """The constants of a search, and the functions that make a simulation.

    params, recurrent_fn: the model; `has_chance`: the function of a `ChanceModel`.
    root_selection, interior_selection, caches_selection: see `search`.
    roots: the B roots; only their statistics change in a search.
    first_free: `[B]` int32; the entry of the first new node of each tree.
    budget: `[]` or `[B]` int32; simulations to make.
    invalid_actions: `[B, A]`; at the roots.
    extra_data: leaves `[B, ...]`.
    """

    params: Any
    recurrent_fn: Callable[..., Any]
    has_chance: bool
    root_selection: Callable[..., Any]
    interior_selection: Callable[..., Any]
    caches_selection: bool
    roots: Rows
    first_free: jax.Array
    budget: jax.Array
    invalid_actions: jax.Array
    extra_data: Any

    def simulate(
        self, index: int | jax.Array, carry: tuple[jax.Array, Nodes, Paths]
    ) -> tuple[jax.Array, Nodes, Paths]:
        """Makes one simulation in each game that has budget left.

        Args:
            index: `[]` int32; number of simulations already made.
            carry: the search's key, one or `[L]`; the trees; memory for the paths.
        """
        rng_key, nodes, paths = carry
        rng_key, select_key, expand_key = split_keys(rng_key, 3)
        keys = keys_of_games(select_key, self.first_free.size)
        paths = self._select_path(nodes, paths, keys, index)
        nodes, paths = self._expand(nodes, paths, expand_key)
        select: Select | None = self._select if self.caches_selection else None
        return rng_key, *back_up(nodes, paths, select)

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
        game = rows.entry // (nodes.size // self.first_free.size)
        extra_data = jax.tree.map(lambda leaf: leaf[game], self.extra_data)
        trees = one_node_trees(nodes, rows, self.invalid_actions[game], extra_data)
        # The selection must not depend on key and depth: any are right.
        key, node_index, depth = jax.random.key(0), jnp.int32(0), jnp.int32(1)

        def select(tree):
            return self.interior_selection(key, tree, node_index, depth)

        for _ in rows.entry.shape:
            select = jax.vmap(select)
        return _or_outcome(rows, select(trees))

    def _select_path(
        self, nodes: Nodes, paths: Paths, keys: jax.Array, index: int | jax.Array
    ) -> Paths:
        """Selects actions from the roots down to nodes that are not expanded yet."""
        max_depth = paths.max_depth - self.has_chance
        # At the roots: with noise, and among the legal actions.
        keys, action_keys = _split(keys)
        roots = self.roots._replace(statistics=nodes.statistics[self.roots.entry])
        root_action = jax.vmap(
            lambda key, tree: self.root_selection(key, tree, jnp.int32(0))
        )(action_keys, self._one_node_trees(nodes, roots))

        def select(depth, entry, keys, action):
            """Returns the links of the actions selected at `[B]` nodes, the next keys,
            and the actions, which are read later if they are cached."""
            if self.caches_selection:
                return nodes.statistics.read(entry, "next_link"), keys, action
            rows = nodes.rows(entry)
            keys, action_keys = _split(keys)
            action = jax.vmap(self.interior_selection, in_axes=(0, 0, None, None))(
                action_keys, self._one_node_trees(nodes, rows), jnp.int32(0), depth
            )
            action = _or_outcome(rows, action)
            return link_of_action(rows.statistics, action), keys, action

        def descend(state):
            depth, link, length, path, parent, keys, action = state
            entries = []
            for _ in range(levels):
                # Paths that have ended stay as they are until the longest has ended.
                is_descending = (link >= 0) & (depth < max_depth)
                entry = jnp.maximum(link, 0)
                entries.append(entry)
                next_link, keys, selected = select(depth, entry, keys, action)
                link = jnp.where(is_descending, next_link, link)
                length += is_descending & (link >= 0)
                parent = jnp.where(is_descending, entry, parent)
                action = jnp.where(is_descending, selected, action)
                depth += 1
            path = jax.lax.dynamic_update_slice_in_dim(
                path, jnp.stack(entries), state[0], axis=0
            )
            return depth, link, length, path, parent, keys, action

        # Below them: `levels` at once, because a test of the loop's end takes as long.
        levels = paths.levels if self.caches_selection else 1
        levels = min(levels, max_depth - 1)
        link = link_of_action(roots.statistics, root_action)
        length = 1 + (link >= 0).astype(jnp.int32)
        state = (1, link, length, paths.node, self.roots.entry, keys, root_action)
        if 0 < levels == max_depth - 1:
            state = descend(state)
        elif levels:
            state = jax.lax.while_loop(
                lambda state: (state[1] >= 0).any() & (state[0] < max_depth),
                descend,
                (jnp.int32(1), *state[1:]),
            )
        _, link, length, path, parent, _, action = state
        # Where `max_depth` stopped the descent, one move too many was counted.
        length -= link >= 0
        if self.caches_selection:
            selected = nodes.statistics.read(parent, "next_action")
            action = jnp.where(length == 1, root_action, selected)
        # The leaf is a new node, or one that exists: terminal, proven, or too deep.
        is_new = link == UNVISITED
        # With chance, the entry before a new leaf is kept for the chance node above it.
        number = 2 * index + 1 if self.has_chance else index
        leaf = jnp.where(is_new, self.first_free + number, linked_entry(link))
        num_nodes = nodes.size // leaf.size
        has_room = leaf < self.roots.entry + num_nodes
        return dataclasses.replace(
            paths,
            node=path,
            length=length,
            parent=parent,
            action=action,
            leaf=leaf,
            is_new=is_new,
            is_terminal=link < UNVISITED,
            is_valid=(has_room | ~is_new) & (index < self.budget),
        )

    def _expand(
        self, nodes: Nodes, paths: Paths, rng_key: jax.Array
    ) -> tuple[Nodes, Paths]:
        """Evaluates the leaves and stores the model's outputs. Chance nodes before them
        become part of the paths."""
        output, embedding, *chance = self.recurrent_fn(
            self.params, rng_key, paths.action, nodes.state[paths.parent]
        )
        # Terminal and proven leaves keep their values.
        is_evaluated = paths.is_valid & ~paths.is_terminal
        if self.has_chance:
            is_evaluated &= paths.is_new
            is_chance = is_evaluated & chance[0].waits
            nodes, paths = _add_chance_nodes(nodes, paths, output, chance[0], is_chance)
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
        if self.has_chance:
            evaluation = evaluation._replace(is_chance=jnp.zeros_like(is_evaluated))
        nodes = dataclasses.replace(
            nodes,
            evaluation=nodes.evaluation.set(entry, evaluation),
            state=nodes.state.set(entry, embedding),
        )
        return nodes, paths


def _add_chance_nodes(
    nodes: Nodes,
    paths: Paths,
    output: RecurrentFnOutput,
    chance: Chance,
    is_chance: jax.Array,
) -> tuple[Nodes, Paths]:
    """Stores the chance nodes before the leaves, where `is_chance` (`[B]` bool), and
    returns the paths with them."""
    entry = paths.leaf - 1
    at = jnp.where(is_chance, entry, nodes.size)
    evaluation = Evaluation(
        raw_value=output.reward + output.discount * output.value,
        reward=chance.reward,
        discount=chance.discount,
        parent=paths.parent,
        action=paths.action,
        prior=chance.logits,
        is_chance=is_chance,
    )
    nodes = dataclasses.replace(
        nodes,
        evaluation=nodes.evaluation.set(at, evaluation),
        state=nodes.state.set(at, chance.embedding),
    )
    depth = jnp.where(is_chance, paths.length, len(paths.node))
    return nodes, dataclasses.replace(
        paths,
        node=paths.node.at[depth, jnp.arange(entry.size)].set(entry, mode="drop"),
        length=paths.length + is_chance,
        parent=jnp.where(is_chance, entry, paths.parent),
        action=jnp.where(is_chance, chance.outcome, paths.action),
    )


def _or_outcome(rows: Rows, action: jax.Array) -> jax.Array:
    """Returns `[R]` actions, replaced by outcomes in chance nodes: those with the
    largest probability / (visits + 1)."""
    if rows.evaluation.is_chance is None:
        return action
    probability = jnp.exp(rows.evaluation.prior)
    scores = probability / (rows.statistics.edge_visits + 1.0)
    outcome = jnp.argmax(scores, axis=-1).astype(jnp.int32)
    return jnp.where(rows.evaluation.is_chance, outcome, action)


def _split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits each of `[B]` keys in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]


@chex.dataclass(frozen=True)
class _OneNode(Tree):
    """One node, at index 0."""

    node_qvalues: Any  # [1, A]

    @property
    def num_actions(self):
        """A."""
        return self.node_qvalues.shape[-1]

    def qvalues(self, indices):
        """Returns the stored Q-values; computing them would take A gathers."""
        return self.node_qvalues[indices]


def one_node_trees(
    nodes: Nodes, rows: Rows, root_invalid_actions: jax.Array, extra_data: Any
) -> Tree:
    """Returns R trees of one node each, for a selection function.

    Actions that are proven losses have the lowest prior logits. `parents`,
    `children_index` and `embeddings`, which refer to other nodes, are None.

    Args:
        nodes: the trees.
        rows: R nodes; their edges may be newer than those in `nodes`.
        root_invalid_actions: `[R, A]`; of their games.
        extra_data: leaves `[R, ...]`; of their games.
    """
    _, statistics, evaluation = rows
    num_axes = rows.entry.ndim
    lowest = jnp.finfo(jnp.float32).min
    prior = jnp.where(losing_actions(nodes, rows), lowest, evaluation.prior)
    child = linked_entry(statistics.link)

    # XLA removes the gathers of what the selection function does not read.
    def of_children(numbers: jax.Array) -> jax.Array:
        return jnp.where(child >= 0, numbers[jnp.maximum(child, 0)], 0)

    fields = {
        "node_visits": statistics.visits,
        "raw_values": evaluation.raw_value,
        "node_values": statistics.value,
        "action_from_parent": evaluation.action,
        "children_prior_logits": prior,
        "children_values": of_children(nodes.statistics.all().value),
        "children_visits": statistics.edge_visits,
        "children_rewards": of_children(nodes.evaluation.all().reward),
        "children_discounts": of_children(nodes.evaluation.all().discount),
        "node_qvalues": statistics.qvalue,
    }
    return _OneNode(
        **{name: jnp.expand_dims(leaf, num_axes) for name, leaf in fields.items()},
        parents=None,
        children_index=None,
        embeddings=None,
        root_invalid_actions=root_invalid_actions,
        extra_data=extra_data,
    )
