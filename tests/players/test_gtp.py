import gc
import os
import pathlib
import shlex
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.games.host import first_state, legal_actions, next_state
from azjax.players import ForfeitError, GtpPlayer, ResignError, engine_process
from azjax.players.engine_process import EngineProcess

TIC_TAC_TOE = games.make("tic_tac_toe")
GO = games.make("go:5,komi=0.5,max_moves=2000")
ENGINE = pathlib.Path(__file__).with_name("gtp_engine.py")


def command(behavior="good", log=os.devnull):
    return shlex.join([sys.executable, "-ISs", str(ENGINE), behavior, str(log)])


@pytest.fixture
def make_player():
    """Creates players that are closed after the test."""
    made = []

    def make(*args, **settings):
        made.append(GtpPlayer(command(*args), **settings))
        return made[-1]

    yield make
    for player in made:
        player.close()


def choose(session, moves, game=TIC_TAC_TOE):
    """Returns the session's choice after these moves."""
    state = first_state(game)
    for action in moves:
        state = next_state(game, state, action)
    return session.choose(state, moves).action


def test_gtp_strings_accept_any_command():
    player = players.load(f"gtp:{command()}?simulations=3", TIC_TAC_TOE)
    assert isinstance(player, GtpPlayer)
    assert player.arguments[-1] == f"{os.devnull}?simulations=3"
    assert isinstance(player, players.ExternalPlayer)


def test_programs_are_refused_without_process_groups(monkeypatch):
    monkeypatch.setattr(EngineProcess, "is_possible", False)
    with pytest.raises(ValueError, match="needs process groups, which Windows"):
        players.load(f"gtp:{command()}", TIC_TAC_TOE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gtp:no-such-engine --level 1", "there is no program 'no-such-engine --lev"),
        ("gtp:'gnugo", 'command "\'gnugo" cannot be parsed: No closing quotation'),
        ("gtp: ", "there is no program ' '"),
        ("gtp:", "unknown player 'gtp:'; players are .*gtp:COMMAND"),
        ("gtp", "unknown player 'gtp'"),
    ],
)
def test_an_invalid_command_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        players.load(text, TIC_TAC_TOE)


@pytest.mark.parametrize("behavior", ["good", "forgets", "windows"])
def test_the_engine_follows_moves_and_undone_moves(make_player, behavior):
    session = make_player(behavior).start_session(TIC_TAC_TOE, 0)
    assert choose(session, []) == 0
    assert choose(session, [0, 4]) == 1
    assert choose(session, [0]) == 1
    assert choose(session, [4, 0, 1]) == 2
    assert choose(session, []) == 0
    session.close()


def test_only_new_moves_are_sent_to_the_engine(make_player, tmp_path):
    log = tmp_path / "log"
    session = make_player("good", log).start_session(TIC_TAC_TOE, 0)
    choose(session, [])
    choose(session, [0, 4])
    choose(session, [0, 5])
    received = log.read_text().splitlines()[3:]
    assert received == [
        "clear_board",
        "genmove b",
        "play w B2",
        "genmove b",
        "undo",
        "undo",
        "play w C2",
        "genmove b",
    ]


@pytest.mark.parametrize(
    ("behavior", "moves", "expected"),
    [
        ("passes", [12], (10, ["genmove w", "undo", "kgs-genmove_cleanup w"])),
        # Black passed and has three stones, White two: another pass loses.
        ("passes", [12, 6, 7, 25, 8, 9, 25], (10, ["undo", "kgs-genmove_cleanup w"])),
        # Black passed on the empty board: another pass wins by komi.
        ("passes", [25], (25, ["play b pass", "genmove w"])),
        ("passes for good", [12], (25, ["genmove w", "undo"])),
        ("passes untidily", [12], (25, ["kgs-genmove_cleanup w", "play w pass"])),
    ],
)
def test_an_engine_that_passes_is_asked_to_capture_dead_stones(
    make_player, tmp_path, behavior, moves, expected
):
    log = tmp_path / "log"
    session = make_player(behavior, log).start_session(GO, 0)
    action, received = expected
    assert choose(session, moves, GO) == action
    assert log.read_text().splitlines()[-len(received) :] == received


def test_an_engine_can_resign_in_place_of_a_pass(make_player):
    session = make_player("passes or resigns").start_session(GO, 0)
    with pytest.raises(ResignError):
        choose(session, [12], GO)


def test_an_engine_is_reused_by_the_next_game(make_player, tmp_path):
    log = tmp_path / "log"
    player = make_player("good", log)
    for _ in range(3):
        session = player.start_session(TIC_TAC_TOE, 0)
        assert choose(session, [0]) == 1
        session.close()
    assert log.read_text().split().count("protocol_version") == 1


def test_concurrent_games_have_their_own_engines(make_player):
    player = make_player()
    sessions = [player.start_session(TIC_TAC_TOE, 0) for _ in range(2)]
    assert choose(sessions[0], [0]) == 1
    assert choose(sessions[1], [1]) == 0
    assert choose(sessions[0], [0, 1, 2]) == 3


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ("dies", "^Fake died at 'genmove w' .exit status 3.: out of luck$"),
        ("hangs", "^Fake did not answer 'genmove w' within [0-9.]+ seconds$"),
        ("cheats", "^Fake answers 'genmove w' with 'b2', which is not a legal move$"),
        (
            "babbles",
            "^Fake answers 'genmove w' with 'the corner', which is not a legal",
        ),
        ("floods", "^Fake answers 'genmove w' with an invalid response: 'xxxx"),
        ("fails", "^Fake refuses 'genmove w': no idea$"),
        ("strict", "^Fake refuses 'play b B2': illegal move$"),
    ],
)
def test_an_engine_that_fails_forfeits_and_is_killed(make_player, behavior, message):
    seconds = 0.5 if behavior == "hangs" else 60
    player = make_player(behavior, move_seconds=seconds)
    session = player.start_session(TIC_TAC_TOE, 0)
    process = session._engine.process._process
    with pytest.raises(ForfeitError, match=message) as error:
        choose(session, [4])
    assert not isinstance(error.value, ResignError)
    assert process.poll() is not None
    with pytest.raises(ForfeitError, match="Fake is not running"):
        choose(session, [4])
    session.close()
    # Another game uses another process.
    assert player.start_session(TIC_TAC_TOE, 0)._engine.process.is_running


def test_an_engine_that_resigned_is_reused(make_player):
    player = make_player("resigns")
    session = player.start_session(TIC_TAC_TOE, 0)
    with pytest.raises(ResignError, match=r"^resigned$"):
        choose(session, [4])
    session.close()
    assert player.start_session(TIC_TAC_TOE, 0)._engine is session._engine


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ("silent", "did not answer 'protocol_version' within"),
        # The answer after the greeting may have arrived by then.
        ("noisy", "'protocol_version' with an invalid response: 'Welcome to Fake!"),
        ("confused", "'protocol_version' with an invalid response: '=77 2'"),
        ("old", "Fake does not speak GTP 2: its version is '1'"),
        ("helpless", "Fake does not speak GTP 2: it lacks genmove"),
    ],
)
def test_an_engine_that_does_not_start_forfeits(make_player, behavior, message):
    seconds = 0.5 if behavior == "silent" else 60
    player = make_player(behavior, start_seconds=seconds)
    with pytest.raises(ForfeitError, match=message):
        player.start_session(TIC_TAC_TOE, 0)


def test_a_program_that_does_not_speak_gtp_forfeits():
    with pytest.raises(ForfeitError, match=r"^true died at 'protocol_version' .exit"):
        GtpPlayer("true").start_session(TIC_TAC_TOE, 0)


def test_an_unsupported_game_is_refused(make_player):
    go = games.make("go:5,0.5")
    with pytest.raises(ValueError, match=r"Fake cannot play go:.*'boardsize 5' with"):
        make_player().start_session(go, 0)


def exists(pid):
    """Returns whether a process runs and is not a zombie."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return False
    return state[0] != "Z"


def children(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def wait_until(condition):
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


needs_proc = pytest.mark.skipif(
    not pathlib.Path("/proc/self/stat").exists(), reason="no /proc to look into"
)


@needs_proc
def test_child_processes_end_with_the_engine(make_player):
    session = make_player("parent").start_session(TIC_TAC_TOE, 0)
    process = session._engine.process
    (child,) = children(process._process.pid)
    process.kill()
    wait_until(lambda: not exists(child))


@needs_proc
def test_deleting_a_session_ends_its_engine(make_player):
    session = make_player().start_session(TIC_TAC_TOE, 0)
    pid = session._engine.process._process.pid
    assert exists(pid)
    del session
    gc.collect()
    wait_until(lambda: not exists(pid))


@needs_proc
def test_no_engine_outlives_the_program():
    # The module without its package, since importing JAX takes much longer.
    script = (
        "import importlib.util, os, sys, types\n"
        "for name in ('azjax', 'azjax.players', 'azjax.players.session'):\n"
        "    sys.modules[name] = types.ModuleType(name)\n"
        "sys.modules['azjax.players.session'].ForfeitError = Exception\n"
        "spec = importlib.util.spec_from_file_location('module', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "process = module.EngineProcess(sys.argv[2:])\n"
        "print(open(f'/proc/self/task/{os.getpid()}/children').read())\n"
    )
    engine = shlex.split(command("parent"))
    done = subprocess.run(
        [sys.executable, "-c", script, engine_process.__file__, *engine],
        capture_output=True,
        text=True,
        check=True,
    )
    wait_until(lambda: not exists(int(done.stdout)))


def test_gnu_go_plays_a_game_by_azjaxs_rules(gnugo):
    go = GO
    arguments = "--mode gtp --level 1 --chinese-rules --never-resign"
    player = players.load(f"gtp:{gnugo} {arguments}", go)
    session, state, moves = player.start_session(go, 3), first_state(go), []
    draw = np.random.default_rng(0).choice
    while not state.terminated:
        if state.current_player == 0:
            action = session.choose(state, moves).action
        else:
            action = int(draw(legal_actions(go, state)))
        state = next_state(go, state, action)
        moves.append(action)
    # GNU Go passes only at the end: the game ended by two passes.
    assert moves[-2:] == [25, 25]
    # Before, it captured dead stones, which count by azjax's rules.
    assert 25 not in moves[:-2:2]
    assert float(jax.jit(go.score)(state)[0]) > 0
    session.close()
    player.close()
