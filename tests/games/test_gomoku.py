import numpy as np
import pytest
from compiled_games import all_lines, batched, board_of, compiled, positions

from azjax.games import bitboard, make

CHUNK = 256  # positions that are stepped at once


def outcomes(game, boards, player, actions):
    """Returns `[N]`: the outcome after `player` places a stone on each of the cells.

    boards: `[N, height, width]` int, the stones before, -1 where empty.
    """
    grid = bitboard.Grid(game.height, game.width)
    num_chunks = -(-len(boards) // CHUNK)
    # Pad the last chunk with copies, so that only one size is compiled.
    chunks = np.resize(boards, (num_chunks, CHUNK, *boards.shape[1:]))
    cells = np.resize(actions, (num_chunks, CHUNK)).astype(np.int32)
    found = [
        batched(game).step(positions(grid.cells, grid.num_bits, chunk, player), action)
        for chunk, action in zip(chunks, cells, strict=True)
    ]
    return np.concatenate([after.outcome for after in found])[: len(boards)]


def completions(game, lines, player=0):
    """Returns the outcomes after each cell of each line is filled last, `[N, k]`.

    lines: `[N, k]`, cells numbered row by row.
    """
    num_lines, length = np.shape(lines)
    boards = np.full((num_lines, length, game.num_actions), -1)
    line, last, cell = np.indices((num_lines, length, length))
    boards[line, last, np.asarray(lines)[line, cell]] = np.where(
        last == cell, -1, player
    )
    boards = boards.reshape(-1, game.height, game.width)
    return outcomes(game, boards, player, np.ravel(lines)).reshape(num_lines, length)


def numbered(game, length):
    """Returns the cells, numbered row by row, of every line of a length."""
    lines = all_lines(game.height, game.width, length)
    return [[game.width * r + c for r, c in line] for line in lines]


@pytest.mark.parametrize("exact", [False, True])
def test_lines_of_five_win_on_a_board_of_15_and_longer_ones_unless_exact(exact):
    game = make("gomoku", exact=exact)
    lines = numbered(game, 5)
    assert len(lines) == 572
    for player in 0, 1:
        assert (completions(game, lines, player) == 1 - 2 * player).all()
    assert (completions(game, numbered(game, 4)) == 0).all()
    for length in 6, 10, 15:
        assert (completions(game, numbered(game, length)) == (not exact)).all()


@pytest.mark.parametrize(
    "spec", ["3,5,3", "6,4,5,true", "2,7,6", "5,3,2,true", "19,19,17,true"]
)
def test_each_line_of_other_boards_wins(spec):
    game = make(f"gomoku:{spec}")
    assert (completions(game, numbered(game, game.length)) == 1).all()


@pytest.mark.parametrize("spec", ["7,6,4", "5,8,3,true"])
def test_cells_outside_a_line_do_not_win(spec):
    game = make(f"gomoku:{spec}")
    length, num_cells = game.length, game.height * game.width
    lines = set(map(frozenset, numbered(game, length)))
    # Evenly spaced cells in reading order, which wrap around the edges.
    rows = [
        [start + stride * i for i in range(length)]
        for start in range(num_cells)
        for stride in range(1, 2 * game.width + 2)
        if start + stride * (length - 1) < num_cells
    ]
    is_line = np.array([frozenset(row) in lines for row in rows])
    assert not is_line.all()
    won = completions(game, rows)
    np.testing.assert_array_equal(won, np.repeat(is_line[:, None], length, axis=1))


# The last stone is placed on `*`; whether it wins without and with `exact`.
OVERLINES = [
    ("...X*XXX ........ ........ ........ ........ ........", 1, 1),
    ("........ OXX*XXO. ........ ........ ........ ........", 1, 1),
    ("........ X.XX*XX. ........ ........ ........ ........", 1, 1),
    ("........ X.XX*XXX ........ ........ ........ ........", 1, 0),
    ("........ ..XX*XXX ........ ........ ........ ........", 1, 0),
    ("........ XXXX*XX. ........ ........ ........ ........", 1, 0),
    ("........ ....*XXX XX...... ........ ........ ........", 0, 0),
    ("*....... X....... X....... X....... X....... O.......", 1, 1),
    (".......X .......X .......* .......X .......X ........", 1, 1),
    (".......X .......X .......* .......X .......X .......X", 1, 0),
    ("*....... .X...... ..X..... ...X.... ....X... .....X..", 1, 0),
    (".....X.. ....X... ...*.... ..X..... .X...... X.......", 1, 0),
    (".....O.. ....X... ...*.... ..X..... .X...... X.......", 1, 1),
    # An overline and a line of five that cross.
    ("........ .XX*XXX. ...X.... ...X.... ...X.... ...X....", 1, 1),
    # An existing overline, and a line of five.
    ("XXXXXX.. ........ .XX*XX.. ........ ........ ........", 1, 1),
]


@pytest.mark.parametrize("exact", [False, True])
def test_overlines_win_unless_lines_are_exact(exact):
    game = make("gomoku", height=6, width=8, exact=exact)
    boards = np.array([board_of(picture) for picture, _, _ in OVERLINES])
    cells = [picture.replace(" ", "").index("*") for picture, _, _ in OVERLINES]
    expected = np.array([wins[exact] for _, *wins in OVERLINES])
    np.testing.assert_array_equal(outcomes(game, boards, 0, cells), expected)
    exchanged = np.where(boards < 0, -1, 1 - boards)
    np.testing.assert_array_equal(outcomes(game, exchanged, 1, cells), -expected)


def test_cells_are_named_from_the_bottom_left():
    game = compiled("gomoku:19,19")
    state = game.init()
    texts = {"a1": 342, "s1": 360, "a19": 0, "s19": 18, "b2": 324}
    for text, action in texts.items():
        assert game.action_to_text(state, action) == text
        assert game.text_to_action(state, f" {text.upper()}\n") == action


def test_the_text_of_no_action_is_refused():
    game = compiled("gomoku")
    for text in "p1", "a16", "t20", "a0", "1a", "pass", "swap", "":
        with pytest.raises(ValueError, match=f"'{text}' is no action .* a15 b15 .* o1"):
            game.text_to_action(game.init(), text)


def test_wrong_options_are_refused():
    for value in 0, 1, -5, 20, 15.0, "15", True, None:
        for side in "height", "width":
            with pytest.raises(ValueError, match=f"{side} .* from 2 to 19: {value!r}"):
                make("gomoku", **{side: value})
    for length in 0, -1, 8, 5.0, "5", True, None:
        with pytest.raises(ValueError, match=f"length .* from 1 to 7, .*: {length!r}"):
            make("gomoku", height=3, width=7, length=length)
    for exact in 0, 1, "yes", None:
        with pytest.raises(ValueError, match=f"True or False: {exact!r}"):
            make("gomoku", exact=exact)


def test_options_are_height_width_length_and_exact():
    options = {"height": 9, "width": 13, "length": 4, "exact": True}
    assert make("gomoku:9,13,4,true").options == options
    assert make("gomoku:15") == make("gomoku")


def test_the_heuristic_of_long_lines_does_not_overflow():
    game = make("gomoku:2,18,18")
    lines = np.full((2, 18), -1)
    lines[0, :17], lines[1, 1:] = 0, 1
    grid = bitboard.Grid(game.height, game.width)
    boards = np.stack([lines, lines])
    boards[1, 1, 0] = 0  # blocks the line of the second player
    state = positions(grid.cells, grid.num_bits, boards, 0)
    # A line that lacks one stone counts 1 + 4 + ... + 4^16, a third of 4^17.
    expected = [0, (1 / 3) / (1 + 1 / 3)]
    np.testing.assert_allclose(batched(game).evaluate(state), expected, rtol=1e-6)


def test_a_line_that_would_become_too_long_does_not_count():
    board = np.full((1, 2, 9), -1)
    board[0, 0, [0, 1, 3]] = 0  # X X . X: the third would make four
    found = {}
    for exact in (False, True):
        game = make("gomoku:2,9,3", exact=exact)
        grid = bitboard.Grid(game.height, game.width)
        state = positions(grid.cells, grid.num_bits, board, 0)
        found[exact] = batched(game).evaluate(state)[0]
        assert game.line_length == (0 if exact else 3)
    # Only the line to the right of the last stone remains.
    assert 0 < found[True] < found[False]
