"""`azjax arena`: tournaments and sequential tests."""

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from azjax import games
from azjax.arena.chart import CHART_FILE, save_chart
from azjax.arena.matches import GAMES_AT_ONCE, OPENING_MOVES
from azjax.arena.records import MatchResult, Record
from azjax.arena.saved_games import append_games
from azjax.arena.sprt import Sprt, SprtResult, play_sprt
from azjax.arena.standings import Standing, standings, to_json
from azjax.arena.tournament import Tournament, check_starts, play_tournament
from azjax.commands.common import check_seed
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game
from azjax.players import AnyPlayer, load

TOURNAMENT_GAMES = 100
SPRT_GAMES = 2000
MAX_GAMES = 100_000
RESULTS_FILE = "results.json"
_FORFEITS_SHOWN = 3  # of a match


def arena_command(
    game: tyro.conf.Positional[str],
    players: tyro.conf.Positional[tuple[str, ...]],
    /,
    *,
    games_per_match: Annotated[int | None, tyro.conf.arg(name="games")] = None,
    opening_moves: int = OPENING_MOVES,
    anchor: str | None = None,
    sprt: tuple[float, float] | None = None,
    save: str | None = None,
    at_once: int = GAMES_AT_ONCE,
    seed: int = 0,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Let players play each other, and rate them.

    Every player plays every other, from each opening with both colours, for example
    `azjax arena connect_four random network:pretrained alphazero:pretrained`.

    Args:
        game: one of those that `azjax games` lists.
        players: two or more, written as for `azjax play --opponent`.
        games_per_match: between each two players, 100 unless given; with --sprt at
            most, and 2000 unless given.
        opening_moves: made at random before the players take over; more where the game
            has too few openings of that length.
        anchor: NAME or NAME:ELO, a player whose rating is fixed, at 0 unless given.
            Without an anchor the mean of all ratings is 0.
        sprt: two numbers of Elo. Play only until it is decided whether the first player
            is stronger than the second by the one or by the other; either verdict is
            wrong in 5% of the cases.
        save: a new directory for all games, ratings.png and results.json.
        at_once: games in memory at once, at most.
        seed: of openings and players.
        as_json: print one JSON object.
    """
    num_games = games_per_match
    if num_games is None:
        num_games = TOURNAMENT_GAMES if sprt is None else SPRT_GAMES
    if not 2 <= num_games <= MAX_GAMES or num_games % 2:
        raise ValueError(f"--games must be even, from 2 to {MAX_GAMES}: {num_games}")
    if at_once < 2:
        raise ValueError(f"--at-once must be at least 2: {at_once}")
    check_seed(seed)
    _check_names(players)
    fixed = None if anchor is None else read_anchor(anchor, players)
    test = None if sprt is None else _read_test(sprt, players)
    directory = None if save is None else Path(save)
    is_free = directory is None or not directory.exists()
    if directory is not None and not is_free:
        is_free = directory.is_dir() and not any(directory.iterdir())
    if not is_free:
        raise ValueError(f"--save {save}: it is no new or empty directory")
    board_game = games.make(game)
    enable_compilation_cache()
    loaded = {name: load(name, board_game) for name in players}
    for name, player in loaded.items():
        check_starts(name, player, board_game)
    settings = _Settings(
        board_game,
        loaded,
        num_games,
        opening_moves,
        at_once,
        rng_key=jax.random.key(seed),
        directory=directory,
        # What is printed as JSON must be the only thing on the standard output.
        console=Console(stderr=as_json, width=None if sys.stdout.isatty() else 120),
    )
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    report = _test(settings, test) if test else _tournament(settings, fixed)
    if directory is not None:
        (directory / RESULTS_FILE).write_text(f"{report}\n")
        _print_line(settings.console, f"saved in {directory}")
    if as_json:
        print(report)


@dataclasses.dataclass(frozen=True)
class _Settings:
    """What was asked for, checked."""

    game: Game
    players: Mapping[str, AnyPlayer]
    num_games: int
    opening_moves: int
    at_once: int
    rng_key: jax.Array
    directory: Path | None
    console: Console


def _tournament(settings: _Settings, anchor: tuple[str, float] | None) -> str:
    """Plays a tournament and prints its tables; returns it as JSON."""
    console = settings.console

    def on_match(name: str, opponent: str, match: MatchResult) -> None:
        _print_match(console, name, opponent, match)
        if settings.directory is not None:
            append_games(settings.directory, settings.game, (name, opponent), match)

    with _progress(console) as progress:
        number = math.comb(len(settings.players), 2) * settings.num_games
        task = progress.add_task("games", total=number)
        tournament = play_tournament(
            settings.game,
            settings.players,
            settings.rng_key,
            settings.num_games,
            opening_moves=settings.opening_moves,
            games_at_once=settings.at_once,
            on_games=lambda number: progress.advance(task, number),
            on_match=on_match,
        )
    table = standings(tournament, anchor)
    if settings.directory is not None:
        title = f"{settings.game!r}: ratings"
        save_chart(settings.directory / CHART_FILE, title, table)
    print_standings(console, tournament, table, anchor)
    return json.dumps(to_json(tournament, table))


def _test(settings: _Settings, test: Sprt) -> str:
    """Plays a sequential test and prints its verdict; returns it as JSON."""
    console, (name, opponent) = settings.console, settings.players
    player, other = settings.players.values()
    low, high = test.bounds
    with _progress(console) as progress:
        task = progress.add_task("games", total=settings.num_games)

        def on_look(result: SprtResult) -> None:
            progress.update(task, completed=result.match.total.games)
            ratio = result.log_likelihood_ratio
            _print_line(
                console,
                f"{_score(result.match.total)}, log-likelihood ratio {ratio:+.2f} "
                f"({low:+.2f} to {high:+.2f})",
            )

        result = play_sprt(
            settings.game,
            (player, other),
            settings.rng_key,
            test,
            max_games=settings.num_games,
            opening_moves=settings.opening_moves,
            on_look=on_look,
        )
    _print_match(console, name, opponent, result.match)
    if settings.directory is not None:
        append_games(settings.directory, settings.game, (name, opponent), result.match)
    verdict = {
        "stronger": f"{name} is stronger than {opponent} by {test.elo1:g} Elo",
        "not stronger": f"{name} is not stronger by more than {test.elo0:g} Elo",
        "undecided": f"undecided after {settings.num_games} games",
    }[result.verdict]
    _print_line(console, verdict)
    total = result.match.total
    return json.dumps(
        {
            "game": repr(settings.game),
            "player": name,
            "opponent": opponent,
            "verdict": result.verdict,
            "log_likelihood_ratio": result.log_likelihood_ratio,
            "bounds": [low, high],
            **dataclasses.asdict(test),
            **total._asdict(),
            "score": total.score,
            "repeated": result.match.repeated,
        }
    )


def read_anchor(text: str, names: Sequence[str]) -> tuple[str, float]:
    """Reads `NAME` or `NAME:ELO`.

    Raises:
        ValueError: no player has the name, or the rating is no number.
    """
    if text in names:
        return text, 0.0
    name, _, rating = text.rpartition(":")
    try:
        elo = float(rating)
    except ValueError:
        elo = math.nan
    if name in names and math.isfinite(elo):
        return name, elo
    raise ValueError(
        f"--anchor is NAME or NAME:ELO with one of {', '.join(names)}: {text!r}"
    )


def print_standings(
    console: Console,
    tournament: Tournament,
    table: Sequence[Standing],
    anchor: tuple[str, float] | None,
) -> None:
    """Prints the players, strongest first, and what each scored against each."""
    grid = Table(box=None, header_style="cyan", padding=(0, 2, 0, 0))
    grid.add_column("", justify="right", no_wrap=True)
    grid.add_column("player", overflow="fold")
    for name in ("Elo", "95% interval", "score", "W-D-L", "repeated"):
        grid.add_column(name, justify="right", no_wrap=True)
    cross = Table(box=None, header_style="cyan", padding=(0, 2, 0, 0))
    for name in ("", *map(str, range(1, len(table) + 1))):
        cross.add_column(name, justify="right", no_wrap=True)
    for rank, line in enumerate(table, 1):
        low, high = line.interval
        grid.add_row(
            str(rank),
            Text(line.name),
            f"{line.elo:+.0f}",
            f"{low:+.0f} to {high:+.0f}",
            f"{line.record.score:.1%}",
            "-".join(map(str, line.record)),
            f"{line.repeated:.0%}",
        )
        scores = (
            "" if other is line else _percent(tournament, line, other)
            for other in table
        )
        cross.add_row(str(rank), *scores)
    number = f"{table[0].record.games} games each"
    zero = "mean 0" if anchor is None else f"{anchor[0]} at {anchor[1]:g}"
    console.print(Text(f"\n{tournament.game!r}, {number}: ratings, {zero}", "bold"))
    console.print(grid)
    console.print(Text("\nscore of each player (rows) against each (columns)", "bold"))
    console.print(cross)


def _percent(tournament: Tournament, player: Standing, opponent: Standing) -> str:
    return f"{tournament.against(player.place, opponent.place).score:.1%}"


def _print_match(
    console: Console, name: str, opponent: str, match: MatchResult
) -> None:
    _print_line(console, f"{name} against {opponent}: {_score(match.total)}")
    forfeits = [ended for ended in match.finished((name, opponent)) if ended.fault]
    for ended in forfeits[:_FORFEITS_SHOWN]:
        loser = ended.names[0] if ended.result < 0 else ended.names[1]
        _print_line(console, f"  {loser} forfeits a game: {ended.fault}")
    if len(forfeits) > _FORFEITS_SHOWN:
        more = len(forfeits) - _FORFEITS_SHOWN
        _print_line(console, f"  and {more} more games were forfeited")


def _score(record: Record) -> str:
    return (
        f"{record.score:.1%} ({record.wins} won, {record.draws} drawn, "
        f"{record.losses} lost)"
    )


def _print_line(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def _progress(console: Console) -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), "games", TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def _check_names(players: Sequence[str]) -> None:
    if len(players) < 2:
        raise ValueError(f"azjax arena needs two players or more: {len(players)}")
    twice = [name for name in players if players.count(name) > 1]
    if twice:
        raise ValueError(f"the player {twice[0]!r} is given twice")


def _read_test(sprt: tuple[float, float], players: Sequence[str]) -> Sprt:
    if len(players) != 2:
        raise ValueError(f"--sprt needs exactly two players: {len(players)}")
    return Sprt(*sprt)
