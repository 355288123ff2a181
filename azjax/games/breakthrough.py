"""Breakthrough: the first to reach the far row wins."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, rendering
from azjax.games.core import Game, select, zero_sum
from azjax.games.registry import register
from azjax.games.symmetry import Symmetry, identity
from azjax.settings import check_int

HOME_ROWS = 2
MIN_HEIGHT, MIN_WIDTH, MAX_SIZE = 2 * HOME_ROWS, 2, 8
# Bits from a cell to the one below it, on a board of any width: four rows fill a word.
ROW_BITS = 8
NUM_BITS = MAX_SIZE * ROW_BITS
BITS = np.uint32(1) << np.arange(bitboard.WORD_BITS, dtype=np.uint32)
# Bits to the cell diagonally left, straight and diagonally right, in front of a man.
STEPS = (-ROW_BITS - 1, -ROW_BITS, -ROW_BITS + 1)
STRAIGHT = 1
DIRECTION_NAMES = ("left", "straight", "right")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A Breakthrough position, 19 bytes.

    men: the bitboards of the player to move and of the opponent, two `[]` uint32 words
        each, row by row from the view of the player to move, whose men move up.
    current_player: `[]` int8; the player to move, 0 moves first.
    outcome: `[]` int8; +1 or -1 for player 0 once `terminated`, 0 before.
    terminated: `[]` bool.
    """

    men: tuple[bitboard.Board, bitboard.Board]
    current_player: jax.Array
    outcome: jax.Array
    terminated: jax.Array


@register
class Breakthrough(Game[State]):
    """Breakthrough by the rules of its inventor (Dan Troyka, 2000).

    The men of each player start on the two home rows. A man moves one cell forward,
    straight or diagonally, to an empty cell; diagonally it may also capture. The player
    who reaches the far row or captures the last man wins. There are no draws: the
    foremost man of a player can always move diagonally, since no man of its own side is
    in front of it.

    Actions are relative to the player to move, whose home rows are at the bottom; both
    players count columns from the same side. Action `3 * cell + direction` moves the
    man in that cell, counted row by row from the top left, diagonally left (0),
    straight (1) or diagonally right (2). Player 0 is drawn at the bottom.

    Args:
        height: rows, 4 to 8.
        width: columns, 2 to 8.
    """

    name: ClassVar[str] = "breakthrough"
    style = rendering.MEN
    actions_per_cell = len(STEPS)

    def __init__(self, height: int = 8, width: int = 8):
        check_int("height of breakthrough", height, MIN_HEIGHT, MAX_SIZE)
        check_int("width of breakthrough", width, MIN_WIDTH, MAX_SIZE)
        self.height, self.width = height, width
        self.num_actions = height * width * len(STEPS)
        self.observation_shape = (height, width, 2)
        # Each move brings a man a row forward. Before the last one none is on the far
        # row: the men at the back have made height - 2 moves at most, those in front of
        # them height - 3.
        self.max_moves = 2 * width * (2 * height - 5) + 1
        self._cells = ROW_BITS * np.arange(height)[:, None] + np.arange(width)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The identity and the mirror image."""
        actions = np.arange(self.num_actions).reshape(self.height, self.width, -1)
        mirror = Symmetry(
            lambda observation: jnp.flip(observation, axis=-2),
            actions[:, ::-1, ::-1].ravel(),
        )
        return (identity(self.num_actions), mirror)

    def init(self) -> State:
        """Returns the board with the men in their home rows."""
        own = bitboard.constant(self._cells[-HOME_ROWS:], NUM_BITS)
        other = bitboard.constant(self._cells[:HOME_ROWS], NUM_BITS)
        return State(
            men=jax.tree.map(jnp.uint32, (own, other)),
            current_player=jnp.int8(0),
            outcome=jnp.int8(0),
            terminated=jnp.bool(False),
        )

    def step(self, state: State, action: jax.Array) -> State:
        """Moves a man of the player to move."""
        action = jnp.asarray(action).astype(jnp.int32)
        is_action = (action >= 0) & (action < self.num_actions)
        cell, direction = action // len(STEPS), action % len(STEPS)
        start = ROW_BITS * (cell // self.width) + cell % self.width
        end = start + STEPS[0] + direction
        man = bitboard.single(start, NUM_BITS)
        movable = _select_direction(direction, self._movable(state))
        is_legal = is_action & bitboard.has_any(bitboard.intersection(man, movable))
        own, other = state.men
        target = bitboard.single(end, NUM_BITS)
        own = bitboard.union(bitboard.difference(own, man), target)
        other = bitboard.difference(other, target)
        wins = (end < ROW_BITS) | ~bitboard.has_any(other)
        mover_result = jnp.where(is_legal, wins.astype(jnp.int8), jnp.int8(-1))
        own, other = select(is_legal, (own, other), state.men)
        after = State(
            men=(self._turn_over(other), self._turn_over(own)),
            current_player=jnp.int8(1) - state.current_player,
            outcome=jnp.where(state.current_player == 1, -mover_result, mover_result),
            terminated=~is_legal | wins,
        )
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[H * W * 3]` bool, True where a man can move in the direction."""
        return self._planes(self._movable(state)).ravel()

    def observe(self, state: State) -> jax.Array:
        """Returns `[H, W, 2]` float32: men of the player to move, of the opponent.

        The men of the player to move move up.
        """
        return self._planes(state.men).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return zero_sum(state.outcome)

    def evaluate(self, state: State) -> jax.Array:
        """Returns `[]` float32: the lead in pawns, scaled to [-1, 1]."""
        own, other = state.men
        lead = bitboard.count(own) - bitboard.count(other)
        return lead.astype(jnp.float32) / (HOME_ROWS * self.width)

    def board(self, state: State) -> jax.Array:
        """Returns `[H, W]` int8: 0 for the men of player 0, who move up, 1 for those of
        player 1, -1 where empty."""
        own, other = state.men
        turned = (self._turn_over(other), self._turn_over(own))
        men = select(state.current_player == 1, turned, state.men)
        return bitboard.pieces(men, self._cells)

    def action_to_text(self, state: State, action: int) -> str:
        """Returns the cells from which and to which the man moves, as in `a2a3`.

        A move off the board, which is never legal, has its direction in place of the
        second cell.
        """
        if not 0 <= action < self.num_actions:
            raise ValueError(
                f"action {action} of {self!r}: actions are 0 to {self.num_actions - 1}"
            )
        start, end = self._ends(action, int(state.current_player))
        if not self._is_on_board(end):
            return f"{self._cell_name(start)} {DIRECTION_NAMES[action % len(STEPS)]}"
        return self._cell_name(start) + self._cell_name(end)

    def text_to_action(self, state: State, text: str) -> int:
        """Reads what `action_to_text` writes, also with an `x` between the cells."""
        cells = text.strip().lower().split("x")
        is_capture = [len(cell) for cell in cells] == [len("a2"), len("b3")]
        return super().text_to_action(state, "".join(cells) if is_capture else text)

    def action_cells(self, state: State, action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cells from which and to which the man moves."""
        return self._ends(action, int(state.current_player))

    def last_cells(self, state: State, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cells from which and to which the man moved."""
        if not 0 <= last_action < self.num_actions:
            return ()
        ends = self._ends(last_action, 1 - int(state.current_player))
        return tuple(cell for cell in ends if self._is_on_board(cell))

    def policies_on_board(
        self, state: State, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        """Returns an arrow for each move."""
        ends = functools.partial(self._ends, mover=int(state.current_player))
        return rendering.policies_of_moves(
            policies, np.asarray(self.legal_action_mask(state)), ends
        )

    def _movable(self, state: State) -> tuple[bitboard.Board, ...]:
        """Returns the men of the player to move that can move, for each direction."""
        own, other = state.men
        free = bitboard.difference(bitboard.constant(self._cells, NUM_BITS), own)
        ends = (free, bitboard.difference(free, other), free)
        # Where a man would leave the board to the left or right.
        edges = (self._cells[:, 0], self._cells[:0], self._cells[:, -1])
        return tuple(
            bitboard.difference(
                bitboard.intersection(own, bitboard.shift(end, -step)),
                bitboard.constant(edge, NUM_BITS),
            )
            for step, end, edge in zip(STEPS, ends, edges, strict=True)
        )

    def _planes(self, boards: tuple[bitboard.Board, ...]) -> jax.Array:
        """Returns `[H, W, P]` bool, True where the bit of a cell is set in a board."""
        # Word by word, with its four whole rows: `planes` of bitboard, which looks up a
        # word for each cell, makes the mask ten times slower.
        rows = [
            jnp.stack([word & BITS != 0 for word in words], axis=-1)
            for words in zip(*boards, strict=True)
        ]
        planes = jnp.concatenate(rows).reshape(MAX_SIZE, ROW_BITS, len(boards))
        return planes[: self.height, : self.width]

    def _turn_over(self, board: bitboard.Board) -> bitboard.Board:
        """Returns the board as the other player sees it: the last row first."""
        low, high = board
        rows = (_reverse_bytes(high), _reverse_bytes(low))
        return bitboard.shift(rows, ROW_BITS * (self.height - MAX_SIZE))

    def _ends(self, action: int, mover: int) -> tuple[rendering.Cell, rendering.Cell]:
        """Returns the cells from and to, as drawn; the second may be off the board."""
        cell, direction = divmod(action, len(STEPS))
        row, column = divmod(cell, self.width)
        next_row, next_column = row - 1, column + direction - STRAIGHT
        if mover == 1:
            row, next_row = self.height - 1 - row, self.height - 1 - next_row
        return (row, column), (next_row, next_column)

    def _is_on_board(self, cell: rendering.Cell) -> bool:
        return 0 <= cell[0] < self.height and 0 <= cell[1] < self.width

    def _cell_name(self, cell: rendering.Cell) -> str:
        return f"{self.column_labels[cell[1]]}{self.row_labels[cell[0]]}"


def _select_direction(
    direction: jax.Array, boards: tuple[bitboard.Board, ...]
) -> bitboard.Board:
    left, straight, right = boards
    diagonal = select(direction < STRAIGHT, left, right)
    return select(direction == STRAIGHT, straight, diagonal)


def _reverse_bytes(word: jax.Array | np.uint32) -> jax.Array:
    """Returns `word` with its four bytes in the reverse order."""
    word = jnp.asarray(word)
    outer = (word << 24) | (word >> 24)
    return outer | ((word & 0xFF00) << 8) | ((word >> 8) & 0xFF00)
