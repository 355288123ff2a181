"""`azjax arena`: tournaments and sequential tests."""

import dataclasses
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax import games
from azjax.arena.chart import CHART_FILE, draw_chart
from azjax.arena.matches import GAMES_AT_ONCE, MatchResult, WinDrawLoss
from azjax.arena.sprt import Sprt, SprtResult, play_sprt
from azjax.arena.tournament import (
    Standing,
    Tournament,
    check_starts,
    play_tournament,
    standings,
    to_json,
)
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.commands.tables import JsonOption, WorkProgress, print_line, tables_console
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game
from azjax.players import AnyPlayer, load
from azjax.players.engine import MOVE_SECONDS, EnginePlayer
from azjax.players.player_spec import split_name, unused_name
from azjax.program import INTERRUPTED, interrupted_by_sigterm
from azjax.settings import Seed, Within

TOURNAMENT_GAMES = 100
SPRT_GAMES = 2000
MAX_GAMES = 100_000
RESULTS_FILE = "results.json"
_FORFEITS_SHOWN = 3  # per match


def arena_command(
    game: tyro.conf.Positional[str],
    players: tyro.conf.Positional[tuple[str, ...]],
    /,
    *,
    games_per_match: Annotated[int | None, tyro.conf.arg(name="games")] = None,
    opening_moves: int | None = None,
    anchor: str | None = None,
    sprt: tuple[float, float] | None = None,
    save: str | None = None,
    at_once: Annotated[int, Within(ge=1)] = GAMES_AT_ONCE,
    move_seconds: Annotated[float, Within(gt=0)] = MOVE_SECONDS,
    seed: Seed = 0,
    modules: ModulesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play a tournament or a match between players, and rate them.

    Every two players play a match, with both colors from each opening, for example
    `azjax arena go random alphazero:pretrained`. Ctrl-C or SIGTERM ends it; finished
    pairs count.

    Args:
        game: a game that `azjax games` lists.
        players: two or more, as in `azjax play --opponent`; NAME=PLAYER names one.
        games_per_match: default 100; with --sprt the maximum, default 2000.
        opening_moves: random moves before the players take over, more if the game has
            too few openings of that length. Default 4, fewer in short games.
        anchor: NAME or NAME:ELO, a player with a fixed rating, by default 0. Without
            an anchor the mean of all ratings is 0.
        sprt: two Elo values. Play until a sequential test decides whether the first
            player's advantage is the first or the second value; the error rate of
            either verdict is 5%.
        save: a new directory for all games, with the evaluations of uci:COMMAND,
            ratings.png and results.json.
        at_once: maximum number of concurrent games; of external programs there are no
            more than cores. 1 for a program that uses all cores or a GPU.
        move_seconds: time limit for a move of an external program (`gtp:COMMAND`,
            `uci:COMMAND`), which otherwise forfeits the game.
        seed: seed of openings and players.
    """
    num_games = games_per_match
    if num_games is None:
        num_games = TOURNAMENT_GAMES if sprt is None else SPRT_GAMES
    if not 2 <= num_games <= MAX_GAMES or num_games % 2:
        raise ValueError(f"--games must be even, from 2 to {MAX_GAMES}: {num_games}")
    texts = named(players)
    fixed = None if anchor is None else read_anchor(anchor, tuple(texts))
    if sprt is not None and len(players) != 2:
        raise ValueError(f"--sprt requires exactly two players: {len(players)}")
    test = None if sprt is None else Sprt(*sprt)
    directory = None if save is None else Path(save)
    if directory is not None and directory.exists():
        is_empty = directory.is_dir() and not any(directory.iterdir())
        if not is_empty:
            raise ValueError(f"--save {save}: not a new or empty directory")
    board_game, own_modules = games.make(game), read_custom_modules(modules)
    enable_compilation_cache()
    loaded = {name: load(text, board_game, own_modules) for name, text in texts.items()}
    for name, player in loaded.items():
        if isinstance(player, EnginePlayer):
            player.move_seconds = move_seconds
        check_starts(name, player, board_game)
    key, console = jax.random.key(seed), tables_console(as_json)
    settings = ArenaSettings(
        board_game, loaded, num_games, opening_moves, at_once, key, directory, console
    )
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    with interrupted_by_sigterm():
        report = _test(settings, test) if test else run_tournament(settings, fixed)
    text = json.dumps(report | {"seed": seed})
    if directory is not None:
        (directory / RESULTS_FILE).write_text(f"{text}\n")
        print_line(console, f"saved in {directory}")
    if as_json:
        print(text)
    if report["is_interrupted"]:
        raise SystemExit(INTERRUPTED)


@dataclasses.dataclass(frozen=True)
class ArenaSettings:
    """The checked arguments of the command."""

    game: Game
    players: Mapping[str, AnyPlayer]
    num_games: int
    opening_moves: int | None
    at_once: int
    rng_key: jax.Array
    directory: Path | None
    console: Console


def _append_games(
    settings: ArenaSettings, names: tuple[str, str], match: MatchResult
) -> None:
    """Appends the games of a match to the file in the directory, if there is one."""
    if settings.directory is not None:
        form = settings.game.record_format
        path = settings.directory / f"games.{form.suffix}"
        with path.open("a", encoding="utf-8") as file:
            file.write(form.write(settings.game, match.game_records(names)))


def run_tournament(
    settings: ArenaSettings, anchor: tuple[str, float] | None
) -> dict[str, Any]:
    """Plays a tournament and prints its tables; returns the results as JSON.

    Ctrl-C ends it; finished pairs of games count.
    """
    console, names = settings.console, tuple(settings.players)
    matches: dict[tuple[int, int], MatchResult] = {}

    def on_match(name: str, opponent: str, match: MatchResult) -> None:
        if not matches:
            print_line(console, f"openings: {openings_text(match)}")
        matches[names.index(name), names.index(opponent)] = match
        print_match(console, name, opponent, match)
        _append_games(settings, (name, opponent), match)

    num_matches = math.comb(len(names), 2)
    num_games = num_matches * settings.num_games
    num_played, is_interrupted = 0, False

    def on_games(number: int) -> None:
        nonlocal num_played
        num_played += number
        progress.show("games", num_played, num_games)

    with WorkProgress(console) as progress:
        progress.show("games", 0, num_games)
        try:
            play_tournament(
                settings.game,
                settings.players,
                settings.rng_key,
                settings.num_games,
                opening_moves=settings.opening_moves,
                games_at_once=settings.at_once,
                on_games=on_games,
                on_match=on_match,
            )
        except KeyboardInterrupt:
            is_interrupted = True
    if is_interrupted:
        _print_interrupted(console, matches.values(), num_games)
        # The first player has played all others that have played.
        names = names[: 1 + max(place for met in matches for place in met)]
        anchor = anchor if anchor and anchor[0] in names else None
    tournament = Tournament(settings.game, names, matches)
    table = standings(tournament, anchor)
    if settings.directory is not None:
        title = f"{settings.game!r}: ratings"
        draw_chart(title, table).savefig(settings.directory / CHART_FILE)
    print_standings(console, tournament, table, anchor)
    return to_json(tournament, table) | {"is_interrupted": is_interrupted}


def _print_interrupted(
    console: Console, matches: Collection[MatchResult], num_games: int
) -> None:
    """Prints how many games count; interrupts the program if none do."""
    played = sum(match.total.games for match in matches)
    print_line(console, f"interrupted: {played} of {num_games} games count")
    if not matches:
        raise KeyboardInterrupt


def _test(settings: ArenaSettings, test: Sprt) -> dict[str, Any]:
    """Plays a sequential test and prints its verdict; returns the results as JSON.

    Ctrl-C ends it, mostly undecided; finished pairs of games count.
    """
    console, (name, opponent) = settings.console, settings.players
    player, other = settings.players.values()
    low, high = test.bounds
    looks: list[SprtResult] = []
    with WorkProgress(console) as progress:
        progress.show("games", 0, settings.num_games)

        def on_look(result: SprtResult) -> None:
            looks.append(result)
            progress.show("games", result.match.total.games, settings.num_games)
            ratio = result.log_likelihood_ratio
            print_line(
                console,
                f"{score_text(result.match.total)}, log-likelihood ratio {ratio:+.2f} "
                f"({low:+.2f} to {high:+.2f})",
            )

        is_interrupted = False
        try:
            play_sprt(
                settings.game,
                (player, other),
                settings.rng_key,
                test,
                max_games=settings.num_games,
                opening_moves=settings.opening_moves,
                games_at_once=settings.at_once,
                on_look=on_look,
            )
        except KeyboardInterrupt:
            is_interrupted = True
    if is_interrupted:
        _print_interrupted(
            console, [look.match for look in looks[-1:]], settings.num_games
        )
    result, total = looks[-1], looks[-1].match.total
    print_line(console, f"openings: {openings_text(result.match)}")
    print_match(console, name, opponent, result.match)
    _append_games(settings, (name, opponent), result.match)
    verdict = f"undecided after {total.games} games"
    if result.verdict != "undecided":
        accepted, rejected = result.test.elo0, result.test.elo1
        if result.verdict == "stronger":
            accepted, rejected = rejected, accepted
        verdict = (
            f"accepted: {name} is stronger than {opponent} by {accepted:g} Elo, rather "
            f"than by {rejected:g}"
        )
    print_line(console, verdict)
    return {
        "game": repr(settings.game),
        "opening_moves": result.match.opening_moves,
        "player": name,
        "opponent": opponent,
        "verdict": result.verdict,
        "log_likelihood_ratio": result.log_likelihood_ratio,
        "bounds": [low, high],
        **dataclasses.asdict(test),
        **total._asdict(),
        "score": total.score,
        "by_opening": list(result.match.by_opening),
        "repeated": result.match.repeated,
        "is_interrupted": is_interrupted,
    }


def named(players: Sequence[str]) -> dict[str, str]:
    """Returns two or more player strings by name.

    The name is NAME in `NAME=PLAYER`, else the string itself; a number is appended to
    repeated names.
    """
    if len(players) < 2:
        raise ValueError(f"azjax arena requires at least two players: {len(players)}")
    texts: dict[str, str] = {}
    for player in players:
        name, text = split_name(player)
        texts[unused_name(name or player, texts)] = text
    return texts


def read_anchor(text: str, names: Sequence[str]) -> tuple[str, float]:
    """Parses `NAME` or `NAME:ELO`; the name must be one of the given."""
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
        f"--anchor must be NAME or NAME:ELO, NAME one of {', '.join(names)}: {text!r}"
    )


def print_standings(
    console: Console,
    tournament: Tournament,
    table: Sequence[Standing],
    anchor: tuple[str, float] | None,
) -> None:
    """Prints the ratings, strongest player first, and the scores of all pairs."""
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
            f"{line.total.score:.1%}",
            "-".join(map(str, line.total)),
            f"{line.repeated:.0%}",
        )
        scores = []
        for other in table:
            results = tournament.against(line.place, other.place)
            text = f"{results.score:.1%}" if results.games else "-"
            scores.append("" if other is line else text)
        cross.add_row(str(rank), *scores)
    counts = {line.total.games for line in table}
    number = f"{max(counts)} games each" if len(counts) == 1 else "unfinished"
    zero = "mean 0" if anchor is None else f"{anchor[0]} at {anchor[1]:g}"
    console.print(Text(f"\n{tournament.game!r}, {number}: ratings, {zero}", "bold"))
    console.print(grid)
    console.print(Text("\nscore of each player (rows) against each (columns)", "bold"))
    console.print(cross)


def print_match(console: Console, name: str, opponent: str, match: MatchResult) -> None:
    """Prints the result of a match with the 95% interval of its score, the openings
    won, and its first forfeits."""
    low, high = (100 * end for end in match.interval)
    interval = f"95% interval {low:.1f} to {high:.1f}"
    text = f"{name} against {opponent}: {score_text(match.total)}, {interval}"
    print_line(console, text)
    if match.opening_moves:
        won, shared, lost = match.by_opening
        text = f"{won} won, {shared} shared, {lost} lost"
        print_line(console, f"  openings, both colors together: {text}")
    games = match.game_records((name, opponent))
    forfeits = [ended for ended in games if ended.is_forfeit]
    for ended in forfeits[:_FORFEITS_SHOWN]:
        loser = ended.names[0 if ended.result == -1 else 1]
        print_line(console, f"  {loser} forfeits a game: {ended.fault}")
    if len(forfeits) > _FORFEITS_SHOWN:
        more = len(forfeits) - _FORFEITS_SHOWN
        print_line(console, f"  and {more} more games were forfeited")


def openings_text(match: MatchResult) -> str:
    """Returns a description of a match's start positions."""
    number = len(match.moves) // 2
    if not match.opening_moves:
        return "the initial position"
    moves = "random move" if match.opening_moves == 1 else "random moves"
    return f"{number} different positions after {match.opening_moves} {moves}"


def score_text(total: WinDrawLoss) -> str:
    """Returns results as text, such as `75.0% (7 won, 1 drawn, 2 lost)`."""
    return (
        f"{total.score:.1%} ({total.wins} won, {total.draws} drawn, "
        f"{total.losses} lost)"
    )
