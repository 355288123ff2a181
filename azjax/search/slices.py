"""A search in slices: several calls, each of which makes some of its simulations."""

from typing import NamedTuple

import jax


class SearchSlice(NamedTuple):
    """Selects the simulations of a search that one call makes.

    All calls of one search take the same root. With noise at the root they take the
    same key, because the noise is drawn from it; without noise each call takes another
    key, so that random playouts differ. The first call starts from an empty tree, each
    later call from the tree of the call before. Every call but the last makes
    `num_simulations` simulations, a multiple of `leaves_per_step`. A search in one call
    may start from a kept tree.

    total: `[B]` int32; simulations of the whole search.
    made: `[B]` int32; simulations that the calls before have made.
    """

    total: jax.Array
    made: jax.Array
