import pytest
from coin_toss import CoinToss
from data.game_rows import GAME, GAMES, rows_of, write_files

from azjax import games
from azjax.data import game_files, import_games
from azjax.data.database import QUERIES, opened

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("games")
    write_files(directory, *(rows_of({number: GAMES[number]}) for number in GAMES))
    return directory


@pytest.fixture(scope="module")
def database(directory):
    with opened(directory, GAME) as database:
        yield database


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        # The result is that of the player to move, and none of an unfinished game.
        (
            "SELECT result FROM positions WHERE game = 5 ORDER BY ply",
            [(1.0,), (-1.0,), (1.0,), (-1.0,), (1.0,)],
        ),
        ("SELECT result FROM positions WHERE game = 7", [(None,), (None,)]),
        (
            "SELECT game, num_moves, ended, first_player_result FROM games "
            "ORDER BY game",
            [(5, 5, True, 1.0), (6, 9, True, 0.0), (7, 2, False, None)],
        ),
        # The openings are the first positions of the games.
        (
            "SELECT game, action, is_initial_position, result FROM openings "
            "ORDER BY game",
            [(5, 0, True, 1.0), (6, 0, True, 0.0), (7, 4, True, None)],
        ),
        # Moves are in the game's notation.
        (
            "SELECT move, action FROM positions WHERE game = 5 ORDER BY ply",
            [("a3", 0), ("a2", 3), ("b3", 1), ("b2", 4), ("c3", 2)],
        ),
        (
            "SELECT move, count(*) FROM openings GROUP BY move ORDER BY move",
            [("a3", 2), ("b2", 1)],
        ),
    ],
)
def test_the_views_have_the_games_with_their_results(database, sql, rows):
    assert database.query(sql).rows == rows


def test_a_move_of_chess_has_the_squares_of_the_player_who_moves(tmp_path):
    game = games.make("chess")
    path = tmp_path / "games.pgn"
    path.write_text("1. e4 e5 2. Nf3 Nc6 1/2-1/2\n")
    import_games([path], tmp_path / "stored", game)
    with opened(tmp_path / "stored" / "games", game) as database:
        moves = database.query("SELECT move FROM positions ORDER BY ply").rows
    assert moves == [("e2e4",), ("e7e5",), ("g1f3",), ("b8c6",)]


def test_a_game_with_chance_begins_after_the_first_outcome(tmp_path):
    game, path = CoinToss(), tmp_path / "games.txt"
    path.write_text("tails b2 edge\nheads a1 edge\n")
    import_games([path], tmp_path / "stored", game)
    with opened(tmp_path / "stored" / "games", game) as database:
        sql = "SELECT move, player, is_initial_position FROM openings ORDER BY move"
        rows = database.query(sql).rows
    assert rows == [("a1", 0, True), ("b2", 1, True)]


@pytest.mark.parametrize("name", QUERIES)
def test_every_ready_query_has_rows(database, name):
    assert database.query(QUERIES[name].sql).rows


def test_a_position_of_two_games_is_repeated(database):
    result = database.query(QUERIES["repeated"].sql)
    first = dict(zip(result.names, result.rows[0], strict=True))
    assert (first["times"], first["games"], first["moves"]) == (3, 3, 2)


def test_the_network_is_graded_on_draws(database):
    rows = database.query(QUERIES["draws"].sql).rows
    assert rows == [pytest.approx((0.2, 14, 0.25, 9 / 14))]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW games",
        "INSERT INTO ends VALUES (1, 1, 1)",
        "COPY (SELECT 1) TO 'written.csv'",
        "COPY positions TO '{file}'",
        "EXPORT DATABASE 'written'",
        "ATTACH 'written.db'",
        "INSTALL httpfs",
        "SET memory_limit = '1GB'",
        "SELECT 1; SELECT 2",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('*')",
        "SELECT * FROM GAMES_OF_PYTHON",
        "SELECT nothing FROM positions",
        "selekt",
        "",
    ],
)
def test_sql_that_writes_or_reads_other_files_is_refused(
    database, directory, sql, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    files = game_files(directory)
    before = [file.path.read_bytes() for file in files]
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        database.query(sql.replace("{file}", str(files[0].path)))
    assert list(tmp_path.iterdir()) == []
    assert [file.path.read_bytes() for file in game_files(directory)] == before


def test_a_directory_without_games_or_of_another_game_is_refused(directory, tmp_path):
    for path, game, message in (
        (tmp_path, GAME, "holds no games"),
        (directory, games.make("hex:5"), "not of hex:5"),
    ):
        with pytest.raises(ValueError, match=message), opened(path, game):
            pass


def test_a_file_with_a_damaged_page_is_refused_in_one_line(directory, tmp_path):
    file = game_files(directory)[0].path
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    (tmp_path / file.name).write_bytes(content)
    with (
        pytest.raises(ValueError, match=r"^[^\n]+$"),
        opened(tmp_path, GAME) as database,
    ):
        database.query("SELECT run, seed, iteration, game FROM rows")


def test_a_select_that_would_change_a_table_is_refused(directory):
    with opened(directory, GAME) as database:
        before = database.query("SELECT * FROM ends").rows
        with pytest.raises(ValueError, match="read-only"):
            database.query("WITH x AS (DELETE FROM ends RETURNING *) SELECT * FROM x")
        with pytest.raises(ValueError, match="the SQL is not valid text"):
            database.query("SELECT '\ud800'")
        assert database.query("SELECT * FROM ends").rows == before != []
