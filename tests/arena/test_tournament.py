import jax
import numpy as np
import pytest
from arena import engine

from azjax import arena, games, players

GAME = games.make("tic_tac_toe")
KEY = jax.random.key(0)
NAMES = ("random", "network:pretrained", "engine")


class Engine(engine.Engine):
    """An external player that fails at its first move or does not start."""

    starts = True

    def start_session(self, game, seed):
        if not self.starts:
            raise players.ForfeitError("no such program")
        return self

    def choose(self, state, moves):
        raise players.ForfeitError("the engine died")


def load(names):
    return {
        name: Engine() if name == "engine" else players.load(name, GAME)
        for name in names
    }


@pytest.fixture(scope="module")
def calls():
    return []


@pytest.fixture(scope="module")
def tournament(calls):
    return arena.play_tournament(
        *(GAME, load(NAMES), KEY, 20),
        opening_moves=2,
        on_games=calls.append,
        on_match=lambda *match: calls.append(match[:2]),
    )


def test_every_two_players_play_a_match_with_the_same_openings(tournament, calls):
    assert set(tournament.matches) == {(0, 1), (0, 2), (1, 2)}
    assert all(match.total.games == 20 for match in tournament.matches.values())
    matches = [entry for entry in calls if isinstance(entry, tuple)]
    assert matches == [(NAMES[0], NAMES[1]), (NAMES[0], NAMES[2]), NAMES[1:]]
    assert sum(entry for entry in calls if isinstance(entry, int)) == 60
    first, *others = (match.moves[:, :2] for match in tournament.matches.values())
    for moves in others:
        np.testing.assert_array_equal(moves, first)


def test_results_can_be_read_from_both_sides_and_a_player_that_fails_loses(tournament):
    record = tournament.against(0, 1)
    assert tournament.against(1, 0) == record.reversed
    total = tournament.total(0)
    assert total == record + tournament.against(0, 2)
    assert total.games == 40
    assert tournament.total(2) == arena.WinDrawLoss(0, 0, 40)
    assert [tournament.forfeits(place) for place in range(3)] == [0, 0, 40]


def test_stronger_players_have_higher_ratings_and_an_anchor_its_own(tournament):
    ratings = tournament.ratings()
    assert ratings.elo[1] > ratings.elo[0] > ratings.elo[2]
    assert ratings.elo.sum() == pytest.approx(0)
    anchored = tournament.ratings(("random", 1000.0))
    assert anchored.elo[0] == anchored.low[0] == anchored.high[0] == 1000
    differences = anchored.elo - ratings.elo
    np.testing.assert_allclose(differences, differences[0])


def test_the_table_starts_with_the_strongest_player(tournament):
    table = arena.standings(tournament)
    assert [line.name for line in table] == ["network:pretrained", "random", "engine"]
    assert [line.forfeits for line in table] == [0, 0, 40]
    for line in table:
        low, high = line.interval
        assert low <= line.elo <= high
        assert tournament.names[line.place] == line.name


@pytest.mark.parametrize(
    ("names", "num_games", "message"),
    [
        (("random",), 2, "at least two players: 1"),
        (("random", "engine"), 3, "num_games must be even"),
        (("random", "engine"), 20_000, "too few different openings"),
    ],
)
def test_invalid_tournament_arguments_are_refused(names, num_games, message):
    with pytest.raises(ValueError, match=message):
        arena.play_tournament(GAME, load(names), KEY, num_games)


def test_a_player_that_does_not_start_is_refused_before_any_game():
    calls = []
    entrants = load(["random", "engine"])
    entrants["engine"].starts = False
    with pytest.raises(ValueError, match="'engine' does not start: no such program"):
        arena.play_tournament(GAME, entrants, KEY, 2, on_games=calls.append)
    assert not calls
