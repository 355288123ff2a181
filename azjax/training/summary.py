"""What a person sees at the end of a run."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax.games import Game
from azjax.players import AlphaZeroPlayer, Choice, NetworkPlayer, choose
from azjax.program import program_for
from azjax.training.loop import Run
from azjax.training.metrics import SCORES, Row, opponents
from azjax.training.plots import PLOT_FILE, game_title
from azjax.training.reporting import duration

SIMULATIONS = 200
SUMMARY_MOVES = 10  # of the opening position


def print_run(console: Console, run: Run) -> None:
    """Prints how far the run came, what it thinks of the opening position, and the
    command to play against it; nothing if the run was stopped before its end."""
    if not run.finished or run.last is None:
        return
    if not run.last["updates"]:
        console.print("the run was too short to learn: no update was made", style="red")
    console.print("compiling the search for the summary ...", style="dim")
    trained = run.player
    network = NetworkPlayer(trained.game, trained.network, trained.variables)
    search = AlphaZeroPlayer(
        trained.game, trained.search, SIMULATIONS, trained.network, trained.variables
    )
    opening = jax.tree.map(lambda leaf: leaf[None], trained.game.init())
    print_summary(
        console,
        game=trained.game,
        run_dir=run.directory,
        first=run.first,
        last=run.last,
        network_choice=choose(network, jax.random.key(0), opening),
        search_choice=choose(search, jax.random.key(0), opening),
        has_own_parts=trained.has_own_parts,
    )


def print_summary(
    console: Console,
    *,
    game: Game,
    run_dir: Path,
    first: Row | None,
    last: Row,
    network_choice: Choice,
    search_choice: Choice,
    has_own_parts: bool = False,
) -> None:
    """Prints what a run came to, where it is, and how to play against it.

    Args:
        console: where to print.
        game: what was learnt.
        run_dir: the run directory.
        first: the evaluation of the first network, if it is known.
        last: the newest evaluation.
        network_choice: of the network alone in the opening position, a batch of one.
        search_choice: the same with search.
        has_own_parts: whether the network has modules of the user's own.
    """
    results = Table.grid(padding=(0, 2))
    results.add_column(style="cyan", no_wrap=True)
    for name, text in _results(first, last):
        results.add_row(name, text)
    for name, path in (("run", ""), ("plot", PLOT_FILE), ("player", "player")):
        results.add_row(name, Text(str(run_dir / path), overflow="fold"))
    program, parts = program_for(game), " --parts MODULE:NAME" if has_own_parts else ""
    run = shlex.quote(run_dir.as_posix())
    opponent = shlex.quote(f"alphazero:{run_dir.as_posix()}")
    opinions = _opinions(game, network_choice, search_choice)
    board = Text(game.to_text(game.init()), no_wrap=True, overflow="crop")
    console.print(Text(f"\n{game_title(repr(game))}: learnt by self-play", "bold"))
    console.print(results)
    heading = "\nThe opening position (value: 1 the mover wins, -1 loses)"
    console.print(Text(heading, "bold"))
    console.print(Columns([board, opinions], padding=(0, 4)))
    for words, command in (
        ("Play against it", f"{program} play {game!r} --opponent {opponent}{parts}"),
        ("Measure it", f"{program} evaluate {run}{parts}"),
    ):
        line = Text.assemble((f"{words}:  ", "bold"), (command, "green"))
        console.print(line, soft_wrap=True)


def _results(first: Row | None, last: Row) -> Iterator[tuple[str, str]]:
    yield "time", duration(last["seconds"])
    yield "played", f"{last['games']:,} games, {last['positions']:,} positions"
    if last.get("eligible_share"):
        delay = f"after {last['eligibility_delay']:.0f} more moves on average"
        yield (
            "could be drawn",
            f"{last['eligible_share']:.1%} of the positions, {delay}",
        )
    for key, name in (
        ("network_mistakes", "mistakes, network alone"),
        ("search_mistakes", "mistakes, with search"),
    ):
        if key in last:
            yield name, _change(first, last, key)
    for name in opponents(last):
        before = first and first.get(SCORES, {}).get(name)
        yield f"score against {name}", _change(before, last[SCORES][name], "score")


def _change(first: Row | None, last: Row, key: str) -> str:
    before = f"{_with_interval(first, key)} → " if first else ""
    return before + _with_interval(last, key)


def _with_interval(row: Row, key: str) -> str:
    low, high = 100 * row[f"{key}_low"], 100 * row[f"{key}_high"]
    return f"{row[key]:.1%} ({low:.1f} to {high:.1f})"


def _opinions(game: Game, network: Choice, search: Choice) -> Table:
    """Returns a table of the moves in the opening position, the likeliest if many."""
    opening = game.init()
    legal = np.flatnonzero(np.asarray(game.legal_action_mask(opening)))
    policies = np.asarray(jax.device_get([network.policy[0], search.policy[0]]))
    likeliest = legal[np.argsort(-policies[1, legal], kind="stable")]
    shown = legal if len(legal) <= SUMMARY_MOVES else likeliest[:SUMMARY_MOVES]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for name in ("move", "network", "search"):
        table.add_column(name, justify="right", no_wrap=True)
    for action in shown:
        shares = (f"{policies[player, action]:.1%}" for player in range(2))
        style = "bold" if action == likeliest[0] else ""
        table.add_row(game.action_to_text(opening, int(action)), *shares, style=style)
    if len(shown) < len(legal):
        rest = policies[:, likeliest[SUMMARY_MOVES:]].sum(axis=1)
        name = f"{len(legal) - len(shown)} more"
        table.add_row(name, *(f"{share:.1%}" for share in rest), style="dim")
    values = (f"{float(choice.value[0]):+.2f}" for choice in (network, search))
    table.add_row("value", *values, style="cyan")
    return table
