"""Checks the rules against pgx, OpenSpiel and published counts, move by move.

    python experiments/verify_games.py --games 100000

Random games are played by azjax and replayed by pgx and by OpenSpiel. At every position
the legal actions, the player to move, whether the game is over, the rewards and the
board must agree. Some of the games against pgx end with an illegal action. Ends with an
error if anything disagrees.
"""

import collections
import dataclasses
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pyspiel
import tyro

from azjax import games

# Positions that can be reached in exactly so many moves: OEIS A212693, begun, and for
# tic-tac-toe the parts of the well-known 5,478.
NUM_POSITIONS = {
    "connect_four": [1, 7, 49, 238, 1120, 4263, 16422, 54859, 184275],
    "tic_tac_toe": [1, 9, 72, 252, 756, 1260, 1520, 1140, 390, 78],
}
# Ways to play so many moves.
NUM_LINES = {
    "connect_four": [1, 7, 49, 343, 2401, 16807, 117649, 823536, 5673234],
    "tic_tac_toe": [1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872],
}


CHUNK = 4096  # positions that are stepped at once


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is checked.

    games: random games of each kind against each library.
    names: the games that are checked.
    batch_size: games at once.
    seed: of the random games.
    """

    games: int = 100_000
    names: tuple[str, ...] = tuple(NUM_POSITIONS)
    batch_size: int = 5_000
    seed: int = 0


def make_pgx_comparison(game: games.Game):
    """Returns a jitted `keys -> {fact: count}`: one random game of both for each key.

    The counts are of positions at which the two disagree in a fact, and of the
    `positions` and `illegal` endings that were seen.
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
            # After an illegal action pgx may show any board.
            "board": ~was_illegal & (game.observe(ours) != theirs.observation).any(),
            "illegal": was_illegal,
            "positions": True,
        }

    def play(rng_key):
        reset_key, play_key = jax.random.split(rng_key)
        theirs = env.init(reset_key)
        first = theirs.current_player  # pgx draws lots for who begins

        def play_move(carry, rng_key):
            ours, theirs = carry
            legal = game.legal_action_mask(ours)
            logits = jnp.where(legal, 0.0, -4.0)  # now and then an illegal one
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


def make_recorder(game: games.Game):
    """Returns a jitted `keys -> record` of one random game for each key.

    A record holds `[B, T + 1, ...]` arrays of the positions, and `[B, T]` actions.
    """

    def look(state):
        return {
            "legal": game.legal_action_mask(state),
            "player": state.current_player,
            "terminated": state.terminated,
            "rewards": game.rewards(state),
            "board": game.observe(state).astype(bool),
        }

    def play(rng_key):
        def play_move(state, rng_key):
            logits = jnp.where(game.legal_action_mask(state), 0.0, -jnp.inf)
            # A finished game may have no legal action left; any number does then.
            logits = jnp.where(state.terminated, 0.0, logits)
            action = jax.random.categorical(rng_key, logits)
            return game.step(state, action), {"action": action, **look(state)}

        keys = jax.random.split(rng_key, game.max_moves)
        end, record = jax.lax.scan(play_move, game.init(), keys)
        actions = record.pop("action")
        record = jax.tree.map(
            lambda moves, last: jnp.append(moves, last[None], axis=0), record, look(end)
        )
        return {"action": actions, **record}

    return jax.jit(jax.vmap(play))


def compare_with_open_spiel(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in OpenSpiel and counts the disagreements, by fact."""
    rules = pyspiel.load_game(game.name)
    board = _board_texts(np.asarray(record["board"]), np.asarray(record["player"]))
    legal, player, over, rewards, action = (
        np.asarray(record[name]).tolist()
        for name in ("legal", "player", "terminated", "rewards", "action")
    )
    counts = collections.Counter(terminated=0, rewards=0, player=0, legal=0, board=0)
    for row in range(len(action)):
        state = rules.new_initial_state()
        for move in range(game.max_moves + 1):
            ends = state.is_terminal()
            counts["positions"] += 1
            counts["terminated"] += ends != over[row][move]
            counts["rewards"] += state.returns() != rewards[row][move]
            counts["board"] += "".join(str(state).split()) != board[row][move]
            if ends or over[row][move]:
                break
            counts["player"] += state.current_player() != player[row][move]
            counts["legal"] += state.legal_actions_mask() != legal[row][move]
            state.apply_action(action[row][move])
    return counts


def _board_texts(planes: np.ndarray, player: np.ndarray) -> list[list[str]]:
    """Returns each board as OpenSpiel prints it, `x` for player 0, without line ends.

    Args:
        planes: `[B, T, H, W, 2]` bool, seen by the player to move.
        player: `[B, T]` int, the player to move.
    """
    second_to_move = player[..., None, None] == 1
    first = np.where(second_to_move, planes[..., 1], planes[..., 0])
    second = np.where(second_to_move, planes[..., 0], planes[..., 1])
    symbols = np.where(first, "x", np.where(second, "o", "."))
    symbols = symbols.reshape(*player.shape, -1)
    return symbols.view(f"<U{symbols.shape[-1]}")[..., 0].tolist()


class Ply(NamedTuple):
    """All positions after some number of moves.

    states: the different positions, `[N]`.
    ways: `[N]` in how many ways each can be reached.
    """

    states: games.State
    ways: np.ndarray

    def num_positions(self) -> int:
        """Counts the different positions."""
        return len(self.ways)

    def num_lines(self) -> int:
        """Counts the ways to play so many moves."""
        return int(self.ways.sum())

    def num_finished_games(self) -> int:
        """Counts the ways to end a game with the last of the moves."""
        return int(self.ways[np.asarray(self.states.terminated)].sum())


def enumerate_plies(game: games.Game, num_moves: int) -> list[Ply]:
    """Returns all positions after 0, 1, ... `num_moves` moves, by moves."""
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init())
    plies = [Ply(first, np.ones(1, np.int64))]
    actions = jnp.arange(game.num_actions)
    step = jax.jit(jax.vmap(jax.vmap(game.step, (None, 0)), (0, None)))
    legal_action_mask = jax.jit(jax.vmap(game.legal_action_mask))
    for _ in range(num_moves):
        states, ways = plies[-1]
        children, parents = [], []
        for start in range(0, len(ways), CHUNK):
            index = np.arange(start, start + CHUNK)
            # The last chunk is filled up with copies, so that only one size compiles.
            rows = np.minimum(index, len(ways) - 1)
            chunk = jax.tree.map(lambda leaf, rows=rows: leaf[rows], states)
            legal = np.array(legal_action_mask(chunk))
            legal[np.asarray(chunk.terminated) | (index >= len(ways))] = False
            after = step(chunk, actions)
            children.append(
                jax.tree.map(lambda leaf, m=legal: np.asarray(leaf)[m], after)
            )
            parents.append(rows[legal.nonzero()[0]])
        states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *children)
        plies.append(_merge(states, ways[np.concatenate(parents)]))
    return plies


def _merge(states: games.State, ways: np.ndarray) -> Ply:
    """Returns the different states, and the sums of the ways to reach each."""
    facts = np.stack(jax.tree.leaves(states), axis=1)
    _, index, which = np.unique(facts, axis=0, return_index=True, return_inverse=True)
    sums = np.zeros(len(index), np.int64)
    np.add.at(sums, which, ways)
    return Ply(jax.tree.map(lambda leaf: leaf[index], states), sums)


def verify(name: str, settings: Settings) -> bool:
    """Checks one game, reports, and returns whether everything agrees."""
    game = games.make(name)
    pgx_counts, open_spiel_counts = collections.Counter(), collections.Counter()
    compare_with_pgx, record = make_pgx_comparison(game), make_recorder(game)
    seconds = {"pgx": 0.0, "open_spiel": 0.0}
    keys = jax.random.split(jax.random.key(settings.seed), settings.games)
    for start in range(0, settings.games, settings.batch_size):
        batch = keys[start : start + settings.batch_size]
        begin = time.perf_counter()
        counts = jax.device_get(compare_with_pgx(batch))
        pgx_counts.update({fact: int(count) for fact, count in counts.items()})
        middle = time.perf_counter()
        open_spiel_counts.update(compare_with_open_spiel(game, record(batch)))
        seconds["pgx"] += middle - begin
        seconds["open_spiel"] += time.perf_counter() - middle
    agree = True
    for library, counts in ("pgx", pgx_counts), ("open_spiel", open_spiel_counts):
        positions, illegal = counts.pop("positions"), counts.pop("illegal", 0)
        agree &= not any(counts.values())
        print(
            f"{name} and {library}: {settings.games:,} games, {positions:,} positions, "
            f"{illegal:,} illegal endings, {seconds[library]:.0f} s; "
            f"disagreements {dict(counts)}"
        )
    plies = enumerate_plies(game, len(NUM_POSITIONS[name]) - 1)
    for what, counted, published in (
        ("positions", [ply.num_positions() for ply in plies], NUM_POSITIONS[name]),
        ("lines", [ply.num_lines() for ply in plies], NUM_LINES[name]),
    ):
        agree &= counted == published
        print(f"{name}, {what} by moves played: {counted}, published {published}")
    return agree


def main(settings: Settings) -> int:
    """Checks the games and returns the exit status."""
    return 0 if all([verify(name, settings) for name in settings.names]) else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Settings, description=__doc__)))
