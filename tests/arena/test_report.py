import dataclasses
import itertools

import jax
import numpy as np
import pytest
from arena.engine import Engine

from azjax import arena, games, players
from azjax.arena import play_perfect_match, wilson_interval
from azjax.players import NetworkPlayer, TrainedPlayer

GAME = games.make("tic_tac_toe")
SIMULATIONS = 16


class Bad(TrainedPlayer):
    """A player with a bad network, whose search is the pretrained one's network."""

    def player(self, simulations):
        assert simulations == SIMULATIONS
        known = players.load_run("pretrained", GAME)
        return NetworkPlayer(GAME, known.network, known.variables)


@pytest.fixture(scope="module")
def player():
    known = players.load_run("pretrained", GAME)
    fields = {name: getattr(known, name) for name in known.__dataclass_fields__}
    bad = jax.tree.map(lambda leaf: -np.asarray(leaf), known.variables)
    return Bad(**fields | {"variables": bad})


def evaluate(player, positions, **settings):
    """Returns the report; reusing a key raises an error."""
    with jax.debug_key_reuse(True):
        return arena.evaluate(
            *(player, positions, jax.random.key(0)),
            simulations=SIMULATIONS,
            num_games=20,
            **settings,
        )


@pytest.fixture(scope="module")
def progress():
    """The numbers that are done of each part, and their total."""
    return {}


@pytest.fixture(scope="module")
def report(player, progress):
    def on_progress(part, done, total):
        progress.setdefault((part, total), []).append(done)

    first_wins = Engine(lambda moves: 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arena.report, "perfect_player", lambda game: first_wins)
        positions = arena.shipped(GAME).subset(600)
        return evaluate(player, positions, on_progress=on_progress)


def test_the_network_and_the_search_are_graded_on_all_positions(report):
    for name in ("network", "search"):
        grade = getattr(report, name)
        assert sum(group.positions for group in grade.groups.values()) == 600
        content = report.to_json()[name]
        rates = [group["mistake_rate"] for group in content["groups"].values()]
        assert content["mean"] == pytest.approx(sum(rates) / len(rates))
        assert (0.2 < content["mean"] <= 1) if name == "network" else rates == [0]


def test_network_and_search_play_random_the_untrained_network_and_perfect_play(report):
    opponents = ("random", "first")
    pairs = itertools.product(("network", "search"), opponents)
    assert set(report.matches) == set(pairs)
    assert all(result.total.games == 20 for result in report.matches.values())
    for opponent in opponents:
        assert report.matches["search", opponent].total.score > 0.7
        assert report.matches["network", opponent].total.score < 0.7
    assert set(report.perfect) == {"network", "search"}
    assert all(match.total.games == 10 for match in report.perfect.values())
    # A player that moves first and knows the game beats one that counts up.
    assert report.perfect["search"].kept == 10
    content = report.to_json()["against_perfect"]["search"]
    assert content["kept"] == content["wins"] == 10
    assert content["side"] == 0


def test_progress_is_reported_in_each_part(report, progress):
    opponents = ("random moves", "an untrained network", "perfect play")
    totals = {f"games, search against {name}": 20 for name in opponents}
    totals |= {"positions, search": 600, "games, search against perfect play": 10}
    expected = {
        (part.replace("search", name), total)
        for part, total in totals.items()
        for name in report.perfect
    }
    assert set(progress) == expected
    for (_, total), done in progress.items():
        assert (done[0], done[-1]) == (0, total)
        assert done == sorted(set(done))


def test_without_solved_positions_only_matches_are_played(player):
    # The untrained network needs the modules of the user's own.
    own = dataclasses.replace(player, has_custom_modules=True)
    for changed, opponents in ((player, {"random", "first"}), (own, {"random"})):
        report = evaluate(changed, None)
        assert report.network is None
        assert set(report.to_json()) == {"simulations", "matches"}
        assert {opponent for _, opponent in report.matches} == opponents


def test_a_compiled_perfect_player_is_an_opponent_in_the_matches(player, monkeypatch):
    """That of a game with chance, whose results are not exact."""
    solver = players.RandomPlayer(GAME)
    monkeypatch.setattr(arena.report, "perfect_player", lambda game: solver)
    report = evaluate(player, None)
    assert {opponent for _, opponent in report.matches} == {
        *("random", "first", "perfect")
    }
    assert report.perfect == {}


# Games against a perfect player


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


def play_perfect(values, *scripts):
    """Plays games; the solver gives values by the number of moves."""
    solver = Engine(lambda moves: values.get(len(moves)))
    return play_perfect_match(
        GAME, Script(*scripts), solver, len(scripts), jax.random.key(0)
    )


# The solver, player 1, replies 0, 1, 2 in the top row.
WINS, LOSES = [2, 4, 6], [8, 7, 5]


@pytest.mark.parametrize("value", [1, 0])
def test_a_win_keeps_the_value_where_perfect_play_wins_or_draws(value):
    match = play_perfect({0: value}, WINS)
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
    match = play_perfect(values, LOSES)
    assert match.total == (0, 0, 1)
    assert match.kept == 0
    assert match.losing_moves == {move: 1}


@pytest.mark.parametrize(("values", "move"), [({1: 1, 3: 1}, 4), ({1: 1, 3: -1}, 2)])
def test_the_second_player_is_tested_if_it_wins_under_perfect_play(values, move):
    # The solver, player 0, wins by 0, 1, 2.
    match = play_perfect({0: -1, **values}, [8, 7])
    assert (match.side, match.value) == (1, 1)
    assert match.total == (0, 0, 1)
    assert match.losing_moves == {move: 1}


def test_kept_games_are_counted_with_their_interval():
    match = play_perfect({0: 1, 2: 1, 4: 0}, WINS, LOSES, LOSES, WINS, WINS)
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
        play_perfect({}, WINS)
