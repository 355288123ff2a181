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

import pyte
import pytest

from azjax import cli

PATIENCE = 240  # seconds, for a loaded machine
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
    """A program in a pseudoterminal, with its screen."""

    def __init__(self, *args, rows=30, columns=100, **environment):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.ours, self.theirs = pty.openpty()
        self.size(rows, columns)
        self.modes = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *args],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env=ENVIRONMENT | environment,
            start_new_session=True,
        )

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

    def interrupt(self):
        """Presses Ctrl-C, and repeats it if it has no effect.

        Python's `input` ignores one between its prompt and its first read.
        """
        for _ in range(8):
            self.type("\x03")
            end = time.monotonic() + PATIENCE / 8
            while time.monotonic() < end:
                if self.process.poll() is not None:
                    return
                self.read()

    def status(self):
        """Waits for the program to exit; returns its status."""
        self.wait_for(lambda: self.process.poll() is not None)
        while select.select([self.ours], [], [], 0.1)[0]:
            self.read()
        assert "Traceback" not in self.text
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def open_terminal():
    """Starts programs in terminals; stops them."""
    opened = []

    def start(*args, **settings):
        opened.append(Terminal(*args, **settings))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def play(open_terminal, *args, **settings):
    options = ["--opponent", "random", *args]
    return open_terminal("play", "tic_tac_toe", *options, **settings)


def test_a_whole_game_in_a_terminal_whose_window_changes_its_size(open_terminal):
    terminal = play(open_terminal)
    terminal.wait_for("your move, with the crosses")
    terminal.size(6, 70)
    terminal.wait_for("too small")
    terminal.type("b2\r")  # moves can still be typed
    terminal.size(40, 120)
    terminal.wait_for(lambda: len(terminal.moves) == 2)
    assert "too small" not in terminal.text
    terminal.size(24, 50)
    terminal.wait_for("your move, with the crosses")
    terminal.size(30, 100)
    terminal.wait_for(lambda: len(terminal.moves) == 2)
    results = ("you win", "you lose", "a draw")

    def is_over():
        return any(result in terminal.screen.display[0] for result in results)

    while not is_over():
        count = len(terminal.moves)
        free = [cell for cell in CELLS if cell not in terminal.moves]
        terminal.type(f"{free[0]}\r")
        terminal.wait_for(lambda n=count: len(terminal.moves) >= n + 2 or is_over())
    terminal.wait_for(lambda: len(terminal.moves) >= 5)
    assert len(set(terminal.moves)) == len(terminal.moves)
    terminal.type("quit\r")
    assert terminal.status() == 0


def test_invalid_input_and_undo_in_a_terminal(open_terminal):
    terminal = play(open_terminal)
    terminal.wait_for("your move, with the crosses")
    terminal.type("zz\r")
    terminal.wait_for("'zz' is no action of tic_tac_toe")
    terminal.type("\r")  # the center cell
    terminal.wait_for(lambda: len(terminal.moves) == 2)
    answer = terminal.moves[1]
    assert terminal.moves[0] == "b2"
    terminal.type(f"{answer}\r")
    terminal.wait_for(f"'{answer}' is not legal here")
    terminal.type(F4)
    terminal.wait_for(lambda: terminal.moves == [])
    terminal.type(F5)
    terminal.wait_for(lambda: terminal.moves == ["b2", answer])
    terminal.type("undo\r")
    terminal.wait_for(lambda: terminal.moves == [])
    terminal.type("\x11")
    assert terminal.status() == 0


@pytest.mark.parametrize(
    ("args", "turn"),
    [
        (["--opponent", "human"], "the crosses move"),
        pytest.param([], "your move, with the crosses", marks=pytest.mark.slow),
        pytest.param(["--plain"], "your move (a3 b3", marks=pytest.mark.slow),
    ],
)
def test_keys_pressed_during_loading_are_not_moves(open_terminal, args, turn):
    terminal = play(open_terminal, *args)
    terminal.wait_for("loading tic_tac_toe ...")
    terminal.type("b2\ra1\r")
    terminal.wait_for(turn)
    terminal.type("quit\r")
    assert terminal.status() == 0
    assert "plays" not in terminal.text


@pytest.mark.parametrize(
    "way",
    [
        "key",
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_restores_the_terminal(open_terminal, way):
    terminal = play(open_terminal)
    terminal.wait_for("your move, with the crosses")
    assert termios.tcgetattr(terminal.theirs) != terminal.modes
    if way == "key":
        terminal.type("\x03")
    else:
        terminal.process.send_signal(way)
    assert terminal.status() == (143 if way == signal.SIGTERM else 130)
    assert termios.tcgetattr(terminal.theirs) == terminal.modes
    assert b"\x1b[?1049l" in terminal.output, "the other screen is left"
    assert terminal.output.rindex(b"\x1b[?25h") > terminal.output.rindex(b"\x1b[?25l")


def test_an_interrupt_does_not_wait_for_a_search(open_terminal):
    opponent = "alphazero:pretrained?simulations=100000"
    terminal = play(open_terminal, "--second", "--opponent", opponent)
    terminal.wait_for("is thinking")
    terminal.type("\x03")
    assert terminal.status() == 130
    assert termios.tcgetattr(terminal.theirs) == terminal.modes


@pytest.mark.parametrize(
    ("args", "term"),
    [
        ([], "dumb"),
        pytest.param(["--plain"], "xterm-256color", marks=pytest.mark.slow),
    ],
)
def test_a_line_terminal_has_the_line_interface(open_terminal, args, term):
    terminal = play(open_terminal, *args, TERM=term)
    question = "your move (a3 b3 c3 a2 b2 c2 a1 b1 c1): "
    terminal.wait_for(question)
    terminal.type("b2\n")
    terminal.wait_for("random plays")
    terminal.type("undo\n")
    terminal.wait_for(lambda: terminal.text.count(question) == 2)
    terminal.interrupt()
    assert terminal.status() == 130
    assert b"\x1b[?1049h" not in terminal.output


def pipe(text, *args):
    """Runs `azjax play` with this input; returns its output."""
    return subprocess.run(
        [sys.executable, "-m", "azjax", "play", *args],
        input=text,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=PATIENCE,
        check=False,
    )


def test_a_game_in_a_pipe(tmp_path, capsys, monkeypatch):
    """Bytes that are not text are an invalid move; the last line needs no end."""
    path = tmp_path / "game.txt"
    lines = f"nonsense\nb2\nundo\na3\nsave {path}\nauto"
    done = pipe(
        b"\xff\xfe\x00\n" + lines.encode(), "tic_tac_toe", "--opponent", "random"
    )
    out = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, WAITING)
    assert out.count("is no action of tic_tac_toe") == 2
    assert "'nonsense' is no action of tic_tac_toe" in out
    assert out.count("random plays") >= 4
    assert "the game is over" in out
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    cli.main(["play", "tic_tac_toe", "--opponent", "random", "--load", str(path)])
    assert "human against random, 2 moves" in capsys.readouterr().out


@pytest.mark.slow
def test_a_closed_output_ends_the_program_without_an_error():
    args = [sys.executable, "-m", "azjax", "play", "tic_tac_toe", "--opponent", "human"]
    with subprocess.Popen(
        args,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        for _ in range(3):
            process.stdin.write(b"help\n")
        process.stdin.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == b"azjax: loading tic_tac_toe ...\n"


def test_an_invalid_saved_game_is_refused_before_the_game(tmp_path, capsys):
    path = tmp_path / "thesis.txt"
    path.write_text("words")
    with pytest.raises(SystemExit) as error:
        cli.main(["play", "tic_tac_toe", "--opponent", "random", "--load", str(path)])
    assert error.value.code == 2
    error_lines = capsys.readouterr().err.splitlines()
    assert error_lines[-1] == f"azjax: {path} is not a saved game of azjax"
