"""Games whose functions are compiled, shared by the tests of a process.

A test that calls a game's functions without `jax.jit` compiles each operation apart.
"""

import copy
import functools
import types

import jax
import numpy as np

from azjax.games import host, make, stones

FUNCTIONS = (
    *("step", "legal_action_mask", "observe", "rewards", "board"),
    *("evaluate", "score", "owners"),
)


@functools.cache
def compiled(game):
    """Returns an equal game, from a name too, whose functions are compiled at their
    first call.
    """
    game = make(game) if isinstance(game, str) else game
    fast = copy.copy(game)
    for name in ("init", *FUNCTIONS):
        vars(fast)[name] = jax.jit(getattr(game, name))
    return fast


@functools.cache
def batched(game):
    """Returns the game's functions of positions, compiled for a batch."""
    functions = {name: jax.vmap(getattr(game, name)) for name in FUNCTIONS}
    return types.SimpleNamespace(**{n: jax.jit(f) for n, f in functions.items()})


def play(game, texts, state=None):
    """Returns the position after moves, as NumPy arrays.

    texts: legal moves in the game's notation, separated by spaces.
    state: the position before them, by default the first one.
    """
    state = compiled(game).init() if state is None else state
    for text in texts.split():
        action = compiled(game).text_to_action(state, text)
        state = host.next_state(game, state, action)
    return jax.device_get(state)


def random_game(game, generator):
    """Returns the moves of a random game, and its last position."""
    state, moves = jax.device_get(compiled(game).init()), []
    while not state.terminated:
        moves.append(int(generator.choice(host.legal_moves(game, state))))
        state = host.next_state(game, state, moves[-1])
    return moves, state


def picture_of(game, state):
    """Returns the rows of the board: X for 0, O for 1, a point where it is empty."""
    board = np.array(list("XO."))[np.asarray(game.board(state))]
    return ["".join(row) for row in board]


def legal_texts(game, state):
    """Returns the legal moves in the game's notation."""
    actions = np.flatnonzero(game.legal_action_mask(state))
    return {game.action_to_text(state, int(action)) for action in actions}


def board_of(picture):
    """Returns `[H, W]` int: 0 for X, 1 for O and -1 for another letter."""
    board = np.array([list(row) for row in picture.split()])
    return np.select([board == "X", board == "O"], [0, 1], -1)


def bitboards(cells, num_bits, is_set):
    """Returns the bitboards of cells `[N, H, W]` bool; each word is `[N]` uint32.

    cells: `[H, W]` int, the bit of each cell.
    """
    bits = np.zeros((len(is_set), 32 * -(-num_bits // 32)), bool)
    bits[:, cells] = is_set
    return tuple(np.packbits(bits, axis=1, bitorder="little").view("<u4").T)


def positions(cells, num_bits, boards, player):
    """Returns unfinished positions of a game of stones.

    cells: `[H, W]` int, the bit of each cell.
    boards: `[N, H, W]` int, the stones as in `board_of`.
    player: the player to move.
    """
    return stones.State(
        stones=tuple(bitboards(cells, num_bits, boards == side) for side in (0, 1)),
        current_player=np.full(len(boards), player, np.int8),
        outcome=np.zeros(len(boards), np.int8),
        terminated=np.zeros(len(boards), bool),
    )


def stack(states):
    """Returns positions as a batch of NumPy arrays."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def single(states, index=0):
    """Returns one position of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], states)


def all_lines(height, width, length):
    """Returns the cells, as (row, column), of every line of a length."""
    return [
        line
        for row, column in np.ndindex(height, width)
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
        for line in [[(row + down * i, column + right * i) for i in range(length)]]
        if all(0 <= r < height and 0 <= c < width for r, c in line)
    ]
