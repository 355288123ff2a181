import jax
import pytest

from azjax import arena, games
from azjax.arena.saved_games import append_games, games_file
from azjax.games.game_record import to_json_lines
from azjax.players import RandomPlayer

CHESS, GO = games.make("chess"), games.make("go:5")
NAMES = ("gtp:gnugo --level 1", 'a "player" [x\\y]')


def random_games(game, num_games, **settings):
    player = RandomPlayer(game)
    key = jax.random.key(0)
    return arena.play_match(game, player, player, key, num_games, **settings)


@pytest.mark.parametrize(
    "name",
    ["tic_tac_toe", "connect_four", pytest.param("go:3", marks=pytest.mark.slow)],
)
def test_json_lines_are_read_back(name, tmp_path):
    game = games.make(name)
    finished = random_games(game, 6, opening_moves=2).game_records(NAMES)
    path = tmp_path / "games.jsonl"
    path.write_text(to_json_lines(game, finished))
    assert list(arena.read_games(path)) == [(game, ended) for ended in finished]


def test_matches_are_appended_to_the_file(tmp_path):
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
        ("no json", "line 2: not a game: a line has game, players, result and moves"),
        ("[1]", "line 2: not a game"),
        (GOOD.replace('"moves"', '"move"'), "line 2: not a game.*'moves'"),
        (GOOD.replace('"b"]', '"b", "c"]'), "line 2: not a game"),
        (GOOD.replace("1-0", "2-0"), "line 2: result must be 1-0 or 1/2-1/2 or 0-1"),
        (GOOD.replace("tic", "tac"), "line 2: unknown game 'tac_tac_toe'"),
        (GOOD.replace("a1", "a1 a1"), "line 2: move 2: 'a1' is not legal here"),
        (GOOD.replace("a1", "z9"), "line 2: move 1: 'z9' is no action"),
    ],
)
def test_an_error_names_the_line(line, message, tmp_path):
    path = tmp_path / "games.jsonl"
    path.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(ValueError, match=message):
        list(arena.read_games(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"games.jsonl: No such file"):
        list(arena.read_games(tmp_path / "games.jsonl"))
