"""What a search is told."""

import dataclasses
import math
from typing import Literal

import numpy as np

MAX_NODES = 10_000_000  # of one game's tree, and of whatever is counted in nodes


def check_whole(name: str, value: object, low: int, high: int) -> None:
    """Checks a setting.

    Raises:
        ValueError: it is no whole number from `low` to `high`.
    """
    if (
        not isinstance(value, int | np.integer)
        or isinstance(value, bool)
        or not low <= value <= high
    ):
        raise ValueError(
            f"{name} must be a whole number from {low} to {high}: {value!r}"
        )


def _check_real(name: str, value: object, low: float, high: float) -> None:
    if (
        not isinstance(value, int | float | np.number)
        or isinstance(value, bool)
        or not low <= value <= high
        or math.isinf(value)
    ):
        limits = f">= {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"
        raise ValueError(f"search.{name} must be a number {limits}: {value!r}")


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How the tree is searched; how far is said beside it, in simulations.

    Attributes:
        algorithm: `gumbel` (Danihelka et al. 2022, "Policy improvement by planning with
            Gumbel"; learns with few simulations) or `alphazero` (Silver et al. 2018).
        max_num_considered_actions: Gumbel: root actions that enter sequential halving.
        value_scale: Gumbel: weight of the values against the prior logits.
        rescale_values: Gumbel: whether the values of each node are spread over [0, 1]
            first; the paper does so for Atari and not for Go.
        c_init: PUCT: exploration at few visits.
        c_base: PUCT: visits at which exploration has grown markedly.
        first_play_reduction: PUCT: an unvisited move is worth the position's value,
            less this times the root of the prior of the visited ones (KataGo: 0.2);
            None: it counts as lost (AlphaZero).
        forced_playouts: PUCT: with noise, visited root moves get at least
            sqrt(this * prior * visits) visits, which the policy that is learnt leaves
            out again (KataGo: 2); 0: none are forced.
        dirichlet_alpha: PUCT: concentration of the root noise; None: 10 / the number of
            legal moves of the position, about what AlphaZero uses.
        dirichlet_fraction: PUCT: share of the noise in the root prior.
        tree_reuse_nodes: positions of a game's tree that are kept for its next move, at
            most; 0 begins every move with an empty tree.
        leaves_per_step: positions of one game's tree that the network evaluates at
            once: faster where few games are played at a time, slightly worse.
        use_solver: whether wins, draws and losses that are certain are carried up the
            tree: such positions are played without mistakes, wins by the shortest way
            found and losses by the longest.
        prior_dtype: in which the tree stores prior logits; bfloat16 saves memory.
    """

    algorithm: Literal["gumbel", "alphazero"] = "gumbel"
    max_num_considered_actions: int = 16
    value_scale: float = 0.1
    rescale_values: bool = True
    c_init: float = 1.25
    c_base: float = 19652.0
    first_play_reduction: float | None = None
    forced_playouts: float = 0.0
    dirichlet_alpha: float | None = None
    dirichlet_fraction: float = 0.25
    tree_reuse_nodes: int = 0
    leaves_per_step: int = 1
    use_solver: bool = False
    prior_dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        """Checks the values."""
        for name, allowed in (
            ("algorithm", ("gumbel", "alphazero")),
            ("prior_dtype", ("float32", "bfloat16")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"search.{name} must be {' or '.join(allowed)}: "
                    f"{getattr(self, name)!r}"
                )
        for name in ("rescale_values", "use_solver"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(
                    f"search.{name} must be True or False: {getattr(self, name)!r}"
                )
        for name, low in (
            ("max_num_considered_actions", 1),
            ("tree_reuse_nodes", 0),
            ("leaves_per_step", 1),
        ):
            check_whole(f"search.{name}", getattr(self, name), low, MAX_NODES)
        for name, low, high in (
            ("value_scale", 0.0, math.inf),
            ("c_init", 0.0, math.inf),
            ("c_base", 1.0, math.inf),
            ("forced_playouts", 0.0, math.inf),
            ("dirichlet_fraction", 0.0, 1.0),
        ):
            _check_real(name, getattr(self, name), low, high)
        for name in ("first_play_reduction", "dirichlet_alpha"):
            if getattr(self, name) is not None:
                _check_real(name, getattr(self, name), 0.0, math.inf)
        if self.dirichlet_alpha == 0:
            raise ValueError("search.dirichlet_alpha must be > 0: 0")
        if self.algorithm == "gumbel":
            for name, off in ("forced_playouts", 0.0), ("first_play_reduction", None):
                if getattr(self, name) != off:
                    raise ValueError(
                        f"search.{name} is for search.algorithm alphazero, not for "
                        f"gumbel: {getattr(self, name)}"
                    )

    def num_nodes(self, num_simulations: int) -> int:
        """Returns N, the nodes of a tree: kept ones or the root, and new ones."""
        return max(self.tree_reuse_nodes, 1) + num_simulations
