"""A search in slices: several calls that each make some of the simulations."""

from typing import NamedTuple

import jax


class SearchSlice(NamedTuple):
    """Selects the simulations of a longer search that one call makes.

    All calls of one search take the same root. With noise at the root they take the
    same key, which the noise is drawn from; without noise each call takes another key,
    so that random playouts differ. The first call starts from an empty tree, each later
    call from the tree of the previous one. Every call but the last makes
    `num_simulations` simulations. A search in one call may start from a kept tree.

    total: `[B]` int32; simulations of the whole search.
    made: `[B]` int32; simulations of the previous calls.
    """

    total: jax.Array
    made: jax.Array
