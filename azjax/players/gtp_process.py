"""The process of a program that speaks GTP, the Go Text Protocol."""

import re
from collections.abc import Sequence

from azjax.players.engine_process import MAX_ANSWER, EngineProcess, shown


class RefusedError(Exception):
    """The engine answered with an error, which is the message."""


class GtpProcess(EngineProcess):
    """A running GTP engine that answers one command at a time."""

    def __init__(self, arguments: Sequence[str]):
        """Starts the program.

        Raises:
            ForfeitError: the program does not start.
        """
        super().__init__(arguments)
        self._num_commands = 0

    def ask(self, command: str, seconds: float) -> str:
        """Returns the answer to a command.

        Args:
            command: one line.
            seconds: time limit for reading it, and again for the answer.

        Raises:
            RefusedError: the engine answers with an error.
            ForfeitError: there is no valid answer; the engine is killed.
        """
        self._num_commands += 1
        self.send(f"{self._num_commands} {command}", seconds, command)
        answer = self._receive(command, seconds)
        found = re.match(r"([=?])(\d*)", answer)
        if not found or found[2] not in ("", str(self._num_commands)):
            self.fail(
                f"answers {command!r} with an invalid response: {shown(answer)!r}"
            )
        text = answer[found.end() :].strip()
        if found[1] == "?":
            raise RefusedError(shown(text))
        return text

    def _receive(self, command: str, seconds: float) -> str:
        """Returns the next answer; an empty line ends it."""
        answer = ""
        for line in self.lines(command, seconds):
            if answer and not line:
                break
            answer += f"{line}\n" if line else ""
            if answer and answer[0] not in "=?":
                break  # not a GTP response
            if len(answer) > MAX_ANSWER:
                self.fail(f"answers {command!r} with more than {MAX_ANSWER} characters")
        return answer
