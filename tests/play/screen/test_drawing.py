import numpy as np
import pytest

from azjax import games
from azjax.games.host import first_state, next_state
from azjax.play.screen.canvas import Canvas
from azjax.play.screen.drawing import Frame, Scene, draw, frame, smallest
from azjax.play.screen.themes import theme_of

SPECS = [*games.available(), "go:19", "hex:19", "hex:2", "gomoku:19,19,5"]
HUGE = (300, 400)


def shown(name, *moves, room=HUGE, **scene):
    """Returns the frame, and the picture of a position."""
    game = games.make(name)
    state = first_state(game)
    for text in moves:
        state = next_state(game, state, game.text_to_action(state, text))
    found = frame(game, theme_of(game), *room)
    assert found is not None
    return found, draw(found, Scene(np.asarray(game.board(state)), **scene))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("room", [HUGE, (40, 100), (24, 80), (21, 45)])
def test_a_board_fits_into_its_room_or_is_not_drawn(spec, room):
    game = games.make(spec)
    theme = theme_of(game)
    found = frame(game, theme, *room)
    rows, columns = smallest(game, theme)
    if found is None:
        assert rows > room[0] or columns > room[1]
        return
    lines = draw(found, Scene(np.asarray(game.board(game.init())))).split("\n")
    assert len(lines) == found.rows <= room[0]
    assert {line.cell_len for line in lines} == {found.columns}
    assert found.columns <= room[1]


@pytest.mark.parametrize("spec", SPECS)
def test_every_cell_is_found_at_its_place_in_the_drawing(spec):
    game = games.make(spec)
    for room in (HUGE, (24, 80)):
        found = frame(game, theme_of(game), *room)
        if found is None:
            continue
        for row, column in np.ndindex(found.height, found.width):
            x = found.x(row) + column * found.cell + found.cell // 2
            assert found.cell_at(found.middle(row), x) == (row, column)
        assert found.cell_at(-1, found.x(0)) is None
        assert found.cell_at(found.middle(0), found.x(0) - 1) is None


@pytest.mark.parametrize("spec", SPECS)
def test_the_board_grows_with_its_room(spec):
    game = games.make(spec)
    rooms = [(20, 40), (30, 80), (60, 160), HUGE]
    found = [frame(game, theme_of(game), *room) for room in rooms]
    sizes = [0 if f is None else f.cell for f in found]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    ("name", "moves", "letters"),
    [
        ("tic_tac_toe", ["b2", "a3"], "XO"),
        ("connect_four", ["1", "2"], "●○"),
        ("hex:3", ["b2", "a1"], "●○"),
    ],
)
def test_pieces_of_both_players_differ_without_colors(name, moves, letters):
    _, text = shown(name, *moves, room=(7, 19))
    assert [text.plain.count(letter) for letter in letters] == [1, 1]
    if name != "tic_tac_toe":
        _, text = shown(name, *moves)
        assert [text.plain.count(sign) for sign in ("><", "()")] == [1, 1]


def test_chess_pieces_are_drawn_on_their_squares():
    found, text = shown("chess", "e2e4")
    line = text.plain.split("\n")[found.middle(4)]
    assert line[found.x(4) + 4 * found.cell + found.cell // 2 - 1] == "♟"
    assert "♜" in text.plain.split("\n")[found.middle(7)]


def test_labels_are_drawn_at_their_rows_and_columns():
    found, text = shown("go:9", room=(24, 60))
    lines = text.plain.split("\n")
    assert lines[-1].split() == list("abcdefghj")
    assert [lines[found.middle(row)].split()[0] for row in range(9)] == list(
        "987654321"
    )


def test_the_last_move_the_cursor_and_hints_change_the_picture():
    board = np.zeros((3, 3), int)
    board[1, 1] = -1
    for name in games.available():
        game = games.make(name)
        for cell in (4, 2):
            room = Frame(theme_of(game), "abc", "321", 3, 3, cell)
            plain = draw(room, Scene(board))
            for scene in (
                Scene(board, marked=[(0, 0)]),
                Scene(board, hinted=[(1, 1)]),
                Scene(board, cursor=(1, 1)),
                Scene(board, cursor=(0, 0)),
                Scene(board, selected=(0, 0)),
            ):
                assert draw(room, scene) != plain, (name, cell, scene)


def test_pieces_without_a_theme_are_letters():
    class Other(type(games.make("tic_tac_toe"))):
        pieces = "ABCD"

    theme = theme_of(Other())
    assert [piece.letter for piece in theme.pieces] == list("ABCD")
    assert theme.pieces[0].color == theme.pieces[1].color != theme.pieces[2].color


def test_a_canvas_shows_two_pixels_in_a_character():
    canvas = Canvas(2, 3)
    canvas.paint(1, 0, np.full((2, 2), True), 0xFF0000)
    canvas.paint(1, 1, np.full((1, 1), True), 0x00FF00)
    canvas.paint(0, 1, np.full((1, 1), True), 0x0000FF)
    canvas.write(1, 2, "x", 0xFFFFFF)
    first, second = canvas.lines()
    assert first.plain == "▄▀ "
    assert second.plain == "▀▀x"


def test_a_letter_for_one_background_is_hidden_on_others():
    canvas = Canvas(1, 2)
    canvas.paint(0, 0, np.full((2, 2), True), 0xFF0000)
    canvas.write(0, 0, "ab", 0, background=0xFF0000)
    canvas.paint(0, 1, np.full((1, 1), True), 0)
    assert canvas.lines()[0].plain == "a▀"
