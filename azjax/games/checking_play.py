"""The random games in which `azjax.games.check` looks for broken rules."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.core import Game, State, select
from azjax.games.env import random_action
from azjax.games.symmetry import Symmetry, identity

Array = np.ndarray | jax.Array

_CHUNK = 64  # moves that are played before it is asked whether all games are over

# What must hold in every position, filled in with what was seen where it does not.
_RULES = {
    "legal": "legal_action_mask: an action must be legal until the game is over",
    "observation": "observe: the values must be finite; {0:g} of them are not",
    "board": "board: the values must be -1, where a cell is empty, or places in "
    "`pieces`, up to {0:g}; they go from {1:g} to {2:g}",
    "zero_sum": "rewards: they must sum to zero; they are [{0:g}, {1:g}]",
    "range": "rewards: they must be between -1 and 1; they are [{0:g}, {1:g}]",
    "early": "rewards: they must be zeros until the game is over; they are "
    "[{0:g}, {1:g}]",
    "turns": "step: the players must take turns, also in the step that ends the game; "
    "action {0:g} of player {1:g} leaves current_player at {2:g}",
    "illegal_ends": "step: an illegal action must end the game; {0:g} does not",
    "illegal_loses": "step: an illegal action must be a loss for the player who chose "
    "it; {0:g} of player {1:g} brings rewards [{2:g}, {3:g}]",
    "no_action_ends": "step: a number that is no action must end the game; {0:g} does "
    "not",
    "no_action_loses": "step: a number that is no action must be a loss for the player "
    "who chose it; {0:g} of player {1:g} brings rewards [{2:g}, {3:g}]",
    "finished": "step: nothing may change once the game is over; action {0:g} changes "
    "the state",
    "image_observation": "symmetries[{0:g}]: `observation(observe(state))` must be "
    "`observe(image)`; the image is the position after the images of the moves",
    "image_legal": "symmetries[{0:g}]: `legal_action_mask(state)[actions]` must be "
    "`legal_action_mask(image)`; the image is the position after the images of the "
    "moves",
    "image_end": "symmetries[{0:g}]: current_player, terminated and rewards must be "
    "those of the image, the position after the images of the moves",
}


class _Finding(NamedTuple):
    """Whether a rule holds, for each of K cases, and the numbers for its words.

    holds: `[]` or `[K]` bool.
    numbers: each `[]` or `[K]`.
    """

    holds: Array
    numbers: tuple[Array, ...] = ()


class Record(NamedTuple):
    """Random games, T moves by B games.

    action: `[T, B]` int32; the move made; after the end any one.
    terminated: `[T, B]` bool; of the position before it.
    findings: by rule, leaves `[T, B, ...]`.
    first_game: the positions of the first game, `state`, leaves `[T, ...]`, and what
        the game's methods return there, by their names.
    """

    action: Array
    terminated: Array
    findings: Mapping[str, _Finding]
    first_game: Mapping[str, Any]

    def where(self, move: int, index: int, count: int = 1) -> str:
        """Returns the words for one position, the first of `count` such ones."""
        actions = self.action[:move, index].tolist()
        rest = f", the first of {count} such positions" if count > 1 else ""
        return f"(game {index} after {move} moves, {actions}{rest})"


def broken_rules(record: Record, max_moves: int) -> Iterator[str]:
    """Returns in plain words which rules do not hold, and where first."""
    for name in filter(record.findings.__contains__, _RULES):
        holds, numbers = record.findings[name]
        if not holds.all():
            move, index, *case = np.argwhere(~holds)[0].tolist()
            count = int((~holds).reshape(*holds.shape[:2], -1).any(axis=2).sum())
            seen = (
                number[move, index].ravel()[case[0] if number.ndim > 2 else 0]
                for number in numbers
            )
            yield f"{_RULES[name].format(*seen)} {record.where(move, index, count)}"
    is_over = record.terminated[max_moves : max_moves + 1]
    if not is_over.all():
        where = record.where(max_moves, int(is_over.argmin()), int((~is_over).sum()))
        yield f"max_moves: games must be over after {max_moves} moves {where}"


def play(
    game: Game,
    looks: Sequence[str],
    symmetries: Mapping[int, Symmetry],
    num_games: int,
    rng_key: jax.Array,
) -> Record:
    """Plays random games until all are over and have been looked at after the end.

    Args:
        game: the game.
        looks: which of its methods of a position can be called, `legal_action_mask`
            and `rewards` among them.
        symmetries: those to be looked at, by their place among the game's.
        num_games: B.
        rng_key: one key, consumed.
    """
    length = min(_CHUNK, game.max_moves + 1)
    examine = jax.vmap(functools.partial(_examine, game, looks, symmetries))

    def play_move(states: State, rng_key: jax.Array) -> tuple[State, Record]:
        states, record = examine(states, jax.random.split(rng_key, num_games))
        first_game = jax.tree.map(lambda leaf: leaf[0], record.first_game)
        return states, record._replace(first_game=first_game)

    num_states = 1 + len(symmetries)
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (num_games, num_states, *leaf.shape)),
        game.init(),
    )
    play_chunk = jax.jit(functools.partial(jax.lax.scan, play_move))
    chunks = []
    for _ in range(0, game.max_moves + 1, length):
        rng_key, chunk_key = jax.random.split(rng_key)
        states, chunk = play_chunk(states, jax.random.split(chunk_key, length))
        chunks.append(jax.tree.map(np.asarray, chunk))
        if chunks[-1].terminated[-1].all():
            break
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *chunks)


def _examine(
    game: Game,
    looks: Sequence[str],
    symmetries: Mapping[int, Symmetry],
    states: State,
    rng_key: jax.Array,
) -> tuple[State, Record]:
    """Looks at a position, tries illegal actions, and makes a random move.

    Args:
        game: the game.
        looks: methods that can be called.
        symmetries: S - 1 of them.
        states: leaves `[S, ...]`; the position, then its images.
        rng_key: one key, consumed.

    Returns:
        the next position and its images, and the record of this one.
    """
    every_symmetry = (identity(game.num_actions), *symmetries.values())
    seen = {name: jax.vmap(getattr(game, name))(states) for name in looks}
    first = jax.tree.map(lambda leaf: leaf[0], seen | {"state": states})
    state, legal = first["state"], first["legal_action_mask"]
    legal_key, illegal_key = jax.random.split(rng_key)
    action = random_action(legal_key, legal | state.terminated)
    illegal = jnp.where(legal.all(), -1, random_action(illegal_key, ~legal))
    tries = jnp.stack([action, illegal, jnp.int32(-1), jnp.int32(game.num_actions)])
    images = np.stack([np.argsort(symmetry.actions) for symmetry in every_symmetry])
    # One call of `step` for moves and tries: it is what takes time to compile.
    after = jax.vmap(game.step)(
        jax.tree.map(
            lambda leaf: jnp.concatenate([leaf, leaf[np.zeros(3, int)]]), states
        ),
        jnp.concatenate([jnp.asarray(images)[:, action], tries[1:]]),
    )
    num_states = len(every_symmetry)
    tried = jax.tree.map(
        lambda leaf: leaf[np.r_[0, num_states : num_states + 3]], after
    )
    findings = (
        _look_at_position(game, state, seen)
        | _look_at_tries(game, state, tries, tried)
        | _look_at_images(symmetries, states, seen)
    )
    next_states = jax.vmap(select)(
        states.terminated, states, jax.tree.map(lambda leaf: leaf[:num_states], after)
    )
    return next_states, Record(action, state.terminated, findings, first)


def _look_at_position(
    game: Game, state: State, seen: dict[str, Any]
) -> dict[str, _Finding]:
    legal, rewards = seen["legal_action_mask"][0], seen["rewards"][0]
    numbers = rewards[0], rewards[1]
    findings = {
        "legal": _Finding(state.terminated | legal.any()),
        "early": _Finding(state.terminated | (rewards == 0).all(), numbers),
        "zero_sum": _Finding(jnp.abs(rewards.sum()) < 1e-6, numbers),
        "range": _Finding((jnp.abs(rewards) <= 1).all(), numbers),
    }
    if "observe" in seen:
        strange = ~jnp.isfinite(seen["observe"][0])
        findings["observation"] = _Finding(~strange.any(), (strange.sum(),))
    if "board" in seen:
        low, high = seen["board"][0].min(), seen["board"][0].max()
        last = jnp.int32(len(game.pieces) - 1)
        findings["board"] = _Finding((low >= -1) & (high <= last), (last, low, high))
    return findings


def _look_at_tries(
    game: Game, state: State, tries: jax.Array, after: State
) -> dict[str, _Finding]:
    """Looks at the positions after a legal action, an illegal one, -1 and A."""
    is_over, player = state.terminated, state.current_player
    ended = after.terminated
    rewards = jax.vmap(game.rewards)(after)
    is_loss = (rewards == jnp.where(player == 0, -1.0, 1.0) * np.array([1, -1])).all(1)
    takes_turns = after.current_player == 1 - player
    changes = ~functools.reduce(
        jnp.logical_and,
        [
            (new == old).reshape(len(tries), -1).all(axis=1)
            for new, old in zip(
                jax.tree.leaves(after), jax.tree.leaves(state), strict=True
            )
        ],
    )
    findings = {
        "turns": _Finding(is_over | takes_turns, (tries, player, after.current_player)),
        "finished": _Finding(~is_over | ~changes, (tries,)),
    }
    # Where every action is legal, the illegal one that was tried is -1 as well.
    for name, chosen in ("illegal", slice(1, 2)), ("no_action", slice(2, 4)):
        excused = is_over | (tries[chosen] < 0) & (name == "illegal")
        numbers = tries[chosen], player, *rewards[chosen].T
        findings |= {
            f"{name}_ends": _Finding(excused | ended[chosen], numbers),
            f"{name}_loses": _Finding(excused | (~ended | is_loss)[chosen], numbers),
        }
    return findings


def _look_at_images(
    symmetries: Mapping[int, Symmetry], states: State, seen: dict[str, Any]
) -> dict[str, _Finding]:
    """Compares what the images of a position show with the images of what it shows."""
    if not symmetries:
        return {}
    numbers = (jnp.array(list(symmetries)),)
    images = [
        symmetry.observation(seen["observe"][0]) for symmetry in symmetries.values()
    ]
    actions = np.stack([symmetry.actions for symmetry in symmetries.values()])
    legal, rewards = seen["legal_action_mask"], seen["rewards"]
    observations = jnp.isclose(seen["observe"][1:], jnp.stack(images), equal_nan=True)
    same_end = (states.terminated == states.terminated[0]) & (
        rewards == rewards[0]
    ).all(1)
    same_player = states.current_player == states.current_player[0]
    return {
        "image_observation": _Finding(observations.all(axis=(1, 2, 3)), numbers),
        "image_legal": _Finding((legal[1:] == legal[0][actions]).all(axis=1), numbers),
        "image_end": _Finding((same_end & same_player)[1:], numbers),
    }
