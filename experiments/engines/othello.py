"""Replays Othello in OpenSpiel and pgx.

OpenSpiel's rules are the same. pgx continues where neither player can place a disc, and
ends with the second pass; the comparison plays these passes.
"""

import collections
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pyspiel
from engines.replay import replay

from azjax import games
from azjax.games.core import select
from azjax.games.othello import PASS


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in OpenSpiel and counts the disagreements, by fact."""
    rules = pyspiel.load_game(game.name)
    return replay(rules.new_initial_state, record, pieces="xo-", read_board=_cells)


def _cells(state: pyspiel.State) -> str:
    """Returns the 64 cells of OpenSpiel's drawing, whose rows are numbered."""
    text = str(state)
    first = text.index("\n1 ") + 3
    return "".join(text[row : row + 16 : 2] for row in range(first, first + 160, 20))


def make_pgx_comparison(game: games.Game) -> Callable[[jax.Array], dict]:
    """Returns a jitted `keys -> {fact: count}`: one random game of both for each key.

    The counts are disagreements, the number of `positions`, and the numbers of
    `illegal` endings and of endings with two passes in pgx (`passes`).
    """
    env = pgx.make("othello")
    only_pass = np.arange(PASS + 1) == PASS

    def compare_positions(ours, theirs, first):
        goes_on = ~ours.terminated
        their_end = theirs.terminated | (theirs.legal_action_mask == only_pass).all()
        legal = game.legal_action_mask(ours)
        return {
            "terminated": jnp.where(goes_on, theirs.terminated, ~their_end),
            "player": goes_on & (ours.current_player != theirs.current_player ^ first),
            "legal": goes_on & (legal != theirs.legal_action_mask).any(),
            "positions": True,
            "passes": ours.terminated & ~theirs.terminated,
        }

    def play_move(carry, rng_key):
        ours, theirs, first = carry
        legal = game.legal_action_mask(ours)
        logits = jnp.where(legal, 0.0, -9.0)  # occasionally an illegal one
        action = jax.random.categorical(rng_key, logits)
        was_over = ours.terminated
        action = jnp.where(was_over, PASS, action)
        ours = game.step(ours, action)
        # pgx resets the rewards when a finished game is stepped.
        theirs = select(theirs.terminated, theirs, env.step(theirs, action))
        facts = compare_positions(ours, theirs, first)
        is_illegal = ~legal[action]
        # After an illegal action, pgx's board is undefined.
        differs = (game.observe(ours)[..., :2] != theirs.observation).any()
        facts |= {"board": ~is_illegal & differs, "illegal": is_illegal}
        return (ours, theirs, first), {f: fact & ~was_over for f, fact in facts.items()}

    def play(rng_key):
        reset_key, play_key = jax.random.split(rng_key)
        theirs = env.init(reset_key)
        first = theirs.current_player  # pgx selects the first player at random
        keys = jax.random.split(play_key, game.max_moves + 2)
        (ours, theirs, _), facts = jax.lax.scan(
            play_move, (game.init(), theirs, first), keys
        )
        rewards = jnp.where(first == 1, theirs.rewards[::-1], theirs.rewards)
        counts = {fact: count.sum() for fact, count in facts.items()}
        counts["terminated"] += ~ours.terminated | ~theirs.terminated
        return counts | {"rewards": (game.rewards(ours) != rewards).any().astype(int)}

    return jax.jit(lambda keys: jax.tree.map(jnp.sum, jax.vmap(play)(keys)))
