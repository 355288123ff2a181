"""`azjax play` in a pseudoterminal, and in pipes."""

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor

import pyte
import pytest
from play.front_end import answers_to, run_with_front_end

from azjax import cli

PATIENCE = 60  # seconds, for a loaded machine
CELLS = [column + row for column in "abc" for row in "123"]
# The session leader becomes the owner of the terminal. A shell makes its background
# jobs and their children ignore SIGINT.
TAKE_TERMINAL = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, '-m', 'azjax', *sys.argv[1:]])"
)
F4, F5 = "\x1bOS", "\x1b[15~"
# readline, which pytest imports, sets a size of 80x24 that programs use.
INHERITED = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
ENVIRONMENT = {
    **INHERITED,
    "TERM": "xterm-256color",
    "PYTHONWARNINGS": "ignore:Error reading persistent compilation cache entry",
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
}

WAITING = b"azjax: loading tic_tac_toe ...\nazjax: compiling random ...\n"


class Terminal:
    """A pseudoterminal with its screen, and perhaps a program."""

    def __init__(self, rows=30, columns=100):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.ours, self.theirs = pty.openpty()
        self.size(rows, columns)
        self.modes = termios.tcgetattr(self.theirs)
        self.process = None

    def start(self, *args, **environment):
        """Starts `azjax` as the terminal's program."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *args],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env=ENVIRONMENT | environment,
            start_new_session=True,
        )

    def run(self, monkeypatch, user, *args):
        """Runs `azjax` in this process, and `user()` in a thread."""

        def type_and_read():
            try:
                user()
            except BaseException:
                self.type("\x04")  # the program would wait for more
                raise

        with (
            open(self.theirs, closefd=False) as stdin,
            open(self.theirs, "w", closefd=False) as stdout,
            ThreadPoolExecutor(1) as executor,
        ):
            for name, stream in zip(
                ("stdin", "stdout", "stderr"), (stdin, stdout, stdout), strict=True
            ):
                monkeypatch.setattr(sys, name, stream)
            outcome = executor.submit(type_and_read)
            cli.main(args)
            outcome.result()

    def size(self, rows, columns):
        """Resizes the window; the kernel notifies the program."""
        self.screen.resize(rows, columns)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, size)

    def type(self, text):
        os.write(self.ours, text.encode())

    @property
    def text(self):
        return "\n".join(self.screen.display)

    @property
    def moves(self):
        """The moves shown next to the board."""
        beside = " ".join(line.partition("│")[2] for line in self.screen.display)
        return re.findall(r"\b[abc][123]\b", beside)

    def read(self):
        if select.select([self.ours], [], [], 0.1)[0]:
            data = os.read(self.ours, 65536)
            self.output += data
            self.stream.feed(data)

    def wait_for(self, condition):
        """Waits until a text is on the screen, or a condition is true."""
        if isinstance(condition, str):
            text = condition
            return self.wait_for(lambda: text in self.text)
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"timeout; the screen is:\n{self.text}"
            self.read()
        return None

    def status(self):
        """Waits for the program to exit; returns its status."""
        self.wait_for(lambda: self.process.poll() is not None)
        while select.select([self.ours], [], [], 0.1)[0]:
            self.read()
        assert "Traceback" not in self.text
        return self.process.returncode

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.fixture
def patience(monkeypatch):
    """Gives a search of a loaded machine time to end before the process does."""
    monkeypatch.setattr("azjax.commands.play.PATIENCE", PATIENCE)


GAME = ("play", "tic_tac_toe", "--opponent")
RANDOM = (*GAME, "random")
CROSSES = "your move, with the crosses"
QUESTION = "your move (a3 b3 c3 a2 b2 c2 a1 b1 c1): "

# A GTP engine that plays the first free cell, or hangs if a file exists.
ENGINE = f"""
import os, sys, time
moves = []
for line in sys.stdin:
    number, name, *words = line.split()
    answer = dict(protocol_version="2", list_commands="clear_board genmove play undo")
    answer = answer.get(name, "")
    if name == "clear_board":
        moves.clear()
    elif name == "play":
        moves.append(words[1].lower())
    elif name == "undo":
        moves.pop()
    elif name == "genmove":
        if os.path.exists(sys.argv[1]):
            time.sleep(1000)
        answer = next(cell for cell in {CELLS} if cell not in moves)
        moves.append(answer)
    print(f"={{number}} {{answer}}\\n", flush=True)
"""


def assert_is_restored(terminal):
    """Checks that the program has left its screen, and reset the terminal."""
    assert termios.tcgetattr(terminal.theirs) == terminal.modes
    assert b"\x1b[?1049l" in terminal.output, "the other screen is left"
    assert terminal.output.rindex(b"\x1b[?25h") > terminal.output.rindex(b"\x1b[?25l")


def test_games_are_played_on_the_screen_and_an_interrupt_ends_it(terminal, tmp_path):
    engine, hang = tmp_path / "engine.py", tmp_path / "hang"
    engine.write_text(ENGINE)
    terminal.start(*GAME, f"engine=gtp:{sys.executable} -ISs {engine} {hang}")
    terminal.type("b2\ra1\r")  # too early, and no matter how fast the program starts
    terminal.wait_for(CROSSES)
    assert termios.tcgetattr(terminal.theirs) != terminal.modes

    # Invalid input, undo and redo.
    terminal.type("zz\r")
    terminal.wait_for("'zz' is no action of tic_tac_toe")
    assert terminal.moves == []
    terminal.type("\r")  # the center cell
    terminal.wait_for(lambda: terminal.moves == ["b2", "a1"])
    terminal.type("a1\r")
    terminal.wait_for("'a1' is not legal here")
    terminal.type(F4)
    terminal.wait_for(lambda: terminal.moves == [])
    terminal.type(F5)
    terminal.wait_for(lambda: terminal.moves == ["b2", "a1"])
    terminal.type("undo\r")
    terminal.wait_for(lambda: terminal.moves == [])

    # The window changes its size during a whole game.
    terminal.size(6, 70)
    terminal.wait_for("too small")
    terminal.type("b2\r")  # moves can still be typed
    terminal.size(40, 120)
    terminal.wait_for(lambda: terminal.moves == ["b2", "a1"])
    assert "too small" not in terminal.text
    terminal.size(24, 50)
    terminal.wait_for(CROSSES)
    terminal.size(30, 100)
    terminal.wait_for(lambda: terminal.moves == ["b2", "a1"])
    terminal.type("a3\r")
    terminal.wait_for(lambda: terminal.moves == ["b2", "a1", "a3", "a2"])
    terminal.type("c1\r")
    terminal.wait_for(lambda: terminal.moves == ["b2", "a1", "a3", "a2", "c1"])
    terminal.wait_for(lambda: "you win" in terminal.screen.display[0])

    # An interrupt does not wait for the opponent.
    terminal.type("new\r")
    terminal.wait_for(lambda: terminal.moves == [])
    hang.touch()
    terminal.type("b2\r")
    terminal.wait_for("is thinking")
    terminal.type("\x03")
    assert terminal.status() == 130
    assert_is_restored(terminal)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_restores_the_terminal(terminal, number):
    terminal.start(*RANDOM)
    terminal.wait_for(CROSSES)
    assert termios.tcgetattr(terminal.theirs) != terminal.modes
    terminal.process.send_signal(number)
    assert terminal.status() == 128 + number
    assert_is_restored(terminal)


@pytest.mark.slow
def test_an_interrupt_does_not_wait_for_a_compiled_search(terminal):
    opponent = "alphazero:pretrained?simulations=100000"
    terminal.start(*GAME, opponent, "--second")
    terminal.wait_for("is thinking")
    terminal.type("\x03")
    assert terminal.status() == 130
    assert termios.tcgetattr(terminal.theirs) == terminal.modes


@pytest.mark.parametrize(("args", "term"), [([], "dumb"), (["--plain"], "xterm")])
def test_a_line_terminal_has_the_line_interface(
    terminal, patience, monkeypatch, args, term
):
    def user():
        terminal.wait_for(QUESTION)
        terminal.type("b2\n")
        terminal.wait_for("random plays")
        terminal.type("undo\n")
        terminal.wait_for(lambda: terminal.text.count(QUESTION) == 2)
        terminal.type("quit\n")

    monkeypatch.setenv("TERM", term)
    terminal.type("c3\n")  # too early
    terminal.run(monkeypatch, user, *RANDOM, *args)
    assert terminal.text.count("random plays") == 1
    assert b"\x1b[?1049h" not in terminal.output


def test_a_game_in_a_pipe(patience, tmp_path, capsys):
    """Bytes that are not text are an invalid move; the last line needs no end."""
    path = tmp_path / "game.txt"
    lines = f"nonsense\nb2\nundo\na3\nsave {path}\nauto"
    status, output = answers_to(b"\xff\xfe\x00\n" + lines.encode(), *RANDOM)
    out = output.decode()
    assert (status, capsys.readouterr().err.encode()) == (0, WAITING)
    assert out.count("is no action of tic_tac_toe") == 2
    assert "'nonsense' is no action of tic_tac_toe" in out
    assert out.count("random plays") >= 4
    assert "the game is over" in out
    status, output = answers_to(b"quit\n", *RANDOM, "--load", str(path))
    assert b"human against random, 2 moves" in output
    path.write_text("words")
    assert answers_to(b"", *RANDOM, "--load", str(path)) == (2, b"")
    error_lines = capsys.readouterr().err.splitlines()
    assert error_lines[-1] == f"azjax: {path} is not a saved game of azjax"


def test_a_closed_output_and_an_interrupt_have_a_status(patience, capsys, monkeypatch):
    def close_output(to_program, from_program):
        from_program.close()
        to_program.write(b"help\n" * 3)
        to_program.close()

    assert run_with_front_end([*GAME, "human"], close_output) == 141
    assert capsys.readouterr().err == "azjax: loading tic_tac_toe ...\n"

    class Interrupted(io.StringIO):
        def readline(self):
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Interrupted())
    with pytest.raises(SystemExit) as end:
        cli.main([*GAME, "human"])
    assert end.value.code == 130
