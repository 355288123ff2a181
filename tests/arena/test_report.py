import dataclasses

import jax
import pytest

from azjax import arena, games, players

GAME = games.make("tic_tac_toe")


@pytest.fixture(scope="module")
def player():
    return players.load_run("pretrained", GAME)


def evaluate(player, positions):
    """Returns the report; reusing a key raises an error."""
    with jax.debug_key_reuse(True):
        return arena.evaluate(
            player, positions, jax.random.key(0), simulations=16, num_games=20
        )


@pytest.fixture(scope="module")
def report(player):
    return evaluate(player, arena.shipped(GAME))


def test_the_network_and_the_search_are_graded_on_all_positions(report):
    for grade in (report.network, report.search):
        assert sum(group.positions for group in grade.groups.values()) == 4520


def test_network_and_search_play_random_and_the_untrained_network(report):
    assert set(report.matches) == {
        (player, opponent)
        for player in ("network", "search")
        for opponent in ("random", "first")
    }
    assert all(result.total.games == 20 for result in report.matches.values())


def test_a_trained_player_beats_its_untrained_network(report):
    assert report.matches["search", "first"].total.score > 0.7


def test_the_json_has_rates_and_their_unweighted_mean(report):
    for name in ("network", "search"):
        content = report.to_json()[name]
        rates = [group["mistake_rate"] for group in content["groups"].values()]
        assert all(0 <= rate <= 1 for rate in rates)
        assert content["mean"] == pytest.approx(sum(rates) / len(rates))


def test_no_key_is_used_twice(report):
    """The fixture raises an error if a key is reused."""
    assert report.matches


def test_without_solved_positions_only_matches_are_played(player):
    report = evaluate(player, None)
    assert report.network is None
    assert set(report.to_json()) == {"simulations", "matches"}


def test_without_parts_the_untrained_network_is_not_an_opponent(player):
    player = dataclasses.replace(player, has_own_parts=True)
    report = evaluate(player, None)
    assert {opponent for _, opponent in report.matches} == {"random"}


class SmallNumbers:
    """A perfect opponent for tests: it plays the smallest legal action, and its values
    say that the first player wins."""

    def start_session(self, game, seed):
        self.game = game
        return self

    def choose(self, state, moves):
        mask = self.game.legal_action_mask(state)
        return players.MoveDecision(int(mask.argmax()), value=1.0)

    def close(self):
        pass


def test_network_and_search_meet_the_perfect_player(player, monkeypatch):
    assert arena.report.perfect_player(GAME) is None
    monkeypatch.setattr(arena.report, "perfect_player", lambda game: SmallNumbers())
    report = evaluate(player, None)
    assert set(report.perfect) == {"network", "search"}
    assert all(match.total.games == 10 for match in report.perfect.values())
    # A player that moves first and knows the game beats one that counts up.
    assert report.perfect["search"].kept == 10
    content = report.to_json()["against_perfect"]["search"]
    assert content["kept"] == content["wins"] == 10
    assert content["side"] == 0
