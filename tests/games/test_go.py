import dataclasses
import itertools
import random

import chex
import jax
import numpy as np
import pytest
from compiled_games import (
    batched,
    bitboards,
    board_of,
    compiled,
    legal_texts,
    picture_of,
    play,
    single,
)

from azjax.devices import tracing_for
from azjax.games import go, host, make

GAME = compiled("go:5,0.5")
WITH_SUPERKO = compiled("go:5,0.5,superko=True")
SMALL = compiled("go:3,0.5")

# Black captures b3 with c3, and only that stone could be recaptured.
KO = "b4 c4 a3 d3 b2 c2 e1 b3 c3"
# White sends two stones, a1 and b1, and b1 would return one.
SEND_TWO = "a2 d1 b2 c2 pass b1 pass a1 c1"


def is_legal(text, state, game=GAME):
    return text in legal_texts(game, state)


def point(text):
    """Returns the action of a point on the board of 5, such as `a1`."""
    return np.int32(5 * (5 - int(text[1])) + "abcde".index(text[0]))


def positions(game, boards, player=0):
    """Returns positions `[N]` with the stones of boards `[N, size, size]`."""
    size, count = game.size, len(boards)
    cells = (size + 1) * np.arange(size)[:, None] + np.arange(size)
    first = jax.device_get(compiled(game).init())
    states = jax.tree.map(lambda leaf: np.stack([leaf] * count), first)
    return dataclasses.replace(
        states,
        stones=tuple(
            bitboards(cells, size * (size + 1), boards == side) for side in (0, 1)
        ),
        current_player=np.full(count, player, np.int8),
    )


def position(game, picture):
    """Returns the position with the stones of a picture."""
    return single(positions(game, board_of(picture)[None]))


@pytest.fixture
def record_games(engine):
    """Returns a function that plays random games with few passes."""

    def record(game, num_games, pass_logit):
        logits = np.append(np.zeros(game.size**2, np.float32), np.float32(pass_logit))
        play = engine("record").make_recorder(game, logits)
        return jax.device_get(play(jax.random.split(jax.random.key(0), num_games)))

    return record


@pytest.mark.parametrize(
    ("moves", "row"),
    [
        pytest.param("b1 a1 a2", ".X...", id="a stone"),
        pytest.param("a2 a1 b2 b1 c2 c1 d1", "...X.", id="a chain as a whole"),
        pytest.param("a2 a1 c2 c1 d1 pass b1", ".X.X.", id="two chains"),
        pytest.param("a2 a1 b2 b1", "OO...", id="none that keeps a liberty"),
        pytest.param("a1 a2 b2 e5 c1 b1", ".OX..", id="by one without liberties"),
    ],
)
def test_stones_without_liberties_are_captured(moves, row):
    assert picture_of(GAME, play(GAME, moves))[4] == row


def test_suicide_is_illegal():
    state = play(GAME, "a2 e5 b1")
    assert not is_legal("a1", state)
    assert is_legal("a1", play(GAME, "pass", state))
    assert not is_legal("b1", play(GAME, "a2 a1 b2 e5 c1"))


def test_a_snapback_is_not_a_ko():
    thrown_in = play(GAME, "a3 a2 b3 b2 c2 pass c1 pass a1 b1")
    assert picture_of(GAME, thrown_in)[4] == ".OX.."
    assert picture_of(GAME, play(GAME, "a1", thrown_in))[3:] == ["..X..", "X.X.."]


def test_a_ko_cannot_be_recaptured_immediately():
    state = play(GAME, KO)
    assert picture_of(GAME, state)[2] == "X.XO."
    assert not is_legal("b3", state)
    lost = host.next_state(GAME, state, point("b3"))
    assert lost.terminated
    np.testing.assert_array_equal(GAME.rewards(lost), [1, -1])
    for threat in "e5 d5", "pass d5", "e5 pass":
        assert picture_of(GAME, play(GAME, f"{threat} b3", state))[2] == "XO.O."
    # The other player can connect the ko.
    assert is_legal("b3", play(GAME, "e5", state))


def test_superko_forbids_repeating_an_earlier_board():
    state = play(WITH_SUPERKO, SEND_TWO)
    mask = np.asarray(WITH_SUPERKO.legal_action_mask(state))
    without = np.asarray(GAME.legal_action_mask(play(GAME, SEND_TWO)))
    assert np.flatnonzero(mask != without).tolist() == [point("b1")]
    assert without[point("b1")]
    lost = host.next_state(WITH_SUPERKO, state, point("b1"))
    assert lost.terminated
    np.testing.assert_array_equal(WITH_SUPERKO.rewards(lost), [1, -1])
    passed = play(WITH_SUPERKO, "a1 pass b1 pass c1 pass")
    assert is_legal("pass", passed, WITH_SUPERKO)


def test_only_superko_needs_memory_for_earlier_boards():
    assert jax.eval_shape(go.Go().init).hashes == ()
    low, high = jax.eval_shape(go.Go(superko=True, max_moves=100).init).hashes
    assert low.shape == high.shape == (100,)


def test_two_passes_in_a_row_end_the_game():
    state = play(GAME, "a1 pass pass")
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [1, -1])
    assert not play(GAME, "pass a1 pass a2").terminated


def test_a_game_is_scored_after_max_moves():
    game = compiled("go:3,0.5,max_moves=4")
    state = play(game, "b2 pass c2")
    assert not state.terminated
    state = play(game, "a2", state)
    assert state.terminated
    np.testing.assert_array_equal(game.rewards(state), [1, -1])


def test_every_point_has_the_owner_that_its_score_counts():
    """White's corner is a1; a3, between both, is neutral."""
    state = play(SMALL, "b3 a2 b2 b1 c1")
    owners = np.asarray(SMALL.owners(state))
    assert owners.tolist() == [[-1, 0, 0], [1, 0, 0], [1, 1, 0]]
    points = [(owners == 0).sum(), (owners == 1).sum() + 0.5]
    np.testing.assert_array_equal(SMALL.score(state), points)


@pytest.mark.parametrize(
    ("komi", "rewards", "result_text"),
    [
        (8.5, [1, -1], "B+0.5"),
        (9, [0, 0], ""),
        (13, [-1, 1], "W+4"),
        (-0.5, [1, -1], "B+9.5"),
    ],
)
def test_komi_decides_and_whole_numbers_make_draws(komi, rewards, result_text):
    assert not np.signbit(GAME.rewards(GAME.init())).any()
    # The komi does not change the moves.
    game, state = compiled(go.Go(3, komi)), play(SMALL, "b2 pass")
    assert game.result_text(state) == ""
    state = host.next_state(game, state, 9)
    assert game.result_text(state) == result_text
    np.testing.assert_array_equal(game.score(state), [9, komi])
    np.testing.assert_array_equal(game.rewards(state), rewards)
    # White has all points, and a negative komi helps Black.
    state = host.next_state(game, play(SMALL, "pass b2 pass"), 9)
    assert np.asarray(game.rewards(state))[0] == np.sign(-9 - komi)


def test_regions_count_for_the_only_color_that_they_touch():
    state = position(GAME, "X..O. X..OO XXX.. ..XXX .....")
    np.testing.assert_array_equal(GAME.score(state), [8 + 7, 3 + 1 + 0.5])
    np.testing.assert_array_equal(GAME.score(GAME.init()), [0, 0.5])
    # Shared liberties of a seki are neutral.
    game = compiled("go:4,0")
    state = position(game, "XXX. XXXO XOOO .OOO")
    np.testing.assert_array_equal(game.score(state), [7, 7])


def snake(size):
    """Returns the board of a chain that fills it, and of its enclosing chains.

    The chain's only liberty is at its end in the top left corner.
    """
    board = np.ones((size, size), int)
    board[::2] = 0
    board[1::4, -1] = board[3::4, 0] = 0
    board[0, 0] = -1
    return board


def test_liberties_are_counted_at_all_places():
    """Tests the longest possible chain, and boards full of stones of one color with
    one liberty or two.
    """
    size = 19
    game = go.Go(size)
    points = range(size**2)
    pairs = [
        (p, q)
        for p, q in itertools.combinations(points, 2)
        if q != p + size and (q != p + 1 or q % size == 0)
    ]
    num_pairs = 510 - size**2
    cells = random.Random(0).sample(pairs, num_pairs) + [(p, p) for p in points]
    empty = np.zeros((510, size**2), bool)
    np.put_along_axis(empty, np.array(cells), True, axis=1)
    # White's chains live in the last column and row, except because of the snake.
    alive, captured = snake(size), snake(size)
    alive[-1, -1], captured[-1, -1] = -1, 0
    boards = np.where(empty, -1, 0).reshape(-1, size, size)
    boards = np.concatenate([boards, [alive, captured]])
    mask = batched(game).legal_action_mask
    legal = np.asarray(mask(positions(game, boards, player=1)))
    assert legal[-2:, 0].tolist() == [False, True]
    legal = legal[:-2, :-1]
    np.testing.assert_array_equal(legal[:num_pairs], False)
    np.testing.assert_array_equal(legal[num_pairs:], empty[num_pairs:])
    legal = np.asarray(mask(positions(game, boards, player=0)))[:-2, :-1]
    np.testing.assert_array_equal(legal[:num_pairs], empty[:num_pairs])
    np.testing.assert_array_equal(legal[num_pairs:], False)
    state = single(positions(game, captured[None], player=1))
    after = host.next_state(game, state, 0)
    assert not after.forfeited
    assert (np.asarray(compiled(game).board(after)) != 0).all()


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_programs_for_accelerators_follow_the_same_rules(platform):
    # A winding region touches a stone of Black at one end.
    region = np.array([-1, 1, 0])[snake(5)]
    boards = np.random.default_rng(0).integers(-1, 2, (50, 5, 5))
    states = positions(GAME, np.concatenate([[region], boards]), player=1)
    game = go.Go(5)

    def rules(state):
        return game.legal_action_mask(state), game.owners(state)

    expected = jax.jit(jax.vmap(rules))(states)
    with tracing_for(platform):
        found = jax.jit(jax.vmap(rules))(states)
    chex.assert_trees_all_equal(found, expected)


@pytest.mark.parametrize(("size", "count"), [(2, 57), (3, 12_675)])
def test_the_number_of_legal_boards_is_the_published_one(size, count):
    # Tromp and Farnebäck, Combinatorics of Go (2007): boards whose chains all have a
    # liberty. Each of them arises if its stones are placed in any order.
    game = go.Go(size)
    chunk = 4096
    first = jax.device_get(compiled(game).init())
    seen = {(0, 0)}
    frontier = [(0, 0)]
    while frontier:
        cases = itertools.product(frontier, (0, 1), range(size**2))
        frontier = []
        while batch := list(itertools.islice(cases, chunk)):
            padded = batch + batch[:1] * (chunk - len(batch))
            stones, player, action = zip(*padded, strict=True)
            black, white = np.array(stones, np.uint32).T
            states = jax.tree.map(lambda leaf: np.full(chunk, leaf), first)
            states = dataclasses.replace(
                states,
                stones=((black,), (white,)),
                current_player=np.array(player, np.int8),
            )
            after = batched(game).step(states, np.array(action, np.int32))
            boards = zip(
                *(np.asarray(b).tolist() for (b,) in after.stones), strict=True
            )
            for board, lost in zip(boards, after.forfeited.tolist(), strict=True):
                if not lost and board not in seen:
                    seen.add(board)
                    frontier.append(board)
    assert len(seen) == count


def test_columns_are_named_without_i_and_rows_from_below():
    game = go.Go(19)
    texts = [game.action_to_text(None, action) for action in range(362)]
    assert [texts[a] for a in (0, 8, 360, 361)] == ["a19", "j19", "t1", "pass"]
    assert not any("i" in text for text in texts[:-1])


def test_stones_are_drawn_at_their_points():
    assert GAME.to_text(play(GAME, "d4 b1"), point("b1")).splitlines() == [
        "  a  b  c  d  e",
        "5 .  .  .  .  .",
        "4 .  .  .  X  .",
        "3 .  .  .  .  .",
        "2 .  .  .  .  .",
        "1 . [O] .  .  .",
    ]


def test_the_observation_has_the_movers_stones_first_the_ko_and_passes():
    planes = np.moveaxis(np.asarray(GAME.observe(play(GAME, KO))), -1, 0)
    mine, theirs, ko = np.zeros((3, 5, 5))
    mine[[1, 2, 3], [2, 3, 2]] = 1
    theirs[[1, 2, 2, 3, 4], [1, 0, 2, 1, 4]] = 1
    ko[2, 1] = 1
    rest = np.zeros((5, 5)), np.ones((5, 5))  # no pass, and White is to move
    np.testing.assert_array_equal(planes, [mine, theirs, ko, *rest])
    planes = np.moveaxis(np.asarray(GAME.observe(play(GAME, "a1 pass"))), -1, 0)
    assert (planes[3] == 1).all()
    assert (planes[4] == 0).all()


def test_options_have_short_forms():
    game = make("go:5,6.5,true")
    assert game.options == {"size": 5, "komi": 6.5, "superko": True, "max_moves": 50}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1}, "size must be an int from 2 to 19: 1"),
        ({"size": 20}, "from 2 to 19: 20"),
        ({"size": 9.0}, "from 2 to 19: 9.0"),
        ({"size": True}, "from 2 to 19: True"),
        ({"komi": 7.25}, "komi must be a multiple of 0.5 .*: 7.25"),
        ({"komi": float("nan")}, "komi must be"),
        ({"komi": float("inf")}, "komi must be"),
        ({"komi": 400}, "from -361 to 361: 400"),
        ({"komi": True}, "komi must be"),
        ({"komi": "7"}, "komi must be"),
        ({"superko": 1}, "superko must be True or False: 1"),
        ({"max_moves": 0}, "max_moves must be an int from 1 to 32767: 0"),
        ({"max_moves": 40_000}, "max_moves must be"),
        ({"max_moves": 9.5}, "max_moves must be"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        go.Go(**options)


def test_open_spiel_agrees_at_every_position(engine, record_games):
    rules = engine("go")
    record = record_games(make("go:5,0.5"), 12, 0.0)
    counts = rules.compare(GAME, record)
    assert counts["positions"] > 300
    assert not any(counts[fact] for fact in rules.FACTS)
    # The comparison detects a wrong rule.
    assert rules.compare(make("go:5,-25"), record)["rewards"] > 0


@pytest.mark.parametrize(
    ("size", "num_games"), [(3, 20), pytest.param(6, 20, marks=pytest.mark.slow)]
)
def test_a_simple_engine_agrees_with_superko(engine, record_games, size, num_games):
    rules = engine("go")
    game, without = (go.Go(size, 0, superko, max_moves=40) for superko in (True, False))
    record = record_games(game, num_games, -3.0)
    counts = rules.compare_with_plain_engine(game, record)
    assert counts["positions"] > 100
    assert not any(counts[fact] for fact in rules.FACTS)
    # The comparisons detect a wrong rule.
    if size == 3:
        assert rules.compare_with_plain_engine(without, record)["legal"] > 0
        assert rules.compare(without, record)["legal"] > 0
    assert rules.compare_with_plain_engine(go.Go(size, 30), record)["rewards"] > 0
