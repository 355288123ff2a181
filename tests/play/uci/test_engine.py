import re

import chess
import pytest

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
    [("go infinite", "stop"), ("go ponder wtime 100 btime 100", "ponderhit")],
)
def test_a_waiting_search_is_answered_at_its_end(engine, go, end):
    engine.ask("position startpos", go, until="info")
    engine.send("isready")
    assert not any(x.startswith("bestmove") for x in engine.read("readyok"))
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
