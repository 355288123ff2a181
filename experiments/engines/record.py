"""Records random games of azjax for replay in another engine."""

import jax
import jax.numpy as jnp

from azjax import games
from azjax.games.chance import random_outcome
from azjax.games.core import select


def make_recorder(game: games.Game, logits: jax.typing.ArrayLike = 0.0):
    """Returns a jitted `keys -> record` of one random game for each key.

    A record contains `[B, T + 1, ...]` arrays of the positions, and `[B, T]` actions.
    In a game with chance, `outcome`, `[B, T + 1]`, led to the position; -1 if the game
    was over before.

    logits: of the actions, `[A]`; by default all legal ones are equally likely.
    """

    def look(state, outcome):
        seen = {
            "legal": game.legal_action_mask(state),
            "player": state.current_player,
            "terminated": state.terminated,
            "rewards": game.rewards(state),
            "board": game.board(state),
        }
        return seen | {"outcome": outcome} if game.num_outcomes else seen

    def play(rng_key):
        def play_move(state, rng_key):
            outcome = jnp.int32(-1)
            if game.num_outcomes:
                rng_key, chance_key = jax.random.split(rng_key)
                outcome = random_outcome(chance_key, jnp.asarray(game.chance(state)))
                after = game.chance_step(state, outcome)
                state = select(outcome >= 0, after, state)
            allowed = jnp.where(game.legal_action_mask(state), logits, -jnp.inf)
            # A finished game may have no legal action; the action is then arbitrary.
            allowed = jnp.where(state.terminated, 0.0, allowed)
            action = jax.random.categorical(rng_key, allowed)
            return game.step(state, action), {"action": action, **look(state, outcome)}

        keys = jax.random.split(rng_key, game.max_moves)
        end, record = jax.lax.scan(play_move, game.init(), keys)
        actions, last = record.pop("action"), look(end, jnp.int32(-1))
        record = jax.tree.map(
            lambda moves, last: jnp.append(moves, last[None], axis=0), record, last
        )
        return {"action": actions, **record}

    return jax.jit(jax.vmap(play))
