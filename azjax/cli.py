"""The command line: `azjax` and `python -m azjax`."""

import contextlib
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import jax
import tyro
from rich.console import Console
from rich.table import Table

from azjax import games
from azjax.arena import Grade, Report, evaluate, read, shipped
from azjax.commands.arena import arena_command
from azjax.commands.common import check_seed
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.terminal import play
from azjax.players import DEFAULT_SIMULATIONS, MAX_SIMULATIONS, load_compiled, load_run
from azjax.training import TrainConfig, preset, train
from azjax.training.config import PresetName
from azjax.training.summary import print_run

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells count
MAX_GAMES = 100_000


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command that the arguments name."""
    args = list(sys.argv[1:] if args is None else args)
    app = tyro.extras.SubcommandApp()
    app.command(name="games")(games_command)
    app.command(name="train")(train_command)
    app.command(name="evaluate")(evaluate_command)
    app.command(name="arena")(arena_command)
    app.command(name="play")(play_command)
    with one_line_errors():
        # `train` has all settings of a run, whose defaults depend on the preset.
        if args[:1] == ["train"] and len(args) > 1 and args[1] not in ("-h", "--help"):
            if args[1].startswith("-"):
                raise ValueError("the game comes first: azjax train GAME [OPTIONS]")
            config = parse_train_config(
                args[1], args[2:], prog=f"azjax train {args[1]}"
            )
            print_run(Console(), train(config))
        else:
            app.cli(prog="azjax", args=args)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """A context in which a user's mistake ends the program with one line and status 2.

    Mistakes are what azjax or its script refuses by a ValueError, and what the file
    system refuses; everything else is a fault of the program and keeps its traceback.
    """
    try:
        yield
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else f"{error}")
    except ValueError as error:
        if not _is_raised_here(error):
            raise
        _fail(str(error))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _fail(message: str) -> None:
    print(f"azjax: {message}", file=sys.stderr)
    raise SystemExit(USAGE_ERROR)


def _is_raised_here(error: BaseException) -> bool:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
    return name.split(".")[0] in ("azjax", "__main__")


@dataclasses.dataclass(frozen=True)
class _Length:
    """Options that decide the defaults of all others."""

    preset: PresetName = "auto"
    minutes: float | None = None
    iterations: int | None = None


def parse_train_config(
    game: str, args: Sequence[str] | None = None, *, prog: str, **changes: Any
) -> TrainConfig:
    """Reads a run's configuration from command-line arguments.

    `--minutes`, `--iterations`, `--run-dir`, `--seed` and `--preset` are the main ones;
    every other field of `TrainConfig` is an option too.

    Args:
        game: what is learnt.
        args: the arguments, `sys.argv[1:]` by default.
        prog: the program's name, for its help.
        **changes: fields of `TrainConfig` that differ from the preset's.

    Raises:
        ValueError: a value is not allowed.
    """
    length, rest = tyro.cli(
        _Length, args=args, return_unknown_args=True, add_help=False
    )
    if length.minutes is not None or length.iterations is not None:
        changes |= {"minutes": length.minutes, "iterations": length.iterations}
    default = preset(length.preset, game, **changes)
    return tyro.cli(
        TrainConfig,
        args=rest,
        default=default,
        prog=prog,
        description=(
            f"Learn {game} by self-play, or go on where this run stopped. "
            "--preset {auto,cpu,accelerator} chooses the defaults shown here for a "
            "machine; auto takes what JAX finds."
        ),
    )


def games_command() -> None:
    """List the games, their sizes and options."""
    table = Table("game", "actions", "observation", "longest game", "options", box=None)
    for name in games.available():
        game = games.make(name)
        table.add_row(
            name,
            str(game.num_actions),
            "×".join(map(str, game.observation_shape)),  # noqa: RUF001
            f"{game.max_moves} moves",
            ", ".join(f"{key}={value}" for key, value in game.options.items()) or "-",
        )
    console = Console()
    console.print(table)
    console.print(
        "Options follow a colon: go:19 or go:size=19,komi=6.5. pgx:ID is one of pgx, "
        "for example pgx:animal_shogi, if it is installed."
    )


def train_command(game: tyro.conf.Positional[str]) -> None:
    """Learn a game by self-play; `azjax train GAME --help` lists the settings.

    Args:
        game: one of those that `azjax games` lists.
    """
    print_run(Console(), train(preset("auto", game)))


def evaluate_command(
    run: tyro.conf.Positional[str],
    /,
    *,
    game: str | None = None,
    positions: str | None = None,
    simulations: int = DEFAULT_SIMULATIONS,
    games: int = 200,
    seed: int = 0,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Count a player's mistakes against perfect play, and let it play matches.

    Args:
        run: a run's directory, a player's directory, or `pretrained`.
        game: which player is meant, for `pretrained`.
        positions: a CSV file of solved positions, in place of those that ship.
        simulations: network evaluations a move of the search.
        games: in each match, against chance and the run's first network; 0 for none.
        seed: of openings and opponents.
        as_json: print one JSON object.
    """
    if not 1 <= simulations <= MAX_SIMULATIONS:
        raise ValueError(
            f"--simulations must be from 1 to {MAX_SIMULATIONS}: {simulations}"
        )
    if not 0 <= games <= MAX_GAMES or games % 2:
        raise ValueError(f"--games must be even, from 0 to {MAX_GAMES}: {games}")
    check_seed(seed)
    enable_compilation_cache()
    trained = load_run(run, _make_game(game))
    solved = read(trained.game, positions) if positions else shipped(trained.game)
    report = evaluate(
        trained,
        solved,
        jax.random.key(seed),
        simulations=simulations,
        num_games=games,
    )
    if as_json:
        print(json.dumps(report.to_json()))
    else:
        print_report(Console(), report)


def play_command(
    game: tyro.conf.Positional[str],
    /,
    opponent: str = "alphazero:pretrained",
    second: bool = False,
    seed: int = 0,
) -> None:
    """Play a game in the terminal.

    Args:
        game: one of those that `azjax games` lists.
        opponent: random, network:RUN or alphazero:RUN?simulations=N, where RUN is a
            run's directory or `pretrained`. After the ? may stand, joined by &,
            kept_nodes=N, proves=true, leaves_per_step=N and algorithm=NAME as well.
        second: let the opponent begin.
        seed: of the opponent's chance.
    """
    check_seed(seed)
    enable_compilation_cache()
    board_game = games.make(game)
    play(
        board_game,
        load_compiled(opponent, board_game),
        user_player=int(second),
        seed=seed,
    )


def print_report(console: Console, report: Report) -> None:
    """Prints what `azjax evaluate` found."""
    search_name = f"search, {report.simulations} simulations"
    if report.network is not None and report.search is not None:
        table = Table(
            "positions",
            "number",
            "network alone",
            search_name,
            title="mistakes against perfect play, with 95% intervals",
            box=None,
        )
        for name, group in report.network.groups.items():
            table.add_row(
                name,
                str(group.positions),
                _percent(group.rate, group.interval),
                _percent(
                    report.search.groups[name].rate, report.search.groups[name].interval
                ),
            )
        table.add_row("mean", "", *map(_mean, (report.network, report.search)))
        console.print(table)
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
        names = {"network": "network alone", "search": search_name}
        opponents = {"random": "random moves", "first": "the run's first network"}
        for (name, opponent), result in report.matches.items():
            total = result.total
            table.add_row(
                names[name],
                opponents[opponent],
                str(total.wins),
                str(total.draws),
                str(total.losses),
                _percent(total.score, total.interval),
            )
        console.print(table)


def _make_game(name: str | None) -> games.Game | None:
    return None if name is None else games.make(name)


def _mean(grade: Grade) -> str:
    return _percent(grade.mean, grade.mean_interval)


def _percent(rate: float, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{100 * rate:.1f}% ({100 * low:.1f}-{100 * high:.1f})"
