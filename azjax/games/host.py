"""Compiled functions of a game for one position at a time, on the host.

Each function is compiled once for each game; equal games share it.
"""

import copy
import functools
from typing import Any, TypeVar

import jax
import numpy as np

from azjax.games.core import Game, S, State, compiled_call, compiled_mask, original
from azjax.text import quoted

G = TypeVar("G", bound=Game)


def first_state(game: Game[S]) -> S:
    """Returns the initial position as NumPy arrays."""
    return jax.device_get(game.init())


def first_states(game: Game[S], number: int) -> S:
    """Returns the initial positions of N games, leaves `[N, ...]`, as NumPy arrays."""
    return jax.tree.map(lambda leaf: np.stack([leaf] * number), first_state(game))


def next_state(game: Game[S], state: S, move: int) -> S:
    """Returns the position after a move as NumPy arrays: an action, or A + k for
    outcome k of chance."""
    method, number = "step", move
    if game.num_outcomes and move >= game.num_actions:
        method, number = "chance_step", move - game.num_actions
    # A compiled function takes a NumPy scalar faster than `jnp.int32` makes an array.
    scalar: Any = np.int32(number)
    return jax.device_get(compiled_call(method, game, state, scalar))


def legal_actions(game: Game, state: State) -> list[int]:
    """Returns the legal actions of a position; none if it is terminated or waits for
    chance."""
    if state.terminated or waits_for_chance(game, state):
        return []
    return np.flatnonzero(compiled_mask(game, state)).tolist()


def legal_moves(game: Game, state: State) -> list[int]:
    """Returns the legal actions of a position, or A + k for each possible outcome k of
    chance if it waits for chance; none if it is terminated."""
    probabilities = outcome_probabilities(game, state)
    if probabilities.any():
        return (game.num_actions + np.flatnonzero(probabilities)).tolist()
    return legal_actions(game, state)


def first_turns(game: Game[S]) -> list[S]:
    """Returns the positions in which a first action is chosen: the initial one, or
    those after each possible outcome of chance that it waits for."""
    first = first_state(game)
    if not waits_for_chance(game, first):
        return [first]
    return [next_state(game, first, outcome) for outcome in legal_moves(game, first)]


def outcome_probabilities(game: Game, state: State) -> np.ndarray:
    """Returns `[K]` float32, the probabilities of the outcomes that a position waits
    for; zeros if it waits for none."""
    if not game.num_outcomes:
        return np.zeros(0, np.float32)
    return np.asarray(compiled_call("chance", game, state))


def waits_for_chance(game: Game, state: State) -> bool:
    """Returns whether a position waits for chance."""
    return bool(outcome_probabilities(game, state).any())


def random_outcome_move(game: Game, state: State, rng: np.random.Generator) -> int:
    """Draws an outcome k of chance in a position that waits for it, and returns it as
    the move A + k."""
    probabilities = outcome_probabilities(game, state).astype(np.float64)
    outcome = rng.choice(len(probabilities), p=probabilities / probabilities.sum())
    return game.num_actions + int(outcome)


def move_to_word(game: Game, state: State, move: int) -> str:
    """Returns a move in one word, as files have it: its text, in which an outcome has
    `_` for each space."""
    return "_".join(game.move_to_text(state, move).split())


def word_to_move(game: Game, state: State, word: str) -> int:
    """Parses the output of `move_to_word`, ignoring case.

    Raises:
        ValueError: the word is no legal action, or no possible outcome where the
            position waits for chance.
    """
    if not waits_for_chance(game, state):
        return game.text_to_action(state, word)
    outcomes = {
        move_to_word(game, state, move): move for move in legal_moves(game, state)
    }
    for name, move in outcomes.items():
        if name.lower() == word.lower():
            return move
    raise ValueError(
        f"{quoted(word)} is no outcome of chance that is possible here; possible: "
        f"{' '.join(outcomes)}"
    )


def rewards(game: Game, state: State) -> tuple[float, float]:
    """Returns the rewards of players 0 and 1 in a position."""
    first, second = np.asarray(compiled_call("rewards", game, state)).tolist()
    return first, second


def board(game: Game, state: State) -> np.ndarray:
    """Returns `[H, W]` int8, the board of a position."""
    return np.asarray(compiled_call("board", game, state))


def score(game: Game, state: State) -> np.ndarray | None:
    """Returns `[2]` float32, the points of players 0 and 1; None without points."""
    return jax.device_get(compiled_call("score", game, state))


def owners(game: Game, state: State) -> np.ndarray:
    """Returns `[H, W]` int8, the owner of each point in a game with owners."""
    return np.asarray(compiled_call("owners", game, state))


def compiled(game: G) -> G:
    """Returns an equal game with compiled `step`, `legal_action_mask`, `board` and
    `rewards`.

    The functions are compiled before this returns, so that the first move of an
    interface is as fast as later ones.
    """
    fast = copy.copy(game)
    vars(fast)["_original"] = original(game)
    for name in ("step", "legal_action_mask", "board", "rewards"):
        vars(fast)[name] = functools.partial(compiled_call, name, game)
    after = next_state(game, game.init(), 0)
    jax.block_until_ready(
        (fast.legal_action_mask(after), fast.board(after), fast.rewards(after))
    )
    return fast
