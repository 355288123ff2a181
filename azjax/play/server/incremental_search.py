"""Searches in slices, which add up to the search of the player itself.

Eight slices of 25 simulations make the same search as one call with 200 simulations:
sequential halving, too, is given the total from the first slice on. Between two slices
the result so far can be shown, and a search can be given up. Several positions are
searched at once, each with a tree of its own.
"""

import dataclasses
import functools
import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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
from azjax.players.session import to_move_decision
from azjax.search import SearchSlice, tree_bytes

STRENGTHS = (1, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400)  # simulations
TREE_COPIES = 3  # of a batch, while a slice is searched


def batch_sizes() -> tuple[int, ...]:
    """Returns the batch sizes that may be compiled.

    Each takes seconds to compile. On 2 CPU cores a slice of Connect Four takes 2 ms for
    1 position, 5 ms for 8 and 10 ms for 16: more than 8 gain little.
    """
    return (1, 8) if jax.default_backend() == "cpu" else (1, 8, 64)


class Plan(NamedTuple):
    """How thoughts of about the same length are cut, so that they share a batch.

    Each plan in use is compiled for each player, hence there are few.

    capacity: simulations for which a tree has room.
    per_slice: simulations of one slice.
    """

    capacity: int
    per_slice: int


# A thought with s simulations follows the first plan that has room for them.
PLANS = (Plan(400, 25), Plan(1600, 50), Plan(6400, 100))
MAX_STRENGTH = PLANS[-1].capacity


class Batch(NamedTuple):
    """Positions that are searched at once; leaves are arrays of the host.

    states: the positions, leaves `[B, ...]`, none of them finished.
    total: `[B]` int32; simulations of each search; 0 for a player without search.
    made: `[B]` int32; simulations of each search that earlier slices made; a search
        without any starts from an empty tree.
    """

    states: State
    total: np.ndarray
    made: np.ndarray


class Slicer:
    """A player's search in slices, compiled for each size of a batch when it is needed.

    Nothing but `compile` compiles.

    Args:
        player: a player that can be compiled.
        plan: how its search is cut, None for a player that does not search.
        state: any position of its game.
    """

    def __init__(self, player: Player, plan: Plan | None, state: State):
        self.plan = plan
        sliced = player if plan is None else in_slices(player, plan)
        assert sliced is not None
        # Simulations that a slice makes; 0 for a player without search.
        self.per_slice = getattr(sliced, "simulations", 0) if plan else 0
        self._type = type(sliced)
        self._leaves, self._treedef = jax.tree.flatten(sliced)
        self._state = state
        self._programs: dict[int, Any] = {}  # by size
        self._memories: dict[int, Any] = {}  # their shapes, by size
        self._moves: dict[tuple[int, int], Any] = {}  # by the sizes before and after
        self._lock = threading.Lock()
        self.tree_bytes = 0 if plan is None else tree_bytes(self._memory_shapes(1))

    @property
    def sizes(self) -> list[int]:
        """The sizes of a batch that are compiled."""
        return sorted(self._programs)

    def fits(self, player: Player) -> bool:
        """Returns whether another player can take the place of this one."""
        other = player if self.plan is None else in_slices(player, self.plan)
        leaves, treedef = jax.tree.flatten(other)
        # To JAX, players of two kinds without leaves have the same structure.
        is_same_kind = type(other) is self._type and treedef == self._treedef
        return is_same_kind and _shapes(leaves) == _shapes(self._leaves)

    def take(self, player: Player) -> None:
        """Goes on with another player that `fits`."""
        other = player if self.plan is None else in_slices(player, self.plan)
        self._leaves = jax.tree.leaves(other)

    def bytes(self, size: int) -> int:
        """Returns about what the trees of a batch take."""
        return TREE_COPIES * size * self.tree_bytes

    def compile(self, size: int) -> None:
        """Compiles the programs for a size of the batch, which takes seconds."""
        with self._lock:
            if size not in self._programs:
                self._compile(size)

    def compile_first(self, size: int) -> None:
        """Compiles the programs for a size of the batch, unless there are some for any
        size, or another thread compiles some meanwhile."""
        with self._lock:
            if not self._programs:
                self._compile(size)

    def _compile(self, size: int) -> None:
        memory = self._memory_shapes(size)
        # Not a static argument, by which JAX would take some players for others.
        function = functools.partial(_search_slice, self._treedef)
        program = (
            jax.jit(function, donate_argnums=3)
            .lower(
                _shapes(self._leaves),
                jax.ShapeDtypeStruct((), jnp.uint32),
                _abstract(self._state, size),
                memory,
                jax.ShapeDtypeStruct((size,), jnp.int32),
                jax.ShapeDtypeStruct((size,), jnp.int32),
            )
            .compile()
        )
        self._memories[size] = memory
        if memory is not None:
            self._compile_moves(size)
        self._programs[size] = program  # last: other threads may now use the size

    def _compile_moves(self, size: int) -> None:
        """Compiles what moves trees from batches to batches of a size, and back."""
        for other in (*self._programs, size):
            # Within a batch of 1 nothing moves.
            for before, after in {(other, size), (size, other)} - {(1, 1)}:
                rows = jax.ShapeDtypeStruct((after,), jnp.int32)
                lowered = jax.jit(_take).lower(self._memories[before], rows)
                self._moves[before, after] = lowered.compile()

    def memory(self, size: int) -> Any:
        """Returns empty trees, None if none are kept; the size must be compiled."""
        # JAX would compile a program for each shape.
        return jax.tree.map(
            lambda leaf: np.zeros(leaf.shape, leaf.dtype), self._memories[size]
        )

    def rearranged(self, memory: Any, rows: np.ndarray) -> Any:
        """Returns the trees of another batch.

        Args:
            memory: the trees of a batch, None if none are kept.
            rows: `[B]` int32; where each tree of the new batch was; beyond the end
                where the position is new.
        """
        if memory is None:
            return None
        size_before = len(jax.tree.leaves(memory)[0])
        return self._moves[size_before, len(rows)](memory, rows)

    def search(
        self, seed: int, batch: Batch, memory: Any
    ) -> tuple[list[MoveDecision], Any]:
        """Searches a slice.

        Args:
            seed: of chance, another one each time.
            batch: the positions; their size must be compiled.
            memory: the trees of the batch; not to be used again.

        Returns:
            What was found until now in each position, and the trees.
        """
        program = self._programs[len(batch.made)]
        found, memory = program(
            self._leaves,
            np.uint32(seed),
            batch.states,
            memory,
            batch.total,
            batch.made,
        )
        found = jax.device_get(found)
        decisions = [
            to_move_decision(*jax.tree.map(lambda leaf, row=row: leaf[row], found))
            for row in range(len(batch.made))
        ]
        return decisions, memory

    def _memory_shapes(self, size: int) -> Any:
        player = jax.tree.unflatten(self._treedef, self._leaves)
        states = _abstract(self._state, size)
        return jax.eval_shape(lambda: init_carry(player, states))


def in_slices(player: Player, plan: Plan) -> AlphaZeroPlayer | MCTSPlayer | None:
    """Returns a player whose `analyse` makes one slice; None if it does not search."""
    per_slice = plan.per_slice
    # All nodes before the last slice.
    tree_reuse_nodes = 1 + (plan.capacity - 1) // per_slice * per_slice
    if isinstance(player, MCTSPlayer):
        return dataclasses.replace(
            player, simulations=per_slice, tree_reuse_nodes=tree_reuse_nodes
        )
    if isinstance(player, AlphaZeroPlayer):
        search = dataclasses.replace(player.search, tree_reuse_nodes=tree_reuse_nodes)
        return dataclasses.replace(player, simulations=per_slice, search=search)
    return None


def search_text(player: AnyPlayer) -> str | None:
    """Describes a player's search for the page; None if it does not search.

    The text names the difference from the player itself, should there be one.
    """
    if isinstance(player, MCTSPlayer):
        name, tree_reuse_nodes = (
            "UCT search with random rollouts",
            player.tree_reuse_nodes,
        )
    elif isinstance(player, AlphaZeroPlayer):
        names = {"gumbel": "Gumbel search", "alphazero": "PUCT search"}
        name, tree_reuse_nodes = (
            names[player.search.algorithm],
            player.search.tree_reuse_nodes,
        )
    else:
        return None
    if not tree_reuse_nodes:
        return f"It uses {name}, as in the arena."
    return (
        f"It uses {name}. Here each move starts from an empty tree; in the arena up to "
        f"{tree_reuse_nodes} positions of the tree are kept from move to move."
    )


def plan_for(simulations: int) -> Plan:
    """Returns the plan of a thought with so many simulations, at most
    `MAX_STRENGTH`."""
    return next(plan for plan in PLANS if simulations <= plan.capacity)


def _take(memory: Any, rows: jax.Array) -> Any:
    return jax.tree.map(
        lambda leaf: leaf.at[rows].get(mode="fill", fill_value=0), memory
    )


def _search_slice(  # noqa: PLR0917  # called by the compiler
    treedef: Any,
    leaves: list[jax.Array],
    seed: jax.Array,
    states: State,
    memory: Any,
    total: jax.Array,
    made: jax.Array,
) -> tuple[Any, Any]:
    player = jax.tree.unflatten(treedef, leaves)
    rng_key = jax.random.key(seed)
    if memory is not None:
        # A tree without visits is as good as none: whatever was searched here before,
        # for somebody else, is not found again.
        visits = jnp.where((made == 0)[:, None], 0, memory.node_visits)
        choice, analysis, memory = player.analyse(
            rng_key,
            states,
            memory.replace(node_visits=visits),
            SearchSlice(total, made),
        )
        return (choice, analysis), memory
    choice, memory = choose_with_carry(player, rng_key, states, None)
    return (choice, None), memory


def _shapes(leaves: Any) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), leaves)


def _abstract(state: State, size: int) -> State:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((size, *np.shape(leaf)), leaf.dtype), state
    )
