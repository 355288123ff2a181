"""Chess."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import rendering
from azjax.games.chess import notation
from azjax.games.chess.moves import Moves, attacked, generate
from azjax.games.chess.pgn import PGN
from azjax.games.chess.position import (
    NUM_ACTIONS,
    NUM_PLANES,
    Memory,
    Position,
    cells_of,
    count_earlier,
    empty_memory,
    is_insufficient,
    passing_square,
    play,
    remember,
    turned,
    words_of,
)
from azjax.games.core import Game, compiled_mask, select, zero_sum
from azjax.games.game_record import RecordFormat
from azjax.games.registry import register
from azjax.settings import check, check_int
from azjax.text import quoted

MAX_MAX_MOVES = 9999
# Petrović 1964 found a position with 218 moves, and a proof by computer (Tobs40, 2024)
# that there are no more in any position that can be reached.
MAX_LEGAL_ACTIONS = 218
_BITS = np.arange(32, dtype=np.uint32)
_WORTH = (1, 3, 3, 5, 9)  # pawns, of pawns, knights, bishops, rooks and queens


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A chess position, 56 bytes, and 800 more where repetitions count.

    position: the pieces, from the view of the player to move.
    halfmove_clock: `[]` uint8; half-moves since a pawn moved or a piece was captured.
    move_count: `[]` int16; half-moves since the beginning.
    current_player: `[]` int8; the player to move, 0 is White.
    outcome: `[]` int8; +1, 0, -1 for White once `terminated`, 0 before.
    terminated: `[]` bool.
    memory: `[100, 2]` uint32 where repetitions count, else nothing: row `c` is the hash
        of the position at which the halfmove clock last was `c`.
    """

    position: Position
    halfmove_clock: jax.Array
    move_count: jax.Array
    current_player: jax.Array
    outcome: jax.Array
    terminated: jax.Array
    memory: Memory


@register
class Chess(Game[State]):
    """Chess by the rules of FIDE (2023), with automatic draws.

    Draws are stalemate, 50 moves of both players without a capture or a pawn move
    (unless the last one mates), insufficient material (bare kings and at most a knight,
    or bishops on squares of one color), optionally the third occurrence of a position,
    and reaching `max_moves`.

    Actions are those of AlphaZero, from the view of the player to move, who plays up:
    action `73 * square + plane`, squares counted row by row from the top left. Planes
    0 to 55 are `8 * (distance - 1) + direction`, directions clockwise from straight
    ahead; 56 to 63 the knight's moves, clockwise; 64 to 72 the promotions to knight,
    bishop and rook, in each of these to the left, straight and to the right. A pawn
    that reaches the last row in a plane below 64 becomes a queen, and the king castles
    by moving two squares.

    Args:
        repetition: whether the third occurrence of a position is a draw.
        max_moves: half-moves from the beginning after which the game is drawn.
    """

    name: ClassVar[str] = "chess"
    pieces: ClassVar[str] = notation.PIECES
    style = rendering.CHESSMEN
    actions_per_cell = NUM_PLANES
    record_format: ClassVar[RecordFormat] = PGN
    num_actions = NUM_ACTIONS
    max_legal_actions = MAX_LEGAL_ACTIONS

    def __init__(self, repetition: bool = False, max_moves: int = 512):
        check("repetition of chess", repetition, bool)
        check_int("max_moves of chess", max_moves, 1, MAX_MAX_MOVES)
        self.repetition, self.max_moves = repetition, max_moves
        self.observation_shape = (8, 8, 30 + repetition)

    def without_move_limit(self) -> "Chess":
        """Returns chess with the highest limit of moves."""
        return Chess(self.repetition, MAX_MAX_MOVES)

    def init(self) -> State:
        """Returns the first position."""
        return self._set_up(notation.parse_fen(notation.FIRST_POSITION))

    def step(self, state: State, action: jax.Array) -> State:
        """Makes a move of the player to move."""
        action = jnp.asarray(action).astype(jnp.int32)
        # The positions before and after the move are looked at in a loop, so that the
        # move generator is compiled once; what the second round plays is not used.
        looks = jax.lax.scan(_look_and_move, (state.position, action), length=2)[1]
        _, _, is_legal, is_irreversible = jax.tree.map(lambda leaf: leaf[0], looks)
        position, moves, _, _ = jax.tree.map(lambda leaf: leaf[1], looks)
        clock = jnp.where(is_irreversible, 0, state.halfmove_clock + 1)
        after = dataclasses.replace(
            state,
            position=position,
            halfmove_clock=clock.astype(jnp.uint8),
            move_count=state.move_count + jnp.int16(1),
            current_player=jnp.int8(1) - state.current_player,
        )
        after = self._judge(after, moves)
        loss = 2 * state.current_player - jnp.int8(1)
        after = dataclasses.replace(
            after,
            outcome=jnp.where(is_legal, after.outcome, loss),
            terminated=after.terminated | ~is_legal,
        )
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[4672]` bool, True for the legal moves."""
        return cells_of(generate(state.position).planes).reshape(-1)

    def observe(self, state: State) -> jax.Array:
        """Returns `[8, 8, C]` float32, as the player to move sees the board.

        Pawns, knights, bishops, rooks, queens and king of the player to move, then of
        the opponent; whether the player to move may still castle to the right and to
        the left, then the opponent; the square onto which a pawn may capture in
        passing; the squares that the pawns, knights, bishops, rooks, queens and the
        king of the player to move attack, then the opponent's; the halfmove clock /
        100; where repetitions count, whether the position occurred before. C is 30, or
        31 where they count.
        """
        numbers = [state.halfmove_clock.astype(jnp.float32) / notation.FIFTY_MOVES]
        if self.repetition:
            earlier = count_earlier(state.memory, state.halfmove_clock)
            numbers.append((earlier > 0).astype(jnp.float32))
        more = jnp.broadcast_to(jnp.stack(numbers), (8, 8, len(numbers)))
        position = state.position
        rights = [position.castling >> right & 1 == 1 for right in range(4)]
        boards = [
            *(kind & position.mine for kind in position.kinds),
            *(kind & ~position.mine for kind in position.kinds),
            *(jnp.where(right, ~np.zeros(2, np.uint32), 0) for right in rights),
            passing_square(position.en_passant),
            *attacked(position).reshape(-1, 2),
        ]
        planes = cells_of(jnp.stack(boards, axis=-1)).reshape(8, 8, len(boards))
        return jnp.concatenate([planes.astype(jnp.float32), more], axis=-1)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return zero_sum(state.outcome)

    def evaluate(self, state: State) -> jax.Array:
        """Returns `[]` float32: the lead in material; a lead of 10 pawns is 1/2."""
        position = state.position
        lead = jnp.float32(0)
        for worth, pieces in zip(_WORTH, position.kinds[:-1], strict=True):
            own, other = pieces & position.mine, pieces & ~position.mine
            lead += worth * (_count(own) - _count(other))
        return lead / (10 + jnp.abs(lead))

    def board(self, state: State) -> jax.Array:
        """Returns `[8, 8]` int8, the places in `PNBRQKpnbrqk`, as White sees them."""
        is_white = state.current_player == 0
        position = select(is_white, state.position, turned(state.position))
        kinds, white = jnp.stack(position.kinds), position.mine
        words = jnp.concatenate([kinds & white, kinds & ~white])  # [12, 2]
        is_set = (words[..., None] >> _BITS & 1 == 1).reshape(12, 8, 8)
        pieces = is_set.argmax(axis=0).astype(jnp.int8)
        return jnp.where(is_set.any(axis=0), pieces, jnp.int8(-1))

    def from_fen(self, text: str) -> State:
        """Returns the position that a FEN of six fields describes.

        Raises:
            ValueError: the text is no FEN, or the position cannot be one of a game; the
                message says why.
        """
        setup = notation.parse_fen(text)
        other_is_in_check, state = _judged(self, self._set_up(setup))
        if other_is_in_check:
            color = notation.COLORS[1 - setup.player]
            raise ValueError(f"FEN {quoted(text)}: {color} is in check and not to move")
        if setup.move_count >= self.max_moves:
            raise ValueError(
                f"FEN {quoted(text)}: {setup.move_count} half-moves were made, and "
                f"{self!r} is over by then; it needs a larger max_moves"
            )
        return state

    def to_fen(self, state: State) -> str:
        """Returns the position as FEN.

        It names the en passant square only where a pawn can capture there.
        """
        player, castling = int(state.current_player), int(state.position.castling)
        own, other = ("KQ", "kq") if player == 0 else ("kq", "KQ")
        rights = [r for bit, r in enumerate(own + other) if castling >> bit & 1]
        return notation.format_fen(
            notation.Setup(
                board=np.asarray(self.board(state)),
                player=player,
                castling="".join(sorted(rights)),
                en_passant=int(state.position.en_passant),
                halfmove_clock=int(state.halfmove_clock),
                move_count=int(state.move_count),
            )
        )

    def action_to_text(self, state: State, action: int) -> str:
        """Returns the squares from which and to which a piece moves, as in `e2e4`.

        The piece that a pawn becomes follows them, as in `e7e8q`. A move off the board,
        which is never legal, has its plane in place of the second square.
        """
        if not 0 <= action < NUM_ACTIONS:
            raise ValueError(
                f"action {action} of {self!r}: actions are 0 to {NUM_ACTIONS - 1}"
            )
        player = int(state.current_player)
        words = np.asarray(state.position.pawns) & np.asarray(state.position.mine)
        pawns = (words[:, None] >> _BITS & 1 == 1).reshape(8, 8)
        return notation.move_text(action, player, pawns if player == 0 else pawns[::-1])

    def text_to_action(self, state: State, text: str) -> int:
        """Reads a legal move, as in `e2e4`, `e7e8q` (or `e7e8`), `Nf3` and `O-O`."""
        text = text.strip()
        if state.terminated:
            raise ValueError(f"{quoted(text)} cannot be played: the game is over")
        player, board = int(state.current_player), np.asarray(self.board(state))
        actions = {
            notation.move_text(action, player, board == 6 * player): action
            for action in np.flatnonzero(compiled_mask(self, state)).tolist()
        }
        pieces = {
            move: self.pieces[board[notation.ends(action, player)[0]] % 6]
            for move, action in actions.items()
        }
        found = notation.find_moves(text, pieces)
        if found and len(found) == 1:
            return actions[found[0]]
        if found:
            raise ValueError(f"{quoted(text)} may mean each of {' '.join(found)}")
        what = "is not legal here" if found is not None else f"is no move of {self!r}"
        some = " ".join(list(actions)[:20]) + (" ..." if len(actions) > 20 else "")
        raise ValueError(f"{quoted(text)} {what}; legal: {some}")

    def action_cells(self, state: State, action: int) -> tuple[rendering.Cell, ...]:
        """Returns the squares from which and to which the piece moves."""
        return notation.ends(action, int(state.current_player))

    def last_cells(self, state: State, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the squares from which and to which the piece moved."""
        if not 0 <= last_action < NUM_ACTIONS:
            return ()
        ends = notation.ends(last_action, 1 - int(state.current_player))
        return tuple(cell for cell in ends if notation.is_on_board(cell))

    def result_text(self, state: State) -> str:
        """Returns `checkmate`, `stalemate`, `insufficient material`, `fifty moves`,
        `threefold repetition` or `limit of moves`."""
        if not state.terminated:
            return ""
        if not state.outcome:
            return self._reason_of_draw(state)
        mate = 2 * int(state.current_player) - 1  # or else the last move was illegal
        return "checkmate" if state.outcome == mate else ""

    def _reason_of_draw(self, state: State) -> str:
        if not np.asarray(compiled_mask(self, state)).any():
            return "stalemate"
        if is_insufficient(state.position):
            return "insufficient material"
        if state.halfmove_clock >= notation.FIFTY_MOVES:
            return "fifty moves"
        if self.repetition and count_earlier(state.memory, state.halfmove_clock) >= 2:
            return "threefold repetition"
        return "limit of moves"

    def policies_on_board(
        self, state: State, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        """Returns an arrow for each move, one for all that a pawn may become."""
        ends = functools.partial(notation.ends, player=int(state.current_player))
        mask = np.asarray(self.legal_action_mask(state))
        return rendering.policies_of_moves(policies, mask, ends)

    def _set_up(self, setup: notation.Setup) -> State:
        """Returns the state as set up, before it is judged."""
        board, player = setup.board, setup.player
        if player == 1:
            board = np.where(board < 0, -1, (board + 6) % 12)[::-1]

        def words(*kinds):
            is_kind = np.isin(
                board, [kind + 6 * own for kind in kinds for own in (0, 1)]
            )
            return jnp.asarray(words_of(np.flatnonzero(is_kind)))

        order = "KQkq" if player == 0 else "kqKQ"
        castling = sum(1 << order.index(right) for right in setup.castling)
        position = Position(
            pawns=words(0),
            knights=words(1),
            diagonals=words(2, 4),
            straights=words(3, 4),
            kings=words(5),
            mine=jnp.asarray(words_of(np.flatnonzero((board >= 0) & (board < 6)))),
            castling=jnp.uint8(castling),
            en_passant=jnp.int8(setup.en_passant),
        )
        state = State(
            position=position,
            halfmove_clock=jnp.uint8(setup.halfmove_clock),
            move_count=jnp.int16(setup.move_count),
            current_player=jnp.int8(player),
            outcome=jnp.int8(0),
            terminated=jnp.bool(False),
            memory=(),
        )
        if not self.repetition:
            return state
        memory = remember(empty_memory(), position, state.halfmove_clock)
        return dataclasses.replace(state, memory=memory)

    def _judge(self, state: State, moves: Moves) -> State:
        """Returns the state that a legal move led to with what its own moves say.

        That is whether a pawn may be taken in passing, and whether the game is over.
        """
        position = state.position
        file = jnp.where(moves.takes_en_passant, position.en_passant, jnp.int8(-1))
        position = dataclasses.replace(position, en_passant=file)
        state = dataclasses.replace(state, position=position)
        low, high = moves.planes
        cannot_move = ((low | high) == 0).all()
        is_mate = cannot_move & moves.in_check
        is_drawn = (
            is_insufficient(state.position)
            | (state.halfmove_clock >= notation.FIFTY_MOVES)
            | (state.move_count >= self.max_moves)
        )
        if self.repetition:
            memory = remember(state.memory, state.position, state.halfmove_clock)
            state = dataclasses.replace(state, memory=memory)
            is_drawn |= count_earlier(memory, state.halfmove_clock) >= 2
        winner = 2 * state.current_player - jnp.int8(1)  # the player who moved
        return dataclasses.replace(
            state,
            outcome=jnp.where(is_mate, winner, jnp.int8(0)),
            terminated=cannot_move | is_drawn,
        )


@functools.partial(jax.jit, static_argnames="game")
def _judged(game: Chess, state: State) -> tuple[jax.Array, State]:
    """Returns whether the opponent is in check, and the judged state."""
    both = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), turned(state.position), state.position
    )
    moves = jax.vmap(generate)(both)
    own = jax.tree.map(lambda leaf: leaf[1], moves)
    return moves.in_check[0], game._judge(state, own)


def _look_and_move(
    carry: tuple[Position, jax.Array], _: None
) -> tuple[tuple[Position, jax.Array], tuple[Position, Moves, jax.Array, jax.Array]]:
    """Returns the position after an action; and what is known before it: position,
    moves, whether the action is legal, and whether it cannot be taken back."""
    position, action = carry
    moves = generate(position)
    low, high = moves.planes
    square, plane = action // NUM_PLANES, action % NUM_PLANES
    word = jnp.where(square < 32, low[plane], high[plane])
    is_action = (action >= 0) & (action < NUM_ACTIONS)
    is_legal = is_action & (word >> (square % 32).astype(jnp.uint32) & 1 == 1)
    after, is_irreversible = play(position, action)
    return (after, action), (position, moves, is_legal, is_irreversible)


def _count(pieces: jax.Array) -> jax.Array:
    return jax.lax.population_count(pieces).astype(jnp.int32).sum()
