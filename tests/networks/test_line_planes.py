import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games.random_moves import random_action
from azjax.networks.line_planes import line_planes

planes_of_boards = jax.jit(line_planes, static_argnums=1)


def planes_of(rows, length):
    """Returns the planes of a board drawn with X to move, O and dots."""
    board = np.array([list(row) for row in rows])
    observation = np.stack([board == "X", board == "O"], -1).astype(np.float32)
    (planes,) = np.asarray(planes_of_boards(observation[None], length))
    return planes[..., 0], planes[..., 1]


def cells(plane):
    return sorted(map(tuple, np.argwhere(plane)))


def test_lines_in_all_directions_are_completed_on_the_empty_cells_alone():
    mine, theirs = planes_of(
        [
            "..X....",
            ".X.....",
            "X.....O",
            "XX.X..O",
            "O..X..O",
            "X..X..X",
        ],
        4,
    )
    # The top of a column, the gap of a row, the gap of a diagonal; the other diagonal
    # and their column end at an edge or at a stone.
    assert cells(mine) == [(2, 3), (3, 2), (4, 2)]
    assert cells(theirs) == [(1, 6)]


def test_a_single_stone_completes_a_line_of_one_on_every_empty_cell():
    mine, theirs = planes_of(["X.", ".O"], 1)
    assert cells(mine) == cells(theirs) == [(0, 1), (1, 0)]


def test_a_board_has_the_largest_width():
    _, theirs = planes_of(["." * 30 + "O.", "." * 32], 2)
    assert cells(theirs) == [(0, 29), (0, 31), (1, 29), (1, 30), (1, 31)]


def outcomes(game, rng_key):
    """Plays at random; returns whether each action wins at once, whether a plane has
    its cell, and whether it is legal in a game that goes on, all `[moves, A]`."""

    def move(state, key):
        legal = game.legal_action_mask(state)
        actions = jnp.arange(game.num_actions)
        after = jax.vmap(game.step, in_axes=(None, 0))(state, actions)
        wins = jax.vmap(game.rewards)(after)[:, state.current_player] == 1
        cell = jax.vmap(game.board)(after) != game.board(state)
        planes = line_planes(game.observe(state)[None], game.line_length)[0]
        has_cell = (cell & (planes[..., 0] == 1)).any((1, 2))
        action = random_action(key, legal)
        found = wins, has_cell, legal & ~state.terminated
        return game.step(state, action), found

    keys = jax.random.split(rng_key, game.max_moves)
    return jax.lax.scan(move, game.init(), keys)[1]


@pytest.mark.parametrize("name", ["gomoku:5,6,3", "connect_four"])
def test_a_move_wins_where_the_first_plane_says_so(name):
    game = games.make(name)
    keys = jax.random.split(jax.random.key(0), 50)
    play = jax.jit(jax.vmap(functools.partial(outcomes, game)))
    wins, has_cell, counts = map(np.asarray, play(keys))
    assert (wins == has_cell)[counts].all()
    assert wins[counts].sum() > 20
