"""What a simulation changes in the nodes that it passed."""

import dataclasses
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from azjax.search import solver
from azjax.search.nodes import (
    Nodes,
    Rows,
    Statistics,
    from_prior,
    is_legal,
    link_of,
    link_to,
    linked,
    may_go_on,
)
from azjax.search.paths import PORTION, Paths, list_rows

Select = Callable[[Nodes, Rows], jax.Array]
"""`(nodes, rows)` to the action that a simulation takes there."""

Kind = Literal["whole", "announcement", "outcome"]
"""A simulation is counted as a whole, or announced and later given its outcome."""


class Edge(NamedTuple):
    """What R nodes write at the edges that lead to them.

    action: `[R]` int32; which edges.
    link: `[R]` int32.
    visits: `[R]` int32.
    qvalue: `[R]` float32.
    is_unknown: `[R]` bool; the Q-value is not known: the parent's value stands for it.
    """

    action: jax.Array
    link: jax.Array
    visits: jax.Array
    qvalue: jax.Array
    is_unknown: jax.Array


def announce(
    nodes: Nodes, paths: Paths, attempt: int | jax.Array, select: Select | None
) -> tuple[Nodes, Paths]:
    """Lets a step's further attempts know where one went."""
    is_new = paths.counts[attempt] & paths.is_new[attempt]
    entry = jnp.where(is_new, paths.leaf[attempt], nodes.size)
    evaluation = nodes.evaluation.update(
        entry, parent=paths.parent[attempt], action=paths.action[attempt]
    )
    nodes = dataclasses.replace(nodes, evaluation=evaluation)
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

    The action that is stored in each listed node is selected again. Portions of the
    list are updated from its end, so that deeper nodes come first: a selection reads
    the edges to the children. For the roots no action is stored.
    """
    size = PORTION * paths.root_gain.size
    update = _update_by_row if nodes.statistics.is_packed else _update_by_number

    lengths = jnp.where(paths.counts[attempt], paths.length[attempt], 0)
    num_listed = lengths.sum(dtype=jnp.int32)

    def update_portion(state):
        number, statistics, pending = state
        now = dataclasses.replace(nodes, statistics=statistics, pending=pending)
        end = num_listed - number * size
        start = jnp.maximum(end - size, 0)
        # The row behind the portion was updated before; it may be a node's child.
        listed = jax.lax.dynamic_slice(paths.row, (start,), (size + 1,))
        gain = jax.lax.dynamic_slice(paths.gain, (start,), (size + 1,))
        counts = start + jnp.arange(size + 1) < end
        is_leaf = listed < 0
        rows = now.rows(jnp.where(is_leaf, -1 - listed, listed))
        now, rows, edge = _count(now, rows, counts, gain, is_leaf, kind)
        now = update(
            now, rows, edge, counts=counts, is_leaf=is_leaf, select=select, kind=kind
        )
        return number + 1, now.statistics, now.pending

    _, statistics, pending = jax.lax.while_loop(
        lambda state: state[0] * size < num_listed,
        update_portion,
        (jnp.int32(0), nodes.statistics, nodes.pending),
    )
    nodes = dataclasses.replace(nodes, statistics=statistics, pending=pending)
    return _update_roots(nodes, paths, attempt, kind)


def _update_by_row(
    nodes: Nodes,
    rows: Rows,
    edge: Edge,
    *,
    counts: jax.Array,
    is_leaf: jax.Array,
    select: Select | None,
    kind: Kind,
) -> Nodes:
    """Writes counted nodes but the last, with the edges to the nodes after them.

    One scatter of rows. A node that is no leaf has its child after it.
    """
    del kind  # the row is written as a whole
    child = jax.tree.map(lambda x: x[1:], edge)
    rows, counts, is_leaf = jax.tree.map(lambda x: x[:-1], (rows, counts, is_leaf))
    at = jnp.where(counts, rows.entry, nodes.size)
    statistics = _with_edge(rows.statistics, child, ~is_leaf)
    if select is not None:
        # For selections that read the children's values; else the compiler drops it.
        now = nodes.statistics.update(at, value=statistics.value)
        now = dataclasses.replace(nodes, statistics=now)
        action = select(now, rows._replace(statistics=statistics))
        link = link_of(statistics, action)
        statistics = statistics._replace(next_action=action, next_link=link)
    return dataclasses.replace(
        nodes, statistics=nodes.statistics.rewrite(at, statistics)
    )


def _update_by_number(
    nodes: Nodes,
    rows: Rows,
    edge: Edge,
    *,
    counts: jax.Array,
    is_leaf: jax.Array,
    select: Select | None,
    kind: Kind,
) -> Nodes:
    """Writes counted nodes but the last, and the edges that lead to them.

    A scatter for each number, then a gather of what the selection reads. On a CPU that
    is faster than `_update_by_row`, with the same result.
    """
    del is_leaf
    rows, edge, counts = jax.tree.map(lambda x: x[:-1], (rows, edge, counts))
    entry, parent = rows.entry, rows.evaluation.parent
    at = jnp.where(counts, entry, nodes.size)
    above = (jnp.where(counts, parent, nodes.size), edge.action)
    before = nodes.statistics[parent].value
    qvalue = jnp.where(edge.is_unknown, before, edge.qvalue)
    statistics = nodes.statistics.update(at, **_counted(rows.statistics, kind))
    statistics = statistics.update(
        above, link=edge.link, edge_visits=edge.visits, qvalue=qvalue
    )
    if select is not None:
        now = statistics[entry]
        nodes = dataclasses.replace(nodes, statistics=statistics)
        action = select(nodes, rows._replace(statistics=now))
        link = link_of(now, action)
        statistics = statistics.update(at, next_action=action, next_link=link)
    return dataclasses.replace(nodes, statistics=statistics)


def _update_roots(
    nodes: Nodes, paths: Paths, attempt: int | jax.Array, kind: Kind
) -> Nodes:
    """Counts an attempt in the roots, and writes the edges that lead on from them."""
    counts = paths.counts[attempt]
    no = jnp.zeros_like(counts)
    root = jnp.arange(counts.size, dtype=jnp.int32) * (nodes.size // counts.size)
    at = jnp.where(counts, root, nodes.size)
    nodes, rows, _ = _count(nodes, nodes.rows(root), counts, paths.root_gain, no, kind)
    statistics = rows.statistics
    if nodes.statistics.is_packed:
        first = nodes.rows(paths.entry(attempt, 1))
        is_leaf = paths.length[attempt] == 1
        _, _, edge = _count(nodes, first, no, paths.root_gain, is_leaf, kind)
        table = nodes.statistics.rewrite(at, _with_edge(statistics, edge, counts))
    else:
        table = nodes.statistics.update(at, **_counted(statistics, kind))
    return dataclasses.replace(nodes, statistics=table)


def _counted(statistics: Statistics, kind: Kind) -> dict[str, jax.Array]:
    """Returns what `_count` changes: to write the rest too would copy whole tables."""
    changed = {}
    if kind != "outcome":
        changed["visits"] = statistics.visits
    if kind != "announcement":
        changed["value"] = statistics.value
    return changed


def _count(  # noqa: PLR0917  # called from two functions above
    nodes: Nodes,
    rows: Rows,
    counts: jax.Array,
    gain: jax.Array,
    is_leaf: jax.Array,
    kind: Kind,
) -> tuple[Nodes, Rows, Edge]:
    """Counts an attempt in some nodes.

    Args:
        nodes: the trees.
        rows: the nodes, each once.
        counts: `[R]` bool; whether to count it; others stay as they are.
        gain: `[R]` float32; the values that reach them.
        is_leaf: `[R]` bool; whether their value is no mean, but the model's.
        kind: see `Kind`.

    Returns:
        The trees with their pending visits, the nodes, and what to write at the edges
        that lead to them.
    """
    entry, statistics, evaluation = rows
    visits, value = statistics.visits, statistics.value
    known = visits
    if nodes.pending is not None:
        awaited = nodes.pending[entry]
        known = visits - awaited
        change = 1 if kind == "announcement" else -1
        at = jnp.where(counts, entry, nodes.size)
        pending = nodes.pending.at[at].set(awaited + change, mode="drop")
        nodes = dataclasses.replace(nodes, pending=pending)
    if kind != "announcement":
        mean = (value * known + gain) / (known + 1.0)
        new_value = jnp.where(is_leaf, evaluation.raw_value, mean)
        if nodes.lower is not None and nodes.upper is not None:
            is_decided = solver.is_proven(nodes.lower[entry], nodes.upper[entry])
            is_decided &= ~is_leaf | (evaluation.discount != 0)
            new_value = jnp.where(is_decided, value, new_value)
        value = jnp.where(counts, new_value, value)
    if kind != "outcome":
        visits = visits + counts
    edge = Edge(
        action=evaluation.action,
        link=link_to(entry, may_go_on(nodes, evaluation.discount, entry)),
        visits=visits,
        qvalue=evaluation.reward + evaluation.discount * value,
        # Until the child is evaluated, its Q-value is the parent's value.
        is_unknown=is_leaf & (known == 0)
        if kind == "announcement"
        else jnp.zeros_like(is_leaf),
    )
    statistics = statistics._replace(visits=visits, value=value)
    return nodes, Rows(entry, statistics, evaluation), edge


def _with_edge(statistics: Statistics, edge: Edge, has_edge: jax.Array) -> Statistics:
    """Returns statistics with one edge of each node replaced, where `has_edge`."""
    actions = jnp.arange(statistics.link.shape[-1])
    is_edge = has_edge[:, None] & (actions == edge.action[:, None])
    qvalue = jnp.where(edge.is_unknown, statistics.value, edge.qvalue)

    def put(numbers: jax.Array, new: jax.Array) -> jax.Array:
        return jnp.where(is_edge, new[:, None], numbers)

    return statistics._replace(
        link=put(statistics.link, edge.link),
        edge_visits=put(statistics.edge_visits, edge.visits),
        qvalue=put(statistics.qvalue, qvalue),
    )


def _prove(nodes: Nodes, paths: Paths, attempt: int | jax.Array) -> Nodes:
    """Carries the result of a newly found end of the game up the tree, as far as it
    proves something."""
    assert nodes.lower is not None
    assert nodes.upper is not None
    leaf, parent = paths.leaf[attempt], paths.parent[attempt]
    is_new = paths.counts[attempt] & paths.is_new[attempt]
    goes_on = may_go_on(nodes, nodes.evaluation[leaf].discount, leaf)
    nodes = _link(nodes, parent, paths.action[attempt], link_to(leaf, goes_on), is_new)

    def go_up(state):
        entry, is_active, lower, upper, statistics = state
        evaluation = nodes.evaluation[entry]
        legal = is_legal(from_prior(evaluation.prior).astype(jnp.float32))
        child = linked(statistics[entry].link)
        moves = solver.move_bounds(lower, upper, child, legal)
        new_lower, new_upper = (bound.max(axis=-1) for bound in moves)
        is_active &= (new_lower != lower[entry]) | (new_upper != upper[entry])
        is_decided = is_active & solver.is_proven(new_lower, new_upper)
        exact = solver.exact_value(new_lower, new_upper)
        at = jnp.where(is_active, entry, nodes.size)
        decided_at = jnp.where(is_decided, entry, nodes.size)
        lower = lower.at[at].set(new_lower, mode="drop")
        upper = upper.at[at].set(new_upper, mode="drop")
        statistics = statistics.update(decided_at, value=exact)
        parent = evaluation.parent
        is_active &= parent >= 0
        return jnp.where(is_active, parent, entry), is_active, lower, upper, statistics

    _, _, lower, upper, statistics = jax.lax.while_loop(
        lambda state: state[1].any(),
        go_up,
        (parent, is_new & ~goes_on, nodes.lower, nodes.upper, nodes.statistics),
    )
    return dataclasses.replace(nodes, lower=lower, upper=upper, statistics=statistics)


def _link(
    nodes: Nodes,
    parent: jax.Array,
    action: jax.Array,
    link: jax.Array,
    is_new: jax.Array,
) -> Nodes:
    """Returns the trees with a link of some nodes replaced, where `is_new`."""
    links = nodes.statistics[parent].link
    is_edge = jnp.arange(links.shape[-1]) == action[:, None]
    statistics = nodes.statistics.update(
        jnp.where(is_new, parent, nodes.size),
        link=jnp.where(is_edge, link[:, None], links),
    )
    return dataclasses.replace(nodes, statistics=statistics)
