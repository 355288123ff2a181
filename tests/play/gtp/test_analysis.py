import itertools
import re

import numpy as np
import pytest

from azjax import games
from azjax.games.host import first_state
from azjax.play.gtp.analysis import (
    MAX_MOVES,
    analyzed_moves,
    kata_line,
    lz_line,
    repeated,
)
from azjax.players import Analysis, MoveDecision
from azjax.players.gtp import GtpPlayer

GO = games.make("go:5")
FIRST = first_state(GO)


def decision_of_search(visits=(0, 30, 10, 0), line=(1, 24, 25)):
    def full(values):
        return np.array([*values, *[0] * (26 - len(values))])

    return MoveDecision(
        action=1,
        policy=full([0, 1, 0, 0]).astype(np.float32),
        value=0.2,
        analysis=Analysis(
            prior=full([0.25, 0.5, 0.125, 0.125]).astype(np.float32),
            visits=full(visits).astype(np.int32),
            action_values=full([0, 0.1, -0.5, 0]).astype(np.float32),
            line=np.array([*line, *[-1] * (16 - len(line))], np.int32),
        ),
    )


def test_lines_have_the_formats_of_leela_zero_and_katago():
    assert lz_line(GO, FIRST, decision_of_search(), MAX_MOVES) == (
        "info move B5 visits 30 winrate 5500 prior 5000 order 0 pv B5 E1 pass "
        "info move C5 visits 10 winrate 2500 prior 1250 order 1 pv C5"
    )
    assert kata_line(GO, FIRST, decision_of_search(), 1) == (
        "info move B5 visits 30 utility 0.100000 winrate 0.550000 prior 0.500000 "
        "order 0 pv B5 E1 pass"
    )


def test_the_chosen_move_is_first_and_without_a_search_has_a_visit():
    found = analyzed_moves(decision_of_search(visits=(0, 5, 10, 5)))
    assert [move.action for move in found] == [1, 2, 3]
    policy = np.zeros(26, np.float32)
    policy[[3, 7]] = 0.25, 0.75
    found = analyzed_moves(MoveDecision(3, policy, 0.5))
    assert [(move.action, move.visits, move.value, move.line) for move in found] == [
        (3, 1, 0.5, [3]),
        (7, 0, 0.5, [7]),
    ]
    (found,) = analyzed_moves(MoveDecision(25))
    assert (found.action, found.visits, found.value, found.prior) == (25, 1, 0, 0)


def test_a_search_is_repeated_while_its_visits_grow():
    decisions = iter([decision_of_search((0, n)) for n in (10, 20, 30, 30, 40)])
    seen = itertools.islice(repeated(lambda: next(decisions)), 7)
    visits = [int(decision.analysis.visits.sum()) for decision in seen]
    assert visits == [10, 20, 30, 30, 30, 30, 30]
    moves = iter([MoveDecision(3), MoveDecision(4)])  # without a search
    seen = itertools.islice(repeated(lambda: next(moves)), 3)
    assert [decision.action for decision in seen] == [3, 3, 3]


INFO = (
    r"info move (\S+) visits (\d+) winrate (\d+) prior (\d+) order (\d+) "
    r"pv (\S+(?: (?!info)\S+)*) ?"
)


@pytest.mark.slow
@pytest.mark.parametrize("tree_reuse_nodes", [0, 200])
def test_an_analysis_continues_until_the_next_line(talk, tree_reuse_nodes):
    player = f"alphazero:pretrained?simulations=32&tree_reuse_nodes={tree_reuse_nodes}"
    engine = talk("tic_tac_toe", player).engine
    report = engine.execute("lz-analyze", ["b", "interval", "20"])
    assert report.interval == 0.2
    visits = []
    for line in itertools.islice(report.lines, 4):
        assert re.sub(INFO, "", line) == ""
        found = re.findall(INFO, line)
        assert all(pv.split()[0] == move for move, _, _, _, _, pv in found)
        assert [int(order) for _, _, _, _, order, _ in found] == list(range(len(found)))
        assert all(0 <= int(rate) <= 10_000 for _, _, rate, _, _, _ in found)
        visits.append(sum(int(count) for _, count, _, _, _, _ in found))
    assert visits[0] == 32
    assert visits == sorted(visits)
    assert (visits[-1] > 32) == (tree_reuse_nodes > 0)


@pytest.mark.parametrize(
    "words", ["", "b", "50", "b 50", "interval 50", "w 50 maxmoves 3 ownership true"]
)
def test_an_analysis_is_answered_and_ended_by_the_next_line(talk, words):
    engine = talk("go:5", "random")
    first, name = engine.ask(f"5 kata-analyze {words}", "6 name")
    lines = first.split("\n")
    assert lines[0] == "=5"
    assert all(line.startswith("info move ") for line in lines[1:])
    assert name == "=6 azjax"
    assert "maxmoves" not in words or lines[1].count("info") == 3


@pytest.mark.parametrize(
    ("words", "moves"),
    [
        ("b allow b a1,B2 1", {"A1", "B2"}),
        ("allow b a1,c3 1 allow b b1 5 avoid b b1 1 maxmoves 9", {"A1"}),
        ("w 10 avoid b a1 1 allow w pass,c1 1", {"pass", "C1"}),
    ],
)
def test_an_analysis_is_restricted_to_moves(talk, words, moves):
    engine = talk("go:3", "random")
    engine.ask("play b c3", "play w c2")
    for command in ("kata-analyze", "lz-genmove_analyze"):
        answer, _ = engine.ask(f"{command} {words}", "name")
        assert set(re.findall(r"info move (\S+)", answer.split("\n")[1])) == moves
    scripted = talk("go:3", GtpPlayer("true"))
    refused = "? the moves of this player cannot be restricted"
    assert scripted.ask(f"lz-analyze {words}") == [refused]


def test_an_empty_line_ends_an_analysis(talk):
    answers = talk("go:5", "random").send("lz-analyze 1\n\nname")
    assert re.fullmatch(r"=\n(info .*\n)+\n= azjax\n\n", answers)


def test_a_move_is_made_after_its_analysis(talk):
    engine = talk("tic_tac_toe", "mcts:32")
    for command in ("lz-genmove_analyze b 10", "kata-genmove_analyze w 10"):
        (answer,) = engine.ask(command)
        first, info, play = answer.split("\n")
        assert first == "= "
        assert info.startswith(f"info move {play.removeprefix('play ')} visits")
    assert engine.ask("undo", "undo", "undo") == ["= ", "= ", "? cannot undo"]


def test_the_analysis_of_a_proven_win_has_winrate_1(talk):
    engine = talk("tic_tac_toe", "mcts:32")
    engine.ask("play b a1", "play w a2", "play b b1", "play w b2")
    info = engine.ask("lz-analyze b", "name")[0].split("\n")[1]
    assert info.startswith("info move C1 ")
    assert " winrate 10000 " in info.partition("order 1")[0]
