"""Commands come in, answers go out."""

from collections.abc import Callable

from azjax.play.gtp.engine import Engine, Report
from azjax.play.gtp.protocol import CommandError, Inbox, failure, parse, success


def serve(engine: Engine, inbox: Inbox, write: Callable[[str], object]) -> None:
    """Answers all commands, until `quit` or the end of the input.

    Args:
        engine: what carries them out.
        inbox: where they come from.
        write: sends text, at once.
    """
    while (line := inbox.get()) is not None:
        command = parse(line)
        if command is None:
            continue
        try:
            answer = engine.execute(command.name, command.arguments)
        except CommandError as error:
            write(failure(command.id, str(error)))
            continue
        if isinstance(answer, Report):
            _report(answer, command.id, inbox, write)
        else:
            write(success(command.id, answer))
        if command.name == "quit":
            return


def _report(
    report: Report, command_id: str, inbox: Inbox, write: Callable[[str], object]
) -> None:
    """Sends line after line until another command, or an empty line, comes in."""
    write(f"={command_id}\n")
    for line in report.lines:
        write(f"{line}\n")
        if inbox.wait(report.interval):
            break
    write("\n")
