"""A player that looks one move and the reply ahead."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.players.core import Choice, choose_uniformly
from azjax.players.lookahead import after_each_move, result_of_mover

_MOVES_AT_ONCE = 8  # each with up to 64 replies


@struct.dataclass
class GreedyPlayer:
    """Plays a winning move, else a move with the fewest immediately winning replies.

    Ties are broken at random. The value is 1 if the player wins at once, -1 if the
    opponent can win at its next move, else 0.
    """

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        dangers = jax.vmap(self._dangers)(states)
        least = dangers.min(axis=-1)
        best = dangers == least[:, None]
        value = -jnp.sign(least).astype(jnp.float32)
        return choose_uniformly(rng_key, best, value)

    def _dangers(self, state: State) -> jax.Array:
        """Returns `[A]` int32, the number of winning replies to each move; -1 for a
        winning move, `A + 1` for a losing one, the largest int if illegal."""
        game = self.game

        def dangers(after):
            result = result_of_mover(game, state, after)
            reply_wins = after_each_move(
                game, after, lambda end: result_of_mover(game, after, end) > 0, False
            )
            at_end = jnp.where(result < 0, game.num_actions + 1, -result)
            at_end = at_end.astype(jnp.int32)
            return jnp.where(after.terminated, at_end, reply_wins.sum())

        illegal = jnp.iinfo(jnp.int32).max
        return after_each_move(game, state, dangers, illegal, portion=_MOVES_AT_ONCE)
