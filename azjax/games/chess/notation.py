"""Chess as people write it: positions as FEN, moves as `e2e4` or `Nf3`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from azjax.games.chess.position import (
    FIRST_UNDER_PROMOTION,
    NUM_PLANES,
    OFFSETS,
    PAWN_DIRECTIONS,
    UNDER_PROMOTIONS,
)
from azjax.text import quoted

PIECES = "PNBRQKpnbrqk"
FILES = "abcdefgh"
FIRST_POSITION = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
FIFTY_MOVES = 100  # half-moves
COLORS = ("white", "black")

# Right: the squares of king and rook, rows counted from the top.
_CASTLING = {
    "K": ((7, 4), (7, 7)),
    "Q": ((7, 4), (7, 0)),
    "k": ((0, 4), (0, 7)),
    "q": ((0, 4), (0, 0)),
}
_COMMON_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?")
_SHORT_MOVE = re.compile(
    r"(?P<piece>[NBRQK]?)(?P<file>[a-h]?)(?P<rank>[1-8]?)[x-]?"
    r"(?P<end>[a-h][1-8])(=?(?P<promotion>[NBRQnbrq]))?[+#]?[!?]*"
)
_CASTLING_MOVE = re.compile(r"(?P<king>[O0])-(?P=king)(?P<long>-(?P=king))?[+#]?[!?]*")

Cell = tuple[int, int]  # row from the top, column from the left, as White sees them


class Setup(NamedTuple):
    """What a FEN says.

    board: `[8, 8]` int8 as White sees it, places in `PIECES`, -1 where empty.
    player: who is to move, 0 for White.
    castling: the rights, some of `KQkq`.
    en_passant: the file of the pawn that just made a double step, else -1.
    halfmove_clock: half-moves since a pawn moved or a piece was captured.
    move_count: half-moves since the beginning of the game.
    """

    board: np.ndarray
    player: int
    castling: str
    en_passant: int
    halfmove_clock: int
    move_count: int


def format_fen(setup: Setup) -> str:
    """Returns the FEN, six fields, of a position."""
    ranks = "/".join(
        "".join(f"{PIECES}1"[piece] for piece in row) for row in setup.board
    )
    ranks = re.sub("1+", lambda ones: str(len(ones.group())), ranks)
    passing_rank = "63"[setup.player]
    file = setup.en_passant
    return " ".join(
        [
            ranks,
            COLORS[setup.player][0],
            setup.castling or "-",
            "-" if file < 0 else FILES[file] + passing_rank,
            str(setup.halfmove_clock),
            str(setup.move_count // 2 + 1),
        ]
    )


def parse_fen(text: str) -> Setup:
    """Reads a FEN with all its six fields.

    Raises:
        ValueError: the text is no FEN, or the position cannot be one of a game; the
            message says why. Whether the side not to move is in check is not looked at.
    """
    try:
        fields = text.split()
        if len(fields) != 6:
            raise ValueError(f"a FEN has 6 fields, this one {len(fields)}")
        ranks, color, castling, passing, clock, number = fields
        if color not in ("w", "b"):
            raise ValueError(f"the side to move is w or b: {quoted(color)}")
        board, player = _parse_ranks(ranks), "wb".index(color)
        halfmove_clock = _parse_number("halfmove clock", clock, 0, FIFTY_MOVES)
        moves = _parse_number("move number", number, 1, 9999)
        _check_pieces(board)
        _check_castling(castling, board)
        en_passant = _parse_passing(passing, player, board)
        if en_passant >= 0 and halfmove_clock > 0:
            raise ValueError(
                f"after the double step to {passing} the halfmove clock is 0: {clock}"
            )
        rights = "".join(right for right in _CASTLING if right in castling)
        move_count = 2 * (moves - 1) + player
        return Setup(board, player, rights, en_passant, halfmove_clock, move_count)
    except ValueError as error:
        raise ValueError(f"FEN {quoted(text)}: {error}") from None


def _parse_ranks(text: str) -> np.ndarray:
    ranks = text.split("/")
    if len(ranks) != 8:
        raise ValueError(f"a board has 8 ranks, this one {len(ranks)}")
    board = np.full((8, 8), -1, np.int8)
    for row, rank in enumerate(ranks):
        unknown = set(rank) - set(PIECES + "12345678")
        if unknown:
            raise ValueError(f"no piece is called {min(unknown)!r}; they are {PIECES}")
        if re.search("[1-8]{2}", rank):
            raise ValueError(f"two numbers follow each other in rank {quoted(rank)}")
        cells = re.sub("[1-8]", lambda number: int(number.group()) * ".", rank)
        if len(cells) != 8:
            raise ValueError(f"rank {quoted(rank)} has {len(cells)} squares, not 8")
        board[row] = [PIECES.find(cell) for cell in cells]
    return board


def _parse_number(name: str, text: str, lowest: int, highest: int) -> int:
    is_number = text.isascii() and text.isdigit()
    if not is_number or not lowest <= int(text) <= highest:
        raise ValueError(
            f"the {name} is a number from {lowest} to {highest}: {quoted(text)}"
        )
    return int(text)


def _check_pieces(board: np.ndarray) -> None:
    for color, name in enumerate(COLORS):
        counts = [int((board == 6 * color + kind).sum()) for kind in range(6)]
        pawns, *_, kings = counts
        if kings != 1:
            raise ValueError(f"{name} has {kings} kings, not 1")
        if (board[[0, 7]] == 6 * color).any():
            raise ValueError(f"a {name} pawn stands on the first or last rank")
        # As many as there are at first of knights, bishops, rooks and queens.
        first = (2, 2, 2, 1)
        extra = (max(0, n - m) for n, m in zip(counts[1:5], first, strict=True))
        if pawns + sum(extra) > 8:
            raise ValueError(
                f"{name} has more pieces than 8 pawns can become: {counts[:5]} pawns, "
                "knights, bishops, rooks and queens"
            )
    white, black = (np.argwhere(board == PIECES.index(king))[0] for king in "Kk")
    if np.abs(white - black).max() == 1:
        raise ValueError("the kings stand next to each other")


def _check_castling(text: str, board: np.ndarray) -> None:
    if text != "-" and not re.fullmatch(r"(?!.*(.).*\1)[KQkq]+", text):
        raise ValueError(f"castling rights are some of KQkq, or -: {quoted(text)}")
    for right in text.replace("-", ""):
        king, rook = _CASTLING[right]
        pieces = "KR" if right.isupper() else "kr"
        if [board[king], board[rook]] != [PIECES.index(piece) for piece in pieces]:
            raise ValueError(
                f"castling right {right} needs {pieces[0]} on {_name(king)} and "
                f"{pieces[1]} on {_name(rook)}"
            )


def _parse_passing(text: str, player: int, board: np.ndarray) -> int:
    if text == "-":
        return -1
    row, rank = (2, "6") if player == 0 else (5, "3")
    if not re.fullmatch(f"[a-h]{rank}", text):
        raise ValueError(
            f"the en passant square is a square of rank {rank} when {COLORS[player]} "
            f"is to move, or -: {quoted(text)}"
        )
    column = FILES.index(text[0])
    before, after = (row - 1, row + 1) if player == 0 else (row + 1, row - 1)
    pawn = PIECES.index("p" if player == 0 else "P")
    if board[after, column] != pawn or (board[[row, before], column] >= 0).any():
        raise ValueError(f"no pawn has just made a double step over {text}")
    return column


def ends(action: int, player: int) -> tuple[Cell, Cell]:
    """Returns from where to where an action moves; the latter may be off the board."""
    square, plane = divmod(action, NUM_PLANES)
    row, column = divmod(square, 8)
    down, right = OFFSETS[plane].tolist()
    if player == 0:
        return (row, column), (row + down, column + right)
    return (7 - row, column), (7 - row - down, column + right)


def is_on_board(cell: Cell) -> bool:
    """Returns whether there is such a cell."""
    return 0 <= cell[0] < 8 and 0 <= cell[1] < 8


def move_text(action: int, player: int, pawns: np.ndarray) -> str:
    """Returns a move as in `e2e4`, `e7e8q`.

    Args:
        action: the action.
        player: who makes it, 0 for White.
        pawns: `[8, 8]` bool as White sees them, true where that player has a pawn.
    """
    start, end = ends(action, player)
    plane = action % NUM_PLANES
    if not is_on_board(end):
        return f"{_name(start)} plane {plane}"
    if plane >= FIRST_UNDER_PROMOTION:
        which = (plane - FIRST_UNDER_PROMOTION) // len(PAWN_DIRECTIONS)
        promotion = UNDER_PROMOTIONS[which]
    else:
        promotion = "q" if pawns[start] and end[0] in (0, 7) else ""
    return _name(start) + _name(end) + promotion


def find_moves(text: str, pieces: Mapping[str, str]) -> list[str] | None:
    """Returns the moves that a text may mean, or None if no move is written like that.

    Args:
        text: as in `e2e4`, `e7e8q`, `Nf3`, `exd5`, `e8=N+`, `e2-e4`, `O-O`. A
            promotion without a piece is one to a queen.
        pieces: for each of the possible moves as in `e2e4`, the piece that it moves,
            one of `PNBRQK`.
    """
    if _COMMON_MOVE.fullmatch(text):
        return [move for move in (text, f"{text}q") if move in pieces]
    castling = _CASTLING_MOVE.fullmatch(text.replace("o", "O"))
    if castling:
        files = "ec" if castling["long"] else "eg"
        return [m for m, piece in pieces.items() if piece == "K" and m[::2] == files]
    short = _SHORT_MOVE.fullmatch(text)
    if not short:
        text = text.lower()  # as in E2E4
        return find_moves(text, pieces) if _COMMON_MOVE.fullmatch(text) else None
    piece = short["piece"] or "P"
    promotion = (short["promotion"] or "q").lower()
    # A pawn that leaves its file names it.
    file = short["file"] or (short["end"][0] if piece == "P" else "")
    return [
        move
        for move, moved in pieces.items()
        if moved == piece
        and move[0].startswith(file)
        and move[1].startswith(short["rank"])
        and move[2:] in (short["end"], short["end"] + promotion)
    ]


def _name(cell: Cell) -> str:
    row, column = cell
    return f"{FILES[column]}{8 - row}"
