"""Replays chess in python-chess, and counts moves as in published tables.

    python experiments/engines/chess_rules.py --games 5000

python-chess detects the ends of games but leaves it to its user to apply them; here
they are applied as `azjax.games.chess` documents: mate first, then draws without a
claim. It has no limit of moves: azjax's limit is applied to both. The fields of a FEN
after the board are compared where the record has them; the en passant file only where a
pawn can legally capture.
"""

import collections
import dataclasses
import functools
import sys
import time

import chess
import jax
import jax.numpy as jnp
import numpy as np
import tyro

from azjax import games
from azjax.games.chess import notation

# Leaves of the tree of legal moves by depth, from 1 (chessprogramming.org, "Perft
# Results").
PERFT = {
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1": (
        (20, 400, 8_902, 197_281, 4_865_609)
    ),
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1": (
        (48, 2_039, 97_862, 4_085_603)
    ),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": (14, 191, 2_812, 43_238),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": (
        (6, 264, 9_467, 422_333)
    ),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": (
        (44, 1_486, 62_379, 2_103_487)
    ),
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": (
        (46, 2_079, 89_890, 3_894_594)
    ),
}
# Positions with few pieces: mates, stalemates, promotions, en passant, draws.
ENDGAMES = (
    "8/8/8/4k3/8/8/8/KQ6 w - - 0 1",
    "8/8/8/4k3/8/8/8/KR5R w - - 0 1",
    "4k3/8/8/8/8/8/8/KBN5 w - - 0 1",
    "4k1n1/8/8/8/8/8/8/KB6 b - - 0 1",
    "4kb2/8/8/8/8/8/8/KB4B1 w - - 0 1",
    "7k/5K2/8/6P1/8/8/8/8 w - - 0 1",
    "4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1",
    "8/PPPk4/8/8/8/8/4Kppp/8 w - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "8/8/3k4/8/1pp2pp1/8/PPPPPPPP/K6R w - - 0 1",
    "k7/8/1Q6/8/8/8/8/K1R5 w - - 80 90",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
)
FACTS = ("terminated", "rewards", "player", "legal", "board", "fen")
CHUNK = 256  # positions whose legal moves are computed at once
STEP_CHUNK = 4096  # moves that are made at once


def perft(game: games.Game, state: games.State, depth: int) -> int:
    """Counts the lines of `depth` legal moves from a position."""
    legal_action_mask, step = _compiled(game)
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    for moves_left in range(depth, 0, -1):
        children, num_lines, num_states = [], 0, len(states.terminated)
        for start in range(0, num_states, CHUNK):
            # Pad the last chunk with copies, so that only one size is compiled.
            chunk = _rows(states, np.arange(start, start + CHUNK))
            legal = np.array(legal_action_mask(chunk))
            legal[num_states - start :] = False
            legal[chunk.terminated] = False
            parents, actions = legal.nonzero()
            num_lines += len(actions)
            for first in range(0, len(actions) if moves_left > 1 else 0, STEP_CHUNK):
                moves = np.arange(first, first + STEP_CHUNK).clip(max=len(actions) - 1)
                after = step(_rows(chunk, parents[moves]), actions[moves])
                children.append(
                    _rows(after, np.arange(min(STEP_CHUNK, len(actions) - first)))
                )
        if moves_left == 1 or not children:
            return num_lines if moves_left == 1 else 0
        states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *children)
    return 1


def count_moves() -> bool:
    """Counts lines of moves from the usual test positions.

    Returns whether the counts equal the published ones.
    """
    game, agree = games.Chess(), True
    for fen, published in PERFT.items():
        state, depths = game.from_fen(fen), range(1, len(published) + 1)
        counts = tuple(perft(game, state, depth) for depth in depths)
        print(f"chess, {fen}: {counts}, published {published}", flush=True)
        agree &= counts == published
    return agree


@functools.cache
def _compiled(game: games.Game):
    """Returns `legal_action_mask` and `step` for batches of positions."""
    return jax.jit(jax.vmap(game.legal_action_mask)), jax.jit(jax.vmap(game.step))


def _rows(states: games.State, rows: np.ndarray) -> games.State:
    """Returns some of the states, padded with the last one."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf)[rows.clip(max=len(leaf) - 1)], states
    )


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in python-chess and counts the disagreements, by fact.

    The record may contain `legal` packed eight to a byte, the `fen` of the initial
    positions (`[B]`), and `castling`, `en_passant`, `clock` and `count` of all
    positions. Also counts the endings by kind, and special moves.
    """
    repetition, max_moves = bool(game.options["repetition"]), game.max_moves
    record = {name: np.asarray(values) for name, values in record.items()}
    over, rewards, players, actions = (
        record[name].tolist() for name in ("terminated", "rewards", "player", "action")
    )
    numbers = _board_numbers(record["board"])
    counts = collections.Counter[str](dict.fromkeys(("positions", *FACTS), 0))
    for row, moves in enumerate(actions):
        first = record["fen"][row] if "fen" in record else chess.STARTING_FEN
        board = chess.Board(str(first))
        for move, action in enumerate([*moves, None]):
            legal = {
                _action(m.from_square, m.to_square, m.promotion, board.turn): m
                for m in board.legal_moves
            }
            kind = ending(board, legal, repetition, max_moves)
            loser = (1, -1) if board.turn == chess.BLACK else (-1, 1)
            counts["positions"] += 1
            counts["terminated"] += (kind is not None) != over[row][move]
            result = loser if kind == "mate" else (0, 0)
            counts["rewards"] += list(result) != rewards[row][move]
            counts["board"] += _board_number(board) != numbers[row][move]
            counts["player"] += (not board.turn) != players[row][move]
            if "castling" in record:
                counts["fen"] += _fields(board) != tuple(
                    int(record[name][row, move])
                    for name in ("castling", "en_passant", "clock", "count")
                )
            ours = record["legal"][row, move]
            if ours.dtype == np.uint8:
                ours = np.unpackbits(ours, count=game.num_actions)
            counts["legal"] += sorted(legal) != ours.nonzero()[0].tolist()
            if kind is not None:
                counts[f"ended by {kind}"] += 1
            if kind is not None or over[row][move] or action is None:
                break
            if action not in legal:
                counts["legal"] += 1
                break
            chosen = legal[action]
            counts["promotions"] += chosen.promotion is not None
            counts["captures in passing"] += board.is_en_passant(chosen)
            counts["castlings"] += board.is_castling(chosen)
            board.push(chosen)
    return counts


def ending(
    board: chess.Board, legal: dict, repetition: bool, max_moves: int
) -> str | None:
    """Returns the reason why the game ends in this position, or None."""
    if not legal:
        return "mate" if board.is_check() else "stalemate"
    if board.is_insufficient_material():
        return "too little material"
    if board.halfmove_clock >= 100:
        return "fifty moves"
    if repetition and board.is_repetition(3):
        return "repetition"
    return "the limit of moves" if board.ply() >= max_moves else None


@functools.cache
def _action(start: int, end: int, promotion: int | None, turn: chess.Color) -> int:
    """Returns the number of a move, as `azjax.games.Chess` documents."""
    file, rank = chess.square_file(start), chess.square_rank(start)
    right, ahead = chess.square_file(end) - file, chess.square_rank(end) - rank
    if turn == chess.BLACK:
        rank, ahead = 7 - rank, -ahead
    jumps = ((2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1))
    directions = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
    if (ahead, right) in jumps:
        plane = 56 + jumps.index((ahead, right))
    elif promotion not in (None, chess.QUEEN):
        piece = (chess.KNIGHT, chess.BISHOP, chess.ROOK).index(promotion)
        plane = 64 + 3 * piece + right + 1
    else:
        distance = max(abs(ahead), abs(right))
        direction = (ahead // distance, right // distance)
        plane = 8 * (distance - 1) + directions.index(direction)
    return 73 * (8 * (7 - rank) + file) + plane


def _fields(board: chess.Board) -> tuple[int, int, int, int]:
    """Returns castling rights as azjax's bits, en passant file, clock and ply."""
    order = (board.turn, not board.turn)
    castling = sum(
        1 << 2 * index + side
        for index, color in enumerate(order)
        for side, has in enumerate(
            (board.has_kingside_castling_rights, board.has_queenside_castling_rights)
        )
        if has(color)
    )
    square = board.ep_square if board.has_legal_en_passant() else None
    file = -1 if square is None else chess.square_file(square)
    return castling, file, board.halfmove_clock, board.ply()


def _board_number(board: chess.Board) -> tuple[int, ...]:
    """Returns the squares of each piece as bits, with pieces as in `PNBRQKpnbrqk`."""
    return tuple(
        int(board.pieces_mask(kind, color))
        for color in (chess.WHITE, chess.BLACK)
        for kind in chess.PIECE_TYPES
    )


def _board_numbers(boards: np.ndarray) -> list[list[tuple[int, ...]]]:
    """Returns the same for azjax's boards, `[B, T, 8, 8]`."""
    # python-chess numbers squares from a1, rank by rank.
    squares = boards[:, :, ::-1].reshape(*boards.shape[:2], 1, 64)
    is_piece = squares == np.arange(12, dtype=np.int8)[:, None]
    packed = np.packbits(is_piece, axis=-1, bitorder="little")
    words = np.ascontiguousarray(packed).view("<u8")[..., 0]
    return [[tuple(pieces) for pieces in game] for game in words.tolist()]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    games: random games, rounded up to whole batches.
    repetition: whether the third occurrence of a position is a draw.
    back: probability of moving a piece back to its previous square if that is legal.
    endgames: whether the games begin in endgames.
    batch_size: parallel games.
    seed: seed of the random games.
    """

    games: int = 5_000
    repetition: bool = False
    back: float = 0.0
    endgames: bool = False
    batch_size: int = 100
    seed: int = 0


def make_player(game: games.Chess, back: float):
    """Returns jitted `(states, keys) -> record` of random games; `legal` is packed."""

    def look(state):
        return {
            "legal": jnp.packbits(game.legal_action_mask(state)),
            "player": state.current_player,
            "terminated": state.terminated,
            "rewards": game.rewards(state),
            "board": game.board(state),
            "castling": state.position.castling,
            "en_passant": state.position.en_passant,
            "clock": state.halfmove_clock,
            "count": state.move_count,
        }

    def play(state, rng_key):
        def play_move(carry, rng_key):
            state, latest = carry
            action_key, back_key = jax.random.split(rng_key)
            legal = game.legal_action_mask(state)
            action = jax.random.categorical(
                action_key, jnp.where(legal | state.terminated, 0.0, -jnp.inf)
            ).astype(jnp.int32)
            returns = jnp.asarray(_BACK)[latest[0]]
            goes_back = legal[returns] & (jax.random.uniform(back_key) < back)
            action = jnp.where(goes_back, returns, action)
            after = game.step(state, action)
            return (after, (latest[1], action)), {"action": action, **look(state)}

        keys = jax.random.split(rng_key, game.max_moves)
        latest = (jnp.int32(0), jnp.int32(0))
        (end, _), record = jax.lax.scan(play_move, (state, latest), keys)
        actions = record.pop("action")
        record = jax.tree.map(
            lambda moves, last: jnp.append(moves, last[None], axis=0), record, look(end)
        )
        return {"action": actions, **record}

    return jax.jit(jax.vmap(play))


def _moves_back() -> np.ndarray:
    """Returns for each action the reverse action; itself if there is none."""
    ends = {}
    for action in range(games.Chess.num_actions):
        if action % 73 < 64:
            ends[notation.ends(action, 0)] = action
    back = np.arange(games.Chess.num_actions)
    for (start, end), action in ends.items():
        back[action] = ends.get((end, start), action)
    return back


_BACK = _moves_back()


def main(settings: Settings) -> int:
    """Checks the games and returns the exit status."""
    game = games.Chess(repetition=settings.repetition)
    play, begin = make_player(game, settings.back), time.perf_counter()
    fens = ENDGAMES if settings.endgames else (chess.STARTING_FEN,)
    firsts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.from_fen, fens))
    counts = collections.Counter[str]()
    for batch in range(-(-settings.games // settings.batch_size)):
        which = np.arange(settings.batch_size) % len(fens)
        rng_key = jax.random.fold_in(jax.random.key(settings.seed), batch)
        keys = jax.random.split(rng_key, settings.batch_size)
        record = jax.device_get(
            play(jax.tree.map(lambda leaf, w=which: leaf[w], firsts), keys)
        )
        counts += compare(game, {**record, "fen": np.array(fens)[which]})
    wrong = {fact: counts.pop(fact, 0) for fact in FACTS}
    seconds = time.perf_counter() - begin
    print(f"{settings}: {dict(counts)}, {seconds:.0f} s; disagreements {wrong}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Settings, description=__doc__)))
