"""Rows of played games of tic-tac-toe, and files of them."""

import jax
import numpy as np

from azjax import games
from azjax.data import GameFileWriter, Rows, read_games, stored_files
from azjax.data.rows import pack_states
from azjax.games.host import first_state, next_state

GAME = games.make("tic_tac_toe")
# A win of the first player, a draw, and an unfinished game.
GAMES = {5: [0, 3, 1, 4, 2], 6: [0, 4, 8, 1, 7, 6, 2, 5, 3], 7: [4, 0]}


def rows_of(played) -> Rows:
    """Returns the rows of games of tic-tac-toe, given moves by game id."""
    columns = {name: [] for name in Rows._fields}
    for number, moves in played.items():
        state = first_state(GAME)
        for ply, move in enumerate(moves):
            mover = int(state.current_player)
            packed = pack_states(jax.device_get(state), 0)
            state = next_state(GAME, state, move)
            made = {
                "game": number,
                "ply": ply,
                "player": mover,
                "move": move,
                "state": packed,
                "policy_counts": 2,
                "value": 0.5,
                "draw_probability": 0.25,
                "regret": 0.0,
                "reward": float(GAME.rewards(state)[mover]),
                "terminated": bool(state.terminated),
                "simulations": 8,
            }
            for name, value in made.items():
                columns[name].append(value)
            columns["policy_actions"] += [move, (move + 1) % 9]
            columns["policy_probabilities"] += [0.75, 0.25]
            columns["policy_values"] += [0.5, np.nan]
    columns.pop("outcome")  # a game without chance
    return Rows(**{name: np.array(values) for name, values in columns.items()})


def decided_rows(played) -> Rows:
    """Returns the rows of games, whose policy targets are the moves."""
    rows = rows_of(played)
    return rows._replace(
        policy_counts=np.ones_like(rows.policy_counts),
        policy_actions=rows.move.copy(),
        policy_probabilities=np.ones(len(rows.move)),
        policy_values=rows.policy_values[::2],
    )


def write_files(directory, *chunks, run="abc"):
    """Writes a file for each chunk of rows."""
    with GameFileWriter(directory, GAME, run=run, seed=3) as writer:
        for iteration, rows in enumerate(chunks, 1):
            writer.add(iteration, lambda rows=rows: rows)
            writer.flush()


def stored_rows(directory):
    """Returns the games of a directory, which are read at once."""
    [files] = stored_files([str(directory)], GAME)
    [whole] = read_games(files, GAME)
    return whole
