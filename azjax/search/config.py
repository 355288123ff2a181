"""What a search is told."""

import dataclasses
from typing import Literal

from azjax.checks import check_bool, check_choice, check_int, check_number

MAX_NODES = 10_000_000  # of one game's tree, and of whatever is counted in nodes


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
        check_choice("search.algorithm", self.algorithm, ("gumbel", "alphazero"))
        dtypes = ("float32", "bfloat16")
        check_choice("search.prior_dtype", self.prior_dtype, dtypes)
        for name in ("rescale_values", "use_solver"):
            check_bool(f"search.{name}", getattr(self, name))
        for name, low in (
            ("max_num_considered_actions", 1),
            ("tree_reuse_nodes", 0),
            ("leaves_per_step", 1),
        ):
            check_int(f"search.{name}", getattr(self, name), low, MAX_NODES)
        for name, low in (
            ("value_scale", 0),
            ("c_init", 0),
            ("c_base", 1),
            ("forced_playouts", 0),
        ):
            check_number(f"search.{name}", getattr(self, name), at_least=low)
        fraction = self.dirichlet_fraction
        check_number("search.dirichlet_fraction", fraction, at_least=0, at_most=1)
        reduction, alpha = self.first_play_reduction, self.dirichlet_alpha
        if reduction is not None:
            check_number("search.first_play_reduction", reduction, at_least=0)
        if alpha is not None:
            check_number("search.dirichlet_alpha", alpha, above=0)
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
