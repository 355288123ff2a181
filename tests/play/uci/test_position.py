import random

import chess
import pytest

from azjax import games
from azjax.play.uci.engine import PositionReader

CHESS = games.make("chess").without_move_limit()
# White can castle, promote a pawn and capture en passant.
SPECIAL = "8/P5k1/8/3pP3/8/8/8/R3K2R w KQ d6 0 9"
MATE = "f2f3 e7e5 g2g4 d8h4"


@pytest.fixture
def reader():
    return PositionReader(CHESS)


def read(reader, text):
    return CHESS.to_fen(reader.read(text.split()))


@pytest.mark.parametrize("start", [chess.STARTING_FEN, SPECIAL])
def test_positions_are_those_of_python_chess(reader, start):
    board, rng = chess.Board(start), random.Random(0)
    is_first = start == chess.STARTING_FEN
    prefix, moves = "startpos" if is_first else f"fen {start}", []
    while not board.is_game_over() and len(moves) < 80:
        move = rng.choice(list(board.legal_moves))
        board.push(move)
        moves.append(move.uci())
        fen = read(reader, f"{prefix} moves {' '.join(moves)}")
        assert fen == board.fen(en_passant="legal")


def test_other_or_illegal_moves_do_not_spoil_the_next_position(reader):
    first = read(reader, "startpos moves e2e4 e7e5")
    read(reader, "startpos moves e2e4 c7c5 g1f3")
    with pytest.raises(ValueError, match="'e2e5' is not a legal move"):
        read(reader, "startpos moves d2d4 e2e5")
    assert read(reader, "startpos moves d2d4").startswith("rnbqkbnr/pppppppp/8/8/3P4")
    assert read(reader, "startpos moves e2e4 e7e5") == first
    assert read(reader, "startpos") == chess.STARTING_FEN


def test_a_position_after_an_automatic_draw_has_moves(reader):
    fen = "8/8/4k3/8/8/4K3/8/N7 w - - 99 90"
    state = reader.read(f"fen {fen} moves e3e4 e6d6".split())
    assert not state.terminated
    assert int(state.halfmove_clock) == 101


def test_after_a_mate_and_for_a_castling_queen_there_is_no_legal_move(reader):
    assert reader.read(f"startpos moves {MATE}".split()).terminated
    with pytest.raises(ValueError, match="'a2a3' is not a legal move"):
        read(reader, f"startpos moves {MATE} a2a3")
    with pytest.raises(ValueError, match="'e1h1' is not a legal move"):
        read(reader, "fen 7k/8/8/8/8/8/8/K3Q2R b - - 0 1 moves h8g7 e1h1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "startpos startpos",
        "fen",
        "fen 8/8/8/8/8/8/8/8 w - - 0 1",
        f"fen {chess.STARTING_FEN} e2e4",
        "fen rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 99999999999999999",
        "fen 4k3/8/8/8/8/8/4R3/4K3 w - - 0 1",
    ],
)
def test_a_wrong_position_is_refused(reader, text):
    with pytest.raises(ValueError, match=r"FEN|position is startpos"):
        read(reader, text)


@pytest.mark.parametrize(
    ("text", "fen"),
    [
        ("4k3/8/8/8/8/8/8/4K3 w - -", "4k3/8/8/8/8/8/8/4K3 w - - 0 1"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 7", "4k3/8/8/8/8/8/8/4K3 w - - 7 1"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 0", "4k3/8/8/8/8/8/8/4K3 w - - 0 1"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 120 90", "4k3/8/8/8/8/8/8/4K3 w - - 100 90"),
        (SPECIAL.replace(" 0 9", " 1 9"), SPECIAL),
        (
            "4k3/P7/8/8/8/8/8/4K3 w - - 0 1 moves a7a8Q",
            "Q3k3/8/8/8/8/8/8/4K3 b - - 0 1",
        ),
        (
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1h1",
            "4k3/8/8/8/8/8/8/5RK1 b - - 1 1",
        ),
        (
            "r3k3/8/8/8/8/8/8/4K3 b q - 0 1 moves e8a8",
            "2kr4/8/8/8/8/8/8/4K3 w - - 1 2",
        ),
    ],
)
def test_positions_and_moves_are_read_as_other_engines_write_them(reader, text, fen):
    assert read(reader, f"fen {text}") == fen
