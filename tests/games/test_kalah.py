import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from compiled_games import batched, compiled, play, single

from azjax import arena, players
from azjax.arena import exhaustive
from azjax.games import host, kalah, make

GAME = compiled("kalah")
SOUTH, NORTH = 0, 1
# Irving, Donkers and Uiterwijk 2000: results of the first player with 1 to 6 pits and,
# in each text, 1 to 6 seeds (W win, D draw, L loss); (6, 6) is not among them.
RESULTS = ("DLWLWD", "WLLLWW", "DWWWWL", "WWWWWD", "DDWWWW", "WWWWW")
# Their margins and games of perfect play: the pits of each turn, from 0. That of (4, 6)
# is left out, for its tenth turn is no turn by the rules.
PERFECT_GAMES = {
    "4,1": (2, "32-32-1"),
    "4,2": (6, "3-3-230-231-1323"),
    "4,3": (8, "13-1-032-2-3-0-1320-3-0-2"),
    "4,4": (2, "02-2-3-0-2-21-303231-0-32-1-0"),
    "4,5": (2, "0-2-1-3-0-2-1-0-32-3-021-2-0-02-2-1-3-3-313032-13031-1-2-2-3"),
    "5,1": (0, "43-43-2-2"),
    "5,2": (0, "31-32-24-0-0-31-3"),
    "5,3": (8, "24-3-3-03-41-1-04342-3-3-2-2-4-414342-3"),
    "5,4": (12, "12-04-03-2-20-41-1-42-32-3-2-40-0-1"),
    "5,5": (2, "03-2-2-1-1-23-24-2-0-34414340-4240-2-14342"),
    "5,6": (
        2,
        "2-0-0-3-3-0-2-1-440-4-42-2-121-12-3-1-4-20-0-34-24-324-1-3-3-1-41-43-2-2-3",
    ),
    "6,1": (2, "54-54-3-3-2"),
    "6,2": (10, "42-42-30-0-1-1-4-5"),
    "6,3": (2, "4-5-35-250-2-154-451535452-53-3-54-2"),
    "6,4": (10, "25-10-3-3-5153-1-4-5-045-4-535452-53-4-1-3-2-0-54-1-3"),
    "6,5": (
        12,
        "12-02-05-2-4-51-53-3-45-20-3-2-2-345-5-4-351-0-54-1-52-354-4-254-3-3",
    ),
}
# Margins of the first player, of `python experiments/solve_kalah.py 1,1 1,2 ... --file
# tests/games/kalah_values.json`.
MARGINS = json.loads((Path(__file__).parent / "kalah_values.json").read_text())


def position(own, other, player=SOUTH, num_moves=0):
    """Returns the position of the seeds of the player to move and of the opponent, as
    they are sown, the store last.
    """
    return kalah.State(
        seeds=np.array([own, other], np.uint8),
        num_moves=np.int16(num_moves),
        current_player=np.int8(player),
        terminated=np.bool_(False),
    )


def game_of(pits, **options):
    return compiled(make("kalah", pits=pits, **options))


def after(state, action, **options):
    """Returns the position after a move: the seeds of South and of North, and the
    player to move.
    """
    state = host.next_state(game_of(state.seeds.shape[1] - 1, **options), state, action)
    return rows(state), int(state.current_player)


def rows(state):
    """Returns the seeds of South and of North."""
    seeds = np.asarray(state.seeds).tolist()
    return seeds[::-1] if state.current_player == NORTH else seeds


def result_of(margin):
    return "LDW"[np.sign(margin) + 1]


@pytest.mark.parametrize("player", [SOUTH, NORTH])
@pytest.mark.parametrize(
    ("own", "other", "action", "expected"),
    [
        ([2, 0, 1, 0], [1, 1, 1, 0], 0, ([0, 1, 2, 0], [1, 1, 1, 0])),
        # Past the own store to the other player.
        ([1, 3, 2, 5], [1, 0, 1, 0], 2, ([1, 3, 0, 6], [2, 0, 1, 0])),
        # Around the board without the store of the other player.
        ([1, 1, 6, 0], [1, 1, 1, 4], 2, ([2, 2, 0, 1], [2, 2, 2, 4])),
        # More than once around: seven places and three more.
        ([1, 10, 1, 0], [1, 1, 1, 4], 1, ([2, 1, 3, 2], [3, 2, 2, 4])),
    ],
)
def test_seeds_are_sown_around_the_board(player, own, other, action, expected):
    found, next_player = after(position(own, other, player), action)
    assert found == list(expected)[:: 1 if player == SOUTH else -1]
    assert next_player == 1 - player


@pytest.mark.parametrize("player", [SOUTH, NORTH])
@pytest.mark.parametrize("seeds", [2, 9])
def test_who_ends_in_the_own_store_moves_again(player, seeds):
    state = position([1, seeds, 1, 0], [1, 1, 1, 0], player)
    assert after(state, 1)[1] == player
    state = position([1, seeds + 1, 1, 0], [1, 1, 1, 0], player)
    assert after(state, 1)[1] == 1 - player


@pytest.mark.parametrize("player", [SOUTH, NORTH])
def test_the_last_seed_in_an_empty_own_pit_captures_the_pit_on_the_other_side(player):
    state = position([1, 0, 2, 1], [4, 5, 6, 1], player)
    expected = [[0, 0, 2, 1 + 1 + 5], [4, 0, 6, 1]]
    assert after(state, 0) == (expected[:: 1 if player == SOUTH else -1], 1 - player)
    # Not in an empty pit of the opponent.
    state = position([1, 3, 2, 0], [0, 1, 1, 0], player)
    expected = [[1, 3, 0, 1], [1, 1, 1, 0]]
    assert after(state, 2) == (expected[:: 1 if player == SOUTH else -1], 1 - player)


def test_a_whole_lap_ends_in_the_emptied_pit_and_captures():
    state = position([5, 1, 0], [2, 3, 0])
    assert after(state, 0) == ([[0, 2, 1 + 1 + 4], [3, 0, 0]], NORTH)


def test_an_option_says_if_a_seed_alone_is_captured():
    state = position([1, 0, 2, 0], [4, 0, 6, 0])
    for captures, own in (True, [0, 0, 2, 1]), (False, [0, 1, 2, 0]):
        found = after(state, 0, empty_capture=captures)
        assert found == ([own, [4, 0, 6, 0]], NORTH)


@pytest.mark.parametrize(
    ("remaining", "stores", "rewards", "text"),
    [
        ("owner", [4, 8], [-1, 1], "8 to 4"),
        ("opponent", [9, 3], [1, -1], "9 to 3"),
        ("nobody", [4, 3], [1, -1], "4 to 3"),
    ],
)
@pytest.mark.parametrize("player", [SOUTH, NORTH])
def test_a_game_ends_when_a_row_is_empty(remaining, stores, rewards, text, player):
    game = game_of(3, seeds=2, remaining=remaining)
    state = position([0, 0, 1, 3], [4, 0, 1, 3], player)
    assert game.result_text(state) == ""
    order = 1 if player == SOUTH else -1
    assert (
        np.asarray(game.score(state)).tolist()
        == {
            "owner": [4, 8],
            "opponent": [8, 4],
            "nobody": [3, 3],
        }[remaining][::order]
    )
    state = host.next_state(game, state, 2)
    assert state.terminated
    expected = [[0, 0, 0, store] for store in stores][::order]
    assert rows(state) == expected
    np.testing.assert_array_equal(game.rewards(state), rewards[::order])
    np.testing.assert_array_equal(game.score(state), stores[::order])
    assert game.result_text(state) == text


def test_a_game_ends_too_when_the_opponents_row_is_empty():
    # A capture takes North's last seeds; South stores its own.
    state = position([1, 0, 2, 1], [0, 3, 0, 2])
    assert after(state, 0) == ([[0, 0, 0, 7], [0, 0, 0, 2]], NORTH)


def test_an_equal_number_of_seeds_is_a_draw():
    game = compiled(make("kalah:1,1"))
    state = host.next_state(game, host.first_state(game), 0)
    assert state.terminated
    assert rows(state) == [[0, 1], [0, 1]]
    np.testing.assert_array_equal(game.rewards(state), [0, 0])
    assert game.result_text(state) == "1 to 1"


def test_a_game_ends_after_its_limit_of_moves():
    game = game_of(3, seeds=2, max_moves=7)
    state = position([2, 0, 1, 3], [4, 1, 0, 1], num_moves=5)
    state = host.next_state(game, state, 0)
    assert not state.terminated
    state = host.next_state(game, state, 1)
    assert state.terminated
    assert rows(state) == [[0, 0, 0, 6], [0, 0, 0, 6]]
    assert make("kalah").max_moves == 120
    unlimited = make("kalah:3,2,false,nobody").without_move_limit()
    assert repr(unlimited) == (
        "kalah:3,seeds=2,empty_capture=False,remaining=nobody,max_moves=3864"
    )


@pytest.mark.parametrize("player", [SOUTH, NORTH])
@pytest.mark.parametrize("action", [1, -1, 3])
def test_an_illegal_move_loses_and_sows_nothing(player, action):
    game = game_of(3, seeds=2)
    state = position([2, 0, 1, 3], [4, 1, 0, 1], player)
    np.testing.assert_array_equal(game.legal_action_mask(state), [True, False, True])
    over = host.next_state(game, state, action)
    assert over.terminated
    np.testing.assert_array_equal(over.seeds, state.seeds)
    expected = [-1, 1] if player == SOUTH else [1, -1]
    np.testing.assert_array_equal(game.rewards(over), expected)
    assert game.result_text(over) == ""
    assert game.last_cells(over, action) == ()


def test_pits_are_named_as_they_are_drawn():
    state = host.first_state(GAME)
    texts = [GAME.action_to_text(state, action) for action in range(6)]
    assert texts == ["a1", "b1", "c1", "d1", "e1", "f1"]
    state = play(GAME, "d1")
    texts = [GAME.action_to_text(state, action) for action in range(6)]
    assert texts == ["f2", "e2", "d2", "c2", "b2", "a2"]
    assert [GAME.action_cells(state, a) for a in (0, 5)] == [((0, 6),), ((0, 1),)]
    assert GAME.to_text(state, 3).splitlines() == [
        "  N   a   b   c   d   e   f   S",
        "2  0   4   4   4   4   4   5",
        "1      4   4   4 [ 0]  5   5   1",
    ]
    np.testing.assert_array_equal(
        GAME.board(state), [[0, 4, 4, 4, 4, 4, 5, -1], [-1, 4, 4, 4, 0, 5, 5, 1]]
    )


def test_the_pit_of_the_last_move_is_marked_if_it_is_known():
    """Never the wrong one."""
    generator, num_marked, num_moves = np.random.default_rng(0), 0, 0
    for pits in 2, 3, 6:
        game = game_of(pits, seeds=4)
        for _ in range(4):
            state = host.first_state(game)
            while not state.terminated:
                action = int(generator.choice(host.legal_actions(game, state)))
                cells = game.action_cells(state, action)
                state = host.next_state(game, state, action)
                found = game.last_cells(state, action)
                assert found in ((), cells)
                num_marked += found == cells
                num_moves += 1
    assert num_marked > num_moves / 2


def test_the_observation_is_the_board_of_the_player_to_move():
    game = game_of(3, seeds=2)
    own, other = [3, 2, 0, 4], [1, 0, 8, 1]
    seen = np.asarray(game.observe(position(own, other)))
    np.testing.assert_array_equal(seen, game.observe(position(own, other, NORTH)))
    counts = np.array([[1, 8, 0, 1, 0], [0, 3, 2, 0, 4]])
    np.testing.assert_allclose(seen[..., 0], counts / 6)
    is_pit = np.array([[0, 1, 1, 1, 0]] * 2, bool)
    for number in range(1, 8):
        np.testing.assert_array_equal(seen[..., number], (counts == number) & is_pit)
    # 3 and 2 seeds end in the own store; 8 seeds too, after a lap.
    np.testing.assert_array_equal(seen[..., 8], [[0, 1, 0, 0, 0], [0, 1, 1, 0, 0]])


def test_policies_are_bars_above_the_columns_of_the_pits():
    policies = {"network": np.arange(6) / 15}
    found = GAME.policies_on_board(host.first_state(GAME), policies)["network"]
    np.testing.assert_array_equal(found, [0, *policies["network"], 0])
    found = GAME.policies_on_board(play(GAME, "d1"), policies)["network"]
    np.testing.assert_array_equal(found, [0, *policies["network"][::-1], 0])


def test_a_picture_has_the_numbers_of_seeds():
    svg = GAME.to_svg(play(GAME, "c1"))
    assert re.findall(r'bold"[^>]*>(\d+)<', svg) == list("0444444440" + "5551")
    title = svg[svg.index("<title>") : svg.index("</title>")]
    assert "2 empty pits, 1 pits with 1 seed, 8 pits with 4 seeds, 3 pits" in title
    assert "pits with 2 seeds" not in title


def test_the_heuristic_value_is_the_lead_in_stored_seeds():
    game = game_of(3, seeds=2)
    for player in SOUTH, NORTH:
        state = position([2, 0, 1, 2], [1, 1, 0, 5], player)
        assert game.evaluate(state) == pytest.approx(-3 / 12)


def test_wrong_options_are_named():
    for options, message in (
        ({"pits": 8}, "pits .* 1 to 7: 8"),
        ({"seeds": 0}, "seeds .* 1 to 6: 0"),
        ({"empty_capture": 1}, "empty_capture .*True or False: 1"),
        ({"remaining": "all"}, "remaining .*owner or opponent or nobody: 'all'"),
        ({"max_moves": 0}, "max_moves .* 1 to 3864: 0"),
    ):
        with pytest.raises(ValueError, match=message):
            make("kalah", **options)


# Perfect play


@pytest.mark.parametrize("board", PERFECT_GAMES)
def test_published_games_of_perfect_play_end_with_the_published_margin(board):
    margin, moves = PERFECT_GAMES[board]
    game = compiled(make(f"kalah:{board}"))
    state = host.first_state(game)
    for player, turn in enumerate(moves.split("-")):
        for action in turn:
            assert not state.terminated
            assert state.current_player == player % 2
            state = host.next_state(game, state, int(action))
    assert state.terminated
    south, north = rows(state)
    assert south[-1] - north[-1] == margin


@pytest.mark.parametrize(
    "board",
    [
        *("1,2", "1,3", "2,1", "2,2", "2,6", "3,1", "3,2", "3,3", "5,1"),
        *(
            pytest.param(board, marks=pytest.mark.slow)
            for board in (
                *("1,1", "1,4", "1,5", "1,6", "2,3", "2,4", "2,5", "3,4", "4,1"),
                *("4,2", "6,1"),
            )
        ),
    ],
)
def test_exhaustive_search_finds_the_published_result(board):
    pits, seeds = map(int, board.split(","))
    solution = exhaustive.solve(make(f"kalah:{board}"))
    assert result_of(int(solution.values[0])) == RESULTS[pits - 1][seeds - 1]


def test_the_longest_games_of_small_boards_are_far_shorter_than_the_highest_limit():
    game = make("kalah:3,3").without_move_limit()
    assert exhaustive.solve(game).num_moves[-1] == 31


def test_the_recorded_margins_are_the_published_ones():
    assert len(MARGINS) > 25
    for board, margin in MARGINS.items():
        pits, seeds = map(int, board.split(","))
        assert result_of(margin) == RESULTS[pits - 1][seeds - 1], board
        assert margin == PERFECT_GAMES.get(board, (margin,))[0], board


@pytest.mark.parametrize("empty_capture", [True, False])
def test_the_plain_solver_finds_what_exhaustive_search_finds(
    empty_capture, engine, monkeypatch
):
    """In every position, on a small board."""
    del engine  # makes the experiments importable
    import solve_kalah  # noqa: PLC0415

    game = make("kalah:3,2", empty_capture=empty_capture)
    solution = exhaustive.solve(game)
    solver = solve_kalah.Solver(3, empty_capture)
    for index in np.flatnonzero(~solution.states.terminated):
        own, other = single(solution.states, index).seeds.tolist()
        margin = solver.margin((*own[:-1], *other[:-1])) + own[-1] - other[-1]
        assert np.sign(margin) == solution.values[index]


@pytest.mark.slow
@pytest.mark.parametrize("player", ["minimax:7", "mcts:200"])
def test_searches_play_perfectly_on_a_small_board(player):
    """The longest game has seven moves."""
    game = make("kalah:3,1")
    positions = arena.shipped(game)
    player = players.load(player, game)
    assert not arena.grade(player, positions, jax.random.key(0)).is_mistake.any()


# Other engines


@pytest.mark.parametrize(
    "spec",
    [
        "kalah",
        "kalah:3,3",
        "kalah:7,6,empty_capture=false",
        "kalah:4,5,remaining=opponent",
        "kalah:2,6,false,nobody,10",
    ],
)
def test_a_plain_engine_agrees_at_every_position(engine, random_games, spec):
    game = make(spec)
    record = random_games(game, 40)
    counts = engine("kalah").compare(game, record)
    assert counts.pop("positions") > 40 * 5
    assert not any(counts.values())
    # The comparison detects a wrong rule.
    wrong = {name: np.array(facts[:10]) for name, facts in record.items()}
    wrong["legal"][:, 1, 0] ^= True
    wrong["board"][:, 2, 0, 0] += 1
    counts = engine("kalah").compare(game, wrong)
    assert counts["legal"] == counts["board"] == 10


def test_open_spiel_agrees_at_every_position(engine, random_games):
    game = make("kalah:empty_capture=false")
    record = random_games(game, 40)
    counts = engine("kalah").compare_with_open_spiel(game, record)
    assert counts.pop("positions") > 40 * 30
    assert not any(counts.values())
    for spec in "kalah", "kalah:6,3,false", "kalah:6,4,false,nobody":
        with pytest.raises(ValueError, match="OpenSpiel has kalah:empty_capture=false"):
            engine("kalah").compare_with_open_spiel(make(spec), {})


def test_the_two_variants_of_the_capture_differ(engine, random_games):
    record = random_games(make("kalah:3,3"), 40)
    counts = engine("kalah").compare(make("kalah:3,3,false"), record)
    assert counts["board"] > 0


def test_no_seed_is_lost():
    game = batched(make("kalah:7,6"))
    generator, num_games = np.random.default_rng(1), 16
    first = host.first_state(compiled("kalah:7,6"))
    states = jax.tree.map(lambda leaf: np.stack([leaf] * num_games), first)
    for _ in range(60):
        noise = generator.random((num_games, 7)) * game.legal_action_mask(states)
        states = game.step(states, noise.argmax(axis=1).astype(np.int32))
        totals = np.asarray(states.seeds).sum(axis=(1, 2))
        np.testing.assert_array_equal(totals, 84)
