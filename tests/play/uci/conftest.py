"""Conversations with a UCI engine."""

import queue

import pytest

from azjax import games, players
from azjax.play.uci import Engine

PATIENCE = 300.0  # seconds, for a loaded machine


class Conversation:
    """An engine that receives lines of text."""

    def __init__(self, player):
        self._lines = queue.SimpleQueue()
        chess = games.make("chess", max_moves=12)  # short playouts
        if isinstance(player, str):
            player = players.load_compiled(player, chess)
        self.engine = Engine(chess, player, self._lines.put)
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
