"""The Royal Game of Ur: a race along a shared row, by rolls of dice."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import rendering
from azjax.games.core import Game, select, zero_sum
from azjax.games.registry import register
from azjax.settings import check_int

# Places on the path: squares 1 to 14 between the start and home. Action 0 is the pass.
START, CENTER, HOME, PASS = 0, 8, 15, 0
ROSETTES = (4, CENTER, 14)
SHARED = range(5, 13)
MAX_PIECES = 7
MAX_MAX_MOVES = int(np.iinfo(np.int16).max)
# The probabilities of a roll of four dice, each of which counts 0 or 1.
THROWS = np.array([1, 4, 6, 4, 1], np.float32) / 16
WAITS = -1  # in place of a roll
NUM_KINDS = MAX_PIECES + len(THROWS)  # of a player, in a cell of the board
# The place in each cell, as player 0 sees the board; -1 in the row of the opponent.
PLACES = np.array(
    [[-1] * 8, [*SHARED], [4, 3, 2, 1, START, HOME, 14, 13]], dtype=np.int32
)
ALL_PLACES = np.arange(HOME + 1, dtype=np.uint32)


def _bits(places: Iterable[int]) -> np.uint32:
    return np.uint32(sum(1 << place for place in places))


SQUARES, SHARED_SQUARES = _bits(range(1, HOME)), _bits(SHARED)
ROSETTE_SQUARES, CENTER_SQUARE = _bits(ROSETTES), _bits([CENTER])
# `[3, 8, 12]`, the bits of squares in the first four planes of the observation.
CELL_BITS = np.where(PLACES > START, 1 << np.maximum(PLACES, 0), 0).astype(np.uint32)
PLANE_BITS = np.zeros((*PLACES.shape, 12), np.uint32)
PLANE_BITS[..., [0, 2, 3]] = CELL_BITS[..., None]
PLANE_BITS[..., [1, 3]] |= CELL_BITS[::-1, :, None]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A position of the Royal Game of Ur, 14 bytes.

    pieces: those of the player to move and of the opponent, `[]` uint32 each: bit p is
        set if a piece is on square p of the path, 1 to 14; the bits from 15 on are the
        number of pieces at home. The others are at the start.
    roll: `[]` int8; 0 to 4; -1 before the dice are rolled.
    num_moves: `[]` int16; moves made.
    current_player: `[]` int8; the player to roll or to move, 0 begins.
    outcome: `[]` int8; +1, 0 or -1 for player 0 once `terminated`, 0 before.
    terminated: `[]` bool.
    """

    pieces: tuple[jax.Array, jax.Array]
    roll: jax.Array
    num_moves: jax.Array
    current_player: jax.Array
    outcome: jax.Array
    terminated: jax.Array


@register
class RoyalGameOfUr(Game[State]):
    """The Royal Game of Ur by the rules of Finkel (2007, "On the Rules for the Royal
    Game of Ur").

    Each player has a path of 14 squares: four of the own row, the eight of the middle
    row, which both players share, and two more of the own row. A player rolls four
    dice, each of which counts 0 or 1, and moves one piece by the sum: from the start to
    the board, along the path, or home, for which the roll must be exact. There is one
    piece of a player on a square at most. A piece that moves to a square of the
    opponent captures: the opponent's piece goes back to the start. Squares 4, 8 and 14
    are rosettes: a player whose piece moves to one of them rolls again. A piece on
    square 8, the rosette in the middle row, cannot be captured. A player who cannot
    move, as after a roll of 0, passes. The player whose pieces are all at home first
    wins. Lamont and others solved the game: https://royalur.net/solved.

    Action `a` moves a piece to square `a` of the path, 15 moves it home, and 0 is the
    pass, which is legal if nothing else is. Outcome `k` of chance is the roll.

    The game is a draw after `max_moves` moves; rolls are not counted. With seven
    pieces, the limit is 320, and 200,000 random games had 157 moves on average and 270
    at most.

    Player 0, white, has the lower row. The path leads from `d1` to the left, along the
    middle row from `a2` to `h2`, and back to `g1`; that of player 1 from `d3` to `g3`.
    Pieces at the start are drawn in column `e`, those at home in column `f`, and the
    roll to the right of the board, in the row of the player who rolled.

    pieces: pieces of each player, 1 to 7.
    max_moves: number of moves after which the game is a draw; default: 40 *
        (pieces + 1).
    """

    name: ClassVar[str] = "ur"
    pieces: ClassVar[str] = rendering.UR_LETTERS
    style: ClassVar[rendering.Style] = rendering.UR
    has_extra_turns = True
    num_outcomes = len(THROWS)

    def __init__(self, pieces: int = MAX_PIECES, max_moves: int | None = None):
        check_int("pieces of ur", pieces, 1, MAX_PIECES)
        if max_moves is None:
            max_moves = 40 * (pieces + 1)
        check_int("max_moves of ur", max_moves, 1, MAX_MAX_MOVES)
        self.num_pieces, self.max_moves = pieces, max_moves
        self.num_actions = HOME + 1
        self.max_legal_actions = pieces
        self.observation_shape = (3, 8, 12)

    @functools.cached_property
    def options(self) -> dict[str, int | float | str | bool]:
        """The constructor arguments that make an equal game."""
        return {"pieces": self.num_pieces, "max_moves": self.max_moves}

    def without_move_limit(self) -> "RoyalGameOfUr":
        """Returns the game with the highest limit of moves."""
        return RoyalGameOfUr(self.num_pieces, MAX_MAX_MOVES)

    def init(self) -> State:
        """Returns the empty board, before the first roll of player 0."""
        return State(
            pieces=(jnp.uint32(0), jnp.uint32(0)),
            roll=jnp.int8(WAITS),
            num_moves=jnp.int16(0),
            current_player=jnp.int8(0),
            outcome=jnp.int8(0),
            terminated=jnp.bool(False),
        )

    def chance(self, state: State) -> jax.Array:
        """Returns `[5]` float32, the probabilities of the rolls."""
        return jnp.where(state.roll == WAITS, THROWS, 0)

    def chance_step(self, state: State, outcome: jax.Array) -> State:
        """Returns the position after a roll of `outcome`."""
        return dataclasses.replace(state, roll=jnp.asarray(outcome).astype(jnp.int8))

    def step(self, state: State, action: jax.Array) -> State:
        """Moves a piece of the player to move to place `action`, or passes."""
        own, other = state.pieces
        is_action = (action >= 0) & (action < self.num_actions)
        end = jnp.where(is_action, action, PASS).astype(jnp.uint32)
        is_legal = is_action & (self._legal_bits(state) >> end & 1 != 0)
        is_move = is_legal & (end != PASS)
        start = jnp.where(is_move, end - state.roll.astype(jnp.uint32), START)
        # The bits from that of `HOME` on are a number.
        bit = jnp.where(is_move, jnp.uint32(1) << end, 0)
        own = (own & ~(jnp.uint32(1) << start)) + bit
        other &= ~(bit & SHARED_SQUARES)
        wins = own >> HOME == self.num_pieces
        num_moves = state.num_moves + jnp.int16(1)
        is_over = ~is_legal | wins | (num_moves >= self.max_moves)
        result = jnp.where(is_legal, wins.astype(jnp.int8), jnp.int8(-1))
        moves_again = bit & ROSETTE_SQUARES != 0
        player = state.current_player
        after = State(
            pieces=select(moves_again, (own, other), (other, own)),
            roll=jnp.where(is_over, jnp.int8(0), jnp.int8(WAITS)),
            num_moves=num_moves,
            current_player=jnp.where(moves_again, player, jnp.int8(1) - player),
            outcome=jnp.where(player == 1, -result, result),
            terminated=is_over,
        )
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[16]` bool, True for the places to which a piece can move; if there
        are none, for the pass. No action is legal before the dice are rolled."""
        return self._legal_bits(state) >> ALL_PLACES & 1 != 0

    def observe(self, state: State) -> jax.Array:
        """Returns `[3, 8, 12]` float32, the board as the player to move sees it, whose
        own row is the lower one.

        The planes: pieces of the player to move, of the opponent; where a piece of the
        player to move can move to; rosettes; whether the roll is 1, 2, 3, 4; and the
        shares of the pieces, 0 to 1, that are at the start and at home, of the player
        to move, then of the opponent.
        """
        own, other = state.pieces
        legal = self._legal_bits(state)
        squares = [own & SQUARES, other & SQUARES, legal, ROSETTE_SQUARES]
        shares = [
            number.astype(jnp.float32) / self.num_pieces
            for side in state.pieces
            for number in (self._num_at_start(side), side >> HOME)
        ]
        constants = [state.roll == roll for roll in range(1, len(THROWS))] + shares
        # One expression for all planes: a stack of planes takes twice as long.
        words = jnp.stack([*squares, *[np.uint32(0)] * len(constants)])
        values = jnp.stack([*[np.float32(0)] * len(squares), *constants])
        return (words & PLANE_BITS != 0).astype(jnp.float32) + values

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser, zeros for a draw."""
        return zero_sum(state.outcome)

    def evaluate(self, state: State) -> jax.Array:
        """Returns `[]` float32: the lead in squares that the pieces have moved, as a
        part of the way of all."""
        own, other = (
            (self._numbers(side) * ALL_PLACES).sum(dtype=jnp.uint32).astype(jnp.float32)
            for side in state.pieces
        )
        return (own - other) / (HOME * self.num_pieces)

    def board(self, state: State) -> jax.Array:
        """Returns `[3, 9]` int8: in each cell the number of pieces in it, 1 to 7, as 0
        to 6 for player 0 and 12 to 18 for player 1; in the last column the roll 0 to 4
        of the player to move as 7 to 11 or 19 to 23; -1 where there is neither."""
        is_second = state.current_player == 1
        own, other = state.pieces
        sides = select(is_second, (other, own), (own, other))
        white, black = (
            jnp.append(self._numbers(side).astype(jnp.int8), 0)[PLACES]
            for side in sides
        )
        die = MAX_PIECES + state.roll + jnp.int8(NUM_KINDS) * state.current_player
        row = jnp.where(is_second, 0, 2)
        shows = (np.arange(3) == row) & (state.roll != WAITS) & ~state.terminated
        board = jnp.where(black[::-1] > 0, NUM_KINDS + black[::-1], white) - jnp.int8(1)
        return jnp.append(board, jnp.where(shows, die, jnp.int8(-1))[:, None], axis=1)

    @property
    def column_labels(self) -> Sequence[str]:
        """`a` to `h`, and `roll` for the rolls."""
        return [*"abcdefgh", "roll"]

    def action_to_text(self, state: State, action: int) -> str:
        """Returns the square to which the piece moves, such as `c1`, `home` or
        `pass`."""
        if not 0 <= action < self.num_actions:
            raise ValueError(
                f"action {action} of {self!r}: actions are 0 to {self.num_actions - 1}"
            )
        if action in (PASS, HOME):
            return "pass" if action == PASS else "home"
        row, column = _cell(action, int(state.current_player))
        return f"{self.column_labels[column]}{self.row_labels[row]}"

    def outcome_to_text(self, state: State, outcome: int) -> str:
        """Returns the roll, such as `roll 3`."""
        return f"roll {outcome}"

    def action_cells(self, state: State, action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell to which the piece moves; none for the pass."""
        return () if action == PASS else (_cell(action, int(state.current_player)),)

    def last_cells(self, state: State, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell to which the piece moved; none after a pass or a roll."""
        if not PASS < last_action < self.num_actions:
            return ()
        mover = int(state.current_player) ^ (last_action not in ROSETTES)
        return (_cell(last_action, mover),)

    def result_text(self, state: State) -> str:
        """Returns the pieces of both players at home, the larger number first, as `7 to
        3`, or `move limit`."""
        fewer, more = sorted(int(side) >> HOME for side in state.pieces)
        if more == self.num_pieces:
            return f"{more} to {fewer}"
        return "move limit" if state.terminated and not state.outcome else ""

    def policies_on_board(
        self, state: State, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        """Returns an arrow for each move; the pass is added to the name."""
        player, roll = int(state.current_player), int(state.roll)
        legal = np.array(self.legal_action_mask(state))
        if legal[PASS]:
            return {
                f"{name} (pass {100 * policy[PASS]:.0f}%)": []
                for name, policy in policies.items()
            }
        return rendering.policies_of_moves(
            policies,
            legal,
            lambda action: (_cell(action - roll, player), _cell(action, player)),
        )

    def to_text(self, state: State, last_action: int | None = None) -> str:
        """Draws the position as text: pieces `X` of player 0 and `O` of player 1, the
        numbers of several at the start or at home, empty rosettes `*`; the square of
        the last move is marked."""
        board = self._one_board(state)
        last = () if last_action is None else self.last_cells(state, last_action)
        numbers = "".join(map(str, range(2, MAX_PIECES + 1)))
        rolls = "".join(map(str, range(len(THROWS))))
        kinds = f"X{numbers}{rolls}O{numbers}{rolls}* "
        rosette, nothing = kinds.index("*"), kinds.index(" ")
        places = np.maximum(PLACES, PLACES[::-1])
        empty = np.where(np.isin(places, ROSETTES), rosette, -1)
        empty[np.isin(places, (START, HOME))] = nothing
        empty = np.append(empty, np.full((3, 1), nothing), axis=1)
        return rendering.board_to_text(
            np.where(board < 0, empty, board),
            kinds,
            marked=last,
            column_labels=self.column_labels,
            row_labels=self.row_labels,
        )

    def _legal_bits(self, state: State) -> jax.Array:
        """Returns `[]` uint32, the bits of the legal actions."""
        own, other = state.pieces
        squares = own & SQUARES
        starts = squares | (self._num_at_start(own) > 0)
        roll = jnp.maximum(state.roll, 0).astype(jnp.uint32)
        targets = (SQUARES | _bits([HOME])) & ~squares & ~(other & CENTER_SQUARE)
        ends = starts << roll & targets
        can_pass = (ends == 0) & (state.roll != WAITS)
        return ends | can_pass

    def _num_at_start(self, side: jax.Array) -> jax.Array:
        """Returns `[]` uint32, the pieces of a player at the start."""
        return (
            self.num_pieces - jax.lax.population_count(side & SQUARES) - (side >> HOME)
        )

    def _numbers(self, side: jax.Array) -> jax.Array:
        """Returns `[16]` uint32, the pieces of a player at each place."""
        numbers = side >> ALL_PLACES & 1
        at_start = self._num_at_start(side)
        numbers = jnp.where(ALL_PLACES == START, at_start, numbers)
        return jnp.where(ALL_PLACES == HOME, side >> HOME, numbers)


def _cell(place: int, player: int) -> rendering.Cell:
    """Returns the cell of a place on the path of a player."""
    row, column = np.argwhere(place == PLACES)[0].tolist()
    return (row, column) if player == 0 else (2 - row, column)
