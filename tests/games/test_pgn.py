import functools
import io
import re

import chess.pgn
import numpy as np
import pytest
from compiled_games import compiled, random_game

from azjax.games import GameRecord, host
from azjax.games.chess.notation import move_text
from azjax.games.chess.scores import centipawns, expected_result

CHESS = compiled("chess")
NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


@functools.cache
def actions_of(player):
    """Returns the actions of a player by their texts."""
    no_pawns = np.zeros((8, 8), bool)
    return {move_text(a, player, no_pawns): a for a in range(CHESS.num_actions)}


def record(moves, result=0, fault="", opening_moves=0):
    """Returns the record of a game from its moves in the notation of the game."""
    actions = [actions_of(n % 2)[text] for n, text in enumerate(moves.split())]
    return GameRecord(NAMES, actions, result, fault, opening_moves)


def read_pgn(text):
    file, found = io.StringIO(text), []
    while (read := chess.pgn.read_game(file)) is not None:
        assert not read.errors
        found.append(read)
    return found


@pytest.mark.slow
def test_another_program_reads_the_same_games():
    generator, results = np.random.default_rng(0), {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
    names, records = ("random", "gtp:x --level 1"), []
    for _ in range(3):
        actions, end = random_game(CHESS, generator)
        result = int(np.asarray(CHESS.rewards(end))[0])
        records.append(GameRecord(names, actions, result, ""))
    found = read_pgn(CHESS.record_format.write(CHESS, records))
    for read, written in zip(found, records, strict=True):
        state, texts = CHESS.init(), []
        for action in written.moves:
            texts.append(CHESS.action_to_text(state, action))
            state = host.next_state(CHESS, state, action)
        assert [move.uci() for move in read.mainline_moves()] == texts
        assert (read.headers["White"], read.headers["Black"]) == names
        assert read.headers["Result"] == results[written.result]


@pytest.mark.parametrize(
    ("moves", "last"),
    [
        ("f2f3 e7e5 g2g4 d8h4", "Qh4#"),
        ("e2e4 d7d5 e4d5", "exd5"),
        ("e2e4 a7a6 e4e5 d7d5 e5d6", "exd6"),
        ("e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1", "O-O"),
        ("d2d4 d7d5 b1c3 b8c6 c1f4 c8f5 d1d2 d8d7 e1c1", "O-O-O"),
        ("b1c3 a7a6 g1f3 a6a5 f3d4 a5a4 d4b5 a4a3 c3d5 a3b2 d5c3", "Ndc3"),
        ("a2a4 h7h5 a4a5 h5h4 a5a6 h4h3 a6b7 h3g2 b7a8n", "bxa8=N"),
        ("e2e4 f7f6 d1h5", "Qh5+"),
        ("a2a4 a7a6 a1a3 b7b6 h2h4 c7c6 a3h3 d7d6 h3h2", "R3h2"),
    ],
)
def test_moves_are_in_standard_algebraic_notation(moves, last):
    text = CHESS.record_format.write(CHESS, [record(moves)])
    (read,) = read_pgn(text)
    assert [move.uci() for move in read.mainline_moves()] == moves.split()
    before = read.end().parent
    assert before.board().san(read.end().move) == last
    assert f" {last} " in text.replace("\n", " ")


def test_evaluations_are_written_and_read():
    values = (None, 0.1, None, -1.0, 0.0)
    written = record("e2e4 e7e5 g1f3 b8c6 f1c4")._replace(values=values)
    text = CHESS.record_format.write(CHESS, [written])
    assert "1. e4 e5 {[%eval 0.35]} 2. Nf3 Nc6 {[%eval -20.00]} 3. Bc4" in text
    (read,) = read_pgn(text)
    scores = [node.eval() for node in read.mainline()]
    assert [score and score.white().score() for score in scores] == [
        *(None, 35, None, -2000, 0)
    ]
    (found,) = CHESS.record_format.read(text)
    for value, expected in zip(found.values, values, strict=True):
        assert value == (expected and pytest.approx(expected, abs=1e-3))


def test_comments_are_not_broken():
    written = record("g1f3 g8f6 f3g1 f6g8 " * 10)._replace(values=[0.25] * 40)
    for opening_moves in range(1, 11):
        written = written._replace(opening_moves=opening_moves)
        text = CHESS.record_format.write(CHESS, [written])
        assert text.count("[%eval 0.89]") == 40
        assert "the moves so far were made at random}" in text
        assert max(map(len, text.splitlines())) <= 79


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[%eval 0.17]", 0.17),
        ("[%eval +0.17,20] [%clk 0:03:00]", 0.17),
        ("[%clk 0:03:00][%eval -.5]", -0.5),
        ("good [%eval\n5.,\n20 ] indeed", 5),
        ("[%eval 0.1705]", 0.1705),
        ("[%eval 0.17] [%eval 2.0]", 0.17),
        ("[%eval 999999999999.0]", 1e10),
        ("[%evp 0,1] [%emt 0:00:01] +0.17/20 1.2s", None),
    ],
)
def test_an_evaluation_is_read_as_programs_write_it(text, value):
    (found,) = CHESS.record_format.read(f"1. e4 {{{text}}} 1... e5 {{[%eval 0.0]}} *")
    expected = None if value is None else pytest.approx(expected_result(100 * value))
    assert found.values == (expected, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        "[%eval +M3]",
        "[%eval",
        "[%eval ]",
        "[%eval #]",
        "[%eval 17,20]",  # centipawns, as ChessBase writes them
        "[%eval 12]",
        "[%eval 0,17]",
        "[%eval \u0661.5]",
    ],
)
def test_a_wrong_evaluation_is_an_error(wrong):
    text = f"1. e4 e5 2. Nf3 Nc6 {{[%eval 0.1] well {wrong}}} *"
    (error,) = CHESS.record_format.read(text)
    pattern = r"game 1: an evaluation must be .*: '(.*)' after 2\.\.\. Nc6"
    assert re.match(pattern, str(error))
    assert wrong in str(error)


MANY = "9" * 5000


@pytest.mark.parametrize(
    ("text", "values", "opening_moves"),
    [
        ("1. e4 {[%eval #-3] [%clk 0:03:00]} 1... e5 {[%eval #2]}", (-1, 1), 0),
        ("1. f3 e5 2. g4 Qh4# {[%eval #0]}", (None, None, None, -1), 0),
        ("1. e4 g5 2. d4 f6 3. Qh5# {[%eval #0]}", (*[None] * 4, 1), 0),
        (f"1. e4 {{[%eval #{MANY}]}} 1... e5 {{[%eval #-{MANY}]}}", (1, -1), 0),
        ("{[%eval bad]} 1. e4 {[%eval #1]} (1. d4 {[%eval bad]})", (1,), 0),
        ("1. e4 {the moves so far\nwere made at random} 1... e5", (), 1),
    ],
)
def test_mates_and_random_moves_are_read_from_comments(text, values, opening_moves):
    """They are not read from variations, nor before the first move."""
    (found,) = CHESS.record_format.read(text)
    assert (found.values, found.opening_moves) == (values, opening_moves)


def test_forfeits_resignation_and_random_moves_are_comments():
    lost = record("e2e4", result=1, fault="the engine } died")
    resigned = record("e2e4 e7e5 g1f3", result=1, fault="resigned", opening_moves=2)
    text = CHESS.record_format.write(CHESS, [lost, resigned])
    assert r'[Black "a \"player\" [x\\y]"]' in text
    for read, ending, comments in zip(
        read_pgn(text),
        ("rules infraction", "normal"),
        (
            ["the engine ) died"],
            ["", "the moves so far were made at random", "resigned"],
        ),
        strict=True,
    ):
        assert read.headers["Result"] == "1-0"
        assert read.headers["Termination"] == ending
        assert [node.comment for node in read.mainline()] == comments


@pytest.mark.parametrize(
    ("text", "games"),
    [
        ("1. ♘f3 ♞f6 2. ♙g3 g6", ["Nf3 Nf6 g3 g6"]),
        (
            '[White "A"]\n[Result "1-0"]\n1. e4 e5 1-0\n[White "C"]\n1. d4 d5 0-1',
            ["e4 e5", "d4 d5"],
        ),
        ("1. e4 e5 1-0 {won} 1. d4 0-1 {lost}", ["e4 e5", "d4"]),
        ("1. e4 e5\n1. d4 1... d5", ["e4 e5", "d4 d5"]),
        ('[White "A"]\n\n[White "C"]\n\n1. d4 *', ["", "d4"]),
        ('[Event "The "Big" Open"] [Round "1"]\n\n1. e4 *\n\x1a', ["e4"]),
        (
            "1.e4 e5 2.f4 (2.Nf3 Nc6 (2...d6) 1-0) exf4 $1 3.Nf3!? g5 +- 4. h4 *",
            ["e4 e5 f4 exf4 Nf3 g5 h4"],
        ),
        ('{first} [White "A"] [Black "B"]\r\r1. e4 e5 ½-½', ["e4 e5"]),
        ("1. e4 e5 ; Sf3 1-0\n% Sf3\n2. exd6e.p.", ["e4 e5 exd6"]),
        ("1.e4 e5\n\n1.d4 d5\n1 c4 e5\n1\nc4", ["e4 e5", "d4 d5", "c4 e5", "c4"]),
        ("1. e4 {x} 1. ... e5 (+1.25) 2. O-O *", ["e4 e5 O-O"]),
        ("5. b8(N) (5... g1=Q) g1=N *".replace("5", "1"), ["b8N g1=N"]),
        ("1. e4 0000 *", ["game 1: move 2 is a null move, which chess does not have"]),
        (
            "1. e4 1-0 2. d4 *",
            ["e4", "game 2: its moves begin with number 2 in line 1"],
        ),
        ('[variant "Atomic"]\n1. e4 *', ["game 1: it is of the variant 'Atomic'"]),
        ("1. e4 -- 2. d4 *", ["game 1: move 2 is a null move, which chess does not"]),
        # After a game that cannot be read, the next one is.
        (
            '1. e4 *\n\n[White "B"]\n1. d4 { open *\n\n[White "C"]\n1. c4 {x} e5 *',
            ["e4", "game 2: the comment that begins in line 4 has no end", "c4 e5"],
        ),
        (
            '[White "A]\n[Black "B"]\n\n1. e4 *\n\n[White "C"]\n\n1. d4 *',
            ["game 1: '[White' in line 1 is no part of PGN", "d4"],
        ),
        (
            '1. e4 (1. d4 d5 1-0\n[White "C"]\n1. d4 *',
            ["game 1: the parentheses of a variation do not match in line 2", "d4"],
        ),
        (
            '[Variant "Atomic"]\n1. e4 *\n[FEN "8/8 w - - 0 1"]\n1. e4 *\n1. d4 *',
            ["game 1: it is of the variant", "game 2: it starts from another", "d4"],
        ),
        ("1. e4 (1. Sf3 ) e5 *", ["game 1: 'Sf3' in line 1 is no part of PGN"]),
        ("1. Sf3 *\n1. d4 *", ["game 1: 'Sf3' in line 1 is no part of PGN; the piec"]),
    ],
)
def test_games_are_read_whole(text, games):
    found = [
        str(each) if isinstance(each, ValueError) else " ".join(each.moves)
        for each in CHESS.record_format.read(text)
    ]
    assert len(found) == len(games)
    for each, wanted in zip(found, games, strict=True):
        assert each.startswith(wanted)
        assert each == wanted or wanted.startswith("game")


def test_the_termination_marker_counts():
    pairs = [("1-0", "1/2-1/2"), ("1/2", "*"), ("0-1", ""), ("?", "1-0"), ("½", "1/2")]
    text = "\n".join(f'[Result "{tag}"]\n1. e4 {marker}' for tag, marker in pairs)
    found = list(CHESS.record_format.read(text))
    assert [each.result for each in found] == [0, 0, -1, 1, 0]
    assert [each.note for each in found] == [
        *("the tag Result says 1-0, the moves end with 1/2-1/2", "", "", "", "")
    ]


def test_an_expected_result_has_a_score_in_centipawns():
    for value, score in {0.0: 0, 0.5: 191, 1.0: 2000, 2.0: 2000}.items():
        assert centipawns(value) == score
        assert centipawns(-value) == -score
    assert centipawns(2 * 0.640065 - 1) == 100  # 64% of the points


def test_a_score_is_that_of_its_expected_result():
    for score in -2000, -35, 0, 1, 191:
        assert centipawns(expected_result(score)) == score
