import functools
import importlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import bitboard, gomoku, make

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
CHUNK = 256  # positions that are stepped at once

steps = functools.cache(lambda game: jax.jit(jax.vmap(game.step)))


@pytest.fixture
def engine(monkeypatch):
    """Returns the comparisons with OpenSpiel and with a reference."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("engines.gomoku")


@pytest.fixture(scope="module")
def record_of(verify_games):
    """Returns a function `game -> record` of 50 random games."""
    keys = jax.random.split(jax.random.key(2), 50)
    return functools.cache(lambda game: verify_games.make_recorder(game)(keys))


def words(grid, stones):
    """Returns bitboards of stones `[N, height, width]` bool; each word is `[N]`."""
    bits = np.zeros((len(stones), 32 * len(bitboard.empty(grid.num_bits))), bool)
    bits[:, grid.cells] = stones
    return tuple(
        jnp.asarray(np.packbits(bits, axis=1, bitorder="little").view("<u4").T)
    )


def outcomes(game, boards, player, actions):
    """Returns `[N]`: the outcome after `player` places a stone on each of the cells.

    boards: `[N, height, width]` int, the stones before, -1 where empty.
    """
    grid = bitboard.Grid(game.height, game.width)
    num_chunks = -(-len(boards) // CHUNK)
    # Pad the last chunk with copies, so that only one size is compiled.
    chunks = np.resize(boards, (num_chunks, CHUNK, *boards.shape[1:]))
    chunks_of_actions = np.resize(actions, (num_chunks, CHUNK)).astype(np.int32)
    found = []
    for before, cells in zip(chunks, chunks_of_actions, strict=True):
        state = gomoku.State(
            stones=(words(grid, before == 0), words(grid, before == 1)),
            current_player=jnp.full(CHUNK, player, jnp.int8),
            outcome=jnp.zeros(CHUNK, jnp.int8),
            terminated=jnp.zeros(CHUNK, bool),
        )
        found.append(steps(game)(state, cells).outcome)
    return np.concatenate(found)[: len(boards)]


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


def outcome(game, picture, player=0):
    """Returns the outcome after `player` places a stone on the cell `*`."""
    board = np.array([list(row) for row in picture.split()])
    (cell,) = np.flatnonzero(board == "*")
    board = np.select([board == "X", board == "O"], [0, 1], -1)
    return outcomes(game, board[None], player, [cell])[0]


def all_lines(height, width, length):
    """Returns the cells, numbered row by row, of every line of a length."""
    lines = []
    for row, column in np.ndindex(height, width):
        for down, right in (0, 1), (1, 0), (1, 1), (1, -1):
            line = [(row + down * i, column + right * i) for i in range(length)]
            if all(0 <= r < height and 0 <= c < width for r, c in line):
                lines.append([width * r + c for r, c in line])
    return lines


def play(game, texts):
    """Returns the position after the moves."""
    step = jax.jit(game.step)
    state = game.init()
    for text in texts.split():
        assert not state.terminated
        row, column = game.height - int(text[1:]), ord(text[0]) - ord("a")
        state = step(state, game.width * row + column)
    return state


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("exact", [False, True])
def test_each_of_the_572_lines_of_a_board_of_15_wins(exact, player):
    lines = all_lines(15, 15, 5)
    assert len(lines) == 572
    won = completions(make("gomoku", exact=exact), lines, player)
    np.testing.assert_array_equal(won, 1 - 2 * player)


@pytest.mark.parametrize(
    "spec",
    ["3,5,3", "6,4,5,true", "2,7,6", "5,3,2,true", "19,19,17,true"],
)
def test_each_line_of_other_boards_wins(spec):
    game = make(f"gomoku:{spec}")
    lines = all_lines(game.height, game.width, game.length)
    assert (completions(game, lines) == 1).all()


@pytest.mark.parametrize("exact", [False, True])
def test_one_stone_less_than_a_line_does_not_win(exact):
    won = completions(make("gomoku", exact=exact), all_lines(15, 15, 4))
    assert (won == 0).all()


@pytest.mark.parametrize(("exact", "expected"), [(False, 1), (True, 0)])
def test_longer_lines_win_unless_lines_are_exact(exact, expected):
    for length in 6, 10, 15:
        won = completions(make("gomoku", exact=exact), all_lines(15, 15, length))
        assert (won == expected).all()


@pytest.mark.parametrize("spec", ["7,6,4", "5,8,3", "5,8,3,true"])
def test_cells_outside_a_line_do_not_win(spec):
    game = make(f"gomoku:{spec}")
    height, width, length = game.height, game.width, game.length
    lines = {frozenset(line) for line in all_lines(height, width, length)}
    # Evenly spaced cells in reading order, which wrap around the edges.
    rows = [
        [start + stride * i for i in range(length)]
        for start in range(height * width)
        for stride in range(1, 2 * width + 2)
        if start + stride * (length - 1) < height * width
    ]
    is_line = np.array([frozenset(row) in lines for row in rows])
    assert not is_line.all()
    won = completions(game, rows)
    np.testing.assert_array_equal(won, np.repeat(is_line[:, None], length, axis=1))


@pytest.mark.parametrize(
    ("picture", "free", "exact"),
    [
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
    ],
)
def test_overlines_win_unless_lines_are_exact(picture, free, exact):
    swapped = picture.translate(str.maketrans("XO", "OX"))
    for is_exact, expected in (False, free), (True, exact):
        game = make("gomoku", height=6, width=8, exact=is_exact)
        assert outcome(game, picture) == expected
        assert outcome(game, swapped, player=1) == -expected


@pytest.mark.parametrize("exact", [False, True])
def test_a_full_board_without_a_line_is_a_draw(exact):
    game = make("gomoku:2,4,3", exact=exact)
    state = play(game, "a1 b1 b2 a2 c1 d1 d2 c2")
    assert state.terminated
    assert not game.legal_action_mask(state).any()
    np.testing.assert_array_equal(game.rewards(state), [0, 0])


def test_an_overline_that_fills_the_board_is_a_draw():
    game = make("gomoku:2,5,4,true")
    state = play(game, "a1 a2 b1 b2 d1 d2 e1 e2 c1 c2")
    assert state.terminated
    np.testing.assert_array_equal(game.rewards(state), [0, 0])


def test_the_stones_that_won_are_the_line():
    state = play(make("gomoku:5,5,3"), "a1 a2 b2 b3 c3")
    assert make("gomoku:5,5,3").winning_cells(state) == ((2, 2), (3, 1), (4, 0))


def test_the_last_stone_can_win():
    state = play(make("gomoku:3,3,3"), "a3 b3 c3 a2 b2 c1 c2 b1 a1")
    assert state.terminated
    np.testing.assert_array_equal(make("gomoku").rewards(state), [1, -1])


def test_one_in_a_row_wins_immediately():
    assert play(make("gomoku:2,3,1"), "b1").terminated


def test_three_in_a_row_equals_tic_tac_toe():
    games = make("gomoku:3,3,3"), make("tic_tac_toe")

    def play_both(rng_key):
        def play_move(states, rng_key):
            legal = games[1].legal_action_mask(states[1])
            logits = jnp.where(legal, 0.0, -4.0)  # occasionally an illegal one
            action = jax.random.categorical(rng_key, logits)
            states = [g.step(s, action) for g, s in zip(games, states, strict=True)]
            return states, [look(g, s) for g, s in zip(games, states, strict=True)]

        keys = jax.random.split(rng_key, 9)
        return jax.lax.scan(play_move, [game.init() for game in games], keys)[1]

    def look(game, state):
        facts = game.legal_action_mask(state), game.observe(state), game.rewards(state)
        return *facts, game.board(state), state.current_player, state.terminated

    ours, tic_tac_toe = jax.jit(jax.vmap(play_both))(
        jax.random.split(jax.random.key(1), 2000)
    )
    for fact, other in zip(ours, tic_tac_toe, strict=True):
        np.testing.assert_array_equal(fact, other)


def test_there_are_5478_positions_of_tic_tac_toe(verify_games):
    plies = verify_games.perft.enumerate_plies(make("gomoku:3,3,3"), 9)
    assert sum(ply.num_positions() for ply in plies) == 5478
    finished = sum(ply.num_finished_games() for ply in plies)
    assert finished == 255168


def test_cells_are_named_from_the_bottom_left():
    game = make("gomoku:19,19")
    state = game.init()
    texts = {"a1": 342, "s1": 360, "a19": 0, "s19": 18, "b2": 324}
    for text, action in texts.items():
        assert game.action_to_text(state, action) == text
        assert game.text_to_action(state, f" {text.upper()}\n") == action


@pytest.mark.parametrize("text", ["p1", "a16", "t20", "a0", "1a", "pass", "swap", ""])
def test_the_text_of_no_action_is_refused(text):
    game = make("gomoku")
    with pytest.raises(ValueError, match=f"'{text}' is no action .* a15 b15 .* o1"):
        game.text_to_action(game.init(), text)


def test_an_occupied_cell_is_refused():
    game = make("gomoku:3,3,3")
    with pytest.raises(ValueError, match="'b2' is not legal here; legal: a3 b3 c3 a2"):
        game.text_to_action(play(game, "b2"), "b2")


@pytest.mark.parametrize("side", ["height", "width"])
@pytest.mark.parametrize("value", [0, 1, -5, 20, 15.0, "15", True, None])
def test_invalid_sides_are_refused(side, value):
    with pytest.raises(ValueError, match=f"{side} .* from 2 to 19: {value!r}"):
        make("gomoku", **{side: value})


@pytest.mark.parametrize("length", [0, -1, 8, 5.0, "5", True, None])
def test_an_impossible_length_is_refused(length):
    with pytest.raises(ValueError, match=f"length .* from 1 to 7, .*: {length!r}"):
        make("gomoku", height=3, width=7, length=length)


@pytest.mark.parametrize("exact", [0, 1, "yes", None])
def test_exact_is_true_or_false(exact):
    with pytest.raises(ValueError, match=f"True or False: {exact!r}"):
        make("gomoku", exact=exact)


def test_options_are_height_width_length_and_exact():
    assert make("gomoku:9,13,4,true").options == {
        "height": 9,
        "width": 13,
        "length": 4,
        "exact": True,
    }
    assert make("gomoku:15") == make("gomoku")


@pytest.mark.parametrize(("spec", "number"), [("5,5,4", 8), ("5,7,4", 4), ("7,5", 4)])
def test_a_square_has_eight_symmetries_and_a_rectangle_four(spec, number):
    assert len(make(f"gomoku:{spec}").symmetries) == number


def test_the_first_plane_has_the_movers_stones():
    game = make("gomoku:2,3,3")
    observation = game.observe(play(game, "a1 c2 b1"))
    np.testing.assert_array_equal(observation[..., 0], [[0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(observation[..., 1], [[0, 0, 0], [1, 1, 0]])


def test_stones_are_drawn_with_the_last_in_brackets():
    game = make("gomoku:2,3,3")
    assert game.to_text(play(game, "a1 c2 b1"), last_action=4).splitlines() == [
        "  a  b  c",
        "2 .  .  O",
        "1 X [X] .",
    ]


def test_a_state_of_15_by_15_has_67_bytes():
    leaves = jax.tree.leaves(make("gomoku").init())
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) == 67


@pytest.mark.parametrize("spec", ["gomoku", "gomoku:4,6,3", "gomoku:4,6,3,true"])
def test_the_engine_agrees_at_every_position(record_of, engine, spec):
    game = make(spec)
    counts = engine.compare(game, record_of(game))
    assert counts.pop("positions") > 50 * 5
    assert not any(counts.values())


def test_a_wrong_rule_is_detected(record_of, engine):
    free, exact = make("gomoku:4,6,3"), make("gomoku:4,6,3,true")
    assert engine.compare(exact, record_of(free))["terminated"] > 0
    assert engine.compare(free, record_of(exact))["terminated"] > 0
    other = make("gomoku:4,6,4")
    assert engine.compare(other, record_of(free))["rewards"] > 0
