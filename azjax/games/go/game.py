"""Go: by area, on boards of 2 to 19 lines."""

import dataclasses
import functools
import operator
from collections.abc import Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, host, rendering
from azjax.games.core import Game, select, zero_sum
from azjax.games.game_record import RecordFormat, score_text
from azjax.games.go.chains import BoardHashes, Chains
from azjax.games.go.sgf import SGF
from azjax.games.registry import register
from azjax.games.symmetry import Symmetry, board_symmetries
from azjax.settings import check, check_int, is_number
from azjax.text import quoted

MIN_SIZE, MAX_SIZE = 2, 19
MAX_KOMI = MAX_SIZE**2
MAX_MAX_MOVES = np.iinfo(np.int16).max
COLUMNS = "abcdefghjklmnopqrst"  # no i: it looks like j
NO_KO = -1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A Go position: 32 bytes on 9x9, 104 on 19x19, without superko.

    stones: the bitboards of players 0 (black) and 1 (white), `[]` uint32 words.
    ko: `[]` int16; the action that may not be played because of ko, -1 for none.
    num_moves: `[]` int16; moves made, passes among them.
    passed: `[]` bool; whether the last move was a pass.
    forfeited: `[]` bool; whether the last action was illegal, which loses the game.
    current_player: `[]` int8; the player to move, 0 moves first.
    terminated: `[]` bool.
    hashes: with superko, two `[max_moves]` uint32, the halves of the boards' hashes
        after each move; zero for moves not yet made, which is the hash of the empty
        board. Without superko, nothing.
    """

    stones: tuple[bitboard.Board, bitboard.Board]
    ko: jax.Array
    num_moves: jax.Array
    passed: jax.Array
    forfeited: jax.Array
    current_player: jax.Array
    terminated: jax.Array
    hashes: tuple[jax.Array, ...]


@register
class Go(Game[State]):
    """Go by the rules of Tromp and Taylor, but suicide is illegal and ko is simple.

    Action `a < size**2` puts a stone on point `a`, counted row by row from the top
    left; action `size**2` passes. Two passes in a row end the game. Points are the own
    stones and the empty regions that touch no stone of the other color.

    size: lines of the board, 2 to 19.
    komi: points that white gets for moving second, a multiple of 0.5, maybe negative;
        a whole number makes draws possible.
    superko: whether no move but a pass may bring back any earlier board of the game;
        otherwise only the retaking of a ko at once is illegal.
    max_moves: number of moves after which the board is scored; default: 2 * size**2.
    """

    name: ClassVar[str] = "go"
    style = rendering.STONES
    actions_per_cell = 1
    record_format: ClassVar[RecordFormat] = SGF

    def __init__(
        self,
        size: int = 9,
        komi: float = 7.5,
        superko: bool = False,
        max_moves: int | None = None,
    ):
        check_int("size", size, MIN_SIZE, MAX_SIZE)
        _check_komi(komi)
        check("superko", superko, bool)
        if max_moves is None:
            max_moves = 2 * size**2
        check_int("max_moves", max_moves, 1, MAX_MAX_MOVES)
        self.size = size
        self.komi = float(komi)
        self.superko = superko
        self.max_moves = max_moves
        self.num_actions = size**2 + 1
        self.observation_shape = (size, size, 5)
        self._grid = bitboard.Grid(size, size)
        self._chains = Chains(self._grid)
        self._board_hashes = BoardHashes(self._chains)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight rotations and reflections of the square."""
        return board_symmetries(self.size, self.size, self.num_actions)

    @property
    def column_labels(self) -> Sequence[str]:
        """`a` to `t` from the left, without `i`."""
        return COLUMNS[: self.size]

    def without_move_limit(self) -> "Go":
        """Returns the game with the highest limit of moves; with superko the game
        itself, since its states hold a hash for each move of the longest game."""
        if self.superko:
            return self
        return Go(self.size, self.komi, max_moves=MAX_MAX_MOVES)

    @property
    def max_handicap(self) -> int:
        """The largest fixed handicap on a board of this size, 0 if there is none."""
        if self.size < 7:
            return 0
        return 4 if self.size == 7 or self.size % 2 == 0 else 9

    def handicap_points(self, num_stones: int) -> list[str]:
        """Returns the points of a fixed handicap (Farnebäck 2002, "Specification of the
        Go Text Protocol", section 4.1.1) in the notation of the game."""
        if not 2 <= num_stones <= self.max_handicap:
            raise ValueError(
                f"a handicap on {self.size} lines has 2 to {self.max_handicap} stones: "
                f"{num_stones}"
            )
        low = 3 if self.size < 13 else 4
        high, middle = self.size + 1 - low, (self.size + 1) // 2
        points = [(low, low), (high, high), (low, high), (high, low)]
        points += [(low, middle), (high, middle), (middle, low), (middle, high)]
        if num_stones > 4 and num_stones % 2:
            points.insert(num_stones - 1, (middle, middle))
        return [f"{COLUMNS[column - 1]}{row}" for column, row in points[:num_stones]]

    def init(self) -> State:
        """Returns the empty board."""
        no_stones = bitboard.empty(self._grid.num_bits)
        no_hashes = jnp.zeros(self.max_moves, jnp.uint32)
        return State(
            stones=(no_stones, no_stones),
            ko=jnp.int16(NO_KO),
            num_moves=jnp.int16(0),
            passed=jnp.bool(False),
            forfeited=jnp.bool(False),
            current_player=jnp.int8(0),
            terminated=jnp.bool(False),
            hashes=(no_hashes, no_hashes) if self.superko else (),
        )

    def step(self, state: State, action: jax.Array) -> State:
        """Puts a stone of the player to move on point `action`, or passes.

        An illegal stone on an empty point is left there, for all to see.
        """
        action = jnp.asarray(action)
        is_pass = action == self.size**2
        mine, theirs = _mine_first(state)
        stone = bitboard.difference(
            self._grid.cell(action), bitboard.union(mine, theirs)
        )
        mine = bitboard.union(mine, stone)
        alive = self._chains.with_liberty_in(self._grid.full, (mine, theirs))
        captured = bitboard.difference(theirs, alive)
        theirs = bitboard.intersection(theirs, alive)
        # One that captures stays too: its liberties are where the captured ones lay.
        stays = bitboard.has_any(
            bitboard.union(bitboard.intersection(stone, alive), captured)
        )
        second_to_move = state.current_player == 1
        stones = select(second_to_move, (theirs, mine), (mine, theirs))
        hashes, is_repetition = state.hashes, jnp.bool(False)
        if self.superko:
            hashes, is_repetition = self._board_hashes.add(
                state.hashes, state.num_moves, stones
            )
        is_placed = stays & (action != state.ko) & ~is_repetition
        num_moves = state.num_moves + jnp.int16(1)
        forfeited = ~is_placed & ~is_pass
        is_over = forfeited | (is_pass & state.passed) | (num_moves >= self.max_moves)
        after = State(
            stones=stones,
            ko=self._ko(stone, captured, theirs),
            num_moves=num_moves,
            passed=is_pass,
            forfeited=forfeited,
            current_player=jnp.int8(1) - state.current_player,
            terminated=is_over,
            hashes=hashes,
        )
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[size**2 + 1]` bool; the last, to pass, is always True."""
        mine, theirs = _mine_first(state)
        occupied = bitboard.union(mine, theirs)
        empty = bitboard.difference(self._grid.full, occupied)
        codes = self._chains.liberty_codes((mine, theirs))
        safe = self._chains.with_several_liberties(codes)
        # A stone stays on the board if it has a liberty, joins a chain that has another
        # one, or takes the last one of an enemy chain.
        helpers = bitboard.union(
            empty,
            bitboard.intersection(mine, safe),
            bitboard.difference(theirs, safe),
        )
        playable = bitboard.intersection(empty, self._chains.neighbors(helpers))
        cells = self._grid.cells.ravel()
        points = np.arange(self.size**2, dtype=np.int16)
        legal = bitboard.cells_set(playable, cells) & (points != state.ko)
        if self.superko:
            legal &= ~self._board_hashes.repetitions(
                state.hashes, state.stones, codes, state.current_player
            )
        return jnp.append(legal, True)

    def observe(self, state: State) -> jax.Array:
        """Returns `[size, size, 5]` float32, seen by the player to move.

        The planes: the own stones, the opponent's, the point forbidden by ko, ones if
        the last move was a pass, ones if the player to move is white, who has the komi.
        """
        stones = bitboard.planes(_mine_first(state), self._grid.cells)
        points = np.arange(self.size**2, dtype=np.int16).reshape(self.size, self.size)
        rest = [points == state.ko, state.passed, state.current_player == 1]
        planes = [jnp.broadcast_to(plane, points.shape) for plane in rest]
        everything = jnp.concatenate([stones, jnp.stack(planes, axis=-1)], axis=-1)
        return everything.astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the player with more points, -1 to the other."""
        # Unfinished games are not scored: without stones no region is flooded.
        no_stones = bitboard.empty(self._grid.num_bits)
        stones = select(state.terminated, state.stones, (no_stones, no_stones))
        black, white = self._points(stones)
        by_score = jnp.sign(2 * (black - white) - round(2 * self.komi))
        by_forfeit = 1 - 2 * state.current_player.astype(jnp.int32)
        outcome = jnp.where(state.forfeited, by_forfeit, by_score)
        return zero_sum(jnp.where(state.terminated, outcome, 0))

    def score(self, state: State) -> jax.Array:
        """Returns `[2]` float32: the points of black, and of white with the komi, if
        the game ended here."""
        points = jnp.stack(self._points(state.stones)).astype(jnp.float32)
        return points + np.array([0, self.komi], np.float32)

    def owners(self, state: State) -> jax.Array:
        """Returns `[size, size]` int8, the owner of each point if the game ended here:
        0 black, 1 white, -1 neither."""
        return bitboard.pieces(self._chains.areas(state.stones), self._grid.cells)

    def result_text(self, state: State) -> str:
        """Returns the winner and the margin, such as `B+12.5`; empty for a draw."""
        if not state.terminated or state.forfeited:
            return ""
        black, white = np.asarray(host.score(self, state)).tolist()
        return score_text(black - white) if black != white else ""

    def board(self, state: State) -> jax.Array:
        """Returns `[size, size]` int8: 0 where black has a stone, 1 where white has
        one, -1 where empty."""
        return bitboard.pieces(state.stones, self._grid.cells)

    def _points(
        self, stones: tuple[bitboard.Board, bitboard.Board]
    ) -> tuple[jax.Array, jax.Array]:
        """Returns the points of black and of white, `[]` int32, without the komi."""
        black, white = self._chains.areas(stones)
        return bitboard.count(black), bitboard.count(white)

    def _ko(
        self, stone: bitboard.Board, captured: bitboard.Board, theirs: bitboard.Board
    ) -> jax.Array:
        """Returns `[]` int16: the point that may not be retaken at once, -1 for none.

        That is where `stone` captured one stone, which alone is now its liberty.
        """
        near = bitboard.intersection(self._grid.full, self._chains.neighbors(stone))
        is_ko = (bitboard.count(captured) == 1) & bitboard.is_equal(
            bitboard.difference(near, theirs), captured
        )
        # The number of the only bit.
        bit = functools.reduce(
            operator.add,
            (
                jnp.where(word != 0, 32 * index + 31 - jax.lax.clz(word), 0)
                for index, word in enumerate(captured)
            ),
        )
        action = bit.astype(jnp.int32) - bit // self._grid.stride
        return jnp.where(is_ko, action, NO_KO).astype(jnp.int16)


def _check_komi(komi: float) -> None:
    if not is_number(komi) or not abs(komi) <= MAX_KOMI or 2 * komi != round(2 * komi):
        raise ValueError(
            f"komi must be a multiple of 0.5 from -{MAX_KOMI} to {MAX_KOMI}: "
            f"{quoted(komi)}"
        )


def _mine_first(state: State) -> tuple[bitboard.Board, bitboard.Board]:
    """Returns the stones of the player to move, and those of the opponent."""
    black, white = state.stones
    return select(state.current_player == 1, (white, black), (black, white))
