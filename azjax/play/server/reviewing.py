"""Reviews of games for the page, by the searches that all clients share."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from azjax.games import Game, GameRecord, State
from azjax.games.game_record import RESULTS
from azjax.games.reading import read_game
from azjax.play.review import ReviewedMove, exact_text, review, summaries
from azjax.play.server.limits import Limits
from azjax.play.server.messages import MAX_SHOWN
from azjax.play.server.positions import Rules, cell_numbers, json_number
from azjax.play.server.registry import LoadedPlayer
from azjax.play.server.runs import one_line
from azjax.play.server.search_workers import Job
from azjax.players import AnyPlayer, MoveDecision, ResignError


class CancelledError(Exception):
    """The decision is no longer wanted."""


class QueuedPlayer:
    """A loaded player that decides in its workers' queues, one position at a time, as
    for a client that plays without pause.

    It is an external player with one session. Another thread may cancel it.

    is_done: whether it was cancelled.

    Args:
        loaded: the player, with its own number of simulations.
        limits: limits of each search.
    """

    def __init__(self, loaded: LoadedPlayer, limits: Limits):
        self.is_done = False
        self._loaded, self._limits = loaded, limits
        self._changed = threading.Event()

    def start_session(self, game: Game, seed: int) -> "QueuedPlayer":
        """Returns itself."""
        del game, seed
        return self

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Waits for the decision in a position.

        Raises:
            CancelledError: the player was cancelled.
            ResignError: the player resigns.
            ValueError: the decision failed.
        """
        if self.is_done:
            raise CancelledError
        worker, simulations = self._loaded.worker(None)
        job = Job(state, tuple(moves), simulations, self._changed.set, self._limits)
        worker.submit(job)
        while not (self.is_done or job.is_done):
            self._changed.wait()
            self._changed.clear()
        if not job.is_done:
            job.cancel()
            raise CancelledError
        if job.error is not None:
            raise ValueError(job.error)
        if job.is_resigned or job.progress is None:
            raise ResignError("it resigns")
        return job.progress.decision

    def cancel(self) -> None:
        """Ends the running decision, and refuses further ones."""
        self.is_done = True
        self._changed.set()

    def close(self) -> None:
        """Does nothing: the workers are shared."""


def describe_text(game: Game, text: str) -> dict[str, Any]:
    """Returns the first game of a text, as JSON; see `read_game`.

    Raises:
        ValueError: it cannot be read; the message is one short line.
    """
    try:
        record = read_game(text, game)
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None
    except ValueError as error:
        raise ValueError(one_line(error)) from None
    return describe_record(record)


def describe_record(record: GameRecord) -> dict[str, Any]:
    """Returns a game as JSON."""
    result = "unfinished" if record.result is None else RESULTS[record.result]
    names = [name[:MAX_SHOWN] for name in record.names]
    return {"actions": record.moves, "players": names, "result": result}


def describe_review(
    rules: Rules,
    actions: Sequence[int],
    reviewer: QueuedPlayer,
    solver: AnyPlayer | None,
    report: Callable[[dict[str, Any]], object],
) -> dict[str, Any] | None:
    """Reviews a game; blocks until it is done.

    Args:
        rules: rules of the game.
        actions: legal actions from the initial position.
        reviewer: the player whose opinion is given.
        solver: gives exact results.
        report: called with each reviewed move, as JSON.

    Returns:
        What holds for the whole game, as JSON; None if the reviewer was cancelled.

    Raises:
        ValueError: an action is illegal, or the reviewer fails or gives no values.
    """
    rules.state(actions)
    moves: list[ReviewedMove] = []
    try:
        for move in review(rules.game, actions, reviewer, solver):
            state = rules.state(actions[: len(moves)])
            moves.append(move)
            best = rules.game.action_cells(state, move.best_action)
            report(
                {
                    "ply": len(moves),
                    "text": move.text,
                    "mark": move.mark,
                    "before": json_number(move.before),
                    "after": json_number(move.after),
                    "loss": json_number(move.loss),
                    "best": move.best,
                    "bestAction": move.best_action,
                    "bestCells": cell_numbers(rules.game, best),
                    "exact": exact_text(move),
                    "exactBefore": move.exact_before,
                    "exactAfter": move.exact_after,
                }
            )
    except CancelledError:
        return None
    return {"summaries": summaries(rules.game, moves)}
