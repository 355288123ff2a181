"""`search`: what `mctx.search` finds, in time linear in the simulations."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.checks import check_int
from azjax.search import solver
from azjax.search.backup import Select, announce, back_up
from azjax.search.keys import keys_of_games, split_keys
from azjax.search.nodes import (
    UNVISITED,
    Evaluation,
    Nodes,
    Rows,
    empty_nodes,
    from_tree,
    is_awaited,
    link_of,
    linked,
    set_roots,
    to_prior,
    to_tree,
)
from azjax.search.one_node import one_node_trees
from azjax.search.packing import Table
from azjax.search.paths import Paths, empty_paths
from azjax.search.slices import SearchSlice
from azjax.search.types import RootFnOutput, Tree


def search(
    params: Any,
    rng_key: jax.Array,
    *,
    root: RootFnOutput,
    recurrent_fn: Callable[..., Any],
    root_action_selection_fn: Callable[..., Any],
    interior_action_selection_fn: Callable[..., Any],
    num_simulations: int,
    max_depth: int | None = None,
    invalid_actions: jax.Array | None = None,
    extra_data: Any = None,
    loop_fn: Callable[..., Any] = jax.lax.fori_loop,
    tree: Tree | None = None,
    selects_on_update: bool = False,
    leaves_per_step: int = 1,
    use_solver: bool = False,
    prior_dtype: Any = jnp.float32,
    search_slice: SearchSlice | None = None,
) -> Tree:
    """Searches B trees at once and returns them.

    It does what `mctx.search` does and gives the same visit counts and values, with
    two differences. A move with discount 0 ends the game: nothing is searched behind
    it, while mctx goes on there to no effect. And a selection function is given a tree
    of one node, the one to select in, at index 0: the node's statistics, its priors and
    `extra_data`. `parents`, `children_index` and `embeddings` are None, so that a
    selection function that looks at other nodes raises an error.

    `B` games, `A` actions, `N` nodes.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed; one key, or `[P]` for P equal parts of the batch.
        root: prior logits `[B, A]` and values `[B]` in float32, states `[B, ...]`.
        recurrent_fn: the model, `(params, rng_key, action, embedding)` to
            `mctx.RecurrentFnOutput` and the next embedding. A discount of 0 says that
            the game is over. Its batch is `B * leaves_per_step`.
        root_action_selection_fn: `(rng_key, tree, node_index)` to an action at the
            root, for one game.
        interior_action_selection_fn: `(rng_key, tree, node_index, depth)` to an action
            at any other node; depth is an int32.
        num_simulations: at least 1.
        max_depth: longest path from the root (moves), `num_simulations` by default.
        invalid_actions: `[B, A]`, nonzero where illegal at the root.
        extra_data: leaves `[B, ...]`, for the selection functions.
        loop_fn: runs the simulations, like `jax.lax.fori_loop`.
        tree: where to begin in place of empty trees, see `subtree`. Roots get their
            prior from `root` all the same, and empty trees get all of it. Its N nodes
            must have room for `num_simulations` new ones beside those in use, which
            trees have that began with `init_trees` or `empty_tree` and went through
            `subtree`; simulations that find no room are left out. mctx's own selection
            at a Gumbel root counts the visits of a starting tree among its own; that of
            `gumbel_policy` does not.
        selects_on_update: whether the interior selection depends on the node's
            statistics alone, not on the key or the depth. Then it is made once when a
            node changes, and not again by all simulations that pass: the same result,
            sooner.
        leaves_per_step: leaves searched at once in each game. The search for the
            second takes the first for visited, with the value that its parent has now,
            and so on (Liu et al. 2020, "Watch the Unobserved"). More than one make
            fewer and larger batches for the network, for a somewhat worse search.
        use_solver: whether to carry proven wins, draws and losses up the tree; returns
            a `ProvenTree`. See `proofs` for which games. A move proven to lose is not
            searched while others are left.
        prior_dtype: in which prior logits are stored, float32 or bfloat16; a starting
            tree keeps its own.
        search_slice: makes no more than `total - made` simulations in each game, and
            takes no longer than the game with the most: one compiled program serves
            searches of different lengths. None: this call is the whole search.

    Raises:
        ValueError: a number is too small or too large, or the starting tree has other
            shapes.
    """
    batch_size, num_actions = root.prior_logits.shape
    for name, number in (
        ("num_simulations", num_simulations),
        ("max_depth", num_simulations if max_depth is None else max_depth),
        ("leaves_per_step", leaves_per_step),
    ):
        number = number.item() if isinstance(number, np.integer) else number  # noqa: PLW2901
        check_int(name, number, 1, 2**31 - 2)
    leaves_per_step = min(leaves_per_step, num_simulations)
    num_nodes = num_simulations + 1 if tree is None else tree.node_visits.shape[1]
    if batch_size * num_nodes >= 2**31:
        raise ValueError(
            f"{batch_size} games with {num_nodes} nodes each are more than 2**31 nodes"
        )
    if invalid_actions is None:
        invalid_actions = jnp.zeros_like(root.prior_logits)
    if tree is None:
        nodes = empty_nodes(
            root.embedding,
            num_actions,
            num_nodes,
            prior_dtype=prior_dtype,
            use_solver=use_solver,
        )
    else:
        nodes = _starting_nodes(tree, root, num_simulations, use_solver=use_solver)
    nodes = set_roots(nodes, root, num_nodes)
    base = jnp.arange(batch_size, dtype=jnp.int32) * num_nodes
    searcher = _Search(
        params=params,
        recurrent_fn=recurrent_fn,
        root_selection=root_action_selection_fn,
        interior_selection=interior_action_selection_fn,
        num_nodes=num_nodes,
        max_depth=min(max_depth or num_simulations, num_simulations)
        if tree is None
        else (max_depth or num_nodes),
        leaves=leaves_per_step,
        selects_on_update=selects_on_update,
        root_evaluation=nodes.evaluation[base],
        base=base,
        invalid_actions=jnp.asarray(invalid_actions),
        extra_data=extra_data,
    )
    if leaves_per_step > 1:
        nodes = dataclasses.replace(nodes, pending=jnp.zeros(nodes.size, jnp.int32))
    first_free = searcher.base + 1
    if tree is not None:
        nodes = searcher.select_everywhere(nodes)
        first_free = searcher.first_free(nodes)
    budget = jnp.int32(num_simulations)
    if search_slice is not None:
        budget = jnp.minimum(budget, search_slice.total - search_slice.made)

    def step(index, carry):
        rng_key, nodes, paths = carry
        rng_key, simulate_key, expand_key = split_keys(rng_key, 3)
        keys = keys_of_games(simulate_key, batch_size)
        nodes, paths = searcher.step(
            nodes,
            paths,
            keys,
            expand_key,
            first_free + index * leaves_per_step,
            budget - index * leaves_per_step,
        )
        return rng_key, nodes, paths

    # A slice takes no step in which no game makes a simulation.
    num_steps = -(-num_simulations // leaves_per_step)
    if search_slice is not None:
        num_steps = jnp.minimum(num_steps, -(-budget.max() // leaves_per_step))
    paths = empty_paths(searcher.base, leaves_per_step, searcher.max_depth)
    _, nodes, _ = loop_fn(0, num_steps, step, (rng_key, nodes, paths))
    return to_tree(nodes, num_nodes, invalid_actions, extra_data)


def _starting_nodes(
    tree: Tree, root: RootFnOutput, num_simulations: int, *, use_solver: bool
) -> Nodes:
    batch_size, num_nodes, num_actions = tree.children_index.shape
    if (batch_size, num_actions) != root.prior_logits.shape:
        raise ValueError(
            f"the starting tree is for {batch_size} games with {num_actions} actions, "
            f"the root for {root.prior_logits.shape}"
        )
    if num_nodes <= num_simulations:
        raise ValueError(
            f"the starting tree has room for {num_nodes} nodes: it must be more than "
            f"num_simulations, {num_simulations}"
        )
    nodes = from_tree(tree)
    if use_solver != (nodes.lower is not None):
        raise ValueError(
            f"the starting tree must {'' if use_solver else 'not '}be a ProvenTree "
            f"when use_solver={use_solver}"
        )
    return nodes


@dataclasses.dataclass(frozen=True)
class _Search:
    """What does not change during a search."""

    params: Any
    recurrent_fn: Callable[..., Any]
    root_selection: Callable[..., Any]
    interior_selection: Callable[..., Any]
    num_nodes: int
    max_depth: int
    leaves: int  # K, in a step
    selects_on_update: bool
    root_evaluation: Evaluation  # they do not change
    base: jax.Array  # [B]; the entries of the roots
    invalid_actions: jax.Array
    extra_data: Any

    @property
    def select_on_update(self) -> Select | None:
        """The selection to make whenever a node changes; None if there is none."""
        return self.select if self.selects_on_update else None

    def first_free(self, nodes: Nodes) -> jax.Array:
        """Returns `[B]` int32, the first entry behind the nodes of each tree."""
        visits = nodes.statistics.all().visits
        used = visits.reshape(-1, self.num_nodes) > 0
        end = jnp.where(used, jnp.arange(1, self.num_nodes + 1, dtype=jnp.int32), 0)
        return self.base + end.max(axis=1)

    def step(  # noqa: PLR0917  # called from the one function above
        self,
        nodes: Nodes,
        paths: Paths,
        keys: jax.Array,
        expand_key: jax.Array,
        free: jax.Array,
        budget: jax.Array,
    ) -> tuple[Nodes, Paths]:
        """Searches up to K leaves in each game.

        Args:
            nodes: the trees.
            paths: room for the paths.
            keys: `[B]`; for the selections.
            expand_key: for the model.
            free: `[B]` int32; the next K entries are not in use.
            budget: `[]` or `[B]` int32; simulations left to make.
        """
        if self.leaves == 1:
            paths = self.descend(nodes, paths, keys, 0, free, budget)
            nodes = self.expand(nodes, paths, expand_key)
            return back_up(nodes, paths, 0, self.select_on_update)

        def attempt(number, state):
            nodes, paths = state
            attempt_keys = jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)
            paths = self.descend(nodes, paths, attempt_keys, number, free, budget)
            return announce(nodes, paths, number, self.select_on_update)

        nodes, paths = jax.lax.fori_loop(0, self.leaves, attempt, (nodes, paths))
        nodes = self.expand(nodes, paths, expand_key)
        return jax.lax.fori_loop(
            0,
            self.leaves,
            lambda number, state: back_up(
                state[0], state[1], number, self.select_on_update
            ),
            (nodes, paths),
        )

    def look(self, nodes: Nodes, rows: Rows) -> Tree:
        """Returns `[B]` trees of one node each, one of each game."""
        return one_node_trees(nodes, rows, self.invalid_actions, self.extra_data)

    def select(self, nodes: Nodes, rows: Rows) -> jax.Array:
        """Returns `[R]` the interior action, for a selection that depends on neither
        key nor depth."""
        game = rows.entry // self.num_nodes
        extra_data = jax.tree.map(lambda leaf: leaf[game], self.extra_data)
        trees = one_node_trees(nodes, rows, self.invalid_actions[game], extra_data)
        key, node_index, depth = jax.random.key(0), jnp.int32(0), jnp.int32(1)
        return jax.vmap(
            lambda tree: self.interior_selection(key, tree, node_index, depth)
        )(trees)

    def select_everywhere(self, nodes: Nodes) -> Nodes:
        """Fills in what is chosen in the nodes of a starting tree."""
        if not self.selects_on_update:
            return nodes
        statistics = nodes.statistics.all()
        entry = jnp.arange(nodes.size, dtype=jnp.int32)
        action = self.select(nodes, Rows(entry, statistics, nodes.evaluation.all()))
        link = link_of(statistics, action)
        statistics = statistics._replace(next_action=action, next_link=link)
        return dataclasses.replace(nodes, statistics=Table.of(statistics))

    def descend(  # noqa: PLR0917  # called from the one function above
        self,
        nodes: Nodes,
        paths: Paths,
        keys: jax.Array,
        attempt: int | jax.Array,
        free: jax.Array,
        budget: jax.Array,
    ) -> Paths:
        """Looks for the step's next leaf.

        Args:
            nodes: the trees.
            paths: room for the paths.
            keys: `[B]`; for the selections.
            attempt: the number in this step.
            free: `[B]` int32; the next K entries are not in use.
            budget: `[]` or `[B]` int32; simulations left to make.
        """
        keys, action_keys = _split(keys)
        statistics = nodes.statistics[self.base]
        roots = Rows(self.base, statistics, self.root_evaluation)
        root_action = jax.vmap(
            lambda key, tree: self.root_selection(key, tree, jnp.int32(0))
        )(action_keys, self.look(nodes, roots))

        def goes_on(state):
            depth, link = state[:2]
            return (link >= 0).any() & (depth < self.max_depth)

        def walk(state):
            depth, link, length, path, keys, action = state
            is_walking = link >= 0
            entry = jnp.maximum(link, 0)
            path = path.at[attempt, depth].set(entry)
            if self.selects_on_update:
                after = nodes.statistics[entry].next_link
            else:
                keys, action_keys = _split(keys)
                rows = nodes.rows(entry)
                selected = jax.vmap(
                    self.interior_selection, in_axes=(0, 0, None, None)
                )(action_keys, self.look(nodes, rows), jnp.int32(0), depth)
                action = jnp.where(is_walking, selected, action)
                after = link_of(rows.statistics, selected)
            link = jnp.where(is_walking, after, link)
            return depth + 1, link, length + (link >= 0), path, keys, action

        link = link_of(statistics, root_action)
        first_length = 1 + (link >= 0).astype(jnp.int32)
        _, link, length, path, _, action = jax.lax.while_loop(
            goes_on,
            walk,
            (jnp.int32(1), link, first_length, paths.node, keys, root_action),
        )
        # Behind links that go on, a move was counted that was not made.
        length -= link >= 0
        parent = path[attempt, length - 1, jnp.arange(length.size)]
        if self.selects_on_update:
            selected = nodes.statistics[parent].next_action
            action = jnp.where(length == 1, root_action, selected)
        is_new = link == UNVISITED
        leaf = jnp.where(is_new, free + attempt, linked(link))
        counts = jnp.where(
            is_new, leaf < self.base + self.num_nodes, ~is_awaited(nodes, leaf)
        )
        return dataclasses.replace(
            paths,
            node=path,
            length=paths.length.at[attempt].set(length),
            parent=paths.parent.at[attempt].set(parent),
            action=paths.action.at[attempt].set(action),
            leaf=paths.leaf.at[attempt].set(leaf),
            is_new=paths.is_new.at[attempt].set(is_new),
            is_over=paths.is_over.at[attempt].set(link < UNVISITED),
            counts=paths.counts.at[attempt].set(counts & (attempt < budget)),
        )

    def expand(self, nodes: Nodes, paths: Paths, rng_key: jax.Array) -> Nodes:
        """Asks the model about the step's leaves, and writes down what it says."""
        parent, action, leaf = (
            array.ravel() for array in (paths.parent, paths.action, paths.leaf)
        )
        output, after = self.recurrent_fn(
            self.params, rng_key, action, nodes.state[parent]
        )
        counts = (paths.counts & ~paths.is_over).ravel()
        entry = jnp.where(counts, leaf, nodes.size)
        if nodes.lower is not None and nodes.upper is not None:
            ends = output.discount == 0
            score = solver.score_of_reward(output.reward)
            lower = jnp.where(ends, score, -solver.WIN).astype(nodes.lower.dtype)
            upper = jnp.where(ends, score, solver.WIN).astype(nodes.upper.dtype)
            nodes = dataclasses.replace(
                nodes,
                lower=nodes.lower.at[entry].set(lower, mode="drop"),
                upper=nodes.upper.at[entry].set(upper, mode="drop"),
            )
        evaluation = Evaluation(
            raw_value=output.value,
            reward=output.reward,
            discount=output.discount,
            parent=parent,
            action=action,
            prior=to_prior(output.prior_logits, nodes.evaluation.dtypes.prior),
        )
        return dataclasses.replace(
            nodes,
            evaluation=nodes.evaluation.set(entry, evaluation),
            state=nodes.state.set(entry, after),
        )


def _split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits each of `[B]` keys in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]
