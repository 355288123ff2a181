import numpy as np
import pytest

from azjax import games
from azjax.play.server.rules import Rules


@pytest.fixture(scope="module")
def game():
    return games.make("tic_tac_toe")


@pytest.fixture(scope="module")
def rules(game):
    return Rules(game, 1000)


def test_a_position_is_reached_by_its_actions(rules):
    state = rules.state((4, 0, 8))
    board = np.ravel(rules.game.board(state))
    assert (board == 0).nonzero()[0].tolist() == [4, 8]
    assert (board == 1).nonzero()[0].tolist() == [0]
    assert rules.legal_actions(state) == [1, 2, 3, 5, 6, 7]


def test_games_from_another_first_position_share_the_cache(rules):
    vars(rules.game)["from_fen"] = {"a centre": rules.state((4,))}.__getitem__
    set_up = rules.set_up("a centre")
    for start, expected in ((set_up, (4, 0)), (rules, (0,))):
        np.testing.assert_array_equal(
            rules.game.board(start.state((0,))), rules.game.board(rules.state(expected))
        )
    assert set_up.bytes == rules.bytes
    rules.shrink()
    assert set_up.bytes == rules.bytes


def test_the_end_has_a_result_and_no_legal_actions(rules):
    state = rules.state((0, 3, 1, 4, 2))
    assert rules.legal_actions(state) == []
    assert rules.rewards(state) == [1.0, -1.0]


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        ((4, 4), "action 4, number 2, is not legal; legal: 0 1 2 3 5 6 7 8"),
        ((9,), "action 9, number 1, is not legal"),
        ((2**53,), "is not legal"),
        (
            (0, 3, 1, 4, 2, 5),
            "number 6, is not legal; legal: none, the game is over",
        ),
    ],
)
def test_an_illegal_action_is_an_error_with_the_legal_ones(rules, actions, error):
    with pytest.raises(ValueError, match=error):
        rules.state(actions)


def test_a_long_list_of_legal_actions_is_truncated():
    with pytest.raises(ValueError, match=r"legal: 0 1 2 .* \.\.\.$") as raised:
        Rules(games.make("gomoku"), 10).state((999,))
    assert len(str(raised.value)) < 300


def test_positions_are_cached_and_the_oldest_evicted(game):
    rules = Rules(game, 3)
    steps = []
    step = rules.game.step
    vars(rules.game)["step"] = lambda *args: steps.append(args) or step(*args)
    rules.state((0, 1, 2))
    assert len(steps) == 3
    rules.state((0, 1, 2, 3))
    assert len(steps) == 4
    rules.state((0,))  # was dropped for the fourth
    assert len(steps) == 5


def test_the_cache_of_positions_is_limited_in_bytes(game):
    rules = Rules(game, 1000, num_bytes=1000)
    before = rules.bytes
    for action in range(8):
        rules.state((8, action))
    assert before < rules.bytes <= before + 1000
    rules.shrink()
    assert rules.bytes == before
    assert len(rules.legal_actions(rules.state((3, 4)))) == 7


def test_a_position_larger_than_the_cache_is_not_cached(game):
    rules = Rules(game, 1000, num_bytes=1)
    before = rules.bytes
    assert len(rules.legal_actions(rules.state((3, 4)))) == 7
    assert rules.bytes == before
