import numpy as np
import pytest

from azjax import games
from azjax.games.host import first_state, next_state
from azjax.play.uci.searcher import Progress, info_lines, variations
from azjax.players import Analysis, MoveDecision

CHESS = games.make("chess")


def decision_of(state, line, visits, value):
    """Returns a decision: a principal variation, and visits and values of moves."""
    counts = np.zeros(CHESS.num_actions, np.int32)
    values = np.zeros(CHESS.num_actions, np.float32)
    actions, after = [], state
    for text in line:
        actions.append(CHESS.text_to_action(after, text))
        after = next_state(CHESS, after, actions[-1])
    for text, (number, result) in visits.items():
        action = CHESS.text_to_action(state, text)
        counts[action], values[action] = number, result
    analysis = Analysis(
        prior=counts / counts.sum(),
        visits=counts,
        action_values=values,
        line=np.array([*actions, -1, -1], np.int32),
    )
    return MoveDecision(actions[0], analysis.prior, value, analysis)


def test_variations_are_ordered_by_visits_and_have_their_scores():
    state = first_state(CHESS)
    visits = {"d2d4": (9, 0.5), "e2e4": (5, 0.0), "a2a4": (7, -0.5)}
    decision = decision_of(state, ["d2d4", "d7d5"], visits, 0.1)
    lines = variations(CHESS, state, decision, 2, is_solved=False)
    assert [line.moves for line in lines] == [["d2d4", "d7d5"], ["a2a4"]]
    assert [line.score for line in lines] == ["cp 191", "cp -191"]
    progress = Progress(decision, 21, 0.5)
    assert info_lines(progress, lines) == [
        "info depth 2 multipv 1 score cp 191 nodes 21 nps 42 time 500 pv d2d4 d7d5",
        "info depth 1 multipv 2 score cp -191 nodes 21 nps 42 time 500 pv a2a4",
    ]
    without_search = MoveDecision(decision.action, None, 0.5)
    found = variations(CHESS, state, without_search, 5, is_solved=False)
    assert found == [(["d2d4"], "cp 191")]


MATES = [
    ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "a1a8", 1.0, "mate 1"),
    ("7k/8/5K2/8/8/8/8/R7 w - - 0 1", "f6g6 h8g8 a1a8", 1.0, "mate 2"),
    ("7k/8/6K1/8/8/8/8/R7 b - - 0 1", "h8g8 a1a8", -1.0, "mate -1"),
    ("7k/8/5K2/8/8/8/8/R7 w - - 0 1", "f6g6 h8g8 a1a8", 0.99, "cp 920"),
    ("7k/8/5K2/8/8/8/8/R7 w - - 0 1", "f6g6 h8g8", 1.0, "cp 2000"),
    ("7k/8/8/8/8/8/8/K5R1 w - - 0 1", "g1g7", 0.0, "cp 0"),
]


@pytest.mark.parametrize(("fen", "line", "value", "score"), MATES)
def test_a_solved_mate_is_reported(fen, line, value, score):
    state, moves = CHESS.from_fen(fen), line.split()
    decision = decision_of(state, moves, {moves[0]: (1, value)}, value)
    (found,) = variations(CHESS, state, decision, 1, is_solved=True)
    assert found.score == score
    # Without the solver only a mating move is a mate.
    (found,) = variations(CHESS, state, decision, 1, is_solved=False)
    is_long = score.startswith("mate") and len(moves) > 1
    assert found.score == (f"cp {2000 * int(value)}" if is_long else score)
