import dataclasses

import jax
import numpy as np
import pytest

from azjax import arena, games, players
from azjax.games.host import legal_actions
from azjax.players import NetworkPlayer, TrainedPlayer

GAME = games.make("tic_tac_toe")
SIMULATIONS = 16


class Bad(TrainedPlayer):
    """A player with a bad network, whose search is the pretrained one's network."""

    def player(self, simulations):
        assert simulations == SIMULATIONS
        known = players.load_run("pretrained", GAME)
        return NetworkPlayer(GAME, known.network, known.variables)


class SmallNumbers:
    """A perfect opponent for tests: it plays the smallest legal action, and its values
    say that the first player wins."""

    def start_session(self, game, seed):
        self.game = game
        return self

    def choose(self, state, moves):
        return players.MoveDecision(legal_actions(self.game, state)[0], value=1.0)

    def close(self):
        pass


@pytest.fixture(scope="module")
def player():
    known = players.load_run("pretrained", GAME)
    fields = {
        field.name: getattr(known, field.name) for field in dataclasses.fields(known)
    }
    bad = jax.tree.map(lambda leaf: -np.asarray(leaf), known.variables)
    return Bad(**fields | {"variables": bad})


def evaluate(player, positions):
    """Returns the report; reusing a key raises an error."""
    with jax.debug_key_reuse(True):
        return arena.evaluate(
            player,
            positions,
            jax.random.key(0),
            simulations=SIMULATIONS,
            num_games=20,
        )


@pytest.fixture(scope="module")
def report(player):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arena.report, "perfect_player", lambda game: SmallNumbers())
        return evaluate(player, arena.shipped(GAME).subset(600))


def test_the_network_and_the_search_are_graded_on_all_positions(report):
    for name in ("network", "search"):
        grade = getattr(report, name)
        assert sum(group.positions for group in grade.groups.values()) == 600
        content = report.to_json()[name]
        rates = [group["mistake_rate"] for group in content["groups"].values()]
        assert content["mean"] == pytest.approx(sum(rates) / len(rates))
        assert (0.2 < content["mean"] <= 1) if name == "network" else rates == [0]


def test_network_and_search_play_random_and_the_untrained_network(report):
    assert set(report.matches) == {
        (player, opponent)
        for player in ("network", "search")
        for opponent in ("random", "first")
    }
    assert all(result.total.games == 20 for result in report.matches.values())
    for opponent in ("random", "first"):
        assert report.matches["search", opponent].total.score > 0.7
        assert report.matches["network", opponent].total.score < 0.7


def test_network_and_search_meet_the_perfect_player(report):
    assert set(report.perfect) == {"network", "search"}
    assert all(match.total.games == 10 for match in report.perfect.values())
    # A player that moves first and knows the game beats one that counts up.
    assert report.perfect["search"].kept == 10
    content = report.to_json()["against_perfect"]["search"]
    assert content["kept"] == content["wins"] == 10
    assert content["side"] == 0


def test_without_solved_positions_only_matches_are_played(player):
    # The untrained network needs the modules of the user's own.
    own = dataclasses.replace(player, has_own_parts=True)
    for changed, opponents in ((player, {"random", "first"}), (own, {"random"})):
        report = evaluate(changed, None)
        assert report.network is None
        assert set(report.to_json()) == {"simulations", "matches"}
        assert {opponent for _, opponent in report.matches} == opponents
