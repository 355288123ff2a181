"""Conversations with a GTP engine."""

from collections.abc import Callable

import pytest

from azjax import games, players
from azjax.play.gtp import Engine, Inbox, serve


class Conversation:
    """An engine that receives lines of text."""

    def __init__(self, game: str, player: str | players.AnyPlayer):
        def load(game: games.Game) -> players.AnyPlayer:
            if isinstance(player, str):
                return players.load(player, game)
            return player

        self.engine = Engine(games.make(game), load)

    def send(self, text: str | bytes) -> str:
        """Returns the complete output for some lines."""
        lines = (text.encode() if isinstance(text, str) else text).split(b"\n")
        written: list[str] = []
        serve(self.engine, Inbox(lines), written.append)
        return "".join(written)

    def ask(self, *commands: str) -> list[str]:
        """Returns the answer to each command."""
        answers = self.send("\n".join(commands)).split("\n\n")
        assert answers.pop() == ""
        assert len(answers) == len(commands)
        return answers


@pytest.fixture
def talk() -> Callable[..., Conversation]:
    """Starts a conversation: `talk(game, player)`."""
    return Conversation
