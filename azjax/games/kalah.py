"""Kalah: seeds are sown around the board into the own store."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import rendering
from azjax.games.core import Game, zero_sum
from azjax.games.registry import register
from azjax.settings import check, check_int

MAX_PITS, MAX_SEEDS = 7, 6
MAX_TOTAL = 2 * MAX_PITS * MAX_SEEDS
# No game is longer on any of these boards. A move that stores no seed brings seeds
# nearer to the end of their row, a seed by one pit at least. With L pits a row, a seed
# in the store brings at most L * (L - 1) pits back: the seeds of a sowing that fall
# into all pits. Those of the start have at most seeds * L * (L - 1) pits to go.
MAX_MAX_MOVES = MAX_TOTAL * (1 + MAX_PITS * (MAX_PITS - 1)) + MAX_SEEDS * MAX_PITS * (
    MAX_PITS - 1
)
Remaining = Literal["owner", "opponent", "nobody"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A Kalah position, 2 * pits + 6 bytes.

    seeds: `[2, pits + 1]` uint8; the seeds of the player to move and of the opponent,
        in the pits in the order of sowing, then in the store.
    num_moves: `[]` int16; moves made.
    current_player: `[]` int8; the player to move, 0 moves first. After an illegal
        action it is the player who chose it.
    terminated: `[]` bool. The pits are empty then, except after an illegal action.
    """

    seeds: jax.Array
    num_moves: jax.Array
    current_player: jax.Array
    terminated: jax.Array


@register
class Kalah(Game[State]):
    """Kalah by the rules of Irving, Donkers and Uiterwijk (2000, "Solving Kalah").

    Each player has a row of pits and a store at the right end of it. Action `a` takes
    all seeds out of pit `a` of the player to move, counted from the left end of the
    row as its owner sees it, and sows them one by one into the next pits, the own
    store, the opponent's pits, and so on around, without the opponent's store. If the
    last seed falls into the own store, the same player moves again. If it falls into an
    own empty pit, this seed and those in the pit on the other side of the board go to
    the own store. The game is over when all pits of a player are empty after a move;
    the seeds that are left go to the store of their owner. More seeds win, equally many
    are a draw.

    Games can be much longer than usual: the longest on four pits with two seeds has 45
    moves, a random one 12 on average. So that training and front ends can count on a
    useful length, the game is also over after `max_moves` moves. With six pits and four
    seeds, the limit is 120, and the longest of 200,000 random games had 80 moves (92
    without `empty_capture`).

    Player 0, South, is drawn below, with the store on the right. Pits have names such
    as `c1`, the third from the left of South, and `c2`, the one above it.

    pits: pits of each player, 1 to 7.
    seeds: seeds in each pit at the start, 1 to 6.
    empty_capture: whether the last seed is captured from an own empty pit also if the
        pit on the other side is empty.
    remaining: who gets the seeds that are left at the end: `owner` of the pits,
        `opponent`, or `nobody`.
    max_moves: number of moves after which the game is over; default: 4 * pits * (seeds
        + 1).
    """

    name: ClassVar[str] = "kalah"
    pieces: ClassVar[str] = rendering.SEED_LETTERS
    style: ClassVar[rendering.Style] = rendering.SEEDS
    has_extra_turns = True

    def __init__(
        self,
        pits: int = 6,
        seeds: int = 4,
        empty_capture: bool = True,
        remaining: Remaining = "owner",
        max_moves: int | None = None,
    ):
        check_int("pits", pits, 1, MAX_PITS)
        check_int("seeds", seeds, 1, MAX_SEEDS)
        check("empty_capture", empty_capture, bool)
        check("remaining", remaining, Remaining)
        if max_moves is None:
            max_moves = 4 * pits * (seeds + 1)
        check_int("max_moves of kalah", max_moves, 1, MAX_MAX_MOVES)
        self.pits, self.seeds = pits, seeds
        self.empty_capture = empty_capture
        self.remaining: Remaining = remaining
        self.max_moves = max_moves
        self.num_actions = pits
        # Each seed count up to a whole lap is a plane.
        self.observation_shape = (2, pits + 2, 2 * pits + 3)

    def without_move_limit(self) -> "Kalah":
        """Returns the game with a limit of moves that no game reaches."""
        return Kalah(
            self.pits, self.seeds, self.empty_capture, self.remaining, MAX_MAX_MOVES
        )

    def init(self) -> State:
        """Returns the board with `seeds` seeds in each pit."""
        row = np.full(self.pits + 1, self.seeds, np.uint8)
        row[-1] = 0
        return State(
            seeds=jnp.array([row, row]),
            num_moves=jnp.int16(0),
            current_player=jnp.int8(0),
            terminated=jnp.bool(False),
        )

    def step(self, state: State, action: jax.Array) -> State:
        """Sows the seeds of pit `action` of the player to move."""
        own, other = state.seeds.astype(jnp.int32)
        # The ring of pits in the order of sowing: own pits, own store, other pits.
        ring, store = 2 * self.pits + 1, self.pits
        place = np.arange(ring)
        seeds = jnp.concatenate([own, other[:-1]])
        is_start = (place == action) & (place < store)
        sown = jnp.where(is_start, seeds, 0).sum()
        is_legal = sown > 0
        laps, rest = sown // ring, sown % ring
        ahead = place - action
        ahead = jnp.where(ahead < 0, ahead + ring, ahead)
        gets_more = (ahead > 0) & (ahead <= rest)
        seeds = jnp.where(is_start, 0, seeds) + laps + gets_more
        is_last = ahead == rest
        # A pit and the one on the other side are as far from the own store.
        opposite = seeds[::-1]
        captures = is_last & (place < store) & (seeds == 1)
        if not self.empty_capture:
            captures &= opposite > 0
        captured = jnp.where(captures, 1 + opposite, 0).sum()
        seeds = jnp.where(captures | captures[::-1], 0, seeds)
        seeds += jnp.where(place == store, captured, 0)
        rows = jnp.stack(
            [seeds[: ring - store], jnp.append(seeds[store + 1 :], other[-1])]
        )
        num_moves = state.num_moves + jnp.int16(1)
        is_over = ~rows[:, :-1].any(axis=1).all() | (num_moves >= self.max_moves)
        rows = jnp.where(is_over, self._final(rows), rows)
        moves_again = is_last[store]
        rows = jnp.where(moves_again, rows, rows[::-1]).astype(jnp.uint8)
        player = jnp.where(
            moves_again, state.current_player, jnp.int8(1) - state.current_player
        )
        stays = state.terminated | ~is_legal
        return State(
            seeds=jnp.where(stays, state.seeds, rows),
            num_moves=jnp.where(stays, state.num_moves, num_moves),
            current_player=jnp.where(stays, state.current_player, player),
            terminated=stays | is_over,
        )

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[pits]` bool, True for the pits that are not empty."""
        return state.seeds[0, :-1] > 0

    def observe(self, state: State) -> jax.Array:
        """Returns `[2, pits + 2, 2 * pits + 3]` float32, the board as the player to
        move sees it: its pits in the lower row, its store on the right.

        The planes: seeds in pits and stores, where 1 is half of all seeds; for each
        number from 1 to 2 * pits + 1, the pits with so many seeds; and the pits, of
        both players, whose last seed would fall into the store of their owner.
        """
        counts = _on_board(state.seeds.astype(jnp.int32), 0)
        ring = 2 * self.pits + 1
        numbers = np.arange(1, ring + 1)
        is_pit = np.ones(counts.shape, bool)
        is_pit[:, [0, -1]] = False
        # A whole lap more ends in the same place.
        to_store = np.zeros(counts.shape, int)
        to_store[:, 1:-1] = [numbers[: self.pits], numbers[: self.pits][::-1]]
        planes = jnp.concatenate(
            [
                counts[..., None] / (self.pits * self.seeds),
                (counts[..., None] == numbers) & is_pit[..., None],
                ((counts % ring == to_store) & is_pit)[..., None],
            ],
            axis=-1,
        )
        return planes.astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser, zeros for a draw."""
        stores = state.seeds[:, -1].astype(jnp.int32)
        is_illegal = self.legal_action_mask(state).any()
        result = jnp.where(is_illegal, -1, jnp.sign(stores[0] - stores[1]))
        result = jnp.where(state.current_player == 1, -result, result)
        return zero_sum(jnp.where(state.terminated, result, 0))

    def evaluate(self, state: State) -> jax.Array:
        """Returns `[]` float32: the lead in stored seeds, as a part of all seeds."""
        stores = state.seeds[:, -1].astype(jnp.float32)
        return (stores[0] - stores[1]) / (2 * self.pits * self.seeds)

    def score(self, state: State) -> jax.Array:
        """Returns `[2]` float32, the seeds of each player if the game ended now."""
        stores = self._final(state.seeds.astype(jnp.int32))[:, -1]
        second_to_move = state.current_player == 1
        return jnp.where(second_to_move, stores[::-1], stores).astype(jnp.float32)

    def board(self, state: State) -> jax.Array:
        """Returns `[2, pits + 2]` int8, the seeds in each pit and store: the store of
        player 1 at the top left, that of player 0 at the bottom right; -1 in the other
        two corners."""
        rows = state.seeds.astype(jnp.int8)
        rows = jnp.where(state.current_player == 1, rows[::-1], rows)
        return _on_board(rows, -1)

    @property
    def column_labels(self) -> Sequence[str]:
        """`N` for the store of player 1, `a` to `g` for the pits from the left, `S` for
        the store of player 0."""
        return ["N", *"abcdefg"[: self.pits], "S"]

    def action_to_text(self, state: State, action: int) -> str:
        """Returns the pit, such as `c1`; `c2` is above it."""
        row, column = self._cell(action, int(state.current_player))
        return f"{self.column_labels[column]}{self.row_labels[row]}"

    def action_cells(self, state: State, action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell of the pit."""
        return (self._cell(action, int(state.current_player)),)

    def last_cells(self, state: State, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell of the pit whose seeds were sown; none if it could be either
        player's, and in a finished game."""
        if not 0 <= last_action < self.pits or state.terminated:
            return ()
        rows = np.asarray(state.seeds)
        # The pit is empty, unless the seeds went around the whole board.
        is_possible = (rows[:, last_action] == 0) | (rows[:, :-1] > 0).all()
        # The player to move has moved before only if the last seed is in the store.
        is_possible[0] &= (rows[0, last_action + 1 :] > 0).all()
        if is_possible.sum() != 1:
            return ()
        mover = int(state.current_player) ^ int(is_possible.argmax())
        return (self._cell(last_action, mover),)

    def result_text(self, state: State) -> str:
        """Returns the seeds of both players, the larger number first, as `26 to 22`."""
        rows = np.asarray(state.seeds)
        if not state.terminated or rows[:, :-1].any():  # an illegal action
            return ""
        fewer, more = sorted(rows[:, -1].tolist())
        return f"{more} to {fewer}"

    def policies_on_board(
        self, state: State, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        """Returns the probabilities of the columns, that of a pit in its column."""
        columns = [
            self._cell(action, int(state.current_player))[1]
            for action in range(self.pits)
        ]
        placed = {}
        for name, policy in policies.items():
            placed[name] = np.zeros(self.pits + 2, policy.dtype)
            placed[name][columns] = policy
        return placed

    def to_text(self, state: State, last_action: int | None = None) -> str:
        """Draws the position as text; the pit of the last move is marked."""
        board = self._one_board(state)
        last = () if last_action is None else self.last_cells(state, last_action)
        return rendering.board_to_text(
            board,
            [*map(str, range(2 * self.pits * self.seeds + 1))],
            marked=last,
            column_labels=self.column_labels,
            row_labels=self.row_labels,
            empty=" ",
        )

    def _final(self, rows: jax.Array) -> jax.Array:
        """Returns `[2, pits + 1]` int32, the seeds after those that are left in the
        pits were taken out."""
        left = rows[:, :-1].sum(axis=1)
        if self.remaining == "opponent":
            left = left[::-1]
        elif self.remaining == "nobody":
            left = jnp.zeros_like(left)
        stores = rows[:, -1] + left
        return jnp.zeros_like(rows).at[:, -1].set(stores)

    def _cell(self, action: int, player: int) -> rendering.Cell:
        """Returns the cell of a player's pit, as drawn."""
        if not 0 <= action < self.pits:
            raise ValueError(
                f"action {action} of {self!r}: actions are 0 to {self.pits - 1}"
            )
        return (1, action + 1) if player == 0 else (0, self.pits - action)


def _on_board(rows: jax.Array, unused: int) -> jax.Array:
    """Returns `[2, pits + 2]`, the lower row's seeds `rows[0]` and the upper row's,
    which are sown to the left; `unused` at the top right and bottom left."""
    corner = jnp.full((1,), unused, rows.dtype)
    lower = jnp.concatenate([corner, rows[0]])
    upper = jnp.concatenate([corner, rows[1]])[::-1]
    return jnp.stack([upper, lower])
