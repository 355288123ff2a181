import pytest
from coin_toss import CoinToss

from azjax import games
from azjax.games.host import first_state, next_state
from azjax.games.saved_game import SavedGame, load, save

GAME = games.make("tic_tac_toe")
WHOLE = """azjax game 1
game: tic_tac_toe
first: human
second: random
result: first wins

1. a3 a2
2. b3 b2
3. c3
"""


@pytest.fixture
def read(tmp_path):
    """Loads a game from a text."""

    def read(text, game=GAME):
        path = tmp_path / "game.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(path, game)

    return read


@pytest.mark.parametrize(
    ("spec", "moves"),
    [
        ("tic_tac_toe", ["b2", "a3"]),
        ("connect_four", ["4", "4", "1"]),
        ("go:5,komi=6.5", ["c3", "pass", "a1"]),
        ("hex:4,swap=true", ["b2", "swap", "c3"]),
        ("breakthrough:5,width=4", ["a2b3", "a4b3", "c2b3"]),
    ],
)
def test_a_saved_game_can_be_loaded(tmp_path, spec, moves):
    game, path = games.make(spec), tmp_path / "game.txt"
    players = ("human", "mcts:9?x=1")
    saved = SavedGame(repr(game), players, "unfinished", moves, result_text="B+0.5")
    save(path, saved)
    found, actions = load(path, game)
    assert found == saved
    state = first_state(game)
    for action, text in zip(actions, moves, strict=True):
        assert game.action_to_text(state, action) == text
        state = next_state(game, state, action)


def test_a_saved_game_is_readable_text(tmp_path):
    path = tmp_path / "game.txt"
    moves = ["a3", "a2", "b3", "b2", "c3"]
    save(path, SavedGame("tic_tac_toe", ("human", "random"), "first wins", moves))
    assert path.read_text() == WHOLE
    # A forfeit.
    saved = SavedGame("tic_tac_toe", ("human", "gtp:x"), "first wins", ["b2"], True)
    save(path, saved, overwrite=True)
    assert "first wins, the other side could not go on" in path.read_text()
    assert load(path, GAME) == (saved, [4])


@pytest.mark.usefixtures("own_games")
def test_outcomes_of_chance_are_among_the_moves(read, tmp_path):
    class WithSpaces(CoinToss):
        def outcome_to_text(self, state, outcome):
            return f"the {super().outcome_to_text(state, outcome)}"

    games.register(WithSpaces)
    moves = ["the tails", "b2", "the heads", "a1", "the edge"]
    path = tmp_path / "game.txt"
    save(path, SavedGame("coin_toss", ("a", "b"), "second wins", moves))
    text = path.read_text()
    assert "\n1. the_tails b2\n2. the_heads a1\n3. the_edge\n" in text
    saved, numbers = load(path, None)
    assert numbers == [10, 4, 9, 6, 11]
    assert saved.moves == ["_".join(move.split()) for move in moves]
    for old, new, message in (
        ("1. the_tails", "1. the_edge", "'the_edge' .* possible: the_heads the_tails$"),
        ("1. the_tails", "1.", "move 1: 'b2' is no outcome of chance that is possible"),
        ("b2", "the_tails", "move 2: 'the_tails' is no action of coin_toss"),
        ("b2", "z2", "move 2: 'z2' is no action of coin_toss"),
        ("a1", "b2", "move 4: 'b2' is not legal here"),
    ):
        with pytest.raises(ValueError, match=message):
            read(text.replace(old, new), None)


def test_a_file_is_not_overwritten_unless_asked(tmp_path):
    path = tmp_path / "game.txt"
    path.write_text("a thesis")
    saved = SavedGame("tic_tac_toe", ("human", "human"), "unfinished", [])
    with pytest.raises(FileExistsError):
        save(path, saved)
    assert path.read_text() == "a thesis"
    save(path, saved, overwrite=True)
    assert load(path, GAME)[1] == []
    assert [found.name for found in tmp_path.iterdir()] == ["game.txt"]


def test_move_numbers_are_optional_and_other_lines_are_ignored(read):
    """Control characters in names are replaced."""
    saved, _ = read(WHOLE.replace("random", "ra\x1b]0;x\x07ndom"))
    assert saved.players == ("human", "ra?]0;x?ndom")
    text = WHOLE.replace("1. ", "").replace("2. ", "\n\n")
    text = text.replace("result", "date: today: 5 o'clock\nresult")
    assert read(text)[1] == [0, 3, 1, 4, 2]
    assert read(WHOLE.replace("\n", "\r\n"))[1] == [0, 3, 1, 4, 2]
    assert read(WHOLE.replace("a3", " A3 "))[1] == [0, 3, 1, 4, 2]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("azjax game 1", "azjax game 7", "line 1: this version of azjax reads"),
        ("azjax game 1", "[Event]", "is not a saved game of azjax"),
        ("game: tic_tac_toe\n", "", "missing line before the moves: `game: ...`"),
        ("result: first wins\n", "", "missing line before the moves: `result: ...`"),
        ("first: human", "first human", "line 3 must be a new `name: value`"),
        ("second:", "first:", "line 4 must be a new `name: value`: 'first: random'"),
        ("tic_tac_toe", "nim", "unknown game 'nim'"),
        ("tic_tac_toe", "connect_four", "the game is connect_four, not tic_tac_toe"),
        ("first wins", "white wins", "the result must be one of"),
        ("first wins", "drawn", "the result is 'drawn', but by its moves first wins"),
        ("first wins", "unfinished", "'unfinished', but by its moves first wins"),
        ("3. c3", "", "the result is 'first wins', but by its moves unfinished"),
        ("b3 b2", "b3 b3", "line 8: move 4: 'b3' is not legal here; legal: c3"),
        ("b3 b2", "b3 z9", "line 8: move 4: 'z9' is no action of tic_tac_toe"),
        ("b3 b2", "b3 \x00", "line 8: move 4: '\\x00' is no action"),
        ("3. c3", "3. c3 c2", "line 9: move 6: 'c2' cannot be played: the game is ov"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(read, tmp_path, old, new, says):
    assert old in WHOLE
    with pytest.raises(ValueError, match=r"game\.txt") as error:
        read(WHOLE.replace(old, new, 1))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_cut_short_huge_or_of_bytes_that_are_no_text_is_refused(read):
    short = [WHOLE[:length] for length in range(0, len(WHOLE), 7)]
    for content in *short, b"", b"\xff\xfe\x00", b"azjax game 1\n\xff\xff":
        with pytest.raises(ValueError, match=r"game\.txt"):
            read(content)
    with pytest.raises(ValueError, match="is not a saved game"):
        read(WHOLE + " " * 1_000_001)
