"""A batched search in slices of a few simulations, with progress in between.

Eight slices of 25 simulations build the same tree as one search with 200 simulations:
sequential halving uses the total from the first slice on. Between two slices the
intermediate result can be shown, and the search can be cancelled. Each position of the
batch has its own tree.
"""

import dataclasses
import functools
import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.devices import jit_network
from azjax.games import State
from azjax.players import (
    AlphaZeroPlayer,
    AnyPlayer,
    MCTSPlayer,
    MoveDecision,
    Player,
    choose_with_carry,
    init_carry,
)
from azjax.players.core import to_move_decision
from azjax.search import SearchSlice, tree_bytes
from azjax.search.nodes import num_new_nodes

STRENGTHS = (1, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400)  # simulations
TREE_COPIES = 3  # of the trees of a batch, during a slice


def batch_sizes() -> tuple[int, ...]:
    """Returns the batch sizes that may be compiled.

    Each takes seconds to compile. On 2 CPU cores a slice of Connect Four, with the
    network of the CPU preset, takes 2 ms for 1 position, 5 ms for 8 and 10 ms for 16,
    so more than 8 gain little.
    """
    return (1, 8) if jax.default_backend() == "cpu" else (1, 8, 64)


class SlicePlan(NamedTuple):
    """Tree and slice size of searches that share a batch.

    Each plan in use is compiled for each player, so there are few.

    capacity: largest number of simulations of a search.
    per_slice: simulations of one slice.
    """

    capacity: int
    per_slice: int


# A search uses the first plan with sufficient capacity.
PLANS = (SlicePlan(400, 25), SlicePlan(1600, 50), SlicePlan(6400, 100))
MAX_STRENGTH = PLANS[-1].capacity


class IncrementalSearch:
    """A player's search in slices, compiled for several batch sizes.

    Only `compile` and `compile_first` compile.

    per_slice: simulations of one slice; 0 for a player without search.
    tree_bytes: size of one tree.

    Args:
        player: a player that can be compiled.
        plan: tree and slice size; None for a player that does not search.
        state: any position of its game.
    """

    def __init__(self, player: Player, plan: SlicePlan | None, state: State):
        self.plan = plan
        sliced = player if plan is None else sliced_player(player, plan)
        assert sliced is not None
        self.per_slice = getattr(sliced, "simulations", 0) if plan else 0
        self._type = type(sliced)
        self._leaves, self._treedef = jax.tree.flatten(sliced)
        self._state = state
        self._programs: dict[int, Any] = {}  # by batch size
        self._tree_shapes: dict[int, Any] = {}  # by batch size
        self._moves: dict[tuple[int, int], Any] = {}  # by old and new batch size
        self._lock = threading.Lock()
        self.tree_bytes = 0 if plan is None else tree_bytes(self._trees_of(1))

    @property
    def sizes(self) -> list[int]:
        """The compiled batch sizes, ascending."""
        return sorted(self._programs)

    def replace_player(self, player: Player) -> bool:
        """Replaces the player by another without compiling; returns whether its arrays
        have the same shapes, else does nothing."""
        other = player if self.plan is None else sliced_player(player, self.plan)
        leaves, treedef = jax.tree.flatten(other)
        # For JAX, players of two kinds without leaves have the same structure.
        is_same_kind = type(other) is self._type and treedef == self._treedef
        fits = is_same_kind and _shapes(leaves) == _shapes(self._leaves)
        if fits:
            self._leaves = leaves
        return fits

    def bytes(self, size: int) -> int:
        """Returns the estimated peak memory of the trees of a batch."""
        return TREE_COPIES * size * self.tree_bytes

    def compile(self, size: int) -> None:
        """Compiles the programs for a batch size, which takes seconds."""
        with self._lock:
            if size not in self._programs:
                self._compile(size)

    def compile_first(self, size: int) -> None:
        """Compiles the programs for a batch size unless any size is compiled; waits for
        compilations of other threads."""
        with self._lock:
            if not self._programs:
                self._compile(size)

    def _compile(self, size: int) -> None:
        trees = self._trees_of(size)
        # As a static argument, JAX would confuse some players.
        function = functools.partial(_search_slice, self._treedef)
        program = (
            jit_network(function, donate_argnums=3)
            .lower(
                _shapes(self._leaves),
                jax.ShapeDtypeStruct((), jnp.uint32),
                _abstract(self._state, size),
                trees,
                jax.ShapeDtypeStruct((size,), jnp.int32),
                jax.ShapeDtypeStruct((size,), jnp.int32),
            )
            .compile()
        )
        self._tree_shapes[size] = trees
        if trees is not None:  # between this batch size and all others
            for other in (*self._programs, size):
                # A batch of 1 is never rearranged.
                for before, after in {(other, size), (size, other)} - {(1, 1)}:
                    rows = jax.ShapeDtypeStruct((after,), jnp.int32)
                    lowered = jax.jit(_take).lower(self._tree_shapes[before], rows)
                    self._moves[before, after] = lowered.compile()
        self._programs[size] = program  # last: from now on other threads use the size

    def empty_trees(self, size: int) -> Any:
        """Returns empty trees for a compiled batch size, None if the player keeps
        none."""
        # NumPy: JAX would compile a program for each shape.
        return jax.tree.map(
            lambda leaf: np.zeros(leaf.shape, leaf.dtype), self._tree_shapes[size]
        )

    def rearranged(self, trees: Any, rows: np.ndarray) -> Any:
        """Returns the trees of another batch.

        Args:
            trees: trees of the current batch; None if the player keeps none.
            rows: `[B]` int32; the present row of each tree of the new batch; beyond
                the last row for an empty tree.
        """
        if trees is None:
            return None
        size_before = len(jax.tree.leaves(trees)[0])
        return self._moves[size_before, len(rows)](trees, rows)

    def search(
        self,
        seed: int,
        states: State,
        total: np.ndarray,
        made: np.ndarray,
        trees: Any,
    ) -> tuple[list[MoveDecision], Any]:
        """Searches one slice of B positions; a batch of this size must be compiled.

        Args:
            seed: another one for each slice.
            states: leaves `[B, ...]`, unfinished positions.
            total: `[B]` int32; simulations of each search; 0 for a player without one.
            made: `[B]` int32; simulations that earlier slices made; where 0, the search
                starts from an empty tree.
            trees: trees of the batch; donated.

        Returns:
            The best moves so far, one for each position, and the trees.
        """
        program = self._programs[len(made)]
        found, trees = program(
            self._leaves, np.uint32(seed), states, trees, total, made
        )
        found = jax.device_get(found)
        decisions = [
            to_move_decision(*jax.tree.map(lambda leaf, row=row: leaf[row], found))
            for row in range(len(made))
        ]
        return decisions, trees

    def _trees_of(self, size: int) -> Any:
        """Returns the shapes of the trees of a batch."""
        player = jax.tree.unflatten(self._treedef, self._leaves)
        states = _abstract(self._state, size)
        return jax.eval_shape(lambda: init_carry(player, states))


def sliced_player(
    player: Player, plan: SlicePlan
) -> AlphaZeroPlayer | MCTSPlayer | None:
    """Returns a player whose `analyze` searches one slice, None without a search."""
    if not isinstance(player, AlphaZeroPlayer | MCTSPlayer):
        return None
    per_slice = plan.per_slice
    # All nodes that exist before the last slice.
    before = (plan.capacity - 1) // per_slice * per_slice
    tree_reuse_nodes = 1 + num_new_nodes(before, player.game.num_outcomes > 0)
    if isinstance(player, MCTSPlayer):
        return dataclasses.replace(
            player, simulations=per_slice, tree_reuse_nodes=tree_reuse_nodes
        )
    search = dataclasses.replace(player.search, tree_reuse_nodes=tree_reuse_nodes)
    return dataclasses.replace(player, simulations=per_slice, search=search)


def search_text(player: AnyPlayer) -> str | None:
    """Returns a description of a player's search for the page; None without a search.

    It names the difference from the search in the arena, if there is one.
    """
    if isinstance(player, MCTSPlayer):
        name = "UCT search with random rollouts"
        tree_reuse_nodes = player.tree_reuse_nodes
    elif isinstance(player, AlphaZeroPlayer):
        name = player.search.title or player.search.algorithm
        tree_reuse_nodes = player.search.tree_reuse_nodes
    else:
        return None
    if not tree_reuse_nodes:
        return f"It uses {name}, as in the arena."
    return (
        f"It uses {name}. Here each move starts from an empty tree; in the arena the "
        f"search reuses up to {tree_reuse_nodes} positions of the previous move's tree."
    )


def plan_for(simulations: int) -> SlicePlan:
    """Returns the plan for a number of simulations, at most `MAX_STRENGTH`."""
    return next(plan for plan in PLANS if simulations <= plan.capacity)


def _take(trees: Any, rows: jax.Array) -> Any:
    return jax.tree.map(
        lambda leaf: leaf.at[rows].get(mode="fill", fill_value=0), trees
    )


def _search_slice(  # noqa: PLR0917  # called by JAX
    treedef: Any,
    leaves: list[jax.Array],
    seed: jax.Array,
    states: State,
    trees: Any,
    total: jax.Array,
    made: jax.Array,
) -> tuple[Any, Any]:
    player = jax.tree.unflatten(treedef, leaves)
    rng_key = jax.random.key(seed)
    if trees is not None:
        # Without visits, the nodes of another client's search are not reused.
        visits = jnp.where((made == 0)[:, None], 0, trees.node_visits)
        choice, analysis, trees = player.analyze(
            rng_key,
            states,
            trees.replace(node_visits=visits),
            SearchSlice(total, made),
        )
        return (choice, analysis), trees
    choice, trees = choose_with_carry(player, rng_key, states, None)
    return (choice, None), trees


def _shapes(leaves: Any) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), leaves)


def _abstract(state: State, size: int) -> State:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((size, *np.shape(leaf)), leaf.dtype), state
    )
