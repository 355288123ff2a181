"""Settings of the search, and the registry of search algorithms."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from azjax.search.nodes import num_new_nodes
from azjax.search.types import PolicyOutput
from azjax.settings import ConfigRegistry, Settings, Within

MAX_NODES = 10_000_000  # of one game's tree


@dataclasses.dataclass(frozen=True)
class SearchConfig(Settings, abc.ABC):
    """Settings of a search, except the number of simulations: a frozen dataclass
    registered by `register_search`. `GumbelConfig` and `AlphaZeroConfig` are built in.

    Its fields are numbers, booleans, texts or None, with defaults.

    Attributes:
        title: display name of the algorithm; by default the registered name.
        tree_reuse_nodes: maximum number of nodes of a game's tree that are kept for its
            next move; 0: every move starts from an empty tree.
        use_solver: whether to back up proven wins, draws and losses: proven positions
            are played perfectly, by the shortest win or longest loss found.
    """

    section: ClassVar[str] = "search."
    title: ClassVar[str] = ""
    _: dataclasses.KW_ONLY
    tree_reuse_nodes: Annotated[int, Within(0, MAX_NODES)] = 0
    use_solver: bool = False

    @property
    def algorithm(self) -> str:
        """The registered name."""
        return SEARCHES.name_of(self)

    @abc.abstractmethod
    def policy(self, explores: bool) -> Callable[..., PolicyOutput]:
        """Returns a policy with these settings, for training and players.

        Its arguments are those of `gumbel_policy` before the algorithm's settings:
        `(params, rng_key, root, recurrent_fn, num_simulations, *, invalid_actions)`,
        and `max_depth`, `tree` and `search_slice` of `search`; it passes `use_solver`
        on to `search`. `recurrent_fn` is a `ChanceModel` in games with chance. Its
        `max_depth` is the game's `max_moves`, which does not change the result and
        saves memory. `rng_key` is one key, or `[L]` for L lanes of the batch (see
        `azjax.search.keys`).
        `num_simulations` is static and an upper bound; with a `search_slice` its
        `total` is the number of simulations. The `action` of the `mctx.PolicyOutput`
        is the best move; `action_weights` are the policy target, 0 for illegal moves
        and, with the solver, outside `azjax.search.roots.allowed_actions`.

        Args:
            explores: whether to explore at the root as in self-play (noise, forced
                playouts).

        Example:
            >>> policy = search.GumbelConfig().policy(explores=False)
            >>> output = policy(None, jax.random.key(0), root, recurrent_fn, 32)
            >>> output.action.tolist()
            [0]
        """

    def num_nodes(self, num_simulations: int, has_chance: bool = False) -> int:
        """Returns N: the kept nodes, or the root, and the new ones."""
        num_new = num_new_nodes(num_simulations, has_chance)
        return max(self.tree_reuse_nodes, 1) + num_new

    def to_json(self) -> dict[str, Any]:
        """Returns name and settings as `json.dumps` takes them."""
        return SEARCHES.to_json(self)

    @staticmethod
    def from_json(values: object, prefix: str = "") -> "SearchConfig":
        """Returns the settings in a JSON object of any origin.

        Raises:
            ValueError: the algorithm or a setting is unknown, or a value is not
                allowed.
        """
        return SEARCHES.from_json(values, prefix)


SEARCHES = ConfigRegistry(SearchConfig, "search algorithm", key="algorithm")
register_search = SEARCHES.register
