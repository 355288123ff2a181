import functools
import queue
import random
import re
import time

import chess
import numpy as np
import pytest
from untrained import TINY, untrained

from azjax import games, players
from azjax.games.host import first_state, next_state
from azjax.play.uci import (
    NUM_SLICES,
    Clock,
    PositionReader,
    Progress,
    Searcher,
    SearchLimits,
    UciEngine,
    info_lines,
    parse_go,
    variations,
)
from azjax.players import AlphaZeroPlayer, Analysis, MoveDecision
from azjax.search import GumbelConfig

PATIENCE = 300.0  # seconds, for a loaded machine


class Conversation:
    """An engine that receives lines of text."""

    def __init__(self, player):
        self._lines = queue.SimpleQueue()
        chess = games.make("chess", max_moves=12)  # short playouts
        if isinstance(player, str):
            player = players.load_compiled(player, chess)
        self.engine = UciEngine(chess, player, self._lines.put)
        self.ask("isready", until="readyok")

    def send(self, *lines):
        """Sends lines; returns whether more may follow the last one."""
        for line in lines:
            goes_on = self.engine.execute(line.encode())
        return goes_on

    def read(self, until):
        """Returns the next lines of output, until one begins with a text."""
        lines = [self._lines.get(timeout=PATIENCE)]
        while not lines[-1].startswith(until):
            lines.append(self._lines.get(timeout=PATIENCE))
        return lines

    def ask(self, *lines, until="bestmove"):
        """Sends lines, and returns the output until a line begins with a text."""
        self.send(*lines)
        return self.read(until)

    def is_silent(self):
        """Returns whether the engine sent nothing that was not read."""
        self.send("isready")
        return self.read("readyok") == ["readyok"]


@pytest.fixture(scope="module")
def talk():
    """Starts a conversation: `talk(player)`."""
    started = []

    def start(player):
        started.append(Conversation(player))
        return started[-1]

    yield start
    for conversation in started:
        assert conversation.engine.close(PATIENCE)


SIMULATIONS = 40


@pytest.fixture(scope="module")
def engine(talk):
    """An engine that searches."""
    return talk(f"mcts:{SIMULATIONS}")


@pytest.fixture(scope="module")
def simple(talk):
    """An engine without search."""
    return talk("random")


def best_move(lines):
    return lines[-1].split()[1]


def number(line, name):
    """Returns a number in an `info` line."""
    return int(re.search(rf" {name} (-?\d+)", line)[1])


def test_it_introduces_itself(engine, simple):
    lines = engine.ask("uci", until="uciok")
    assert lines[0].startswith("id name azjax ")
    assert lines[1].startswith("id author ")
    assert lines[2:-1] == [
        "option name MultiPV type spin default 1 min 1 max 64",
        "option name Ponder type check default false",
        f"option name Simulations type spin default {SIMULATIONS} min 1 max "
        f"{SIMULATIONS}",
    ]
    assert not any("Simulations" in line for line in simple.ask("uci", until="uciok"))


def test_a_search_reports_its_progress(engine):
    lines = engine.ask("position startpos moves e2e4", "go nodes 5")
    assert [number(line, "nodes") for line in lines[:-1]] == [2, 4, 5]
    board = chess.Board()
    board.push_uci("e2e4")
    *_, last = lines[:-1]
    pv = last.partition(" pv ")[2].split()
    assert number(last, "depth") == len(pv)
    assert number(last, "multipv") == 1
    assert re.search(r" score cp -?\d+ ", last)
    assert number(last, "time") >= 0
    assert number(last, "nps") >= 0
    assert lines[-1].split()[:2] == ["bestmove", pv[0]]
    for move in pv:
        board.push_uci(move)


def test_without_limits_a_search_makes_the_players_simulations(engine):
    for go in ("go", "go nodes 1000000"):
        lines = engine.ask("position startpos", go)
        assert number(lines[-2], "nodes") == SIMULATIONS


def test_options_limit_a_search_and_report_several_moves(engine):
    engine.send("setoption name simulations value 3")
    lines = engine.ask("position startpos", "go")
    engine.send(f"setoption name Simulations value {SIMULATIONS}")
    assert number(lines[-2], "nodes") == 3

    engine.send("setoption name MultiPV value 3")
    lines = engine.ask("position startpos", "go nodes 24")[:-1]
    engine.send("setoption name MultiPV value 1")
    assert [number(line, "multipv") for line in lines[-3:]] == [1, 2, 3]
    moves = [line.partition(" pv ")[2].split()[0] for line in lines[-3:]]
    assert len(set(moves)) == 3


@pytest.mark.parametrize("searches", [True, False])
def test_searchmoves_restricts_the_first_move(engine, simple, searches):
    talk, moves = engine if searches else simple, {"a2a3", "h2h3"}
    talk.send("setoption name MultiPV value 5", "position startpos")
    lines = talk.ask("go nodes 20 searchmoves a2a3 h2h3")
    assert {line.partition(" pv ")[2].split()[0] for line in lines[:-1]} <= moves
    assert best_move(lines) in moves
    note, *_, last = talk.ask("go searchmoves h2h3 e2e5 x infinite nodes 4", "stop")
    talk.send("setoption name MultiPV value 1")
    assert note == "info string searchmoves has no legal moves in: e2e5 x"
    assert last.split()[:2] == ["bestmove", "h2h3"]
    assert talk.ask("go nodes 2 searchmoves e2e5")[-1].startswith("bestmove ")


def test_a_mate_in_one_is_found_and_reported(engine):
    fen = "6k1/5ppp/8/8/8/8/5PPP/4R1K1 w - - 0 1"
    lines = engine.ask(f"position fen {fen}", "go")
    assert lines[-1] == "bestmove e1e8"
    assert " score mate 1 " in lines[-2]


def test_the_depth_or_no_time_ends_a_search(engine):
    lines = engine.ask("position startpos", "go depth 1")
    assert number(lines[-2], "nodes") < SIMULATIONS
    lines = engine.ask("position startpos", "go wtime 0 btime 0")
    assert chess.Move.from_uci(best_move(lines)) in chess.Board().legal_moves


@pytest.mark.parametrize(
    ("go", "end"),
    [
        ("go infinite", "stop"),
        ("go ponder infinite", "stop"),
        ("go ponder wtime 100 btime 100", "ponderhit"),
    ],
)
def test_a_waiting_search_is_answered_at_its_end(engine, go, end):
    engine.send("position startpos", go)
    while number(engine.read("info")[-1], "nodes") < SIMULATIONS:
        pass
    if end == "stop":
        engine.send("ponderhit")
    time.sleep(0.02)  # it has made all simulations, and could send its move
    assert engine.is_silent()
    lines = engine.ask(end)
    assert chess.Move.from_uci(best_move(lines)) in chess.Board().legal_moves


def test_every_go_is_answered(engine):
    engine.send("position startpos", "go infinite", "go infinite", "go nodes 1")
    answers = [engine.read("bestmove") for _ in range(3)]
    assert all(chess.Move.from_uci(best_move(a)) for a in answers)
    assert engine.is_silent()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "stop",
        "ponderhit",
        "ucinewgame",
        "debug on",
        "register later",
        "xyzzy",
        "\0\x1b[31m é",
        "x" * 70_000,
        "setoption name Ponder value true",
    ],
)
def test_a_line_without_an_answer_is_ignored(simple, line):
    assert simple.send(line)
    assert simple.is_silent()


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("setoption", "unknown option:"),
        ("setoption name Hash value 16", "unknown option: Hash"),
        ("setoption name MultiPV value 0", "MultiPV must be an int from 1 to 64: '0'"),
        ("setoption name MultiPV", "MultiPV must be an int from 1 to 64: ''"),
        ("position", "a position is startpos or fen, a FEN and moves"),
        ("position fen", "FEN '': a FEN has 6 fields, this one 0"),
        ("position startpos moves e2e5", "'e2e5' is not a legal move"),
        ("position startpos moves 0000", "'0000' is not a legal move"),
        ("position startpos e2e4", "a position is startpos or fen, a FEN and moves"),
    ],
)
def test_a_wrong_line_is_answered_with_a_note(simple, line, note):
    assert simple.ask(line, until="info") == [f"info string {note}"]
    assert simple.is_silent()


def test_a_search_of_no_position_has_no_move(simple):
    simple.ask("position startpos moves e2e5", until="info")
    assert simple.ask("go") == [
        "info string the position is not set up",
        "bestmove (none)",
    ]
    mate = "position startpos moves f2f3 e7e5 g2g4 d8h4"
    assert simple.ask(mate, "go") == ["info string game over", "bestmove (none)"]
    assert simple.ask("go infinite", until="info") == ["info string game over"]
    assert simple.is_silent()
    assert simple.ask("stop") == ["bestmove (none)"]


@pytest.mark.parametrize(
    "go",
    [
        "go nodes",
        "go nodes x",
        "go nodes -5",
        "go movetime 1e3",
        "go wtime -100 btime -100 winc x",
        "go depth 99999999999999999999999",
        "go searchmoves e2e4 mate 3 perft 2",
    ],
)
def test_wrong_limits_still_give_a_move(simple, go):
    lines = simple.ask("position startpos", go)
    assert chess.Move.from_uci(best_move(lines)) in chess.Board().legal_moves


def test_words_before_a_command_are_ignored_and_quit_ends_the_conversation(simple):
    assert simple.ask("joho isready", until="readyok") == ["readyok"]
    assert not simple.send("quit")


CHESS = games.make("chess").without_move_limit()
# White can castle, promote a pawn and capture en passant.
SPECIAL = "8/P5k1/8/3pP3/8/8/8/R3K2R w KQ d6 0 9"
MATE = "f2f3 e7e5 g2g4 d8h4"


@pytest.fixture
def reader():
    return PositionReader(CHESS)


def read(reader, text):
    return CHESS.to_fen(reader.read(text.split()))


@pytest.mark.parametrize("start", [chess.STARTING_FEN, SPECIAL])
def test_positions_are_those_of_python_chess(reader, start):
    board, rng = chess.Board(start), random.Random(0)
    is_first = start == chess.STARTING_FEN
    prefix, moves = "startpos" if is_first else f"fen {start}", []
    while not board.is_game_over() and len(moves) < 80:
        move = rng.choice(list(board.legal_moves))
        board.push(move)
        moves.append(move.uci())
        fen = read(reader, f"{prefix} moves {' '.join(moves)}")
        assert fen == board.fen(en_passant="legal")


def test_other_or_illegal_moves_do_not_spoil_the_next_position(reader):
    first = read(reader, "startpos moves e2e4 e7e5")
    read(reader, "startpos moves e2e4 c7c5 g1f3")
    with pytest.raises(ValueError, match="'e2e5' is not a legal move"):
        read(reader, "startpos moves d2d4 e2e5")
    assert read(reader, "startpos moves d2d4").startswith("rnbqkbnr/pppppppp/8/8/3P4")
    assert read(reader, "startpos moves e2e4 e7e5") == first
    assert read(reader, "startpos") == chess.STARTING_FEN


def test_a_position_after_an_automatic_draw_has_moves(reader):
    fen = "8/8/4k3/8/8/4K3/8/N7 w - - 99 90"
    state = reader.read(f"fen {fen} moves e3e4 e6d6".split())
    assert not state.terminated
    assert int(state.halfmove_clock) == 101


def test_after_a_mate_and_for_a_castling_queen_there_is_no_legal_move(reader):
    assert reader.read(f"startpos moves {MATE}".split()).terminated
    with pytest.raises(ValueError, match="'a2a3' is not a legal move"):
        read(reader, f"startpos moves {MATE} a2a3")
    with pytest.raises(ValueError, match="'e1h1' is not a legal move"):
        read(reader, "fen 7k/8/8/8/8/8/8/K3Q2R b - - 0 1 moves h8g7 e1h1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "startpos startpos",
        "fen",
        "fen 8/8/8/8/8/8/8/8 w - - 0 1",
        f"fen {chess.STARTING_FEN} e2e4",
        "fen rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 99999999999999999",
        "fen 4k3/8/8/8/8/8/4R3/4K3 w - - 0 1",
    ],
)
def test_a_wrong_position_is_refused(reader, text):
    with pytest.raises(ValueError, match=r"FEN|position is startpos"):
        read(reader, text)


@pytest.mark.parametrize(
    ("text", "fen"),
    [
        ("4k3/8/8/8/8/8/8/4K3 w - -", "4k3/8/8/8/8/8/8/4K3 w - - 0 1"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 7", "4k3/8/8/8/8/8/8/4K3 w - - 7 1"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 0", "4k3/8/8/8/8/8/8/4K3 w - - 0 1"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 120 90", "4k3/8/8/8/8/8/8/4K3 w - - 100 90"),
        (SPECIAL.replace(" 0 9", " 1 9"), SPECIAL),
        (
            "4k3/P7/8/8/8/8/8/4K3 w - - 0 1 moves a7a8Q",
            "Q3k3/8/8/8/8/8/8/4K3 b - - 0 1",
        ),
        (
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1h1",
            "4k3/8/8/8/8/8/8/5RK1 b - - 1 1",
        ),
        (
            "r3k3/8/8/8/8/8/8/4K3 b q - 0 1 moves e8a8",
            "2kr4/8/8/8/8/8/8/4K3 w - - 1 2",
        ),
    ],
)
def test_positions_and_moves_are_read_as_other_engines_write_them(reader, text, fen):
    assert read(reader, f"fen {text}") == fen


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


GAME = games.make("tic_tac_toe")
SIMULATIONS = 2 * NUM_SLICES


GUMBEL, RANDOM = "gumbel", "random"


def load(spec):
    if spec != GUMBEL:
        return players.load_compiled(spec, GAME)
    network, variables = untrained(GAME, TINY)
    search = GumbelConfig(max_num_considered_actions=2)
    return AlphaZeroPlayer(GAME, search, SIMULATIONS, network, variables)


@pytest.fixture(scope="module")
def make():
    """Returns the compiled searcher of a player."""

    @functools.cache
    def searcher(spec):
        made = Searcher(load(spec), GAME, 0)
        made.compile()
        return made

    return searcher


def nodes(searcher, limits, simulations=SIMULATIONS, *, is_stopped=False):
    """Returns the reported simulations of a search."""
    reports, clock = [], Clock(limits)
    if is_stopped:
        clock.stop()
    decision = searcher.search(first_state(GAME), clock, simulations, reports.append)
    assert reports[-1].decision == decision
    return [progress.nodes for progress in reports]


def test_a_search_ends_at_its_limits(make):
    searcher = make(GUMBEL)
    assert searcher.simulations == SIMULATIONS
    assert nodes(searcher, SearchLimits()) == list(range(2, SIMULATIONS + 1, 2))
    assert nodes(searcher, SearchLimits(), 7) == [2, 4, 6, 7]
    assert nodes(searcher, SearchLimits(nodes=5)) == [2, 4, 5]
    assert nodes(searcher, SearchLimits(nodes=5), 4) == [2, 4]
    assert nodes(searcher, SearchLimits(depth=1)) == [2]
    assert nodes(searcher, SearchLimits(seconds=0.0))[-1] <= 2
    assert nodes(searcher, SearchLimits(), is_stopped=True) == [2]


def test_sequential_halving_plans_its_simulations_by_the_clock_and_its_speed(make):
    for seconds, planned in ((1e-9, 1), (1e6, SIMULATIONS)):
        assert nodes(make(GUMBEL), SearchLimits(seconds=seconds))[-1] == planned


def test_every_slice_is_restricted_to_moves(make):
    allowed, reports = np.isin(np.arange(9), [3, 8]), []
    make(GUMBEL).search(
        first_state(GAME), Clock(SearchLimits()), 10, reports.append, allowed
    )
    for decision, _, _ in reports:
        assert decision.action in (3, 8)
        assert not decision.policy[~allowed].any()
        assert not decision.analysis.visits[~allowed].any()


def test_a_player_without_search_decides_at_once(make):
    searcher = make(RANDOM)
    assert searcher.simulations == 0
    assert nodes(searcher, SearchLimits(is_infinite=True), 0) == [1]


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", SearchLimits()),
        ("nodes 50 depth 3", SearchLimits(nodes=50, depth=3)),
        ("nodes 0 depth -2", SearchLimits(nodes=1, depth=1)),
        ("movetime 1500", SearchLimits(seconds=1.5)),
        ("wtime 60000 btime 1000", SearchLimits(seconds=2.0)),
        ("wtime 60000 winc 2000 btime 1", SearchLimits(seconds=3.5)),
        ("wtime 60000 movestogo 10", SearchLimits(seconds=6.0)),
        ("wtime 1000 movestogo 1", SearchLimits(seconds=0.8)),
        ("wtime 1000 winc 60000", SearchLimits(seconds=0.8)),
        ("wtime -50", SearchLimits(seconds=0.01)),
        ("btime 60000", SearchLimits()),
        ("infinite", SearchLimits(is_infinite=True)),
        ("infinite wtime 60000", SearchLimits(is_infinite=True)),
        ("ponder wtime 60000", SearchLimits(seconds=2.0, is_ponder=True)),
        ("nodes x movetime ٣ searchmoves e2e4", SearchLimits()),
        ("nodes", SearchLimits()),
    ],
)
def test_the_limits_of_white_are_read(text, limits):
    assert parse_go(text.split(), 0) == pytest.approx(limits)
    black = "wtime 60000 btime 30000 winc 0 binc 100"
    assert parse_go(black.split(), 1).seconds == pytest.approx(1.075)


def test_a_clock_ends_at_its_limits():
    assert not Clock(SearchLimits()).is_over(99, 99.0)
    assert Clock(SearchLimits(depth=3)).is_over(3, 0.0)
    assert not Clock(SearchLimits(depth=3)).is_over(2, 0.0)
    assert Clock(SearchLimits(seconds=0.0)).is_over(1, 0.0)
    assert Clock(SearchLimits(seconds=1000.0)).is_over(1, 2000.0)
    assert not Clock(SearchLimits(seconds=1000.0)).is_over(1, 0.0)


def test_time_counts_from_the_hit_of_a_ponder_search():
    clock = Clock(SearchLimits(seconds=0.0, is_ponder=True))
    assert not clock.is_over(1, 0.0)
    clock.ponderhit()
    assert clock.is_over(1, 0.0)
