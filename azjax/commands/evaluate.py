"""`azjax evaluate`: the strength of a trained player."""

import json
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax import games as all_games
from azjax.arena import EvaluationReport, evaluate, read, shipped
from azjax.arena.report import OPPONENTS
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.commands.tables import JsonOption, WorkProgress, tables_console
from azjax.compilation_cache import enable_compilation_cache
from azjax.players import (
    DEFAULT_SIMULATIONS,
    MAX_SIMULATIONS,
    load_run,
)
from azjax.settings import Seed, Within
from azjax.text import printable

MAX_GAMES = 100_000


def evaluate_command(
    run: tyro.conf.Positional[str],
    /,
    *,
    game: str | None = None,
    positions: str | None = None,
    simulations: Annotated[int, Within(1, MAX_SIMULATIONS)] = DEFAULT_SIMULATIONS,
    games: int = 200,
    seed: Seed = 0,
    modules: ModulesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count a player's mistakes in solved positions, and play matches.

    Args:
        run: a run directory, a player directory, or `pretrained`.
        game: the game, for `pretrained`.
        positions: a CSV file of solved positions; default: those of azjax.
        simulations: network evaluations per move of the search.
        games: per match, against random moves, an untrained network and, in ur with
            at most two pieces, the perfect player; 0 for none. Half as many are played
            from the initial position against the perfect player of connect_four, if
            its solver is installed.
        seed: seed of openings and players.
    """
    if not 0 <= games <= MAX_GAMES or games % 2:
        raise ValueError(f"--games must be even, from 0 to {MAX_GAMES}: {games}")
    enable_compilation_cache()
    own_modules = read_custom_modules(modules)
    trained = load_run(run, None if game is None else all_games.make(game), own_modules)
    solved = read(trained.game, positions) if positions else shipped(trained.game)
    console = tables_console(as_json)
    with WorkProgress(console) as progress:
        report = evaluate(
            trained,
            solved,
            jax.random.key(seed),
            simulations=simulations,
            num_games=games,
            modules=own_modules,
            on_progress=progress.show,
        )
    if as_json:
        print(json.dumps(report.to_json()))
    else:
        print_report(console, report)


def print_report(console: Console, report: EvaluationReport) -> None:
    """Prints the report as tables."""
    search_name = f"search, {report.simulations} simulations"
    if report.network is not None and report.search is not None:
        what = "mistakes against perfect play"
        if report.has_chance:
            what = "win probability lost per move"
        table = Table(
            "positions",
            "number",
            "network alone",
            search_name,
            title=f"{what}, with 95% intervals",
            box=None,
        )
        grades = (report.network, report.search)
        if report.has_chance:
            lost = (_percent(g.mean_lost, g.mean_lost_interval, 2) for g in grades)
            table.add_row("all", str(len(report.network.lost)), *lost)
        else:
            for name, group in report.network.groups.items():
                rates = (grade.groups[name] for grade in grades)
                table.add_row(
                    Text(printable(name)),
                    str(group.positions),
                    *(_percent(rate.rate, rate.interval) for rate in rates),
                )
            means = (_percent(grade.mean, grade.mean_interval) for grade in grades)
            table.add_row("mean", "", *means)
        console.print(table)
    names = {"network": "network alone", "search": search_name}
    if report.matches:
        table = Table(
            "player",
            "opponent",
            "won",
            "drawn",
            "lost",
            "score",
            title="matches",
            box=None,
        )
        for (name, opponent), result in report.matches.items():
            total = result.total
            table.add_row(
                names[name],
                OPPONENTS[opponent],
                str(total.wins),
                str(total.draws),
                str(total.losses),
                _percent(total.score, result.interval),
            )
        console.print(table)
    if report.perfect:
        match = next(iter(report.perfect.values()))
        side, value = ("first", "second")[match.side], ("draw", "win")[match.value]
        table = Table(
            *("player", "won", "drawn", "lost", f"keeps the {value}"),
            "gives it away with move (games)",
            title=f"as the {side} player against perfect play",
            box=None,
        )
        for name, match in report.perfect.items():
            kept = _percent(match.kept / match.total.games, match.interval)
            losing = (f"{move} ({n})" for move, n in match.losing_moves.items())
            table.add_row(names[name], *map(str, match.total), kept, ", ".join(losing))
        console.print(table)


def _percent(rate: float, interval: tuple[float, float], digits: int = 1) -> str:
    low, high = (f"{100 * end:.{digits}f}" for end in interval)
    return f"{100 * rate:.{digits}f}% ({low}-{high})"
