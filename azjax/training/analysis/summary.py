"""The summary printed at the end of a run."""

import shlex
from collections.abc import Iterator, Mapping

import jax
import numpy as np
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax.files import Directory
from azjax.games import Game, State, game_title
from azjax.games.host import compiled, first_state, next_state, outcome_probabilities
from azjax.players import Choice, NetworkPlayer, Player, TrainedPlayer, TrainedQ, choose
from azjax.players.batches import batch_layout
from azjax.program import program_for
from azjax.training.analysis.plots import PLOT_FILE, grade_label, score_label
from azjax.training.config import BaseEvaluationConfig
from azjax.training.run.display import duration
from azjax.training.run.metrics import (
    SCORES,
    Row,
    graded,
    opponents,
    percent_with_interval,
)
from azjax.training.run.open_run import Run
from azjax.training.run.saved_config import OUTSIDE, load_config

SUMMARY_MOVES = 10  # of the initial position


def print_run(console: Console, run: Run[TrainedPlayer]) -> None:
    """Prints the results of a finished run of AlphaZero, its network's choice in the
    initial position, and commands for it; prints nothing for a stopped run."""
    parts = " --modules MODULE:NAME" if run.player.has_custom_modules else ""
    trained, directory = run.player, shlex.quote(run.directory.as_posix())
    game = trained.game
    opponent = shlex.quote(f"alphazero:{run.directory.as_posix()}")
    commands = {
        "Play against it": f"play {game!r} --opponent {opponent}{parts}",
        "Measure it": f"evaluate {directory}{parts}",
    }
    network = NetworkPlayer(game, trained.network, trained.variables)
    has_played = load_config(run.directory, allowed=OUTSIDE).played_slots > 0
    method = "by self-play" if has_played else "from stored games"
    _print_result(console, run, network, commands, method)


def print_q_run(console: Console, run: Run[TrainedQ]) -> None:
    """Prints the same for a run of Q-learning as `print_run` does for AlphaZero."""
    game = run.player.game
    player = shlex.quote(f"q_learning:{run.directory.as_posix()}")
    commands = {
        "Play against it": f"play {game!r} --opponent {player}",
        "Measure it": f"arena {game!r} random {player}",
    }
    _print_result(console, run, run.player.player(), commands, "by Q-learning")


def _print_result(
    console: Console,
    run: Run[TrainedPlayer] | Run[TrainedQ],
    player: Player,
    commands: Mapping[str, str],
    method: str,
) -> None:
    if not run.finished or run.last is None:
        return
    game = run.player.game
    # A batch like those of the evaluations, which have compiled the program.
    layout = batch_layout(BaseEvaluationConfig.num_games // 2, [player])
    opening, _ = _first_turn(game)
    states = jax.tree.map(lambda leaf: np.stack([leaf] * layout.size), opening)
    choice = choose(
        layout.replicated(player),
        layout.keys(jax.random.key(0)),
        layout.by_position(states),
        layout.mesh,
    )
    print_summary(
        console,
        game=game,
        run_dir=run.directory,
        first=run.first,
        last=run.last,
        choice=choice,
        commands=commands,
        method=method,
    )


def print_summary(
    console: Console,
    *,
    game: Game,
    run_dir: Directory,
    first: Row | None,
    last: Row,
    choice: Choice,
    commands: Mapping[str, str],
    method: str,
) -> None:
    """Prints a run's results, its directory, and commands for it by purpose.

    `choice` is the network's, in a batch whose first position is the first one in which
    a player moves, in games that begin with chance after the likeliest outcome;
    `first` and `last` are the evaluation of the initial network, if known, and the
    newest one; `method` is how it learned, such as `by self-play`.
    """
    results = Table.grid(padding=(0, 2))
    results.add_column(style="cyan", no_wrap=True)
    for name, text in result_texts(first, last):
        results.add_row(name, text)
    for name, path in (("run", ""), ("plot", PLOT_FILE), ("player", "player")):
        results.add_row(name, Text(str(run_dir / path), overflow="fold"))
    game = compiled(game)
    opening, outcome = _first_turn(game)
    # The moves in this position, the most probable ones if they are many.
    legal = np.flatnonzero(np.asarray(game.legal_action_mask(opening)))
    policy = np.asarray(choice.policy)[0]
    likeliest = legal[np.argsort(-policy[legal], kind="stable")]
    shown = legal if len(legal) <= SUMMARY_MOVES else likeliest[:SUMMARY_MOVES]
    moves = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for name in ("move", "network"):
        moves.add_column(name, justify="right", no_wrap=True)
    for action in shown:
        style = "bold" if action == likeliest[0] else ""
        text = game.action_to_text(opening, int(action))
        moves.add_row(text, f"{policy[action]:.1%}", style=style)
    if len(shown) < len(legal):
        rest = policy[likeliest[SUMMARY_MOVES:]].sum()
        number = len(legal) - len(shown)
        moves.add_row(f"{number} more", f"{rest:.1%}", style="dim")
    moves.add_row("value", f"{np.asarray(choice.value)[0]:+.2f}", style="cyan")
    board = Text(game.to_text(opening), no_wrap=True, overflow="crop")
    console.print(Text(f"\n{game_title(repr(game))}: learned {method}", "bold"))
    console.print(results)
    after = f" after {outcome}" if outcome else ""
    heading = f"\nThe initial position{after} (value: 1 the mover wins, -1 loses)"
    console.print(Text(heading, "bold"))
    console.print(Columns([board, moves], padding=(0, 4)))
    for purpose, command in commands.items():
        line = Text.assemble(
            (f"{purpose}:  ", "bold"), (f"{program_for(game)} {command}", "green")
        )
        console.print(line, soft_wrap=True)


def _first_turn(game: Game) -> tuple[State, str]:
    """Returns the initial position; where it waits for chance, the position after the
    likeliest outcome, and its text."""
    first = first_state(game)
    probabilities = outcome_probabilities(game, first)
    if not probabilities.any():
        return first, ""
    move = game.num_actions + int(probabilities.argmax())
    return next_state(game, first, move), game.move_to_text(first, move)


def result_texts(first: Row | None, last: Row) -> Iterator[tuple[str, str]]:
    """Yields names and texts of what a run did and how strong it became, from the
    evaluation of the initial network, if known, and the newest one."""
    yield "training time", duration(last["seconds"])
    yield "played", f"{last['games']:,} games, {last['positions']:,} positions"
    if last.get("eligible_share"):
        yield "eligible", f"{last['eligible_share']:.1%} of the positions"
    kind, names = graded(last)
    for name in names:
        yield grade_label(kind, name), _change(kind, first, last, f"{name}_{kind}")
    for name in opponents(last):
        before, after = first and first.get(SCORES, {}).get(name), last[SCORES][name]
        yield score_label(name), _change(SCORES, before, after, "score")


def _change(kind: str, first: Row | None, last: Row, key: str) -> str:
    keys = (key, f"{key}_low", f"{key}_high")
    texts = [
        percent_with_interval(kind, *(row[key] for key in keys))
        for row in (first, last)
        if row
    ]
    return " → ".join(texts)
