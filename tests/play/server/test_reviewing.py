import json

import pytest
from compiled_games import compiled

from azjax import games
from azjax.games import GameRecord
from azjax.play.server import Limits
from azjax.play.server.messages import MAX_TEXT
from azjax.play.server.positions import (
    Rules,
    describe_record,
    describe_review,
    describe_text,
)
from azjax.play.server.registry import LoadedPlayer, QueuedPlayer, SharedResources
from azjax.players import MoveDecision, load

GAME = games.make("tic_tac_toe")


@pytest.fixture(scope="module")
def rules():
    return Rules(GAME, 100)


@pytest.fixture(scope="module")
def resources():
    resources = SharedResources(Limits(), seed=0)
    yield resources
    resources.close()


def queued(player, resources):
    return QueuedPlayer(LoadedPlayer(GAME, player, resources), resources.limits)


def test_a_review_is_reported_move_by_move(rules, resources):
    reviewer = queued(load("minimax:9", GAME), resources)
    told = []
    # b1 loses, as the first player then makes two threats.
    found = describe_review(rules, (6, 7, 4), reviewer, None, told.append)
    assert [move["ply"] for move in told] == [1, 2, 3]
    assert [move["text"] for move in told] == ["a1", "b1", "b2"]
    assert [move["mark"] for move in told] == ["", "??", ""]
    blunder = told[1]
    assert blunder["loss"] == 1
    assert (blunder["before"], blunder["after"]) == (0, 1)
    assert blunder["bestCells"] == [blunder["bestAction"]]
    assert (blunder["exact"], blunder["exactAfter"]) == ("", None)
    assert found is not None
    assert found["summaries"][1] == "rings: 0 ?!, 0 ?, 1 ??; loses 1.000 a move"
    json.dumps([found, told], allow_nan=False)


@pytest.mark.parametrize(
    ("name", "message"),
    [("is_dead", "the opponent failed"), ("is_beaten", "cannot go on: it resigns")],
)
def test_a_reviewer_that_fails_ends_the_review(rules, resources, dying, name, message):
    setattr(dying, name, True)
    with pytest.raises(ValueError, match=message):
        describe_review(rules, (4, 0), queued(dying, resources), None, print)


class _Values:
    """A solver for which every position is won for the player to move."""

    def start_session(self, game, seed):
        del game, seed
        return self

    def choose(self, state, moves):
        del state, moves
        return MoveDecision(0, value=1.0)

    def close(self):
        pass


def test_a_solver_adds_exact_results(rules, resources):
    reviewer, solver = (queued(_Values(), resources) for _ in range(2))
    told = []
    describe_review(rules, (4,), reviewer, solver, told.append)
    assert (told[0]["exact"], told[0]["exactBefore"]) == ("win to loss", 1)
    assert (told[0]["exactAfter"], told[0]["mark"]) == (-1, "??")


def test_a_text_is_read_as_json():
    found = describe_text(GAME, "1. b2 a1")
    assert found == {"actions": [4, 6], "players": ["?", "?"], "result": "unfinished"}
    record = GameRecord(("x" * 100, "<b>"), [4], -1, "")
    described = describe_record(record)
    assert described["players"] == ["x" * 60, "<b>"]
    assert described["result"] == "0-1"


@pytest.mark.parametrize("name", ["tic_tac_toe", "go:5", "chess"])
def test_hostile_texts_are_refused_in_one_short_line(name):
    for text in (
        *("(" * MAX_TEXT, "(;" * (MAX_TEXT // 2), "[" * MAX_TEXT, "{" * MAX_TEXT),
        *("1. " * (MAX_TEXT // 3), '{"a":' * 10_000),
        *("a1 " * (MAX_TEXT // 3), "\0" * MAX_TEXT, "azjax game 1\n" + "a: b\n" * 9999),
        *("\u2028" * MAX_TEXT, '[Event "' + "x" * 50_000, "(;B[" + "x" * 50_000),
    ):
        with pytest.raises(ValueError, match=r"\w") as refused:
            describe_text(compiled(name), text)
        assert len(str(refused.value)) < 400, text[:20]
        assert "\n" not in str(refused.value), text[:20]
