"""What a simulation changes in the nodes that it passed."""

import dataclasses
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp

from azjax.search import proofs
from azjax.search.nodes import Nodes, from_prior, is_legal, may_go_on
from azjax.search.paths import PORTION, Paths, list_rows

Select = Callable[[Nodes, jax.Array], tuple[jax.Array, jax.Array]]
"""`(nodes, entry)` to the action that a simulation takes there, and to where."""

Kind = Literal["whole", "announcement", "outcome"]
"""A simulation is counted as a whole, or announced and later given its outcome."""


def announce(
    nodes: Nodes, paths: Paths, attempt: int | jax.Array, select: Select | None
) -> tuple[Nodes, Paths]:
    """Lets a step's further attempts know where one went."""
    parent, action = paths.parent[attempt], paths.action[attempt]
    leaf = paths.leaf[attempt]
    nowhere = nodes.visits.size
    is_new = paths.counts[attempt] & paths.is_new[attempt]
    entry = jnp.where(is_new, leaf, nowhere)
    at = jnp.where(is_new, parent, nowhere)
    nodes = dataclasses.replace(
        nodes,
        parent=nodes.parent.at[entry].set(parent, mode="drop"),
        action=nodes.action.at[entry].set(action, mode="drop"),
        child=nodes.child.at[at, action].set(leaf, mode="drop"),
    )
    paths = list_rows(nodes, paths, attempt)
    return _update(nodes, paths, attempt, select, "announcement"), paths


def back_up(
    nodes: Nodes, paths: Paths, attempt: int | jax.Array, select: Select | None
) -> tuple[Nodes, Paths]:
    """Carries the value of an attempt's leaf to the root."""
    if nodes.lower is not None:
        nodes = _prove(nodes, paths, attempt)
    paths = list_rows(nodes, paths, attempt)
    kind = "whole" if nodes.pending is None else "outcome"
    return _update(nodes, paths, attempt, select, kind), paths


def _update(
    nodes: Nodes,
    paths: Paths,
    attempt: int | jax.Array,
    select: Select | None,
    kind: Kind,
) -> Nodes:
    """Counts an attempt in the roots and the listed nodes, and updates their means.

    The action that is stored in each listed node is selected again: deeper nodes first,
    since a selection reads the edges to the children. For the roots none is stored.
    """
    nowhere = nodes.visits.size  # the index after the last entry; B * N
    batch_size = paths.root_gain.size
    num_nodes = nowhere // batch_size
    leaf = paths.leaf[attempt]
    root = jnp.arange(batch_size, dtype=jnp.int32) * num_nodes
    at_root = jnp.where(paths.counts[attempt], root, nowhere)
    is_leaf = jnp.zeros(batch_size, bool)
    nodes = _count(nodes, root, at_root, paths.root_gain, is_leaf, kind)
    size = PORTION * batch_size

    def update_portion(state):
        end, changing = state
        now = dataclasses.replace(nodes, **changing)
        start = jnp.maximum(end - size, 0)
        entry = jax.lax.dynamic_slice(paths.row, (start,), (size,))
        gain = jax.lax.dynamic_slice(paths.gain, (start,), (size,))
        listed = start + jnp.arange(size) < end
        entry = jnp.where(listed, entry, 0)
        at = jnp.where(listed, entry, nowhere)
        is_leaf = entry == leaf[entry // num_nodes]
        now = _count(now, entry, at, gain, is_leaf, kind)
        if select is not None:
            action, next_node = select(now, entry)
            now = dataclasses.replace(
                now,
                next_action=now.next_action.at[at].set(action, mode="drop"),
                next_node=now.next_node.at[at].set(next_node, mode="drop"),
            )
        return start, {name: getattr(now, name) for name in changing}

    names = ["visits", "value", "edge_visits", "qvalue", "next_action", "next_node"]
    if nodes.pending is not None:
        names.append("pending")
    _, changed = jax.lax.while_loop(
        lambda state: state[0] > 0,
        update_portion,
        (paths.row_ends(attempt)[-1], {name: getattr(nodes, name) for name in names}),
    )
    return dataclasses.replace(nodes, **changed)


def _count(  # noqa: PLR0917  # called from the one function above
    nodes: Nodes,
    entry: jax.Array,
    at: jax.Array,
    gain: jax.Array,
    is_leaf: jax.Array,
    kind: Kind,
) -> Nodes:
    """Counts an attempt in some nodes and at the edges that lead to them.

    Args:
        nodes: the trees.
        entry: `[R]` int32; the nodes, each once.
        at: `[R]` int32; the same, but nowhere for those that are only filler.
        gain: `[R]` float32; the values that reach them.
        is_leaf: `[R]` bool; whether their value is no mean, but was just written.
        kind: see `Kind`.
    """
    visits, mean = nodes.visits[entry], nodes.value[entry]
    value, means, pending = mean, nodes.value, nodes.pending
    if pending is not None:
        change = 1 if kind == "announcement" else -1
        awaited = pending[entry]
        known = visits - awaited
        pending = pending.at[at].set(awaited + change, mode="drop")
    else:
        known = visits
    if kind != "announcement":
        keeps = is_leaf
        if nodes.lower is not None and nodes.upper is not None:
            keeps |= proofs.is_proven(nodes.lower[entry], nodes.upper[entry])
        value = jnp.where(keeps, mean, (mean * known + gain) / (known + 1.0))
        means = nodes.value.at[at].set(value, mode="drop")
    if kind != "outcome":
        visits = visits + 1
    parent, action = nodes.parent[entry], nodes.action[entry]
    nowhere = nodes.visits.size
    edge = jnp.where((parent >= 0) & (at == entry), parent, nowhere)
    qvalue = nodes.reward[entry] + nodes.discount[entry] * value
    if kind == "announcement":
        # Until the child is evaluated, its Q-value is the parent's value.
        before = nodes.value[jnp.maximum(parent, 0)]
        qvalue = jnp.where(is_leaf & (known == 0), before, qvalue)
    return dataclasses.replace(
        nodes,
        visits=nodes.visits.at[at].set(visits, mode="drop"),
        pending=pending,
        value=means,
        edge_visits=nodes.edge_visits.at[edge, action].set(visits, mode="drop"),
        qvalue=nodes.qvalue.at[edge, action].set(qvalue, mode="drop"),
    )


def _prove(nodes: Nodes, paths: Paths, attempt: int | jax.Array) -> Nodes:
    """Carries the result of a newly found end of the game up the tree, as far as it
    proves something."""
    assert nodes.lower is not None
    assert nodes.upper is not None
    leaf = paths.leaf[attempt]
    is_found = paths.counts[attempt] & paths.is_new[attempt] & ~may_go_on(nodes, leaf)
    nowhere = nodes.visits.size

    def go_up(state):
        entry, is_active, lower, upper, value = state
        legal = is_legal(from_prior(nodes.prior[entry]).astype(jnp.float32))
        moves = proofs.move_bounds(lower, upper, nodes.child[entry], legal)
        new_lower, new_upper = (bound.max(axis=-1) for bound in moves)
        is_active &= (new_lower != lower[entry]) | (new_upper != upper[entry])
        is_decided = is_active & proofs.is_proven(new_lower, new_upper)
        exact = proofs.exact_value(new_lower, new_upper)
        at = jnp.where(is_active, entry, nowhere)
        decided_at = jnp.where(is_decided, entry, nowhere)
        lower = lower.at[at].set(new_lower, mode="drop")
        upper = upper.at[at].set(new_upper, mode="drop")
        value = value.at[decided_at].set(exact, mode="drop")
        parent = nodes.parent[entry]
        is_active &= parent >= 0
        return jnp.where(is_active, parent, entry), is_active, lower, upper, value

    _, _, lower, upper, value = jax.lax.while_loop(
        lambda state: state[1].any(),
        go_up,
        (paths.parent[attempt], is_found, nodes.lower, nodes.upper, nodes.value),
    )
    return dataclasses.replace(nodes, lower=lower, upper=upper, value=value)
