import numpy as np
import pytest
from arena.engine import Engine
from coin_toss import CoinToss
from data.game_rows import stored_rows

from azjax import games
from azjax.arena.teaching import make_teacher
from azjax.data import import_games
from azjax.games import GameRecord
from azjax.games.host import legal_actions
from azjax.players import ForfeitError

GAME = games.make("tic_tac_toe")
NAMES = ("a", "b")
WON, DRAWN = [0, 3, 1, 4, 2], [0, 4, 8, 1, 7, 6, 2, 5, 3]
RECORDS = [
    GameRecord(NAMES, WON, 1, "", values=[0.5] * 5),
    GameRecord(NAMES, [4, 0], None, ""),
    GameRecord(NAMES, DRAWN, 0, "", opening_moves=6),
    GameRecord(NAMES, [4, 0, 1], -1, "resigned"),
]


class Teacher(Engine):
    """Chooses the last legal move; values are those of `value_of` a number of moves."""

    def __init__(self, value_of, policy_of=None):
        super().__init__(lambda moves: value_of(len(moves)))
        self.policy_of = policy_of

    def choose(self, state, moves):
        policy = self.policy_of and self.policy_of(state)
        action = legal_actions(GAME, state)[-1]
        return super().choose(state, moves)._replace(action=action, policy=policy)


def taught(directory, player, records=RECORDS):
    path = directory / "games.jsonl"
    path.write_text(GAME.record_format.write(GAME, records))
    import_games([path], directory / "stored", teacher=make_teacher(player))
    return stored_rows(directory / "stored").rows


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    player = Teacher(lambda count: (count + 1) / 16)
    return taught(tmp_path_factory.mktemp("taught"), player), player


def test_the_teacher_sees_the_positions_that_are_stored(stored):
    _, player = stored
    assert player.shown == [
        *(WON[:count] for count in range(5)),
        *(DRAWN[:count] for count in range(6, 9)),
        *([4, 0, 1][:count] for count in range(4)),
    ]
    assert player.num_closed == 3


def test_the_targets_are_the_moves_and_values_of_the_teacher(stored):
    rows, _ = stored
    np.testing.assert_array_equal(rows.policy_counts, 1)
    np.testing.assert_array_equal(rows.policy_probabilities, 1)
    last = [8, 8, 8, 8, 8, 5, 5, 3, 8, 8, 8]
    np.testing.assert_array_equal(rows.policy_actions, last)
    assert list(rows.move) == [*WON, *DRAWN[6:], 4, 0, 1]
    counts = np.array([0, 1, 2, 3, 4, 6, 7, 8, 0, 1, 2])
    np.testing.assert_array_equal(rows.value, (counts + 1) / 16)
    # The value is lost, and that of the opponent after the move; a win and a draw end
    # the first two games.
    regret = (counts + 1) / 16 + (counts + 2) / 16
    regret[[4, 7]] = 0, 9 / 16
    np.testing.assert_allclose(rows.regret, regret)
    np.testing.assert_allclose(rows.draw_probability, 1 - rows.value)
    assert rows.reward[rows.terminated].tolist() == [1, 0, -1]


def test_a_policy_of_the_teacher_is_the_target(tmp_path):
    def uniform(state):
        policy = np.zeros(9, np.float32)
        policy[legal_actions(GAME, state)] = 1 / len(legal_actions(GAME, state))
        return policy

    rows = taught(tmp_path, Teacher(lambda count: 0.0, uniform), RECORDS[:1])
    np.testing.assert_array_equal(rows.policy_counts, [9, 8, 7, 6, 5])
    assert rows.policy_actions[-5:].tolist() == [2, 5, 6, 7, 8]
    np.testing.assert_allclose(rows.policy_probabilities[-5:], 0.2)


def test_outcomes_of_chance_get_no_labels():
    game = CoinToss()
    record = GameRecord(NAMES, [9, 4, 10, 0, 9], None, "", opening_moves=3)
    found = make_teacher(Teacher(lambda count: count / 16))(game, record)
    assert found.policies == [{}, {}, {}, {8: 1.0}, {}, {8: 1.0}]
    assert found.values == [None, None, None, 3 / 16, None, -5 / 16]
    record = GameRecord(NAMES, [9, 4, 10, 0], None, "", opening_moves=3)
    assert make_teacher(Teacher(lambda count: 0.0))(game, record).values[-1] is None


def fail(count):
    """Fails after two moves."""
    if count == 2:
        raise ForfeitError("stopped answering")
    return 0.0


@pytest.mark.parametrize(
    ("value_of", "message"),
    [
        (lambda count: None, "it gives no evaluation"),
        (fail, "failed at move 3 of a game of a against b: stopped answering"),
    ],
)
def test_a_teacher_that_gives_no_evaluation_or_fails_is_refused_and_nothing_written(
    tmp_path, value_of, message
):
    player = Teacher(value_of)
    with pytest.raises(ValueError, match=message):
        taught(tmp_path, player)
    assert [path.name for path in tmp_path.iterdir()] == ["games.jsonl"]
    assert player.num_closed == 1
