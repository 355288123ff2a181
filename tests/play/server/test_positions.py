import dataclasses
import functools
import json
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coin_toss import CoinToss
from compiled_games import compiled

from azjax import games
from azjax.games import GameRecord
from azjax.games.host import legal_actions, next_state, rewards
from azjax.play.server.messages import MAX_TEXT
from azjax.play.server.positions import (
    CHANCE,
    Rules,
    describe_decision,
    describe_moves,
    describe_position,
    describe_record,
    describe_review,
    describe_roll,
    describe_start,
    describe_text,
    describe_tree,
)
from azjax.play.server.registry import LoadedPlayer, QueuedPlayer
from azjax.players import Analysis, Branches, MoveDecision, load


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
    assert legal_actions(rules.game, state) == [1, 2, 3, 5, 6, 7]


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
    assert legal_actions(rules.game, state) == []
    assert rewards(rules.game, state) == (1.0, -1.0)


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
    states = [rules.state(actions) for actions in ((0,), (0, 1), (0, 1, 2))]
    for number, state in enumerate(states):
        assert rules.state(range(number + 1)) is state
    rules.state((0, 1, 2, 3))  # drops the oldest
    assert rules.state((0, 1)) is states[1]
    assert rules.state((0,)) is not states[0]


def test_the_cache_of_positions_is_limited_in_bytes(game):
    rules = Rules(game, 1000, num_bytes=1000)
    before = rules.bytes
    for action in range(8):
        rules.state((8, action))
    assert before < rules.bytes <= before + 1000
    rules.shrink()
    assert rules.bytes == before
    assert len(legal_actions(rules.game, rules.state((3, 4)))) == 7


def test_a_position_larger_than_the_cache_is_not_cached(game):
    rules = Rules(game, 1000, num_bytes=1)
    before = rules.bytes
    assert len(legal_actions(rules.game, rules.state((3, 4)))) == 7
    assert rules.bytes == before


class Shogi(games.Game):
    """A game in which a piece can be promoted by a move."""

    name = "shogi"
    pieces = "PpGg"
    num_actions = 3
    observation_shape = (1, 3, 1)
    max_moves = 1
    init = games.make("tic_tac_toe").init
    observe = games.make("tic_tac_toe").observe
    rewards = games.make("tic_tac_toe").rewards

    def legal_action_mask(self, state):
        return ~state.terminated & jnp.ones(3, bool)

    def step(self, state, action):
        return dataclasses.replace(
            state, outcome=jnp.int8(1) + action, terminated=jnp.bool(True)
        )

    def board(self, state):
        boards = [[0, -1, -1], [-1, 0, -1], [-1, 2, -1], [-1, -1, 0]]
        return jnp.int8(boards)[state.outcome][None]

    def action_to_text(self, state, action):
        return "abc"[action]

    def action_cells(self, state, action):
        return ((0, 0), (0, 2 if action == 2 else 1))


@pytest.fixture(scope="module")
def connect_four():
    return Rules(games.make("connect_four"), 100)


def test_a_position_has_board_legal_moves_and_last_move(connect_four):
    told = json.loads(json.dumps(describe_position(connect_four, (3, 3))))
    assert told["player"] == 0
    assert told["cells"][38] == 0
    assert told["cells"][31] == 1
    assert told["cells"].count(-1) == 40
    assert [move["action"] for move in told["moves"]] == list(range(7))
    assert told["moves"][3] == {"action": 3, "text": "4", "cells": [24]}
    assert told["last"] == {"action": 3, "text": "4", "cells": [31]}
    assert told["isOver"] is False
    assert told["rewards"] == [0, 0]
    assert told["marked"] == [31]
    assert told["picture"] is None
    assert describe_position(connect_four, ())["last"] is None


def test_a_finished_game_has_a_result_and_no_moves(connect_four):
    told = describe_position(connect_four, (0, 1, 0, 1, 0, 1, 0))
    assert told["isOver"] is True
    assert told["rewards"] == [1, -1]
    assert told["moves"] == []
    assert told["resultText"] == ""
    assert told["winningCells"] == [14, 21, 28, 35]


def test_a_finished_game_has_its_score():
    rules = Rules(games.make("go:2,0.5"), 10)
    assert describe_position(rules, (0, 4))["resultText"] == ""
    assert describe_position(rules, (0, 4, 4))["resultText"] == "B+3.5"


def test_a_move_between_cells_has_two_cells():
    rules = Rules(games.make("breakthrough"), 10)
    told = describe_position(rules, ())
    assert all(len(move["cells"]) == 2 for move in told["moves"])
    assert not any("becomes" in move for move in told["moves"])
    first = told["moves"][0]
    assert describe_position(rules, (first["action"],))["marked"] == first["cells"]


def test_moves_with_the_same_cells_name_the_resulting_piece():
    rules = Rules(Shogi(), 10)
    moves = describe_position(rules, ())["moves"]
    assert [(move["cells"], move.get("becomes")) for move in moves] == [
        ([0, 1], 0),
        ([0, 1], 2),
        ([0, 2], None),
    ]


def test_the_moves_of_a_search_are_ranked(connect_four):
    analysis = Analysis(
        prior=np.array([0.5, 0.2, 0.1, 0.1, 0.1, 0, 0], np.float32),
        visits=np.array([3, 6, 0, 0, 0, 0, 0], np.int32),
        action_values=np.array([-0.25, 0.5, 0, 0, 0, 0, 0], np.float32),
        line=np.array([1, 0, -1, -1], np.int32),
    )
    policy = np.array([0.25, 0.75, 0, 0, 0, 0, 0], np.float32)
    decision = MoveDecision(1, policy, 0.25, analysis)
    told = describe_decision(
        connect_four, connect_four.state(()), decision, 9, 0.5, is_timed_out=True
    )
    told = json.loads(json.dumps(told))
    assert told["isTimedOut"] is True
    assert [move["action"] for move in told["moves"]][:2] == [1, 0]
    assert len(told["moves"]) == 5  # two moves have neither visits nor prior
    assert told["moves"][0] == {
        "action": 1,
        "text": "2",
        "prior": pytest.approx(0.2),
        "visits": 6,
        "value": 0.5,
        "weight": 0.75,
    }
    assert told["moves"][2]["value"] is None
    assert told["line"] == [{"action": 1, "text": "2"}, {"action": 0, "text": "1"}]
    assert (told["visits"], told["simulations"], told["seconds"]) == (10, 9, 0.5)
    assert told["value"] == 0.25
    assert told["result"] is None


@pytest.mark.parametrize(
    ("value", "draw", "result"),
    [
        (0.25, 0.5, [0.375, 0.5, 0.125]),
        (-1.0, 0.5, [0.0, 0.0, 1.0]),  # a loss is not counted as a draw
        (0.5, None, None),
    ],
)
def test_the_chances_agree_with_the_value(connect_four, value, draw, result):
    policy = np.full(7, 1 / 7, np.float32)
    decision = MoveDecision(2, policy, value, draw=draw)
    told = describe_decision(connect_four, connect_four.state(()), decision, 0, 0.1)
    assert told["result"] == result


def test_a_line_ends_with_the_game(connect_four):
    line = np.array([0, 1, 2, -1], np.int32)
    zeros = np.zeros(7, np.float32)
    analysis = Analysis(zeros, zeros.astype(np.int32), zeros, line)
    state = connect_four.state((0, 1, 0, 1, 0, 1))  # one move from a win
    told = describe_decision(
        connect_four, state, MoveDecision(0, zeros, 1.0, analysis), 1, 0.1
    )
    assert told["line"] == [{"action": 0, "text": "1"}]


def test_a_decision_without_analysis_has_only_its_move(connect_four):
    told = describe_decision(
        connect_four, connect_four.state(()), MoveDecision(5), 0, 0.1
    )
    assert told["action"] == 5
    assert told["moves"] == []
    assert told["value"] is None
    assert told["line"] == [{"action": 5, "text": "6"}]


def test_a_policy_has_no_visits(connect_four):
    policy = np.array([0, 0.25, 0.75, 0, 0, 0, 0], np.float32)
    told = describe_decision(
        connect_four, connect_four.state(()), MoveDecision(2, policy, 0.5), 0, 0.1
    )
    assert [(m["action"], m["visits"], m["value"]) for m in told["moves"]] == [
        (2, 0, None),
        (1, 0, None),
    ]
    assert told["visits"] == 0


@pytest.fixture(scope="module")
def chess():
    return Rules(games.make("chess"), 10)


def test_each_node_has_the_notation_of_its_move(chess):
    state = chess.state(())
    moves = []
    for text in ("e2e4", "e7e5", "g1f3"):
        moves.append(chess.game.text_to_action(state, text))
        state = next_state(chess.game, state, moves[-1])
    branches = Branches(
        parents=np.int32([-1, 0, 1, 0, 2, -1]),
        actions=np.int32([-1, moves[0], moves[1], moves[2], moves[2], -1]),
        priors=np.float32([1, 0.5, 0.25, 0.125, np.nan, 1]),
        visits=np.int32([9, 5, 4, 3, 2, 0]),
        values=np.float32([0.1, 0.5, -0.5, 0.25, -0.25, 0]),
    )
    nodes = describe_tree(chess, chess.state(()), branches)
    assert [node["parent"] for node in nodes] == [-1, 0, -1, 1]
    assert [node["text"] for node in nodes] == ["e2e4", "e7e5", "g1f3", "g1f3"]
    assert nodes[1] == {
        "parent": 0,
        "player": 1,
        "action": moves[1],
        "text": "e7e5",
        "prior": 0.25,
        "visits": 4,
        "value": -0.5,
    }
    assert nodes[3]["prior"] == 0  # types of JSON


def test_a_tree_without_branches_has_none(chess):
    alone = Branches(
        parents=np.int32([-1]),
        actions=np.int32([-1]),
        priors=np.float32([1]),
        visits=np.int32([1]),
        values=np.float32([0]),
    )
    assert describe_tree(chess, chess.state(()), alone) == []


@functools.cache
def description_of(name):
    return json.loads(json.dumps(describe_start(games.make(name), name).description))


def elements(text):
    return ElementTree.fromstring(f"<svg>{text}</svg>")


@pytest.mark.parametrize("name", games.available())
def test_every_game_is_described(name):
    game = games.make(name)
    told = description_of(name)
    height, width = told["height"], told["width"]
    board = jax.eval_shape(lambda: game.board(game.init()))
    assert (height, width) == board.shape
    assert len(told["columns"]) == width
    assert len(told["rows"]) in (0, height)
    assert told["targets"] == ("cells" if told["rows"] else "columns")
    board = told["board"]
    assert len(told["pieces"]) == len(board["pieces"]) == len(game.pieces)
    assert len(board["columnLabels"]) == width
    assert len(board["rowLabels"]) == len(told["rows"])
    assert len(board["centers"]) == height * width
    for x, y in board["centers"]:
        assert board["left"] < x < board["left"] + board["width"]
        assert board["top"] < y < board["top"] + board["height"]
    for text in (*board["pieces"], board["ground"], board["mark"]):
        assert len(elements(text))


def test_a_board_of_discs_has_a_front_with_a_hole_for_each_cell():
    front = description_of("connect_four")["board"]["front"]
    (plate,) = elements(front)
    assert plate.get("d").count("M") == 1 + 42
    assert plate.get("fill-rule") == "evenodd"


def test_sides_have_colors_of_their_own_where_pieces_do_not_name_them():
    colors = {
        name: description_of(name)["board"]["sideColors"] for name in games.available()
    }
    for name in "kalah", "ur":
        first, second = colors.pop(name)
        assert first != second
    assert set(colors.values()) == {None}
    assert description_of("kalah")["sides"] == ["southern pits", "northern pits"]
    assert description_of("chess")["sides"] == ["white pieces", "black pieces"]


def test_only_boards_with_two_sides_are_turned():
    turned = {
        name
        for name in games.available()
        if description_of(name)["board"]["isTwoSided"]
    }
    assert turned == {"breakthrough", "chess"}


@pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])
def test_the_initial_position_is_described_before_the_rules_are_compiled(
    name, monkeypatch
):
    game = games.make(name)
    rules = Rules(game, 1)
    for method in ("step", "legal_action_mask"):
        monkeypatch.setattr(type(game), method, None)
    preview = json.loads(json.dumps(describe_start(game, name)._asdict()))
    monkeypatch.undo()
    first = {**describe_position(rules, ()), "moves": []}
    assert preview["position"] == first


@pytest.mark.slow
def test_a_game_drawn_by_another_library_has_a_picture_of_each_position():
    rules = Rules(games.make("pgx:animal_shogi"), 10)
    told = description_of("pgx:animal_shogi")
    assert told["board"]["pieces"] == []
    assert len(told["pieces"]) == len(rules.game.pieces)
    assert len(told["board"]["centers"]) == 12
    position = json.loads(json.dumps(describe_position(rules, ())))
    assert all(move["cells"] == [] for move in position["moves"])
    assert 'viewBox="0 0 ' in position["picture"]


GAME = games.make("tic_tac_toe")


def queued(player, registry):
    return QueuedPlayer(LoadedPlayer(GAME, player, registry), registry.limits)


def test_a_review_is_reported_move_by_move(rules, registry):
    reviewer = queued(load("minimax:9", GAME), registry)
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
def test_a_reviewer_that_fails_ends_the_review(rules, registry, dying, name, message):
    setattr(dying, name, True)
    with pytest.raises(ValueError, match=message):
        describe_review(rules, (4, 0), queued(dying, registry), None, print)


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


def test_a_solver_adds_exact_results(rules, registry):
    reviewer, solver = (queued(_Values(), registry) for _ in range(2))
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


@pytest.fixture(scope="module")
def dice():
    return Rules(CoinToss(), 100)


def test_a_position_waits_for_chance_and_outcomes_are_moves(dice):
    waiting = describe_position(dice, (9, 4))
    assert (waiting["player"], waiting["moves"]) == (CHANCE, [])
    assert waiting["last"] == {"action": 4, "text": "b2", "cells": [4]}
    after = describe_position(dice, (9, 4, 10))
    assert after["last"] == {"action": 10, "text": "tails", "cells": []}
    assert (after["player"], after["marked"]) == (0, waiting["marked"])
    assert len(after["moves"]) == 8
    moves = [(m["text"], m["player"]) for m in describe_moves(dice, (9, 4, 10, 0))]
    assert moves == [("heads", CHANCE), ("b2", 0), ("tails", CHANCE), ("a3", 0)]
    assert dice.max_actions == 2 * 9 + 1


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        ((11,), r"^action 11, number 1, is no outcome of chance that is possible; pos"),
        ((4,), r"^action 4, number 1, .* possible: 9 10$"),
        ((9, 10), r"^action 10, number 2, is not legal; legal: 0 1"),
        ((9, 4, 12), r"number 3, .* possible: 9 10 11$"),
    ],
)
def test_an_impossible_outcome_is_an_error_with_the_possible_ones(dice, actions, error):
    with pytest.raises(ValueError, match=error):
        dice.state(actions)


def test_outcomes_are_drawn_by_their_probabilities(dice):
    rng = np.random.default_rng(0)
    drawn = [describe_roll(dice, (), rng)["last"]["text"] for _ in range(30)]
    assert {*drawn} == {"heads", "tails"}
    with pytest.raises(ValueError, match="does not wait for chance"):
        describe_roll(dice, (9,), rng)


def test_outcomes_of_chance_are_nodes_of_the_tree(dice):
    branches = Branches(
        parents=np.int32([-1, 0, 1, 2]),
        actions=np.int32([-1, 4, 10, 0]),
        priors=np.float32([1, 0.5, 0.25, 0.125]),
        visits=np.int32([9, 5, 4, 3]),
        values=np.float32([0.1, 0.5, -0.5, 0.25]),
    )
    nodes = describe_tree(dice, dice.state((9,)), branches)
    texts = [(node["text"], node["player"]) for node in nodes]
    assert texts == [("b2", 0), ("tails", 1), ("a3", 0)]
    assert ["isOutcome" in node for node in nodes] == [False, True, False]
