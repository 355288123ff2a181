import jax
import pytest
from arena.engine import Engine

from azjax import games, players
from azjax.arena import play_perfect_match, wilson_interval

GAME = games.make("tic_tac_toe")


class Script(Engine):
    """Plays one list of moves in each game."""

    def __init__(self, *scripts):
        super().__init__()
        self.scripts = list(scripts)

    def start_session(self, game, seed):
        self.script = self.scripts.pop(0)
        return self

    def choose(self, state, moves):
        return players.MoveDecision(self.script[len(moves) // 2])


def play(values, *scripts):
    """Plays games; the solver gives values by the number of moves."""
    solver = Engine(lambda moves: values.get(len(moves)))
    return play_perfect_match(
        GAME, Script(*scripts), solver, len(scripts), jax.random.key(0)
    )


# The solver, player 1, replies 0, 1, 2 in the top row.
WINS, LOSES = [2, 4, 6], [8, 7, 5]


@pytest.mark.parametrize("value", [1, 0])
def test_a_win_keeps_the_value_where_perfect_play_wins_or_draws(value):
    match = play({0: value}, WINS)
    assert (match.side, match.value) == (0, value)
    assert match.total == (1, 0, 0)
    assert match.kept == 1
    assert match.losing_moves == {}


@pytest.mark.parametrize(
    ("values", "move"),
    [
        ({0: 1, 2: 0, 4: -1}, 1),
        ({0: 1, 2: 1, 4: 0}, 3),
        ({0: 1, 2: 1, 4: 1}, 5),  # the opponent wins at once
        ({0: 0, 2: 0, 4: -1}, 3),
    ],
)
def test_the_first_move_that_lowers_the_value_is_found(values, move):
    match = play(values, LOSES)
    assert match.total == (0, 0, 1)
    assert match.kept == 0
    assert match.losing_moves == {move: 1}


@pytest.mark.parametrize(("values", "move"), [({1: 1, 3: 1}, 4), ({1: 1, 3: -1}, 2)])
def test_the_second_player_is_tested_if_it_wins_under_perfect_play(values, move):
    # The solver, player 0, wins by 0, 1, 2.
    match = play({0: -1, **values}, [8, 7])
    assert (match.side, match.value) == (1, 1)
    assert match.total == (0, 0, 1)
    assert match.losing_moves == {move: 1}


def test_kept_games_are_counted_with_their_interval():
    match = play({0: 1, 2: 1, 4: 0}, WINS, LOSES, LOSES, WINS, WINS)
    assert match.kept == 3
    assert match.interval == wilson_interval(3 / 5, 5)
    assert match.to_json() == {
        "side": 0,
        "value": 1,
        "wins": 3,
        "draws": 0,
        "losses": 2,
        "kept": 3,
        "interval": list(match.interval),
        "losing_moves": {"3": 2},
    }


def test_an_opponent_without_values_is_refused():
    with pytest.raises(ValueError, match="must give exact values"):
        play({}, WINS)
