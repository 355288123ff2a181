import io
import json
import re

import chess.pgn
import jax
import numpy as np
import pytest

from azjax import arena, games
from azjax.arena.pgn import to_pgn
from azjax.arena.records import FinishedGame
from azjax.arena.saved_games import append_games, games_file, to_json_lines
from azjax.arena.sgf import to_sgf
from azjax.players import RandomPlayer
from azjax.players.vertices import first_state, next_state

CHESS, GO = games.make("chess"), games.make("go:5")
NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


def random_games(game, num_games, **settings):
    player = RandomPlayer(game)
    key = jax.random.key(0)
    return arena.play_match(game, player, player, key, num_games, **settings)


def played(game, *texts, result=0, fault=""):
    """Returns a game from moves as people write them."""
    state, moves = first_state(game), []
    for text in " ".join(texts).split():
        moves.append(game.text_to_action(state, text))
        state = next_state(game, state, moves[-1])
    return FinishedGame(NAMES, moves, result, fault)


def read_pgn(text):
    file, found = io.StringIO(text), []
    while (read := chess.pgn.read_game(file)) is not None:
        assert not read.errors
        found.append(read)
    return found


@pytest.mark.slow
def test_chess_games_are_read_by_another_program_move_by_move():
    finished = random_games(CHESS, 6).finished(("random", "gtp:x --level 1"))
    found = read_pgn(to_pgn(CHESS, finished))
    assert len(found) == len(finished)
    for read, ended in zip(found, finished, strict=True):
        moves = [move.uci() for move in read.mainline_moves()]
        state, texts = first_state(CHESS), []
        for action in ended.moves:
            texts.append(CHESS.action_to_text(state, action))
            state = next_state(CHESS, state, action)
        assert moves == texts
        assert read.headers["White"] == ended.names[0]
        assert read.headers["Black"] == ended.names[1]
        results = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
        assert read.headers["Result"] == results[ended.result]


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
def test_a_move_of_chess_is_written_as_people_do(moves, last):
    (read,) = read_pgn(to_pgn(CHESS, [played(CHESS, moves)]))
    assert [move.uci() for move in read.mainline_moves()] == moves.split()
    before = read.end().parent
    assert before.board().san(read.end().move) == last
    assert f" {last} " in to_pgn(CHESS, [played(CHESS, moves)]).replace("\n", " ")


def test_quotation_marks_in_names_are_escaped():
    assert r'[Black "a \"player\" [x\\y]"]' in to_pgn(CHESS, [played(CHESS, "e2e4")])


def test_a_forfeit_stands_in_the_file():
    ended = played(CHESS, "e2e4", result=1, fault="the engine } died")
    text = to_pgn(CHESS, [ended])
    (read,) = read_pgn(text)
    assert read.headers["Result"] == "1-0"
    assert read.end().comment == "the engine ) died"
    ended = played(GO, "a1", result=-1, fault="hung [x]")
    assert "RE[W+F]GC[hung [x\\]]" in to_sgf(GO, [ended])
    (line,) = to_json_lines(GO, [ended]).splitlines()
    assert json.loads(line)["forfeit"] == "hung [x]"


def test_resignations_and_random_moves_stand_in_the_file():
    ended = played(CHESS, "e2e4 e7e5 g1f3", result=1, fault="resigned")
    (read,) = read_pgn(to_pgn(CHESS, [ended._replace(opening_moves=2)]))
    assert read.headers["Termination"] == "normal"
    comments = [node.comment for node in read.mainline()]
    assert comments == ["", "the moves so far were made at random", "resigned"]
    ended = played(GO, "a1 b1", result=-1, fault="resigned")._replace(opening_moves=1)
    text = to_sgf(GO, [ended])
    assert "RE[W+R]" in text
    assert ";B[ae]C[the moves so far were made at random];W[be]" in text


def test_a_game_of_go_is_written_as_sgf():
    # Black has the right column alone and white the rest; a5 is the top left point.
    text = to_sgf(GO, [played(GO, "a5 pass e1 pass pass", result=1)])
    assert text.startswith("(;FF[4]GM[1]CA[UTF-8]AP[azjax]SZ[5]KM[7.5]")
    assert 'PB[gtp:gnugo --level 1]PW[a "player" [x\\\\y\\]]' in text
    assert "RE[B+17.5]" in text
    assert text.endswith(";B[aa];W[];B[ee];W[];B[])\n")


def test_scores_of_go_are_those_of_the_final_positions():
    score = jax.jit(GO.score)
    match = random_games(GO, 8)
    trees = to_sgf(GO, match.finished(NAMES)).split("(;FF")[1:]
    for tree, ended in zip(trees, match.finished(NAMES), strict=True):
        state = first_state(GO)
        for action in ended.moves:
            state = next_state(GO, state, action)
        black, white = np.asarray(score(state))
        winner = "B" if black > white else "W"
        assert f"RE[{winner}+{abs(black - white):g}]" in tree
        assert len(re.findall(r";[BW]\[", tree)) == len(ended.moves)


@pytest.mark.parametrize(
    "name",
    ["tic_tac_toe", "connect_four", pytest.param("go:3", marks=pytest.mark.slow)],
)
def test_move_lists_are_read_back(name, tmp_path):
    game = games.make(name)
    finished = random_games(game, 6, opening_moves=2).finished(NAMES)
    path = tmp_path / "games.jsonl"
    path.write_text(to_json_lines(game, finished))
    assert list(arena.read_games(path)) == [(game, ended) for ended in finished]


def test_matches_are_added_to_the_file_of_the_game(tmp_path):
    game = games.make("tic_tac_toe")
    match = random_games(game, 4, opening_moves=2)
    for _ in range(2):
        append_games(tmp_path, game, NAMES, match)
    assert len(list(arena.read_games(games_file(tmp_path, game)))) == 8
    assert games_file(tmp_path, GO).name == "games.sgf"
    assert games_file(tmp_path, CHESS).name == "games.pgn"


GOOD = '{"game": "tic_tac_toe", "players": ["a", "b"], "result": "1-0", "moves": "a1"}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no json", "line 2: no game: a line has game, players, result and moves"),
        ("[1]", "line 2: no game"),
        (GOOD.replace('"moves"', '"move"'), "line 2: no game.*'moves'"),
        (GOOD.replace('"b"]', '"b", "c"]'), "line 2: no game"),
        (GOOD.replace("1-0", "2-0"), "line 2: the result is 1-0 or 1/2-1/2 or 0-1"),
        (GOOD.replace("tic", "tac"), "line 2: unknown game 'tac_tac_toe'"),
        (GOOD.replace("a1", "a1 a1"), "line 2: move 2: 'a1' is not legal here"),
        (GOOD.replace("a1", "z9"), "line 2: move 1: 'z9' is no action"),
    ],
)
def test_a_wrong_line_is_named(line, message, tmp_path):
    path = tmp_path / "games.jsonl"
    path.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(ValueError, match=message):
        list(arena.read_games(path))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"games.jsonl: No such file"):
        list(arena.read_games(tmp_path / "games.jsonl"))
