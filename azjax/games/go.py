"""Go: by area, on boards of 2 to 19 lines."""

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.games import bitboard, rendering
from azjax.games.core import Game, register, select
from azjax.games.symmetry import Symmetry, board_symmetries

MIN_SIZE, MAX_SIZE = 2, 19
MAX_KOMI = MAX_SIZE**2
MAX_MAX_MOVES = np.iinfo(np.int16).max
COLUMNS = "abcdefghjklmnopqrst"  # no i: it looks like j
NO_KO = -1
# Cells that a flood advances in one round of its loop, before it looks whether
# anything changed.
SPREADS_A_ROUND = 2


@struct.dataclass
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
    stones and the empty regions that touch no stone of the other colour.

    size: lines of the board, 2 to 19.
    komi: points that white gets for moving second, a multiple of 0.5, maybe negative;
        a whole number makes draws possible.
    superko: whether no move but a pass may bring back any earlier board of the game;
        otherwise only the retaking of a ko at once is illegal.
    max_moves: after so many moves the board is scored as it stands; 2 * size**2 unless
        given.
    """

    name: ClassVar[str] = "go"
    style = rendering.STONES

    def __init__(
        self,
        size: int = 9,
        komi: float = 7.5,
        superko: bool = False,
        max_moves: int | None = None,
    ):
        _check_int("size", size, MIN_SIZE, MAX_SIZE)
        _check_komi(komi)
        if not isinstance(superko, bool):
            raise ValueError(f"superko must be True or False: {superko!r}")
        if max_moves is None:
            max_moves = 2 * size**2
        _check_int("max_moves", max_moves, 1, MAX_MAX_MOVES)
        self.size = size
        self.komi = float(komi)
        self.superko = superko
        self.max_moves = max_moves
        self.num_actions = size**2 + 1
        self.observation_shape = (size, size, 5)
        self._grid = bitboard.Grid(size, size)
        self._keys = _make_keys(size**2)
        self._codes = _make_codes(size**2)
        cells = self._grid.cells.ravel()
        self._code_boards = [
            bitboard.constant(cells[code], self._grid.num_bits) for code in self._codes
        ]

    @property
    def options(self) -> dict[str, int | float | str | bool]:
        """Size, komi, superko and the limit of moves."""
        return {
            "size": self.size,
            "komi": self.komi,
            "superko": self.superko,
            "max_moves": self.max_moves,
        }

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight rotations and reflections of the square."""
        return board_symmetries(self.size, self.size, self.num_actions)

    @property
    def column_labels(self) -> Sequence[str]:
        """`a` to `t` from the left, without `i`."""
        return COLUMNS[: self.size]

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
        alive = self._chains_at(self._grid.full, (mine, theirs))
        captured = bitboard.difference(theirs, alive)
        theirs = bitboard.intersection(theirs, alive)
        # One that captures stays too: its liberties are where the captured ones lay.
        stays = bitboard.has_any(
            bitboard.union(bitboard.intersection(stone, alive), captured)
        )
        second_to_move = state.current_player == 1
        stones = select(second_to_move, (theirs, mine), (mine, theirs))
        hashes, is_repetition = self._remember(state, stones)
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
        # All codes have the same number of set bits, and no two are equal. Hence of the
        # codes of a chain's liberties together just that many bits are set if it has
        # one liberty, and more if it has several.
        codes = self._chains_at(_stack(self._code_boards), (mine, theirs))
        safe = _more_set_than(codes, len(self._codes) // 2)
        # A stone stays on the board if it has a liberty, joins a chain that has another
        # one, or takes the last one of an enemy chain.
        helpers = bitboard.union(
            empty,
            bitboard.intersection(mine, safe),
            bitboard.difference(theirs, safe),
        )
        playable = bitboard.intersection(empty, self._neighbours(helpers))
        cells = self._grid.cells.ravel()
        points = np.arange(self.size**2, dtype=np.int16)
        legal = bitboard.cells_set(playable, cells) & (points != state.ko)
        if self.superko:
            legal &= ~self._repetitions(state, codes)
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
        # Games that go on are not scored: without stones no region has to be flooded.
        no_stones = bitboard.empty(self._grid.num_bits)
        stones = select(state.terminated, state.stones, (no_stones, no_stones))
        black, white = self._points(stones)
        by_score = jnp.sign(2 * (black - white) - round(2 * self.komi))
        by_forfeit = 1 - 2 * state.current_player.astype(jnp.int32)
        outcome = jnp.where(state.forfeited, by_forfeit, by_score)
        outcome = jnp.where(state.terminated, outcome, 0).astype(jnp.float32)
        return jnp.stack([outcome, -outcome])

    def score(self, state: State) -> jax.Array:
        """Returns `[2]` float32: the points of black, and of white with the komi, if
        the game ended here."""
        points = jnp.stack(self._points(state.stones)).astype(jnp.float32)
        return points + np.array([0, self.komi], np.float32)

    def owners(self, state: State) -> jax.Array:
        """Returns `[size, size]` int8, the owner of each point if the game ended here:
        0 black, 1 white, -1 nobody."""
        return bitboard.pieces(self._areas(state.stones), self._grid.cells)

    def ending(self, state: State) -> str:
        """Returns who has won by how many points, as `B+12.5`; nothing for a draw."""
        if not state.terminated or state.forfeited:
            return ""
        black, white = np.asarray(_score(self, state)).tolist()
        return score_text(black - white) if black != white else ""

    def board(self, state: State) -> jax.Array:
        """Returns `[size, size]` int8: 0 where black has a stone, 1 where white has
        one, -1 where empty."""
        return bitboard.pieces(state.stones, self._grid.cells)

    def _chains_at(
        self,
        points: bitboard.Board,
        stones: tuple[bitboard.Board, bitboard.Board],
    ) -> bitboard.Board:
        """Returns the stones of the chains that have a liberty among `points`."""
        occupied = bitboard.union(*stones)
        liberties = bitboard.difference(points, occupied)
        near = bitboard.intersection(occupied, self._neighbours(liberties))
        return self._flood(near, stones)

    def _points(
        self, stones: tuple[bitboard.Board, bitboard.Board]
    ) -> tuple[jax.Array, jax.Array]:
        """Returns the points of black and of white, `[]` int32, without the komi."""
        black, white = self._areas(stones)
        return bitboard.count(black), bitboard.count(white)

    def _areas(
        self, stones: tuple[bitboard.Board, bitboard.Board]
    ) -> tuple[bitboard.Board, bitboard.Board]:
        """Returns each player's stones with the empty points that only they reach."""
        black, white = stones
        empty = bitboard.difference(self._grid.full, bitboard.union(black, white))
        near = bitboard.intersection(empty, self._neighbours(_stack(stones)))
        by_black, by_white = _unstack(self._flood(near, (empty,)))
        return (
            bitboard.union(black, bitboard.difference(by_black, by_white)),
            bitboard.union(white, bitboard.difference(by_white, by_black)),
        )

    def _neighbours(self, board: bitboard.Board) -> bitboard.Board:
        """Returns the points beside those of `board`, and some bits off the board."""
        steps = (1, -1, self._grid.stride, -self._grid.stride)
        return bitboard.union(*(bitboard.shift(board, step) for step in steps))

    def _flood(
        self, start: bitboard.Board, kinds: Sequence[bitboard.Board]
    ) -> bitboard.Board:
        """Returns the points that are connected with those of `start`.

        Args:
            start: points of any of the `kinds`; its words may have an axis, along which
                lie several boards that are flooded on their own.
            kinds: neighbours are connected where they are in the same one of these.
        """
        steps = (1, self._grid.stride)
        # For each step, the points from which it leads to a connected one.
        links = [
            bitboard.union(
                *(
                    bitboard.intersection(kind, bitboard.shift(kind, -step))
                    for kind in kinds
                )
            )
            for step in steps
        ]

        def spread(board):
            reached = [board]
            for step, link in zip(steps, links, strict=True):
                forth = bitboard.shift(bitboard.intersection(board, link), step)
                back = bitboard.intersection(bitboard.shift(board, -step), link)
                reached += [forth, back]
            return bitboard.union(*reached)

        def num_points(board):
            return bitboard.count(board).sum(dtype=jnp.int32)

        def advance(carry):
            board, _ = carry
            grown = board
            for _ in range(SPREADS_A_ROUND):
                grown = spread(grown)
            return grown, num_points(board)

        def goes_on(carry):
            board, count_before = carry
            return num_points(board) != count_before

        return jax.lax.while_loop(goes_on, advance, (start, jnp.int32(-1)))[0]

    def _ko(
        self, stone: bitboard.Board, captured: bitboard.Board, theirs: bitboard.Board
    ) -> jax.Array:
        """Returns `[]` int16: the point that may not be retaken at once, -1 for none.

        That is where `stone` captured one stone, which alone is now its liberty.
        """
        near = bitboard.intersection(self._grid.full, self._neighbours(stone))
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

    def _remember(
        self, state: State, stones: tuple[bitboard.Board, bitboard.Board]
    ) -> tuple[tuple[jax.Array, ...], jax.Array]:
        """Returns the hashes with that of the next board, and whether it was there
        before, `[]` bool, which without superko is never noticed."""
        if not self.superko:
            return (), jnp.bool(False)
        now = self._hash(stones)
        is_repetition = _is_among(now, state.hashes)
        is_next = np.arange(self.max_moves) == state.num_moves
        hashes = (
            jnp.where(is_next, half, old)
            for half, old in zip(now, state.hashes, strict=True)
        )
        return tuple(hashes), is_repetition

    def _repetitions(self, state: State, codes: bitboard.Board) -> jax.Array:
        """Returns `[size**2]` bool: whether a stone there brings back an earlier board.

        Args:
            state: the position.
            codes: the codes of the liberties of each stone's chain.
        """
        cells = self._grid.cells.ravel()
        bits = jax.vmap(lambda *words: bitboard.cells_set(words, cells))(*codes)
        powers = 1 << np.arange(len(self._codes))
        numbers = powers @ bits
        # Stone s is captured at point p where p is the only liberty of its chain.
        _, theirs = _mine_first(state)
        is_captured = bitboard.cells_set(theirs, cells) & (
            numbers == (powers @ self._codes)[:, None]
        )
        second_to_move = state.current_player == 1
        candidates = []
        for half, keys in zip(self._hash(state.stones), self._keys, strict=True):
            mine, other = select(second_to_move, (keys[1], keys[0]), (keys[0], keys[1]))
            candidates.append(half ^ mine ^ _xor(jnp.where(is_captured, other, 0)))
        return jax.vmap(_is_among, (0, None))(tuple(candidates), state.hashes)

    def _hash(
        self, stones: tuple[bitboard.Board, bitboard.Board]
    ) -> tuple[jax.Array, jax.Array]:
        """Returns the halves of a board's hash, `[]` uint32; of no stones, zeros."""
        is_set = bitboard.planes(stones, self._grid.cells).reshape(-1, 2).T
        low, high = (_xor(jnp.where(is_set, keys, 0).ravel()) for keys in self._keys)
        return low, high


@functools.partial(jax.jit, static_argnames="game")
def _score(game: Go, state: State) -> jax.Array:
    return game.score(state)


def score_text(lead: float) -> str:
    """Returns a score as Go players write it, as `B+12.5`.

    Args:
        lead: the points by which black is ahead.
    """
    return f"{'B' if lead > 0 else 'W'}+{abs(lead):g}" if lead else "0"


def _check_int(name: str, value: int, low: int, high: int) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not low <= value <= high
    ):
        raise ValueError(
            f"{name} must be a whole number from {low} to {high}: {value!r}"
        )


def _check_komi(komi: float) -> None:
    if (
        isinstance(komi, bool)
        or not isinstance(komi, int | float)
        or not abs(komi) <= MAX_KOMI
        or 2 * komi != round(2 * komi)
    ):
        raise ValueError(
            f"komi must be a multiple of 0.5 from -{MAX_KOMI} to {MAX_KOMI}: {komi!r}"
        )


def _make_codes(num_points: int) -> np.ndarray:
    """Returns `[J, num_points]` bool: a different code of J bits for each point, all
    with J // 2 bits set."""
    num_bits = next(n for n in itertools.count() if math.comb(n, n // 2) >= num_points)
    codes = np.zeros((num_bits, num_points), bool)
    ways = itertools.combinations(range(num_bits), num_bits // 2)
    for point, bits in enumerate(itertools.islice(ways, num_points)):
        codes[list(bits), point] = True
    return codes


def _make_keys(num_points: int) -> np.ndarray:
    """Returns `[2, 2, num_points]` uint32: a random number for each half of the hash,
    colour and point; the hash of a board is the xor of those of its stones (Zobrist,
    1970)."""
    generator = np.random.default_rng(1970)
    return generator.integers(2**32, size=(2, 2, num_points), dtype=np.uint32)


def _mine_first(state: State) -> tuple[bitboard.Board, bitboard.Board]:
    """Returns the stones of the player to move, and those of the opponent."""
    black, white = state.stones
    return select(state.current_player == 1, (white, black), (black, white))


def _stack(boards: Sequence[bitboard.Board]) -> bitboard.Board:
    """Returns one board whose words have an axis for the `boards`."""
    return tuple(jnp.stack(words) for words in zip(*boards, strict=True))


def _unstack(board: bitboard.Board) -> list[bitboard.Board]:
    """Returns the boards which lie along the axis of the words."""
    return [tuple(words) for words in jnp.stack(board, axis=1)]


def _more_set_than(boards: bitboard.Board, limit: int) -> bitboard.Board:
    """Returns the bits that are set in more than `limit` of the boards which lie along
    the axis of the words."""
    # Of the boards seen so far: where at least 0, 1, ... limit + 1 of them are set.
    at_least = jnp.zeros((limit + 2, len(boards)), jnp.uint32).at[0].set(~jnp.uint32(0))

    def look(at_least, board):
        return at_least.at[1:].set(at_least[1:] | at_least[:-1] & board), None

    return tuple(jax.lax.scan(look, at_least, jnp.stack(boards, axis=1))[0][-1])


def _is_among(
    board_hash: tuple[jax.Array, ...], hashes: tuple[jax.Array, ...]
) -> jax.Array:
    """Returns `[]` bool: whether a hash (`[]` halves) is one of many (`[N]` halves)."""
    low, high = (half == old for half, old in zip(board_hash, hashes, strict=True))
    return (low & high).any()


def _xor(numbers: jax.Array) -> jax.Array:
    """Returns the xor along the last axis."""
    return jax.lax.reduce_xor(numbers, (numbers.ndim - 1,))
