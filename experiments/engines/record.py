"""Records random games of azjax for replay in another engine."""

import jax
import jax.numpy as jnp

from azjax import games


def make_recorder(game: games.Game, logits: jax.typing.ArrayLike = 0.0):
    """Returns a jitted `keys -> record` of one random game for each key.

    A record contains `[B, T + 1, ...]` arrays of the positions, and `[B, T]` actions.

    logits: of the actions, `[A]`; by default all legal ones are equally likely.
    """

    def look(state):
        return {
            "legal": game.legal_action_mask(state),
            "player": state.current_player,
            "terminated": state.terminated,
            "rewards": game.rewards(state),
            "board": game.board(state),
        }

    def play(rng_key):
        def play_move(state, rng_key):
            allowed = jnp.where(game.legal_action_mask(state), logits, -jnp.inf)
            # A finished game may have no legal action; the action is then arbitrary.
            allowed = jnp.where(state.terminated, 0.0, allowed)
            action = jax.random.categorical(rng_key, allowed)
            return game.step(state, action), {"action": action, **look(state)}

        keys = jax.random.split(rng_key, game.max_moves)
        end, record = jax.lax.scan(play_move, game.init(), keys)
        actions = record.pop("action")
        record = jax.tree.map(
            lambda moves, last: jnp.append(moves, last[None], axis=0), record, look(end)
        )
        return {"action": actions, **record}

    return jax.jit(jax.vmap(play))
