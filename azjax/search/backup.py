"""Backup: updates the nodes on the paths of one simulation."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.search.nodes import Nodes, Rows, Statistics, encode_link, link_of_action
from azjax.search.paths import PORTION, Paths
from azjax.search.solver import back_up_bounds, is_expandable, is_proven_at

Select = Callable[[Nodes, Rows], jax.Array]
"""`(nodes, rows)` to the `[R]` interior actions."""


class Edge(NamedTuple):
    """The edges that lead to R nodes; `[R]` is `[levels, B]` on an accelerator.

    action, link, visits: `[R]` int32.
    qvalue: `[R]` float32.
    """

    action: jax.Array
    link: jax.Array
    visits: jax.Array
    qvalue: jax.Array


def back_up(nodes: Nodes, paths: Paths, select: Select | None) -> tuple[Nodes, Paths]:
    """Backs up the values of the leaves to the roots.

    An accelerator treats many nodes as fast as few, but each kernel and each test of a
    loop's end takes time; a CPU's time is that of the nodes. Hence the two forms, which
    store the same.

    Args:
        nodes: the trees.
        paths: of the simulation.
        select: selects the action that is stored in each updated node; None: no action
            is stored.
    """
    nodes = back_up_bounds(nodes, paths)
    if nodes.statistics.is_packed:
        return _update_levels(nodes, paths, select), paths
    paths, root_value = _list_rows(nodes, paths)
    nodes = _update_listed(nodes, paths, select)
    return _update_roots(nodes, paths, root_value), paths


def _list_rows(nodes: Nodes, paths: Paths) -> tuple[Paths, jax.Array]:
    """Lists the nodes below the roots, with the values that are backed up to them.

    A proven node passes its exact value on. Returns the values of the roots, too.
    """
    # Each game's rows follow those of the game before, from depth 1 to the leaf.
    length = paths.length
    ends = jnp.cumsum(jnp.where(paths.is_valid, length, 0), dtype=jnp.int32)
    start = ends - length - 1  # depth 1 is the first that is listed
    out_of_range = paths.row.size

    def go_up(state):
        depth, value, row, backup_value = state
        entry = paths.entry(depth)
        evaluation = nodes.evaluation[entry]
        is_on_path = depth <= length
        is_decided = is_proven_at(nodes, entry) & (evaluation.discount != 0)
        exact = nodes.statistics[entry].value
        value = jnp.where(is_on_path & is_decided, exact, value)
        at = jnp.where(is_on_path & paths.is_valid, start + depth, out_of_range)
        listed = jnp.where(depth == length, -1 - entry, entry)
        row = row.at[at].set(listed, mode="drop")
        backup_value = backup_value.at[at].set(value, mode="drop")
        above = evaluation.reward + evaluation.discount * value
        return depth - 1, jnp.where(is_on_path, above, value), row, backup_value

    # From the leaves up, all games at once; a game begins at its own leaf's depth.
    leaf_value = nodes.evaluation[paths.leaf].raw_value
    _, root_value, row, backup_value = jax.lax.while_loop(
        lambda state: state[0] > 0,
        go_up,
        (length.max(), leaf_value, paths.row, paths.backup_value),
    )
    return dataclasses.replace(paths, row=row, backup_value=backup_value), root_value


def _update_listed(nodes: Nodes, paths: Paths, select: Select | None) -> Nodes:
    """Updates the listed nodes: visits, values, edges and selected actions.

    Portions of the list are updated from its end, deeper nodes first, because a
    selection reads the edges to the children. One scatter for each number, then a
    gather of what the selection reads.
    """
    size = PORTION * paths.length.size
    num_listed = jnp.where(paths.is_valid, paths.length, 0).sum(dtype=jnp.int32)

    def update_portion(state):
        number, statistics = state
        now = dataclasses.replace(nodes, statistics=statistics)
        end = num_listed - number * size
        start = jnp.maximum(end - size, 0)
        listed = jax.lax.dynamic_slice(paths.row, (start,), (size,))
        backup_value = jax.lax.dynamic_slice(paths.backup_value, (start,), (size,))
        # The last portion overlaps the one before it, which is not updated again.
        is_valid = start + jnp.arange(size) < end
        is_leaf = listed < 0
        rows = now.rows(jnp.where(is_leaf, -1 - listed, listed))
        rows, edge = _add_visit(now, rows, is_valid, backup_value, is_leaf)
        entry, parent = rows.entry, rows.evaluation.parent
        # The nodes, then the edges that lead to them, which their parents store.
        at = jnp.where(is_valid, entry, nodes.size)
        above = (jnp.where(is_valid, parent, nodes.size), edge.action)
        statistics = statistics.update(
            at, visits=rows.statistics.visits, value=rows.statistics.value
        )
        statistics = statistics.update(
            above, link=edge.link, edge_visits=edge.visits, qvalue=edge.qvalue
        )
        if (is_chance := rows.evaluation.is_chance) is not None:
            # These values depend on the edges to the outcomes, which are now stored.
            stored = statistics[entry]
            rows, edge = _with_chance_values(rows, edge, stored, is_chance)
            statistics = statistics.update(at, value=rows.statistics.value)
            statistics = statistics.update(above, qvalue=edge.qvalue)
        # The next simulation follows these selections.
        if select is not None:
            updated = statistics[entry]
            now = dataclasses.replace(nodes, statistics=statistics)
            action = select(now, rows._replace(statistics=updated))
            link = link_of_action(updated, action)
            statistics = statistics.update(at, next_action=action, next_link=link)
        return number + 1, statistics

    _, statistics = jax.lax.while_loop(
        lambda state: state[0] * size < num_listed,
        update_portion,
        (jnp.int32(0), nodes.statistics),
    )
    return dataclasses.replace(nodes, statistics=statistics)


def _update_roots(nodes: Nodes, paths: Paths, value: jax.Array) -> Nodes:
    """Updates visits and values of the roots."""
    # Roots are not listed: no edge leads to them, and they store no interior action.
    root = paths.node[0]
    no = jnp.zeros_like(paths.is_valid)
    rows, _ = _add_visit(nodes, nodes.rows(root), paths.is_valid, value, no)
    table = nodes.statistics.update(
        jnp.where(paths.is_valid, root, nodes.size),
        visits=rows.statistics.visits,
        value=rows.statistics.value,
    )
    return dataclasses.replace(nodes, statistics=table)


def _update_levels(nodes: Nodes, paths: Paths, select: Select | None) -> Nodes:
    """Updates all nodes on the paths, `paths.levels` levels of the trees at once, the
    deepest first, because the values are passed up."""
    levels = paths.levels

    def update(state):
        top, value, below, statistics = state
        now = dataclasses.replace(nodes, statistics=statistics)
        # Row `l` is the level `top + l`. Its nodes get a visit and the values below.
        rows, is_leaf, is_updated = _rows_of_levels(now, paths, top)
        value, backup_value = _pass_up(now, rows, is_leaf, value)
        rows, edge = _add_visit(now, rows, is_updated, backup_value, is_leaf)
        has_child = is_updated & ~is_leaf
        edges, new = _pass_edges_up(rows.statistics, edge, below, has_child)
        if (is_chance := rows.evaluation.is_chance) is not None:
            # These values depend on the edges to the outcomes, which are now known, and
            # the nodes above them get these values.
            rows, edge = _with_chance_values(rows, edge, new, is_chance)
            edges, new = _pass_edges_up(rows.statistics, edge, below, has_child)
        at = jnp.where(is_updated, rows.entry, nodes.size)
        if select is not None:
            # Updates `children_values` of the one-node trees; XLA removes it if unused.
            now = dataclasses.replace(
                now, statistics=statistics.update(at, value=new.value)
            )
            action = select(now, rows._replace(statistics=new))
            link = link_of_action(new, action)
            new = new._replace(next_action=action, next_link=link)
        return top - levels, value, edges[:, :1], statistics.rewrite(at, new)

    value = jnp.zeros((1, paths.length.size), jnp.float32)
    below = jnp.zeros((4, 1, paths.length.size), jnp.int32)
    state = (value, below, nodes.statistics)
    if paths.levels > paths.max_depth:
        *_, statistics = update((0, *state))
    else:
        last = paths.length.max() // levels * levels
        *_, statistics = jax.lax.while_loop(
            lambda state: state[0] >= 0, update, (last, *state)
        )
    return dataclasses.replace(nodes, statistics=statistics)


def _rows_of_levels(
    nodes: Nodes, paths: Paths, top: int | jax.Array
) -> tuple[Rows, jax.Array, jax.Array]:
    """Returns the nodes of `paths.levels` levels, `[levels, B]`: whether each is a
    leaf, and whether it is on a path of a simulation that is made."""
    depth = top + jnp.arange(paths.levels, dtype=jnp.int32)[:, None]
    node = jax.lax.dynamic_slice_in_dim(paths.node, top, paths.levels)
    is_leaf = depth == paths.length[None]
    is_updated = (depth <= paths.length[None]) & paths.is_valid[None]
    entry = jnp.where(is_leaf, paths.leaf[None], node)
    return nodes.rows(entry), is_leaf, is_updated


def _pass_up(
    nodes: Nodes, rows: Rows, is_leaf: jax.Array, value: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Passes `[1, B]` values from the level below to the level above.

    Returns them, and the `[levels, B]` values that are backed up to the nodes. A
    proven node passes its exact value on. Below a leaf, values have no meaning.
    """
    raw_value, reward, discount = rows.evaluation[:3]
    is_decided = is_proven_at(nodes, rows.entry) & (discount != 0)
    own_value = jnp.where(is_decided, rows.statistics.value, raw_value)
    has_own = is_decided | is_leaf
    values = []
    for level in reversed(range(len(is_leaf))):
        at = slice(level, level + 1)  # a TPU converts [1, B] to [B] in another kernel
        value = jnp.where(has_own[at], own_value[at], value)
        values.append(value)
        value = reward[at] + discount[at] * value
    return value, jnp.concatenate(values[::-1])


def _add_visit(
    nodes: Nodes,
    rows: Rows,
    is_valid: jax.Array,
    backup_value: jax.Array,
    is_leaf: jax.Array,
) -> tuple[Rows, Edge]:
    """Adds a visit to R nodes, and returns them with the edges that lead to them.

    Args:
        nodes: the trees.
        rows: R nodes; the valid ones are different.
        is_valid: `[R]` bool; other nodes do not change.
        backup_value: `[R]` float32; the values backed up to the nodes.
        is_leaf: `[R]` bool; whether the value is the model's, not a mean.
    """
    entry, statistics, evaluation = rows
    visits, value = statistics.visits, statistics.value
    mean = (value * visits + backup_value) / (visits + 1.0)
    new_value = jnp.where(is_leaf, evaluation.raw_value, mean)
    # A proven node keeps its exact value; a terminal leaf takes the model's.
    keeps_value = is_proven_at(nodes, entry) & (~is_leaf | (evaluation.discount != 0))
    value = jnp.where(is_valid & ~keeps_value, new_value, value)
    visits = visits + is_valid
    expands = is_expandable(nodes, evaluation.discount, entry)
    edge = Edge(
        action=evaluation.action,
        link=encode_link(entry, expands),
        visits=visits,
        qvalue=evaluation.reward + evaluation.discount * value,
    )
    statistics = statistics._replace(visits=visits, value=value)
    return Rows(entry, statistics, evaluation), edge


def _pass_edges_up(
    statistics: Statistics, edge: Edge, below: jax.Array, has_child: jax.Array
) -> tuple[jax.Array, Statistics]:
    """Stores the edge to a node in its parent, one level up; the last level gets the
    first edges of the levels below.

    Args:
        statistics: of the nodes, `[levels, B]`.
        edge: the edges that lead to them.
        below: `[4, 1, B]` int32; the first edges of the levels below.
        has_child: `[levels, B]` bool; whether the path goes on below a node.

    Returns:
        `[4, levels, B]` int32, the edges that lead to the nodes, and the statistics.
    """
    # One array takes fewer kernels to shift than four.
    edges = jnp.stack([*edge[:3], jax.lax.bitcast_convert_type(edge.qvalue, jnp.int32)])
    action, link, visits, qvalue = jnp.concatenate([edges[:, 1:], below], axis=1)
    qvalue = jax.lax.bitcast_convert_type(qvalue, jnp.float32)
    child = Edge(action, link, visits, qvalue)
    return edges, _with_edge(statistics, child, has_child)


def _with_chance_values(
    rows: Rows, edge: Edge, statistics: Statistics, is_chance: jax.Array
) -> tuple[Rows, Edge]:
    """Returns R nodes and the edges to them with the values of chance nodes: the mean
    over the visited outcomes, weighted by probability.

    Args:
        rows: R nodes.
        edge: the edges that lead to them.
        statistics: of the nodes, with the edges to the outcomes.
        is_chance: `[R]` bool.
    """
    evaluation = rows.evaluation
    is_visited = statistics.edge_visits > 0
    weights = jnp.where(is_visited, jnp.exp(evaluation.prior), 0.0)
    total = jnp.maximum(weights.sum(axis=-1), jnp.finfo(jnp.float32).tiny)
    mean = (weights * statistics.qvalue).sum(axis=-1) / total
    value = jnp.where(is_chance, mean, rows.statistics.value)
    qvalue = evaluation.reward + evaluation.discount * value
    return (
        rows._replace(statistics=rows.statistics._replace(value=value)),
        edge._replace(qvalue=jnp.where(is_chance, qvalue, edge.qvalue)),
    )


def _with_edge(statistics: Statistics, edge: Edge, has_edge: jax.Array) -> Statistics:
    """Returns statistics with one edge of each node replaced, where `has_edge`."""
    is_action = jax.nn.one_hot(edge.action, statistics.link.shape[-1], dtype=bool)
    is_edge = has_edge[..., None] & is_action

    def put(numbers: jax.Array, new: jax.Array) -> jax.Array:
        return jnp.where(is_edge, new[..., None], numbers)

    return statistics._replace(
        link=put(statistics.link, edge.link),
        edge_visits=put(statistics.edge_visits, edge.visits),
        qvalue=put(statistics.qvalue, edge.qvalue),
    )
