"""A search in slices: several calls that each make some of the simulations."""

from typing import NamedTuple

import jax


class SearchSlice(NamedTuple):
    """Selects the simulations of a longer search that one call makes.

    - All calls of one search take the same root.
    - With noise at the root they take the same key, from which the noise is drawn.
      Without noise each call takes another key: otherwise the calls would repeat the
      same random playouts.
    - The first call starts from an empty tree, each later call from the tree of the
      previous one. Tree reuse is possible only if one call makes the whole search.
    - Every call but the last makes `num_simulations` simulations.

    total: `[B]` int32; simulations of the whole search.
    made: `[B]` int32; simulations of the previous calls.
    """

    total: jax.Array
    made: jax.Array
