import numpy as np
import pytest
from coin_toss import CoinToss
from compiled_games import random_game

from azjax import games
from azjax.games import GameRecord, read_games, saved_game
from azjax.games.host import first_state, next_state, rewards
from azjax.games.reading import read_game
from azjax.games.saved_game import SavedGame

NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


def actions_of(game, moves):
    state, actions = first_state(game), []
    for text in moves.split():
        actions.append(game.text_to_action(state, text))
        state = next_state(game, state, actions[-1])
    return actions


@pytest.mark.parametrize(
    "name",
    [
        *("tic_tac_toe", "connect_four", "go:5,komi=6.5"),
        pytest.param("chess:max_moves=40", marks=pytest.mark.slow),
    ],
)
def test_what_a_game_writes_is_read_back(name, tmp_path):
    game, generator = games.make(name), np.random.default_rng(0)
    records = []
    for _ in range(6):
        actions, end = random_game(game, generator)
        result = int(rewards(game, end)[0])
        records.append(GameRecord(NAMES, actions, result, ""))
    path = tmp_path / f"games.{game.record_format.suffix}"
    path.write_text(game.record_format.write(game, records))
    read = list(read_games(path, game))
    assert [found for found, _ in read] == [game] * 6
    for (_, found), record in zip(read, records, strict=True):
        assert found.names == record.names
        assert found.moves == record.moves
        # By the rules a draw at the limit of moves; other programs do not know it.
        assert found.result == record.result


@pytest.mark.usefixtures("own_games")
def test_outcomes_of_chance_are_among_the_moves(tmp_path):
    games.register(CoinToss)
    test_what_a_game_writes_is_read_back("coin_toss", tmp_path)
    path = tmp_path / "games.txt"
    path.write_text("headsb2 Tailsb1 edge\n1. heads b1 heads a1\n2. tails a2\n")
    records = [record for _, record in read_games(path, OnlyPossible())]
    assert [record.moves for record in records] == [
        [9, 4, 10, 7, 11],
        [9, 7, 9, 6, 10, 3],
    ]
    assert [record.result for record in records] == [-1, None]
    path.write_text("1. heads b1 heads a1\n4. tails a2\n")
    with pytest.raises(ValueError, match=r"line 2: it begins with '4\.' after 2 moves"):
        list(read_games(path, OnlyPossible()))


class OnlyPossible(CoinToss):
    """The game, in which other outcomes than the possible ones have no text."""

    def outcome_to_text(self, state, outcome):
        assert self.chance(state)[outcome] > 0
        return super().outcome_to_text(state, outcome)


@pytest.mark.parametrize(
    "record",
    [
        GameRecord(NAMES, [3, 3, 3], None, "", values=(0.25, None, -1.0)),
        # Names may have separators of lines.
        GameRecord(("a\u2028b", "c\x85d"), [4], None, ""),
    ],
)
def test_values_and_names_in_lines_of_json_are_read_back(record, tmp_path):
    game, path = games.make("connect_four"), tmp_path / "games.jsonl"
    path.write_text(game.record_format.write(game, [record]), encoding="utf-8")
    assert list(read_games(path)) == [(game, record)]


def test_pgn_says_how_a_game_ended(tmp_path):
    path = tmp_path / "games.pgn"
    for ending, is_forfeit in (
        ("Time forfeit", True),
        ("Ann won on time", True),
        ("Ann won - game abandoned", True),
        ("illegal move", True),  # as cutechess writes it
        ("Black forfeits on time", True),  # as the comments of FICS
        ("Ann won by resignation", False),
        ("Normal", False),
    ):
        head = f'[White "Müller, A"]\n[Result "1-0"]\n[Termination "{ending}"]'
        path.write_text(f"{head}\n\n1. e4 {{{ending}}} 1-0\n", encoding="latin-1")
        ((game, record),) = read_games(path)
        assert game == games.make("chess")
        assert record.is_forfeit == is_forfeit
        assert (record.names, record.result) == (("Müller, A", "?"), 1)
        assert record.moves == actions_of(game, "e2e4")


@pytest.mark.parametrize("name", ["connect_four", "go:5,komi=6.5", "chess"])
def test_results_and_faults_are_read_back(name, tmp_path):
    game = games.make(name)
    first = 52 * 73 if name == "chess" else 3  # e3 in chess
    path = tmp_path / f"games.{game.record_format.suffix}"
    for result in 1, 0, -1, None:
        if name[:2] == "go" and result == 0:
            continue  # SGF has the margin of the score, and a draw needs one of 0
        fault = "resigned" if result and name != "chess" else ""
        record = GameRecord(NAMES, [first], result, fault)
        path.write_text(game.record_format.write(game, [record]))
        ((_, found),) = read_games(path)
        assert found == record


def test_sgf_by_others_is_read_without_comments_and_variations(tmp_path):
    path = tmp_path / "games.sgf"
    path.write_text(
        "(;GM[1]FF[4]SZ[5]KM[6.5]PB[Black\\]]RE[B+R]"
        ";B[cc]C[the middle (of ;B[aa\\])](;W[dd];B[])(;W[aa]))"
    )
    ((game, first),) = read_games(path)
    assert game == games.make("go:5,komi=6.5")
    assert first.names == ("Black]", "?")
    assert first.moves == actions_of(game, "c3 d2 pass")
    assert (first.result, first.fault) == (1, "resigned")
    assert not first.is_forfeit


def test_the_options_of_the_wanted_game_replace_those_of_the_file(tmp_path):
    path = tmp_path / "games.sgf"
    path.write_text("(;SZ[5]KM[6.5];B[aa];W[])")
    wanted = games.make("go:5,komi=0")
    ((game, record),) = read_games(path, wanted)
    assert game == wanted
    assert len(record.moves) == 2
    for other in ("go:9", "hex:5"):
        with pytest.raises(ValueError, match=r"game 1 is of go:5,komi=6.5, not of"):
            list(read_games(path, games.make(other)))


def test_moves_after_the_end_by_the_rules_are_left_out(tmp_path):
    path = tmp_path / "games.sgf"
    path.write_text("(;SZ[5]KM[6.5]RE[W+6.5];B[];W[];B[];W[aa])")
    ((game, record),) = read_games(path)
    assert record.moves == actions_of(game, "pass pass")
    path = tmp_path / "moves.txt"
    path.write_text("a1 b1 a2 b2 a3 b3\n")
    with pytest.raises(ValueError, match="line 1: move 6: 'b3' cannot be played"):
        list(read_games(path, games.make("tic_tac_toe")))


@pytest.mark.parametrize(
    ("name", "text", "moves"),
    [
        ("tic_tac_toe", "1. a1 b1 2. a2 b2 3. a3\n\nb2\n", ["a1 b1 a2 b2 a3", "b2"]),
        ("connect_four", "4453\n1. 44 2. 53", ["4 4 5 3", "4 4 5 3"]),
        ("othello", "f5d6c3D3c4", ["f5 d6 c3 d3 c4"]),
        ("othello", "1.f5 d6\n2.c3 d3\n1. f5\n2. d6", ["f5 d6 c3 d3", "f5 d6"]),
        # White must pass.
        ("othello", "c4c3f5b4a4a5c2a3 d2", ["c4 c3 f5 b4 a4 a5 c2 a3 pass d2"]),
        ("gomoku:15,5", "a1a11b1b11", ["a1 a11 b1 b11"]),
        ("chess", "e4 e7e5\n1. d4", ["e4 e5", "d4"]),
    ],
)
def test_lines_of_other_programs_are_read(name, text, moves, tmp_path):
    game, path = games.make(name), tmp_path / "moves.txt"
    path.write_text(text)
    found = [record.moves for _, record in read_games(path, game)]
    assert found == [actions_of(game, line) for line in moves]


def test_lines_of_moves_are_read(tmp_path):
    game, path = games.make("tic_tac_toe"), tmp_path / "moves.txt"
    path.write_text("1. a1 b1 2. a2 b2 3. a3\n\nb2\n")
    assert [record.result for _, record in read_games(path, game)] == [1, None]
    with pytest.raises(ValueError, match=r"moves.txt has no suffix of a file of games"):
        list(read_games(path))
    path.write_text("1. a1 b1 a2 b2 a3\n2. a1 b1 a2 b2 a3\n")  # numbers of games
    with pytest.raises(ValueError, match=r"line 2: it begins with '2.' after 5 moves"):
        list(read_games(path, game))


def test_saved_games_are_read(tmp_path):
    path = tmp_path / "game.txt"
    saved = SavedGame("connect_four", ("human", "mcts:50"), "unfinished", ["4", "4"])
    saved_game.save(path, saved)
    ((game, record),) = read_games(path)
    assert game == games.make("connect_four")
    assert record == GameRecord(saved.players, [3, 3], None, "")
    path.write_text(path.read_text(), encoding="utf-8-sig")  # as by editors of Windows
    assert list(read_games(path)) == [(game, record)]


GOOD = '{"game": "tic_tac_toe", "players": ["a", "b"], "result": "1-0", "moves": "a1"}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no json", "line 2: not a game: a line has game, players, result and moves"),
        ("[1]", "line 2: not a game"),
        (GOOD.replace('"moves"', '"move"'), "line 2: not a game.*'moves'"),
        (GOOD.replace('"b"]', '"b", "c"]'), "line 2: not a game"),
        (GOOD.replace("1-0", "2-0"), "line 2: result must be 1-0 or 1/2-1/2 or 0-1"),
        (GOOD.replace("tic", "tac"), "line 2: unknown game 'tac_tac_toe'"),
        (GOOD.replace("a1", "a1 a1"), "line 2: move 2: 'a1' is not legal here"),
        (GOOD.replace("a1", "z9"), "line 2: move 1: 'z9' is no action"),
        (GOOD.replace("a1", "z" * 9999), r"line 2: move 1: 'z{40}\.\.\.' is no action"),
        (
            GOOD.replace("}", ', "opening_moves": -3}'),
            "line 2: not a game.*opening_moves must be an int >= 0: -3",
        ),
        (
            GOOD.replace("}", ', "values": [2]}'),
            "line 2: not a game.*values must be a number from -1 to 1: 2",
        ),
        (
            GOOD.replace("}", ', "values": [0, 0]}'),
            "line 2: not a game.*values must be a list, with a value for each move",
        ),
    ],
)
def test_an_error_names_the_line(line, message, tmp_path):
    path = tmp_path / "games.jsonl"
    path.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(ValueError, match=f"games.jsonl: {message}"):
        list(read_games(path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.pgn",
            '[Variant "Atomic"]\n\n1. e4 *\n',
            "game 1: it is of the variant 'At",
        ),
        ("a.pgn", '[Result "*"]\n\n1. e5 *\n', "game 1: move 1: 'e5' is not legal"),
        ("a.pgn", '[Result "won"]\n\n1. e4\n', "game 1: result must be 1-0"),
        ("a.pgn", "(;SZ[5];B[aa])", "the parentheses of a variation do not match"),
        ("a.pgn", "*", "game 1: it has neither tags nor moves"),
        ("a.sgf", b"(;SZ[9]CA[UTF-8]PB[\x95\\];B[aa])", "not in UTF-8, as CA says"),
        ("a.sgf", "(;GM[2];B[aa])", "game 1: GM is '2', and 1 is Go"),
        ("a.sgf", "(;SZ[5]AW[aa][bb];W[cc])", "game 1: AW sets up stones other than"),
        ("a.sgf", "(;SZ[5];B[aa];B[bb])", "game 1: move 2 is of B out of turn"),
        ("a.sgf", "(;SZ[5];B[aa];W[bb]AB[cc])", "game 1: AB sets up stones other than"),
        ("a.sgf", "(;SZ[9]HA[2];B[aa];W[bb])", "HA is 2, and Black has 1 stones"),
        ("a.sgf", "(;SZ[9:13];B[aa])", "game 1: size must be at most 19: '9:13'"),
        ("a.sgf", "(;SZ[9]B[aa][bb])", "game 1: property B cannot be read: 'aa' and"),
        ("a.sgf", "(;SZ[9];B[aa);W[bb])", "game 1: property B cannot be read: 'aa"),
        ("a.sgf", "(;SZ[9];B[aa]);W[bb])", "game 1: there are moves or properties"),
        ("a.sgf", "(;SZ[9];B[aa]", "game 1: it has no end"),
        ("a.sgf", "(;SZ[9];B[aa];W[bb", "game 1: a value has no end"),
        ("a.sgf", "(;SZ[5];B[aa];W[aa])", "game 1: move 2: 'a5' is not legal"),
        ("a.sgf", "(;C[x];SZ[9];B[aa])", "game 1: SZ is not in the first node"),
        ("a.sgf", "(;SZ[25];B[yy])", "game 1: size must be at most 19: '25'"),
        ("a.sgf", "(;SZ[5];B[zz])", "game 1: property B cannot be read: 'zz'"),
        ("a.sgf", "(;SZ[5]KM[no];B[aa])", "game 1: property KM cannot be read: 'no'"),
        ("a.sgf", "(;GM[x];B[aa])", "game 1: GM is 'x', and 1 is Go"),
        ("a.sgf", "(;PB[a][b];B[aa])", "game 1: property PB .* 'a' and 'b'"),
        ("a.sgf", "(;SZ[5]KM[3.8];B[aa])", "game 1: komi must be a multiple of 0.5"),
        ("a.pgn", b"\x80\x04\0\0", "it is not a text file"),
        ("a.sgf", "no tree", "it has no game of SGF, which begins with"),
        ("a.txt", "azjax game 1\ngame: x\n", "missing line before the moves"),
    ],
)
def test_files_that_cannot_be_read_are_refused(name, text, message, tmp_path, caplog):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        list(read_games(path))
    assert not caplog.records


SAVED = "azjax game 1\ngame: GAME\nfirst: a\nsecond: b\nresult: unfinished\n\n1. b2\n"


@pytest.mark.parametrize(
    ("name", "text", "moves", "names"),
    [
        ("tic_tac_toe", SAVED.replace("GAME", "tic_tac_toe"), "b2", ("a", "b")),
        ("tic_tac_toe", f"{GOOD}\n{GOOD}\n", "a1", ("a", "b")),
        ("tic_tac_toe", "\ufeff 1. a1 b1\n 2. a2\n b2 ", "a1 b1 a2 b2", ("?", "?")),
        ("connect_four", "4 4\n3", "4 4 3", ("?", "?")),
        ("go:5,0", "(;SZ[5]PB[c]PW[d];B[cc];W[])", "c3 pass", ("c", "d")),
        ("go:5,0", "c3 pass", "c3 pass", ("?", "?")),
        ("chess", '[White "c"]\n\n1. e4 {x} e5 *\n', "e2e4 e7e5", ("c", "?")),
        ("chess", "1.e4 e5 2.Nf3", "e2e4 e7e5 g1f3", ("?", "?")),
        ("chess", "1. e2e4 e7e5\n2. g1f3", "e2e4 e7e5 g1f3", ("?", "?")),
        ("chess", "e2e4 e7e5 g1f3", "e2e4 e7e5 g1f3", ("?", "?")),
    ],
)
def test_the_beginning_of_a_text_shows_its_format(name, text, moves, names):
    game = games.make(name)
    record = read_game(text, game)
    assert record.moves == actions_of(game, moves)
    assert record.names == names


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tic_tac_toe", " \n", "the text has no moves"),
        ("tic_tac_toe", "a1 <b>", "line 1: move 2: '<b>' is no action"),
        ("tic_tac_toe", SAVED.replace("GAME", "hex:3"), "the game is hex:3, not tic"),
        ("hex:3", GOOD, "line 1 is of 'tic_tac_toe', not of hex:3"),
        ("hex:3", GOOD.replace("tic", "pgx:tic"), "line 1 is of 'pgx', not of hex:3"),
        ("hex:3", GOOD.replace("tic_tac_toe", "hex:4"), "line 1 is of hex:4, not of"),
        ("chess", "[" * 50_000, r"game 1: '\[{20}' in line 1 is no part of PGN"),
        ("chess", "1. e5", "game 1: move 1: 'e5' is not legal here"),
    ],
)
def test_other_texts_are_refused(name, text, message):
    with pytest.raises(ValueError, match=message):
        read_game(text, games.make(name))
