import functools
import importlib
import itertools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import bitboard, hex, make

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"

single_step = functools.cache(lambda game: jax.jit(game.step))
steps = functools.cache(lambda game: jax.jit(jax.vmap(game.step)))


@pytest.fixture
def engine(monkeypatch):
    """Returns the comparison with OpenSpiel."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("engines.hex")


def words(grid, stones):
    """Returns bitboards of stones `[N, height, width]` bool; each word is `[N]`."""
    bits = np.zeros((len(stones), 32 * len(bitboard.empty(grid.num_bits))), bool)
    bits[:, grid.cells] = stones
    return tuple(
        jnp.asarray(np.packbits(bits, axis=1, bitorder="little").view("<u4").T)
    )


def states(first, second, player):
    """Returns positions `[N]` with stones `[N, size, size]` bool."""
    size = first.shape[-1]
    grid = bitboard.Grid(size, size)
    return hex.State(
        stones=(words(grid, first), words(grid, second)),
        current_player=jnp.full(len(first), player, jnp.int8),
        outcome=jnp.zeros(len(first), jnp.int8),
        terminated=jnp.zeros(len(first), bool),
    )


def outcomes(size, first, second, player, actions):
    """Returns `[N]`: the outcome after `player` places a stone on each of the cells."""
    after = steps(make("hex", size=size))(
        states(first, second, player), jnp.asarray(actions, jnp.int32)
    )
    np.testing.assert_array_equal(after.terminated, after.outcome != 0)
    return np.asarray(after.outcome)


def outcome(picture, player):
    """Returns the outcome after `player` places a stone on the cell `*`."""
    board = np.array([list(row) for row in picture.split()])
    (cell,) = np.flatnonzero(board == "*")
    size = len(board)
    return outcomes(size, (board == "X")[None], (board == "O")[None], player, [cell])[0]


def exchange(picture):
    """Exchanges rows and columns, and the players."""
    rows = zip(*picture.split(), strict=True)
    return " ".join("".join(row).translate(str.maketrans("XO", "OX")) for row in rows)


def play(game, texts):
    """Returns the position after the moves."""
    step = single_step(game)
    state = game.init()
    for text in texts.split():
        assert not state.terminated
        is_swap = text == "swap"
        column, row = ord(text[0]) - ord("a"), 0 if is_swap else int(text[1:]) - 1
        action = game.size**2 if is_swap else game.size * row + column
        state = step(state, action)
    return state


def serpentine(size):
    """Returns a chain of cells from top to bottom, in order, that fills every other
    row.
    """
    chain = []
    for row in range(size):
        columns = range(size) if row % 4 == 1 else reversed(range(size))
        if row % 2 == 0:
            columns = [0 if row % 4 == 0 else size - 1]
        chain += [(row, column) for column in columns]
    return chain


WINS_OF_PLAYER_0 = {
    "along the left side": "X.. X.. *..",
    "along the right side": "..* ..X ..X",
    "joined in the middle": ".X. .*. .X.",
    "the short diagonal": "..X .*. X..",
    "round a stone": ".XX X*O X.. ",
    "with a bend": "X... XXX* OOX. .X..",
}
END = ((2, 2), (3, 1))  # lines of "with a bend"
NO_WINS = {
    "one cell short": "X.. *.. ...",
    "a row from side to side": "... XX* ...",
    "the long diagonal, whose cells are not adjacent": "X.. .*. ..X",
    "from the end of a row to the start of the next": "..X *.. X..",
    "from the end of a row to the start of the one after": "..X ... *.. ",
    "a separate stone, next to a chain of the opponent": "O.. O.. O.*",
    "two chains, one for each side": "X... X.X. *.X. ..X.",
}


@pytest.mark.parametrize("picture", WINS_OF_PLAYER_0.values(), ids=WINS_OF_PLAYER_0)
def test_player_0_wins_by_connecting_top_and_bottom(picture):
    assert outcome(picture, player=0) == 1


@pytest.mark.parametrize("picture", WINS_OF_PLAYER_0.values(), ids=WINS_OF_PLAYER_0)
def test_player_1_wins_by_connecting_left_and_right(picture):
    assert outcome(exchange(picture), player=1) == -1


def stones(picture):
    """Returns the position of a picture in which `*` is a stone of player 0."""
    board = np.array([list(row) for row in picture.replace("*", "X").split()])
    found = states((board == "X")[None], (board == "O")[None], 0)
    return make("hex", size=len(board)), jax.tree.map(lambda leaf: leaf[0], found)


@pytest.mark.parametrize("picture", WINS_OF_PLAYER_0.values(), ids=WINS_OF_PLAYER_0)
def test_the_cells_that_won_are_a_chain_from_side_to_side(picture):
    game, state = stones(picture)
    chain = game.winning_cells(state)
    rows, columns = zip(*chain, strict=True)
    assert {0, game.size - 1} <= set(rows)
    for (row, column), (next_row, next_column) in itertools.pairwise(chain):
        step = (next_row - row, next_column - column)
        assert step in {(0, -1), (0, 1), (-1, 0), (-1, 1), (1, 0), (1, -1)}
    assert (np.asarray(game.board(state))[rows, columns] == 0).all()
    other_game, exchanged = stones(exchange(picture.replace("*", "X")))
    swapped = {(column, row) for row, column in chain}
    assert set(other_game.winning_cells(exchanged)) == swapped


def test_the_winning_chain_is_minimal():
    game, state = stones("X... XXX* OOX. .X..")
    assert set(game.winning_cells(state)) == {(0, 0), (1, 0), (1, 1), (1, 2), *END}
    game, state = stones("X.XX X.X. XXX. XXXX")
    assert len(game.winning_cells(state)) == 4


@pytest.mark.parametrize("picture", NO_WINS.values(), ids=NO_WINS)
def test_there_are_no_winning_cells_before_the_end(picture):
    game, state = stones(picture)
    assert game.winning_cells(state) == ()


@pytest.mark.parametrize("picture", NO_WINS.values(), ids=NO_WINS)
def test_the_game_continues_until_the_sides_are_connected(picture):
    assert outcome(picture, player=0) == 0
    assert outcome(exchange(picture), player=1) == 0


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("size", [7, 11, 19])
def test_a_winding_chain_wins_with_any_last_stone(size, player):
    chain = serpentine(size)
    lasts = [0, 1, size // 2, len(chain) // 2, len(chain) - 2, len(chain) - 1]
    mine = np.zeros((len(lasts), size, size), bool)
    mine[:, *np.transpose(chain)] = True
    mine[range(len(lasts)), *np.transpose([chain[last] for last in lasts])] = False
    actions = [size * row + column for row, column in (chain[last] for last in lasts)]
    if player == 1:
        mine = mine.swapaxes(1, 2)
        actions = [action % size * size + action // size for action in actions]
    boards = [np.zeros_like(mine), np.zeros_like(mine)]
    boards[player] = mine
    won = outcomes(size, *boards, player, actions)
    np.testing.assert_array_equal(won, 1 - 2 * player)


@pytest.mark.parametrize("size", [7, 19])
def test_a_winding_chain_with_a_gap_does_not_win(size):
    chain = serpentine(size)
    # At a bend the neighbors of a missing stone can touch: use straight parts.
    gaps = [size // 2 + 1 + (size + 1) * turn for turn in range((size - 1) // 2)]
    mine = np.zeros((len(gaps), size, size), bool)
    mine[:, *np.transpose(chain)] = True
    mine[range(len(gaps)), *np.transpose([chain[gap] for gap in gaps])] = False
    mine[:, *chain[-1]] = False
    row, column = chain[-1]
    actions = [size * row + column] * len(gaps)
    won = outcomes(size, mine, np.zeros_like(mine), 0, actions)
    np.testing.assert_array_equal(won, 0)


@pytest.mark.parametrize("size", [2, 3])
def test_half_of_all_fillings_connect_top_and_bottom(size):
    # On a full board exactly one player is connected; the transposed board with
    # exchanged players has the other winner.
    cells = size * size
    fillings = np.array(list(itertools.product([False, True], repeat=cells)))
    winners = {}
    for player, stones in enumerate((fillings, ~fillings)):
        row, last = np.nonzero(stones)
        boards = np.stack([fillings, ~fillings])[:, row]
        boards[player, range(len(last)), last] = False
        won = outcomes(size, *boards.reshape(2, -1, size, size), player, last)
        winners[player] = set(row[won != 0].tolist())
    assert len(winners[0]) == 2 ** (cells - 1)
    assert winners[0] | winners[1] == set(range(2**cells))
    assert not winners[0] & winners[1]


@pytest.mark.parametrize("size", [3, 11, 19])
def test_a_swap_leaves_a_stone_of_player_1_on_the_mirrored_cell(size):
    game = make("hex", size=size, swap=True)
    cells = size * size

    def swap_after(action):
        state = game.step(game.step(game.init(), action), cells)
        return game.board(state), state.current_player, state.terminated

    boards, players, terminated = jax.jit(jax.vmap(swap_after))(jnp.arange(cells))
    stones = np.eye(cells, dtype=bool).reshape(cells, size, size).swapaxes(1, 2)
    np.testing.assert_array_equal(boards, np.where(stones, 1, -1))
    np.testing.assert_array_equal(players, 0)
    assert not terminated.any()


def test_the_first_cell_is_empty_after_a_swap():
    game = make("hex:3,true")
    legal = game.legal_action_mask(play(game, "b1 swap"))
    np.testing.assert_array_equal(np.flatnonzero(~legal), [3, 9])


def test_a_swapped_stone_counts_for_player_1():
    state = play(make("hex:2,true"), "b1 swap a1 b2")
    assert state.terminated
    np.testing.assert_array_equal(make("hex:2,true").rewards(state), [-1, 1])


@pytest.mark.parametrize("moves", ["", "a1 b1", "a1 swap", "a1 swap c3", "a1 b1 c1"])
def test_a_swap_is_legal_as_the_first_move_of_player_1_only(moves):
    game = make("hex:5,true")
    assert game.legal_action_mask(play(game, "c3"))[25]
    state = play(game, moves)
    assert not game.legal_action_mask(state)[25]
    lost = single_step(game)(state, 25)
    assert lost.terminated
    assert game.rewards(lost)[state.current_player] == -1


def test_without_the_option_there_is_no_swap():
    game = make("hex:5")
    state = play(game, "c3")
    assert game.legal_action_mask(state).shape == (25,)
    with pytest.raises(ValueError, match="'swap' is no action of hex"):
        game.text_to_action(state, "swap")


def test_cells_are_named_from_the_top_left():
    game = make("hex:19,true")
    state = game.init()
    texts = {"a1": 0, "s1": 18, "a2": 19, "a19": 342, "s19": 360}
    for text, action in texts.items():
        assert game.text_to_action(state, text) == action
        assert game.action_to_text(state, action) == text
    assert game.text_to_action(play(game, "c3"), " SWAP ") == 361


@pytest.mark.parametrize("text", ["l1", "a12", "t20", "a0", "1a", "pass", "swap", ""])
def test_the_text_of_no_action_is_refused(text):
    game = make("hex")
    with pytest.raises(ValueError, match=f"'{text}' is no action .* a1 b1 .* k11"):
        game.text_to_action(game.init(), text)


def test_an_occupied_cell_and_an_early_swap_are_refused():
    game = make("hex:3,true")
    with pytest.raises(ValueError, match="'swap' is not legal here; legal: a1 b1"):
        game.text_to_action(game.init(), "swap")
    with pytest.raises(ValueError, match=r"'b2' is not legal here; .* swap"):
        game.text_to_action(play(game, "b2"), "b2")


@pytest.mark.parametrize("action", [-1, 9, 10])
def test_a_number_without_an_action_has_no_text(action):
    with pytest.raises(ValueError, match=f"action {action} "):
        make("hex:3").action_to_text(make("hex:3").init(), action)


@pytest.mark.parametrize("size", [1, 0, -3, 20, 11.0, "11", True, None])
def test_invalid_sizes_are_refused(size):
    with pytest.raises(ValueError, match=f"from 2 to 19: {size!r}"):
        make("hex", size=size)


@pytest.mark.parametrize("swap", [0, 1, "yes", None])
def test_swap_is_true_or_false(swap):
    with pytest.raises(ValueError, match=f"True or False: {swap!r}"):
        make("hex", swap=swap)


def test_player_and_swap_are_planes_of_the_observation():
    game = make("hex:3,true")
    observations = [game.observe(play(game, moves)) for moves in ("", "b1", "b1 swap")]
    mine, theirs, is_second, can_swap = np.moveaxis(observations, -1, 0)
    assert [stones.sum() for stones in mine] == [0, 0, 0]
    np.testing.assert_array_equal(theirs[1], [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(theirs[2], [[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    for plane in is_second, can_swap:
        np.testing.assert_array_equal(plane.reshape(3, 9).T, [[0, 1, 0]] * 9)


def test_without_the_option_there_is_no_swap_plane():
    game = make("hex:3")
    observation = game.observe(play(game, "b1"))
    assert observation.shape == game.observation_shape == (3, 3, 3)
    np.testing.assert_array_equal(observation[..., 2], 1)


def test_the_half_turn_of_a_swapped_game_is_a_swapped_game():
    game = make("hex:5,true")
    _, half_turn = game.symmetries
    state, image = play(game, "b1 swap c4"), play(game, "d5 swap c2")
    np.testing.assert_array_equal(
        half_turn.observation(game.observe(state)), game.observe(image)
    )
    np.testing.assert_array_equal(
        game.legal_action_mask(state)[half_turn.actions], game.legal_action_mask(image)
    )


def test_rows_are_indented_and_the_last_stone_is_in_brackets():
    game = make("hex:3,true")
    state = play(game, "b1 c2 a3")
    assert game.to_text(state, last_action=6).splitlines() == [
        "  a  b  c",
        "1 .  X  .",
        " 2 .  .  O",
        "  3[X] .  .",
    ]


def test_a_swap_marks_the_swapped_stone():
    game = make("hex:3,true")
    assert game.last_cells(play(game, "b1 swap"), last_action=9) == ((1, 0),)
    assert "[O]" in game.to_text(play(game, "b1 swap"), last_action=9)


def test_the_picture_has_the_probability_of_a_swap():
    game = make("hex:3,true")
    policy = np.full(10, 0.1)
    svg = game.to_svg(play(game, "b1"), policies={"search": policy})
    assert "search (swap 10%)" in svg


def test_a_state_of_size_11_has_43_bytes():
    leaves = jax.tree.leaves(make("hex").init())
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) == 43


@pytest.fixture(scope="module")
def record_of(verify_games):
    """Returns a function `game -> record` of 100 random games."""
    keys = jax.random.split(jax.random.key(2), 100)
    return functools.cache(lambda game: verify_games.make_recorder(game)(keys))


@pytest.mark.parametrize("spec", ["hex:11", "hex:3,true"])
def test_open_spiel_agrees_at_every_position(record_of, engine, spec):
    game = make(spec)
    counts = engine.compare(game, record_of(game))
    assert counts.pop("positions") > 100 * 5
    assert not any(counts.values())


def test_a_wrong_rule_is_detected(record_of, engine):
    game = make("hex:3,true")
    record = record_of(game)
    # The wrong rule: player 1 connects top and bottom.
    wrong = {**record, "rewards": -record["rewards"], "board": record["board"].mT}
    counts = engine.compare(game, wrong)
    assert counts["rewards"] == 100
    assert counts["board"] > 0
    assert counts["legal"] == 0
