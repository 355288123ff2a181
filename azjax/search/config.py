"""Settings of the search."""

import dataclasses
from typing import Literal

from azjax.checks import check_bool, check_choice, check_int, check_number

MAX_NODES = 10_000_000  # of one game's tree


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Settings of the search, except the number of simulations.

    Attributes:
        algorithm: `gumbel` (Danihelka et al. 2022, "Policy improvement by planning with
            Gumbel"; learns with few simulations) or `alphazero` (Silver et al. 2018).
        max_num_considered_actions: Gumbel: root actions that enter sequential halving.
        value_scale: Gumbel: weight of the values against the prior logits.
        rescale_values: Gumbel: whether to rescale the values of each node to [0, 1]
            first; the paper does so for Atari, not for Go.
        c_init: PUCT: exploration at few visits.
        c_base: PUCT: visits at which exploration has grown markedly.
        first_play_reduction: PUCT: the Q-value of an unvisited action is the node's
            value minus this times sqrt(prior of the visited actions) (KataGo: 0.2);
            None: a loss (AlphaZero).
        forced_playouts: PUCT in self-play: visited root actions get at least
            sqrt(this * prior * visits) visits, which the policy target leaves out
            (KataGo: 2); 0: none.
        dirichlet_alpha: PUCT: concentration of the root noise; None: 10 / the number of
            legal moves, about AlphaZero's value.
        dirichlet_fraction: PUCT: weight of the noise in the root prior.
        tree_reuse_nodes: maximum number of nodes of a game's tree that are kept for its
            next move; 0: every move starts from an empty tree.
        use_solver: whether to back up proven wins, draws and losses: proven positions
            are played perfectly, by the shortest win or longest loss found.
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
    use_solver: bool = False

    def __post_init__(self) -> None:
        """Checks the values."""
        check_choice("search.algorithm", self.algorithm, ("gumbel", "alphazero"))
        for name in ("rescale_values", "use_solver"):
            check_bool(f"search.{name}", getattr(self, name))
        for name, low in (
            ("max_num_considered_actions", 1),
            ("tree_reuse_nodes", 0),
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
        """Returns N: the kept nodes, or the root, and the new ones."""
        return max(self.tree_reuse_nodes, 1) + num_simulations
