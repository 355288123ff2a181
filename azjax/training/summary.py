"""The summary printed at the end of a run."""

import shlex
from collections.abc import Iterator, Mapping

import jax
import numpy as np
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax.games import Game, game_title
from azjax.players import Choice, Player, TrainedPlayer, TrainedQ, choose
from azjax.program import program_for
from azjax.remote import Directory
from azjax.training.host_loop import Run
from azjax.training.loop import named_players
from azjax.training.metrics import SCORES, Row, graded, opponents
from azjax.training.plots import PLAYERS, PLOT_FILE
from azjax.training.reporting import duration
from azjax.training.saved_config import OUTSIDE, load_config

SIMULATIONS = 200
SUMMARY_MOVES = 10  # of the initial position


def print_run(console: Console, run: Run[TrainedPlayer]) -> None:
    """Prints the results of a finished run of AlphaZero, its players' choices in the
    initial position, and commands for it; prints nothing for a stopped run."""
    parts = " --parts MODULE:NAME" if run.player.has_own_parts else ""
    game, directory = run.player.game, shlex.quote(run.directory.as_posix())
    opponent = shlex.quote(f"alphazero:{run.directory.as_posix()}")
    commands = {
        "Play against it": f"play {game!r} --opponent {opponent}{parts}",
        "Measure it": f"evaluate {directory}{parts}",
    }
    players = named_players(run.player, SIMULATIONS)
    has_played = load_config(run.directory, allowed=OUTSIDE).played_slots > 0
    method = "by self-play" if has_played else "from stored games"
    _print_result(console, run, players, commands, method)


def print_q_run(console: Console, run: Run[TrainedQ]) -> None:
    """Prints the same for a run of Q-learning as `print_run` does for AlphaZero."""
    game = run.player.game
    player = shlex.quote(f"q_learning:{run.directory.as_posix()}")
    commands = {
        "Play against it": f"play {game!r} --opponent {player}",
        "Measure it": f"arena {game!r} random {player}",
    }
    players = {"network": run.player.player()}
    _print_result(console, run, players, commands, "by Q-learning")


def _print_result(
    console: Console,
    run: Run[TrainedPlayer] | Run[TrainedQ],
    players: Mapping[str, Player],
    commands: Mapping[str, str],
    method: str,
) -> None:
    if not run.finished or run.last is None:
        return
    if not run.last["updates"]:
        console.print("the run was too short to learn: no update was made", style="red")
    console.print("compiling the players for the summary ...", style="dim")
    game = run.player.game
    opening = jax.tree.map(lambda leaf: leaf[None], game.init())
    print_summary(
        console,
        game=game,
        run_dir=run.directory,
        first=run.first,
        last=run.last,
        choices={
            name: choose(player, jax.random.key(0), opening)
            for name, player in players.items()
        },
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
    choices: Mapping[str, Choice],
    commands: Mapping[str, str],
    method: str,
) -> None:
    """Prints a run's results, its directory, and commands for it.

    Args:
        console: where to print.
        game: the game.
        run_dir: the run directory.
        first: the evaluation of the initial network, if known.
        last: the newest evaluation.
        choices: in the initial position, a batch of one, by player name; the strongest
            player last.
        commands: of the program, by purpose.
        method: how it was learned, such as `by self-play`.
    """
    results = Table.grid(padding=(0, 2))
    results.add_column(style="cyan", no_wrap=True)
    for name, text in result_texts(first, last):
        results.add_row(name, text)
    for name, path in (("run", ""), ("plot", PLOT_FILE), ("player", "player")):
        results.add_row(name, Text(str(run_dir / path), overflow="fold"))
    moves = _move_table(game, choices)
    board = Text(game.to_text(game.init()), no_wrap=True, overflow="crop")
    console.print(Text(f"\n{game_title(repr(game))}: learned {method}", "bold"))
    console.print(results)
    heading = "\nThe initial position (value: 1 the mover wins, -1 loses)"
    console.print(Text(heading, "bold"))
    console.print(Columns([board, moves], padding=(0, 4)))
    for purpose, command in commands.items():
        line = Text.assemble(
            (f"{purpose}:  ", "bold"), (f"{program_for(game)} {command}", "green")
        )
        console.print(line, soft_wrap=True)


def result_texts(first: Row | None, last: Row) -> Iterator[tuple[str, str]]:
    """Yields names and texts of what a run did and how strong it became.

    Args:
        first: the evaluation of the initial network, if known.
        last: the newest evaluation.
    """
    yield "time", duration(last["seconds"])
    yield "played", f"{last['games']:,} games, {last['positions']:,} positions"
    if last.get("eligible_share") and last.get("eligibility_delay") is not None:
        delay = f"after {last['eligibility_delay']:.0f} more moves on average"
        yield (
            "eligible",
            f"{last['eligible_share']:.1%} of the positions, {delay}",
        )
    for name in graded(last):
        label = PLAYERS[name][0] if name in PLAYERS else name
        yield f"mistakes, {label}", _change(first, last, f"{name}_mistakes")
    for name in opponents(last):
        before = first and first.get(SCORES, {}).get(name)
        yield f"score against {name}", _change(before, last[SCORES][name], "score")


def _change(first: Row | None, last: Row, key: str) -> str:
    before = f"{_with_interval(first, key)} → " if first else ""
    return before + _with_interval(last, key)


def _with_interval(row: Row, key: str) -> str:
    return rate_text(row[key], row[f"{key}_low"], row[f"{key}_high"])


def rate_text(rate: float, low: float, high: float) -> str:
    """Formats a rate in [0, 1] with its interval: `12.3% (10.2 to 14.8)`."""
    return f"{rate:.1%} ({100 * low:.1f} to {100 * high:.1f})"


def _move_table(game: Game, choices: Mapping[str, Choice]) -> Table:
    """Returns a table of the moves in the initial position, the most probable ones if
    many."""
    opening = game.init()
    legal = np.flatnonzero(np.asarray(game.legal_action_mask(opening)))
    policies = np.asarray(
        jax.device_get([choice.policy[0] for choice in choices.values()])
    )
    likeliest = legal[np.argsort(-policies[-1, legal], kind="stable")]
    shown = legal if len(legal) <= SUMMARY_MOVES else likeliest[:SUMMARY_MOVES]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for name in ("move", *choices):
        table.add_column(name, justify="right", no_wrap=True)
    for action in shown:
        cells = (f"{probability:.1%}" for probability in policies[:, action])
        style = "bold" if action == likeliest[0] else ""
        table.add_row(game.action_to_text(opening, int(action)), *cells, style=style)
    if len(shown) < len(legal):
        rest = policies[:, likeliest[SUMMARY_MOVES:]].sum(axis=1)
        name = f"{len(legal) - len(shown)} more"
        table.add_row(
            name, *(f"{probability:.1%}" for probability in rest), style="dim"
        )
    values = (f"{float(choice.value[0]):+.2f}" for choice in choices.values())
    table.add_row("value", *values, style="cyan")
    return table
