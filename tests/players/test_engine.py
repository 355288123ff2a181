"""What players of GTP and of UCI engines have in common."""

import gc
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading

import pytest
from players.engines import command, exists, position, started, wait_until

from azjax import games, players
from azjax.players import ForfeitError, ResignError, engine

PROTOCOLS = ["gtp", "uci"]
GAMES = {"gtp": games.make("tic_tac_toe"), "uci": games.make("chess")}


def choose(session, protocol):
    """Returns the session's choice after b2 in tic-tac-toe, or in the first position
    of chess."""
    moves = [4] if protocol == "gtp" else []
    return session.choose(position(GAMES[protocol], moves), moves).action


def start(player, protocol):
    return player.start_session(GAMES[protocol], 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_programs_are_refused_without_process_groups(protocol, monkeypatch):
    monkeypatch.setattr(engine.EngineProcess, "is_possible", False)
    message = f"{protocol}:true needs process groups, which Windows"
    with pytest.raises(ValueError, match=message):
        players.load(f"{protocol}:true", GAMES[protocol])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no-such-engine --level 1", "there is no program 'no-such-engine --lev"),
        ("'gnugo", 'command "\'gnugo" cannot be parsed: No closing quotation'),
        (" ", "there is no program ' '"),
        ("", "unknown player '...:'; players are .*gtp:COMMAND.*uci:COMMAND"),
    ],
)
def test_an_invalid_command_is_refused(protocol, text, message):
    with pytest.raises(ValueError, match=message):
        players.load(f"{protocol}:{text}", GAMES[protocol])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_engine_is_reused_by_the_next_game_and_games_at_once_have_their_own(
    protocol, make_player, log
):
    player = make_player(protocol)
    for _ in range(3):
        session = start(player, protocol)
        choose(session, protocol)
        session.close()
    assert len(started(log)) == 1
    assert log.read_text().split().count("ucinewgame") == (protocol == "uci") * 3
    sessions = [start(player, protocol) for _ in range(2)]
    assert choose(sessions[0], protocol) == choose(sessions[1], protocol)
    assert len(set(started(log))) == 2


def test_an_engine_that_resigned_is_reused(make_player, log):
    player = make_player("gtp", "resigns")
    for _ in range(2):
        session = start(player, "gtp")
        with pytest.raises(ResignError, match=r"^resigned$"):
            choose(session, "gtp")
        session.close()
    assert len(started(log)) == 1


GENMOVE, GO = "^Fake answers 'genmove w' with", "^Fake answers 'go nodes 10000' with"
OUT_OF_LUCK = ".exit status 3.: out of [?].31mluck$"
ILLEGAL = ", which is not a legal move$"
SLOWLY = r"within [0-9.]+ seconds$"


@pytest.mark.parametrize(
    ("protocol", "behavior", "message"),
    [
        (
            "gtp",
            "dies",
            "^Fake died at 'genmove w' .exit status 3.: out of [?].31mluck$",
        ),
        ("gtp", "hangs", f"^Fake did not answer 'genmove w' {SLOWLY}"),
        ("gtp", "cheats", f"{GENMOVE} 'b2'{ILLEGAL}"),
        ("gtp", "babbles", f"{GENMOVE} 'the corner!{{190}}'{ILLEGAL}"),
        ("gtp", "floods", f"{GENMOVE} an invalid response: 'xxxx"),
        ("gtp", "fails", "^Fake refuses 'genmove w': no[?] idea$"),
        ("gtp", "strict", "^Fake refuses 'play b B2': illegal move$"),
        (
            "uci",
            "dies",
            "^Fake died at 'go nodes 10000' .exit status 3.: out of [?].31mluck$",
        ),
        ("uci", "hangs", f"^Fake did not answer 'go nodes 10000' {SLOWLY}"),
        ("uci", "closes", "^Fake died at 'go nodes 10000' .its output closed.$"),
        ("uci", "floods", f"{GO} more than 1048576 bytes$"),
        ("uci", "babbles", f"^Fake did not answer 'go nodes 10000' {SLOWLY}"),
        ("uci", "plays e2e5", f"{GO} 'bestmove e2e5'{ILLEGAL}"),
        ("uci", "plays E2E4", f"{GO} 'bestmove E2E4'{ILLEGAL}"),
        ("uci", "plays (none)", f"{GO} 'bestmove .none.'{ILLEGAL}"),
        ("uci", "plays 0000", f"{GO} 'bestmove 0000'{ILLEGAL}"),
        ("uci", "plays", f"{GO} 'bestmove'{ILLEGAL}"),
    ],
)
def test_an_engine_that_fails_forfeits_and_is_killed(
    protocol, behavior, message, make_player, log
):
    seconds = 0.5 if SLOWLY in message else 60
    player = make_player(protocol, behavior, move_seconds=seconds)
    session = start(player, protocol)
    with pytest.raises(ForfeitError, match=message) as error:
        choose(session, protocol)
    assert not isinstance(error.value, ResignError)
    (pid,) = started(log)
    assert not exists(pid)
    with pytest.raises(ForfeitError, match="Fake is not running"):
        choose(session, protocol)
    session.close()
    # Another game uses another process.
    session = start(player, protocol)
    _, other = started(log)
    assert exists(other)


@pytest.mark.parametrize(
    ("protocol", "behavior", "message"),
    [
        ("gtp", "silent", f"did not answer 'protocol_version' {SLOWLY}"),
        # The answer after the greeting may have arrived by then.
        ("gtp", "noisy", "version' with an invalid response: 'Welcome to Fake!"),
        ("gtp", "confused", "'protocol_version' with an invalid response: '=77 2'"),
        ("gtp", "old", "Fake does not speak GTP 2: its version is '1{200}'$"),
        ("gtp", "helpless", "Fake does not speak GTP 2: it lacks genmove"),
        ("uci", "deaf", f"did not answer 'uci' {SLOWLY}"),
        ("uci", "unready", f"Fake did not answer 'isready' {SLOWLY}"),
        ("uci", "boasts", "answers 'uci' with more than 1048576 letters"),
        ("uci", "absent", "died at 'uci' .exit status 1."),
    ],
)
def test_an_engine_that_does_not_start_forfeits(
    protocol, behavior, message, make_player
):
    seconds = 0.5 if SLOWLY in message else 60
    player = make_player(protocol, behavior, start_seconds=seconds)
    with pytest.raises(ForfeitError, match=message):
        start(player, protocol)


def test_an_engine_that_is_killed_during_a_search_forfeits(make_player, log):
    session = start(make_player("uci", "hangs"), "uci")
    killer = threading.Timer(0.2, lambda: os.kill(*started(log), signal.SIGKILL))
    killer.start()
    with pytest.raises(ForfeitError, match=r"^Fake died at .* \(exit status -9\)"):
        choose(session, "uci")
    killer.join()


# The end of a process


def children(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


needs_proc = pytest.mark.skipif(
    not pathlib.Path("/proc/self/stat").exists(), reason="no /proc to look into"
)


@needs_proc
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_child_processes_end_with_the_engine(protocol, make_player, log):
    player = make_player(protocol, "parent")
    session = start(player, protocol)
    (child,) = children(started(log)[0])
    session.close()
    player.close()
    wait_until(lambda: not exists(child))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import time; time.sleep(1000)", "did not read 'x{200}' within 0.5 seconds$"),
        (
            "while True: print('x' * 10_000)",
            "did not read 'x{200}' and writes without end$",
        ),
        ("import os, time; os.close(0); time.sleep(9)", "died at .*its output closed"),
    ],
)
def test_an_engine_that_does_not_read_forfeits(code, message):
    process = engine.EngineProcess([sys.executable, "-c", code])
    with pytest.raises(ForfeitError, match=message):
        process.send("x" * 200_000, 0.5 if "within" in message else 60)


def test_an_engine_may_write_before_it_reads():
    code = "print('y' * 500_000); print(len(input()))"
    process = engine.EngineProcess([sys.executable, "-c", code])
    process.send("x" * 200_000, 60)
    answers = process.lines("x", 60)
    assert [len(next(answers)), next(answers)] == [500_000, "200000"]


@needs_proc
def test_deleting_a_session_ends_its_engine(make_player, log):
    session = start(make_player("gtp"), "gtp")
    (pid,) = started(log)
    assert exists(pid)
    del session
    gc.collect()
    wait_until(lambda: not exists(pid))


@needs_proc
def test_no_engine_outlives_the_program():
    script = (
        "import os, sys\n"
        "from azjax.players.engine import EngineProcess\n"
        "process = EngineProcess(sys.argv[1:])\n"
        "print(open(f'/proc/self/task/{os.getpid()}/children').read())\n"
    )
    arguments = [sys.executable, "-c", script, *shlex.split(command("gtp", "parent"))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    wait_until(lambda: not exists(int(done.stdout)))


def test_the_time_of_a_search_is_added_to_the_limit_for_its_answer(make_player):
    player = make_player("uci", "hangs", move_seconds=0.3, movetime=10)
    session = start(player, "uci")
    with pytest.raises(ForfeitError, match=r"within 0\.31 seconds"):
        choose(session, "uci")
    session.close()
