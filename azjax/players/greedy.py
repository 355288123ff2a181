"""The player that sees one move ahead, and the reply."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State, random_action
from azjax.players.core import Choice, uniform
from azjax.players.lookahead import after_each_move, result_of_mover
from azjax.search.keys import draw

_MOVES_AT_ONCE = 8  # each of them with up to 64 replies


@struct.dataclass
class GreedyPlayer:
    """Wins at once if it can, else leaves the opponent the fewest moves that win at
    once, mostly none; among equals it moves at random.

    The value that it reports is 1 where it wins at once, -1 where it cannot keep the
    opponent from doing so, and 0 elsewhere.
    """

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        dangers = jax.vmap(self._dangers)(states)
        least = dangers.min(axis=-1)
        best = dangers == least[:, None]
        return Choice(
            action=draw(random_action, rng_key, best),
            policy=uniform(best),
            value=-jnp.sign(least).astype(jnp.float32),
        )

    def _dangers(self, state: State) -> jax.Array:
        """Returns `[A]` int32: how many replies to each move win at once; -1 for a move
        that wins, more than there are replies for one that loses."""
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
