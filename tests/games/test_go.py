import dataclasses
import functools
import importlib
import itertools
import pathlib
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import go, make

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
GAME = go.Go(5, komi=0.5)
WITH_SUPERKO = go.Go(5, komi=0.5, superko=True)

single_step = functools.cache(lambda game: jax.jit(game.step))
single_mask = functools.cache(lambda game: jax.jit(game.legal_action_mask))
steps = functools.cache(lambda game: jax.jit(jax.vmap(game.step)))
masks = functools.cache(lambda game: jax.jit(jax.vmap(game.legal_action_mask)))

# Black captures b3 with c3, and only that stone could be recaptured.
KO = "b4 c4 a3 d3 b2 c2 e1 b3 c3"
# White sends two stones, a1 and b1, and b1 would return one.
SEND_TWO = "a2 d1 b2 c2 pass b1 pass a1 c1"


@pytest.fixture
def engine(monkeypatch):
    """Returns the comparisons with other engines."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("engines.go")


def point(game, text):
    """Returns the action of a point such as `a1`, or of `pass`."""
    names = [game.action_to_text(game.init(), a) for a in range(game.num_actions)]
    return names.index(text)


def play(texts, game=GAME, start=None):
    """Returns the position after legal moves."""
    state = game.init() if start is None else start
    for text in texts.split():
        assert not state.terminated
        action = point(game, text)
        assert single_mask(game)(state)[action], f"{text} is illegal"
        state = single_step(game)(state, action)
        assert not state.forfeited
    return state


def is_legal(text, state, game=GAME):
    return bool(single_mask(game)(state)[point(game, text)])


def rows(state, game=GAME):
    """Returns the rows of the drawing, without labels."""
    return np.array(list("XO."))[np.asarray(game.board(state))].tolist()


def positions(game, drawings, player=0):
    """Returns positions `[N]` with the stones of drawings `[N, size, size]`."""
    size, num_words = game.size, len(game.init().stones[0])
    bits = np.zeros((2, len(drawings), 32 * num_words), bool)
    rows = bits[:, :, : size * (size + 1)].reshape(2, -1, size, size + 1)
    rows[..., :size] = [drawings == "X", drawings == "O"]
    bits[:, :, : size * (size + 1)] = rows.reshape(2, len(drawings), -1)
    words = np.packbits(bits, axis=-1, bitorder="little").view(np.uint32)
    states = jax.vmap(lambda _: game.init())(np.arange(len(drawings)))
    return dataclasses.replace(
        states,
        stones=tuple(tuple(jnp.asarray(w) for w in color.T) for color in words),
        current_player=jnp.full(len(drawings), player, jnp.int8),
    )


def position(game, drawing, player=0):
    """Returns the position with the stones of a drawing."""
    drawing = np.array([list(row) for row in drawing])
    states = positions(game, drawing[None], player)
    return jax.tree.map(lambda leaf: leaf[0], states)


def record_games(game, keys, pass_logit=0.0):
    """Returns random games like `make_recorder` of `verify_games.py`."""

    def look(state):
        return {
            "legal": game.legal_action_mask(state),
            "player": state.current_player,
            "terminated": state.terminated,
            "rewards": game.rewards(state),
            "board": game.board(state),
        }

    def play_move(state, key):
        logits = jnp.where(game.legal_action_mask(state), 0.0, -jnp.inf)
        action = jax.random.categorical(key, logits.at[-1].set(pass_logit))
        return game.step(state, action), {"action": action, **look(state)}

    def play_game(key):
        keys = jax.random.split(key, game.max_moves)
        end, record = jax.lax.scan(play_move, game.init(), keys)
        actions = record.pop("action")
        record = jax.tree.map(
            lambda moves, last: jnp.append(moves, last[None], axis=0), record, look(end)
        )
        return {"action": actions, **record}

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(play_game))(keys))


def test_a_stone_without_liberties_is_captured():
    state = play("b1 a1 a2")
    assert rows(state)[4] == [".", "X", ".", ".", "."]


def test_a_chain_is_captured_as_a_whole():
    state = play("a2 a1 b2 b1 c2 c1 d1")
    assert rows(state)[4] == [".", ".", ".", "X", "."]


def test_two_chains_are_captured_by_one_stone():
    state = play("a2 a1 c2 c1 d1 pass b1")
    assert rows(state)[4] == [".", "X", ".", "X", "."]


def test_a_chain_that_keeps_a_liberty_is_not_captured():
    state = play("a2 a1 b2 b1")
    assert rows(state)[4] == ["O", "O", ".", ".", "."]


def test_suicide_of_one_stone_is_illegal():
    state = play("a2 e5 b1")
    assert not is_legal("a1", state)
    assert is_legal("a1", single_step(GAME)(state, point(GAME, "pass")))


def test_suicide_of_several_stones_is_illegal():
    assert not is_legal("b1", play("a2 a1 b2 e5 c1"))


def test_a_stone_without_liberties_can_capture():
    state = play("a1 a2 b2 e5 c1")
    assert is_legal("b1", state)
    assert rows(play("b1", start=state))[4] == [".", "O", "X", ".", "."]


def test_a_snapback_is_not_a_ko():
    thrown_in = play("a3 a2 b3 b2 c2 pass c1 pass a1 b1")
    assert rows(thrown_in)[4] == [".", "O", "X", ".", "."]
    taken = play("a1", start=thrown_in)
    assert rows(taken)[3:] == [
        [".", ".", "X", ".", "."],
        ["X", ".", "X", ".", "."],
    ]


def test_a_ko_cannot_be_recaptured_immediately():
    state = play(KO)
    assert rows(state)[2] == ["X", ".", "X", "O", "."]
    assert not is_legal("b3", state)
    lost = single_step(GAME)(state, point(GAME, "b3"))
    assert lost.terminated
    np.testing.assert_array_equal(GAME.rewards(lost), [1, -1])


@pytest.mark.parametrize("threat", ["e5 d5", "pass d5", "e5 pass"])
def test_a_ko_can_be_recaptured_after_other_moves(threat):
    state = play(threat, start=play(KO))
    assert rows(play("b3", start=state))[2] == ["X", "O", ".", "O", "."]


def test_the_other_player_can_connect_a_ko_later():
    assert is_legal("b3", play("e5", start=play(KO)))


def test_without_superko_send_two_return_one_is_legal():
    assert is_legal("b1", play(SEND_TWO))


def test_superko_forbids_repeating_an_earlier_board():
    state = play(SEND_TWO, WITH_SUPERKO)
    mask = np.array(single_mask(WITH_SUPERKO)(state))
    without = np.array(single_mask(GAME)(play(SEND_TWO)))
    assert list(np.flatnonzero(mask != without)) == [point(GAME, "b1")]
    lost = single_step(WITH_SUPERKO)(state, point(GAME, "b1"))
    assert lost.terminated
    np.testing.assert_array_equal(WITH_SUPERKO.rewards(lost), [1, -1])


def test_superko_allows_passes():
    state = play("a1 pass b1 pass c1 pass", WITH_SUPERKO)
    assert is_legal("pass", state, WITH_SUPERKO)


def test_only_superko_needs_memory_for_earlier_boards():
    assert go.Go().init().hashes == ()
    low, high = go.Go(superko=True, max_moves=100).init().hashes
    assert low.shape == high.shape == (100,)


def test_two_passes_in_a_row_end_the_game():
    state = play("a1 pass pass")
    assert state.terminated
    np.testing.assert_array_equal(GAME.rewards(state), [1, -1])


def test_passes_with_a_stone_between_them_do_not_end_the_game():
    assert not play("pass a1 pass a2").terminated


def test_a_game_is_scored_after_max_moves():
    game = go.Go(3, komi=0.5, max_moves=4)
    state = play("b2 pass c2", game)
    assert not state.terminated
    state = play("a2", game, state)
    assert state.terminated
    np.testing.assert_array_equal(game.rewards(state), [1, -1])


def test_every_point_has_the_owner_that_its_score_counts():
    """White's corner is a1; a3, between both, is neutral."""
    game = go.Go(3, komi=0.5)
    state = play("b3 a2 b2 b1 c1", game)
    owners = np.asarray(game.owners(state))
    assert owners.tolist() == [[-1, 0, 0], [1, 0, 0], [1, 1, 0]]
    points = [(owners == 0).sum(), (owners == 1).sum() + 0.5]
    np.testing.assert_array_equal(game.score(state), points)


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
    game = go.Go(3, komi)
    assert game.result_text(play("b2 pass", game)) == ""
    state = play("b2 pass pass", game)
    assert game.result_text(state) == result_text
    np.testing.assert_array_equal(game.score(state), [9, komi])
    np.testing.assert_array_equal(game.rewards(state), rewards)


def test_negative_komi_helps_black():
    game = go.Go(3, -9)
    state = play("pass b2 pass pass", game)
    np.testing.assert_array_equal(game.rewards(state), [0, 0])


def test_regions_count_for_the_only_color_that_they_touch():
    state = position(GAME, ["X..O.", "X..OO", "XXX..", "..XXX", "....."])
    np.testing.assert_array_equal(GAME.score(state), [8 + 7, 3 + 1 + 0.5])


def test_shared_liberties_of_a_seki_are_neutral():
    game = go.Go(4, komi=0)
    state = position(game, ["XXX.", "XXXO", "XOOO", ".OOO"])
    np.testing.assert_array_equal(game.score(state), [7, 7])


def test_an_empty_board_has_no_points():
    np.testing.assert_array_equal(GAME.score(GAME.init()), [0, 0.5])


def snake(size):
    """Returns the drawing of a chain that fills the board, and of its enclosing chains.

    The chain's only liberty is at its end in the top left corner.
    """
    drawing = np.full((size, size), "O")
    drawing[::2] = "X"
    drawing[1::4, -1] = drawing[3::4, 0] = "X"
    drawing[0, 0] = "."
    return drawing


@pytest.mark.parametrize("size", [9, 19])
def test_the_longest_possible_chain_is_captured(size):
    game = go.Go(size)
    drawing = snake(size)
    # White's chains live in the last column and row, except because of the snake.
    drawing[-1, -1] = "."
    state = position(game, drawing, player=1)
    assert not single_mask(game)(state)[0]
    drawing[-1, -1] = "X"
    state = position(game, drawing, player=1)
    assert single_mask(game)(state)[0]
    after = single_step(game)(state, 0)
    assert not after.forfeited
    assert (np.asarray(game.board(after)) != 0).all()


@pytest.mark.parametrize("size", [9, 19])
def test_one_liberty_and_two_are_distinguished_at_all_places(size):
    game = go.Go(size)
    points = range(size**2)
    pairs = [
        (p, q)
        for p, q in itertools.combinations(points, 2)
        if q != p + size and (q != p + 1 or q % size == 0)
    ]
    pairs = random.Random(0).sample(pairs, 600)
    only = [(p, p) for p in points]
    empty = np.zeros((len(pairs + only), size**2), bool)
    for row, cells in enumerate(pairs + only):
        empty[row, list(cells)] = True
    drawings = np.where(empty, ".", "X").reshape(-1, size, size)
    white = positions(game, drawings, player=1)
    legal = np.asarray(masks(game)(white))[:, :-1]
    np.testing.assert_array_equal(legal[: len(pairs)], False)
    np.testing.assert_array_equal(legal[len(pairs) :], empty[len(pairs) :])
    black = dataclasses.replace(
        white, current_player=jnp.zeros_like(white.current_player)
    )
    legal = np.asarray(masks(game)(black))[:, :-1]
    np.testing.assert_array_equal(legal[: len(pairs)], empty[: len(pairs)])
    np.testing.assert_array_equal(legal[len(pairs) :], False)


@pytest.mark.parametrize(("size", "count"), [(2, 57), (3, 12_675)])
def test_the_number_of_legal_boards_is_the_published_one(size, count):
    # Tromp and Farnebäck, Combinatorics of Go (2007): boards whose chains all have a
    # liberty. Each of them arises if its stones are placed in any order.
    game = go.Go(size)
    chunk = 4096
    first = game.init()
    seen = {(0, 0)}
    frontier = [(0, 0)]
    while frontier:
        cases = itertools.product(frontier, (0, 1), range(size**2))
        frontier = []
        while batch := list(itertools.islice(cases, chunk)):
            padded = batch + batch[:1] * (chunk - len(batch))
            stones, player, action = zip(*padded, strict=True)
            black, white = np.array(stones, np.uint32).T
            states = jax.tree.map(lambda leaf: jnp.full(chunk, leaf), first)
            states = dataclasses.replace(
                states,
                stones=((black,), (white,)),
                current_player=np.array(player, np.int8),
            )
            after = steps(game)(states, np.array(action))
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
    state = game.init()
    assert game.action_to_text(state, 0) == "a19"
    assert game.action_to_text(state, 8) == "j19"
    assert game.action_to_text(state, 360) == "t1"
    assert game.action_to_text(state, 361) == "pass"
    assert not any("i" in game.action_to_text(state, a) for a in range(361))


def test_stones_are_drawn_at_their_points():
    state = play("d4 b1")
    assert GAME.to_text(state, point(GAME, "b1")).splitlines() == [
        "  a  b  c  d  e",
        "5 .  .  .  .  .",
        "4 .  .  .  X  .",
        "3 .  .  .  .  .",
        "2 .  .  .  .  .",
        "1 . [O] .  .  .",
    ]


def test_whites_observation_has_its_stones_first_and_the_ko():
    observation = np.asarray(GAME.observe(play(KO)))
    mine, theirs, ko = np.zeros((3, 5, 5))
    mine[[1, 2, 3], [2, 3, 2]] = 1
    theirs[[1, 2, 2, 3, 4], [1, 0, 2, 1, 4]] = 1
    ko[2, 1] = 1
    rest = np.zeros((5, 5)), np.ones((5, 5))
    np.testing.assert_array_equal(observation, np.stack([mine, theirs, ko, *rest], -1))


def test_blacks_observation_has_whites_pass():
    observation = np.asarray(GAME.observe(play("a1 pass")))
    assert (observation[..., 3] == 1).all()
    assert (observation[..., 4] == 0).all()


@pytest.mark.parametrize(("size", "most"), [(9, 128), (19, 200)])
def test_a_state_is_small(size, most):
    leaves = jax.tree.leaves(jax.eval_shape(go.Go(size).init))
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) <= most


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


def test_random_games_agree_with_open_spiel(engine):
    record = record_games(GAME, jax.random.split(jax.random.key(0), 30))
    counts = engine.compare(GAME, record)
    assert counts["positions"] > 1000
    assert not any(counts[fact] for fact in engine.FACTS)


@pytest.mark.parametrize("size", [3, 5])
def test_random_games_with_superko_agree_with_the_simple_engine(engine, size):
    game = go.Go(size, komi=0, superko=True, max_moves=40)
    record = record_games(game, jax.random.split(jax.random.key(0), 20), -3.0)
    counts = engine.compare_with_plain_engine(game, record)
    assert counts["positions"] > 100
    assert not any(counts[fact] for fact in engine.FACTS)


class WithoutKo(go.Go):
    """A wrong rule: a ko can be recaptured immediately."""

    def _ko(self, *boards):
        return jnp.int16(go.game.NO_KO)


def test_a_wrong_rule_is_detected(engine):
    game = WithoutKo(5)
    record = record_games(game, jax.random.split(jax.random.key(0), 20))
    assert engine.compare(game, record)["legal"] > 0
    assert engine.compare_with_plain_engine(game, record)["legal"] > 0
    other = go.Go(5, komi=-25)
    assert engine.compare(other, record)["rewards"] > 0
    assert engine.compare_with_plain_engine(other, record)["rewards"] > 0
