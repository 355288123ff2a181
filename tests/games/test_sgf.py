import itertools
import json

import numpy as np
import pytest
from compiled_games import compiled, random_game

from azjax.games import GameRecord, read_games
from azjax.games.reading import to_json_lines

GO = compiled("go:5")
NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


def record(moves, result=0, fault="", opening_moves=0):
    """Returns the record of a game from its moves in the notation of the game."""
    points = [f"{column}{row}" for row in range(5, 0, -1) for column in "abcde"]
    actions = [[*points, "pass"].index(move) for move in moves.split()]
    return GameRecord(NAMES, actions, result, fault, opening_moves)


def test_a_game_is_one_tree():
    # Black has only the right column and white the rest; a5 is the top left point.
    text = GO.record_format.write(GO, [record("a5 pass e1 pass pass", result=1)])
    assert text.startswith("(;FF[4]GM[1]CA[UTF-8]AP[azjax]SZ[5]KM[7.5]")
    assert 'PB[gtp:gnugo --level 1]PW[a "player" [x\\\\y\\]]' in text
    assert "RE[B+17.5]" in text
    assert text.endswith(";B[aa];W[];B[ee];W[];B[])\n")


def test_a_forfeit_is_the_result_and_a_comment():
    ended = record("a1 b1", result=-1, fault="hung [x]")
    assert "RE[W+F]GC[hung [x\\]]" in GO.record_format.write(GO, [ended])
    (line,) = to_json_lines(GO, [ended]).splitlines()
    assert json.loads(line)["forfeit"] == "hung [x]"


def test_resignation_is_the_result_and_random_moves_a_comment():
    ended = record("a1 b1", result=-1, fault="resigned", opening_moves=1)
    text = GO.record_format.write(GO, [ended])
    assert "RE[W+R]" in text
    assert ";B[ae]C[the moves so far were made at random];W[be]" in text
    (found,) = GO.record_format.read(text)
    assert (found.moves, found.opening_moves) == (["a1", "b1"], 1)


@pytest.mark.parametrize(
    ("text", "result", "fault"),
    [
        ("B+Resign", 1, "resigned"),
        ("W+Illegal", -1, "illegal move"),  # as CGOS writes it
        ("B + 3.5", 1, ""),
        ("Jigo", 0, ""),
        ("Void", None, ""),
    ],
)
def test_results_are_read_as_other_programs_write_them(text, result, fault):
    (found,) = GO.record_format.read(f"(;SZ[5]RE[{text}];B[aa])")
    assert (found.result, found.fault) == (result, fault)


def test_margins_are_those_of_the_final_positions():
    generator, records, results = np.random.default_rng(0), [], []
    for _ in range(8):
        actions, end = random_game(GO, generator)
        black, white = np.asarray(GO.score(end))
        winner = "B" if black > white else "W"
        results.append(f"RE[{winner}+{abs(black - white):g}]")
        records.append(GameRecord(NAMES, actions, 1 if winner == "B" else -1, ""))
    trees = GO.record_format.write(GO, records).split("(;FF")[1:]
    for tree, result in zip(trees, results, strict=True):
        assert result in tree


@pytest.mark.parametrize(
    ("codec", "declared", "name"),
    [
        ("cp932", "", "表"),  # its second byte is a backslash
        ("cp932", "CA[Shift_JIS]", "表"),
        ("big5", "CA[Big5]", "功"),
        ("gb18030", "CA[gb2312]", "表"),
        ("gb18030", "", "野狐"),
        ("latin-1", "", "André"),  # é and the bracket are a character of Shift_JIS
        ("latin-1", "CA[ISO-8859-1]", "Jörg"),
        ("latin-1", "CA[of no computer]", "Jörg"),
        ("utf-8", "CA[ISO-8859-1]", "Jörg"),
        ("utf-8-sig", "", "表"),
        ("utf-16", "", "表"),
    ],
)
def test_no_move_is_lost_in_any_encoding(tmp_path, codec, declared, name):
    path = tmp_path / "game.sgf"
    text = f"(;SZ[9]{declared}PB[{name}]PW[W];B[aa]C[{name}];W[bb];B[cc])"
    path.write_bytes(text.encode(codec))
    [(_, found)] = read_games(path)
    assert (found.names, found.moves) == ((name, "W"), [0, 10, 20])


@pytest.mark.parametrize(
    ("text", "game", "moves"),
    [
        ("SZ[9:9]KM[];B[ee];W[ ];B[tt]", "go:9,0", "e5 pass pass"),
        ("SZ[9]KM[375]RU[Chinese];B[aa]", "go:9,7.5", "a9"),
        ("SZ[9]KM[3.75];B[aa]", "go:9,7.5", "a9"),
        ("SZ[9]KM[650];B[aa]", "go:9,6.5", "a9"),
        ("SZ[9]KM[0,5]AP[GNU Go:3.8]AP[foxwq];B[aa]", "go:9,0.5", "a9"),
        ("SZ[9]KM[50]AP[foxwq];B[aa]", "go:9,0.5", "a9"),
        ("SZ[9]KM[3.5];Black[aa]", "go:9,3.5", "a9"),
        ("sz[9]km[3.5];b[aa]", "go:9,3.5", "a9"),
        ("SZ[9]HA[2]AB[cc][gg];W[ee];B[aa]", "go:9,0", "c7 pass g3 e5 a9"),
        ("SZ[9]HA[0];B[cc];B[gg];W[ee];B[aa]", "go:9,0", "c7 pass g3 e5 a9"),
        ("SZ[9];B[cc]W[gg](;B[aa];W[bb])(;B[dd])", "go:9,0", "c7 g3 a9 b8"),
    ],
)
def test_go_as_other_programs_write_it(text, game, moves, tmp_path):
    path, game = tmp_path / "game.sgf", compiled(game)
    path.write_text(f"a letter (;{text})\n(;SZ[9];B[aa](;SZ[9]KM[0];B[ii])")
    texts = [found for found in game.record_format.read(path.read_text())]
    assert texts[0].moves == moves.split()
    [(found, record), *_] = itertools.islice(read_games(path), 1)
    assert found == game
    # The stones of a handicap, which nobody chose, are left out as openings are.
    assert record.opening_moves == (3 if moves.startswith("c7 pass") else 0)
    assert "game 2: it has no end before '(;SZ[9]KM" in str(texts[1])
    assert texts[2].moves == ["j1"]
