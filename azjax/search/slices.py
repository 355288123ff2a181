"""A search in slices: several calls, each of which makes some of its simulations."""

from typing import NamedTuple

import jax


class SearchSlice(NamedTuple):
    """Selects the simulations of a search that one call makes.

    The calls of one search have the same root, and where there is noise at the root the
    same key, from which it is drawn. Without noise each call should have a key of its
    own, lest random playouts be the same in all of them. The first call starts from an
    empty tree, each other one from the tree of the call before. Every call but the last
    makes `num_simulations` simulations, a multiple of `leaves_per_step`.

    total: `[B]` int32; simulations of the whole search.
    made: `[B]` int32; simulations that the calls before have made.
    """

    total: jax.Array
    made: jax.Array
