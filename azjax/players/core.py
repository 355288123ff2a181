"""What a player is: anything that chooses moves for a batch of positions."""

from typing import NamedTuple, Protocol

import jax

from azjax.games import State


class Choice(NamedTuple):
    """What a player chose, and thought, in each of B positions.

    action: `[B]` int32; the moves.
    policy: `[B, A]` float32; the player's probabilities of the moves, 0 where illegal.
    value: `[B]` float32; the expected result for the player to move, in [-1, 1];
        0 from a player that has no opinion.
    """

    action: jax.Array
    policy: jax.Array
    value: jax.Array


class Player(Protocol):
    """Chooses moves by a pure function that can be jitted.

    A player is a pytree: its weights are leaves and its settings are static, so that
    one compiled function serves every player of a kind (see `choose`).
    """

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions, none of them finished.

        Args:
            rng_key: consumed; a deterministic player ignores it.
            states: the positions, leaves `[B, ...]`.
        """
        ...


@jax.jit
def choose(player: Player, rng_key: jax.Array, states: State) -> Choice:
    """Compiles and calls `player.choose`, once for each kind of player and batch."""
    return player.choose(rng_key, states)
