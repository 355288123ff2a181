import itertools

import jax
import numpy as np
import pytest
from compiled_games import batched, board_of, compiled, play, positions, single

from azjax.devices import tracing_for
from azjax.games import bitboard, host, make


def states(boards, player):
    """Returns positions `[N]` with the stones of boards `[N, size, size]`."""
    grid = bitboard.Grid(*boards.shape[1:])
    return positions(grid.cells, grid.num_bits, boards, player)


def outcomes(boards, player, actions):
    """Returns `[N]`: the outcome after `player` places a stone on each of the cells."""
    step = batched(make("hex", size=boards.shape[1])).step
    after = step(states(boards, player), np.asarray(actions, np.int32))
    np.testing.assert_array_equal(after.terminated, after.outcome != 0)
    return np.asarray(after.outcome)


def exchanged(boards):
    """Exchanges rows and columns, and the players."""
    boards = boards.swapaxes(-1, -2)
    return np.where(boards < 0, -1, 1 - boards)


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


# Player 0 connects top and bottom with the stone `*`.
WINS = {
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


@pytest.mark.parametrize("size", [3, 4])
def test_players_win_by_connecting_their_own_sides(size):
    """Player 0 connects top and bottom, player 1 left and right."""
    pictures = [p for p in (WINS | NO_WINS).values() if len(p.split()) == size]
    boards = np.array([board_of(picture) for picture in pictures])
    cells = np.array([picture.replace(" ", "").index("*") for picture in pictures])
    wins = [picture in WINS.values() for picture in pictures]
    np.testing.assert_array_equal(outcomes(boards, 0, cells), wins)
    transposed = cells % size * size + cells // size
    won = outcomes(exchanged(boards), 1, transposed)
    np.testing.assert_array_equal(won, -np.array(wins, int))


def winning_cells(board):
    """Returns the cells that won, by the rules of the board's size."""
    board = np.asarray(board)
    game = compiled(make("hex", size=len(board)))
    return game.winning_cells(single(states(board[None], 0)))


@pytest.mark.parametrize("picture", WINS.values(), ids=WINS)
def test_the_cells_that_won_are_a_chain_from_side_to_side(picture):
    board = board_of(picture.replace("*", "X"))
    chain = winning_cells(board)
    rows, columns = zip(*chain, strict=True)
    assert {0, len(board) - 1} <= set(rows)
    for (row, column), (next_row, next_column) in itertools.pairwise(chain):
        step = (next_row - row, next_column - column)
        assert step in {(0, -1), (0, 1), (-1, 0), (-1, 1), (1, 0), (1, -1)}
    assert (board[rows, columns] == 0).all()
    swapped = {(column, row) for row, column in chain}
    assert set(winning_cells(exchanged(board))) == swapped


def test_the_winning_chain_is_minimal():
    found = winning_cells(board_of("X... XXX. OOX. .X.."))
    assert set(found) == {(0, 0), (1, 0), (1, 1), (1, 2), *END}
    assert len(winning_cells(board_of("X.XX X.X. XXX. XXXX"))) == 4
    for picture in NO_WINS.values():
        assert winning_cells(board_of(picture.replace("*", "X"))) == ()


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_a_winding_chain_wins_in_programs_for_accelerators(platform):
    game, chain = make("hex", size=9), serpentine(9)
    boards = np.full((2, 9, 9), -1)
    boards[:, *np.transpose(chain[:-1])] = 0
    boards[1, *chain[len(chain) // 2]] = -1
    last = 9 * chain[-1][0] + chain[-1][1]
    with tracing_for(platform):
        step = jax.jit(jax.vmap(game.step, (0, None)))
        after = step(states(boards, 0), np.int32(last))
    assert after.terminated.tolist() == [True, False]


@pytest.mark.parametrize("size", [7, 19])
def test_a_winding_chain_wins_with_any_last_stone_unless_it_has_a_gap(size):
    chain = serpentine(size)
    lasts = [0, 1, size // 2, len(chain) // 2, len(chain) - 2, len(chain) - 1]
    # At a bend the neighbors of a missing stone can touch: use straight parts.
    gaps = [size // 2 + 1 + (size + 1) * turn for turn in range((size - 1) // 2)]
    boards = np.full((len(lasts + gaps), size, size), -1)
    boards[:, *np.transpose(chain)] = 0
    boards[range(len(boards)), *np.transpose([chain[i] for i in lasts + gaps])] = -1
    boards[len(lasts) :, *chain[-1]] = -1
    rows, columns = np.transpose(
        [chain[i] for i in (*lasts, *(len(gaps) * [len(chain) - 1]))]
    )
    wins = np.arange(len(boards)) < len(lasts)
    won = outcomes(boards, 0, size * rows + columns)
    np.testing.assert_array_equal(won, wins)
    won = outcomes(exchanged(boards), 1, size * columns + rows)
    np.testing.assert_array_equal(won, -wins.astype(int))


@pytest.mark.parametrize("size", [2, 3])
def test_half_of_all_fillings_connect_top_and_bottom(size):
    # On a full board exactly one player is connected; the transposed board with
    # exchanged players has the other winner.
    cells = size * size
    fillings = np.array(list(itertools.product([0, 1], repeat=cells)))
    winners = {}
    for player in 0, 1:
        row, last = np.nonzero(fillings == player)
        boards = fillings[row]
        boards[range(len(last)), last] = -1
        won = outcomes(boards.reshape(-1, size, size), player, last)
        winners[player] = set(row[won != 0].tolist())
    assert len(winners[0]) == 2 ** (cells - 1)
    assert winners[0] | winners[1] == set(range(2**cells))
    assert not winners[0] & winners[1]


@pytest.mark.parametrize("size", [3, 19])
def test_a_swap_leaves_a_stone_of_player_1_on_the_mirrored_cell(size):
    game = make("hex", size=size, swap=True)
    cells = size * size
    boards = np.where(np.eye(cells, dtype=bool).reshape(cells, size, size), 0, -1)
    after = batched(game).step(states(boards, 1), np.full(cells, cells, np.int32))
    mirrored = exchanged(boards)
    np.testing.assert_array_equal(batched(game).board(after), mirrored)
    np.testing.assert_array_equal(after.current_player, 0)
    assert not after.terminated.any()


def test_a_swap_is_the_first_move_of_player_1_only():
    game = compiled("hex:5,true")
    assert game.legal_action_mask(play(game, "c3"))[25]
    for moves in "", "a1 b1", "a1 swap", "a1 swap c3", "a1 b1 c1":
        state = play(game, moves)
        assert not game.legal_action_mask(state)[25]
        lost = host.next_state(game, state, 25)
        assert lost.terminated
        assert np.asarray(game.rewards(lost))[state.current_player] == -1
    with pytest.raises(ValueError, match="'swap' is not legal here; legal: a1 b1"):
        game.text_to_action(game.init(), "swap")
    without = compiled("hex:5")
    state = play(without, "c3")
    assert without.legal_action_mask(state).shape == (25,)
    with pytest.raises(ValueError, match="'swap' is no action of hex"):
        without.text_to_action(state, "swap")


def test_a_swapped_stone_counts_for_player_1_and_its_first_cell_is_empty():
    game = compiled("hex:2,true")
    legal = game.legal_action_mask(play(game, "b1 swap"))
    np.testing.assert_array_equal(np.flatnonzero(~np.asarray(legal)), [2, 4])
    state = play(game, "b1 swap a1 b2")
    assert state.terminated
    np.testing.assert_array_equal(game.rewards(state), [-1, 1])


def test_cells_are_named_from_the_top_left_and_other_texts_are_refused():
    game = compiled("hex:19,true")
    state = game.init()
    texts = {"a1": 0, "s1": 18, "a2": 19, "a19": 342, "s19": 360}
    for text, action in texts.items():
        assert game.text_to_action(state, text) == action
        assert game.action_to_text(state, action) == text
    assert game.text_to_action(play(game, "c3"), " SWAP ") == 361
    game = compiled("hex")
    for text in "l1", "a12", "t20", "a0", "1a", "pass", "swap", "":
        with pytest.raises(ValueError, match=f"'{text}' is no action .* a1 b1 .* k11"):
            game.text_to_action(game.init(), text)
    for action in -1, 9, 10:
        with pytest.raises(ValueError, match=f"action {action} "):
            make("hex:3").action_to_text(None, action)
    with pytest.raises(ValueError, match=r"'b2' is not legal here; .* swap"):
        compiled("hex:3,true").text_to_action(play(make("hex:3,true"), "b2"), "b2")


def test_wrong_options_are_refused():
    for size in 1, 0, -3, 20, 11.0, "11", True, None:
        with pytest.raises(ValueError, match=f"from 2 to 19: {size!r}"):
            make("hex", size=size)
    for swap in 0, 1, "yes", None:
        with pytest.raises(ValueError, match=f"True or False: {swap!r}"):
            make("hex", swap=swap)


def test_player_and_swap_are_planes_of_the_observation():
    game = compiled("hex:3,true")
    observations = [game.observe(play(game, moves)) for moves in ("", "b1", "b1 swap")]
    mine, theirs, is_second, can_swap = np.moveaxis(np.array(observations), -1, 0)
    assert [stones.sum() for stones in mine] == [0, 0, 0]
    np.testing.assert_array_equal(theirs[1], [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(theirs[2], [[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    for plane in is_second, can_swap:
        np.testing.assert_array_equal(plane.reshape(3, 9).T, [[0, 1, 0]] * 9)
    without = compiled("hex:3")
    observation = np.asarray(without.observe(play(without, "b1")))
    assert observation.shape == without.observation_shape == (3, 3, 3)
    np.testing.assert_array_equal(observation[..., 2], 1)


def test_the_half_turn_of_a_swapped_game_is_a_swapped_game():
    game = compiled("hex:5,true")
    _, half_turn = game.symmetries
    state, image = play(game, "b1 swap c4"), play(game, "d5 swap c2")
    seen, legal = (np.asarray(f(state)) for f in (game.observe, game.legal_action_mask))
    np.testing.assert_array_equal(half_turn.observation(seen), game.observe(image))
    np.testing.assert_array_equal(
        legal[half_turn.actions], game.legal_action_mask(image)
    )


def test_rows_are_indented_and_the_last_or_swapped_stone_is_in_brackets():
    game = compiled("hex:3,true")
    drawn = game.to_text(play(game, "b1 c2 a3"), last_action=6)
    assert drawn.splitlines() == [
        *("  a  b  c", "1 .  X  .", " 2 .  .  O", "  3[X] .  .")
    ]
    state = play(game, "b1 swap")
    assert game.last_cells(state, last_action=9) == ((1, 0),)
    assert "[O]" in game.to_text(state, last_action=9)
    svg = game.to_svg(play(game, "b1"), policies={"search": np.full(10, 0.1)})
    assert "search (swap 10%)" in svg
