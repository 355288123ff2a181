"""Plays the same games in azjax and in pgx.

Both must number the actions equally. An illegal action loses in both; the board after
it is undefined in pgx and is not compared.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pgx

from azjax import games


def make_comparison(game: games.Game) -> Callable[[jax.Array], dict]:
    """Returns a jitted `keys -> {fact: count}`: one random game of both for each key.

    The counts are positions at which the two disagree in a fact, all `positions`, and
    `illegal` endings.
    """
    env = pgx.make(game.name)  # pyright: ignore[reportArgumentType]

    def compare(ours, theirs, first, was_illegal):
        rewards = jnp.where(first == 1, theirs.rewards[::-1], theirs.rewards)
        goes_on = ~ours.terminated
        legal, theirs_legal = game.legal_action_mask(ours), theirs.legal_action_mask
        return {
            "terminated": ours.terminated != theirs.terminated,
            "rewards": (game.rewards(ours) != rewards).any(),
            "player": goes_on & (ours.current_player != theirs.current_player ^ first),
            "legal": goes_on & (legal != theirs_legal).any(),
            # After an illegal action, pgx's board is undefined.
            "board": ~was_illegal & (game.observe(ours) != theirs.observation).any(),
            "illegal": was_illegal,
            "positions": True,
        }

    def play(rng_key):
        reset_key, play_key = jax.random.split(rng_key)
        theirs = env.init(reset_key)
        first = theirs.current_player  # pgx selects the first player at random

        def play_move(carry, rng_key):
            ours, theirs = carry
            legal = game.legal_action_mask(ours)
            logits = jnp.where(legal, 0.0, -4.0)  # occasionally an illegal one
            action = jax.random.categorical(rng_key, logits)
            was_over, is_illegal = ours.terminated, ~legal[action]
            ours, theirs = game.step(ours, action), env.step(theirs, action)
            facts = compare(ours, theirs, first, is_illegal)
            facts = {name: fact & ~was_over for name, fact in facts.items()}
            return (ours, theirs), facts

        ours = game.init()
        start = compare(ours, theirs, first, jnp.bool(False))
        keys = jax.random.split(play_key, game.max_moves)
        _, facts = jax.lax.scan(play_move, (ours, theirs), keys)
        return {name: facts[name].sum() + start[name] for name in facts}

    return jax.jit(lambda keys: jax.tree.map(jnp.sum, jax.vmap(play)(keys)))
