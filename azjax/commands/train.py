"""`azjax train`: learns a game by self-play."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import tyro
from rich.console import Console

from azjax import games
from azjax.commands.common import STOPPED
from azjax.commands.parsing import parse, split_game
from azjax.commands.parts import read_parts
from azjax.commands.processes import join_if_asked
from azjax.networks import Parts
from azjax.networks.trunks import trunk_class, trunk_name, trunk_names
from azjax.players import TrainedPlayer
from azjax.search import search_class, search_names
from azjax.training import (
    Run,
    TrainConfig,
    load_config,
    preset,
    repeated_config,
    train,
)
from azjax.training.distributed import ends_with_the_others, is_first
from azjax.training.presets import PresetName
from azjax.training.run_directory import has_begun
from azjax.training.signals import as_a_program
from azjax.training.summary import print_run


def train_command(game: tyro.conf.Positional[str]) -> None:
    """Learn a game by self-play; `azjax train GAME --help` lists the settings.

    Args:
        game: one of those that `azjax games` lists.
    """
    _train(preset("auto", game))


def train_with_settings(args: Sequence[str], prog: str) -> None:
    """Learns the game that the first argument names; the others are settings. `prog` is
    the program's name with that of the command.

    Raises:
        ValueError: the first argument is an option.
    """
    game, settings = split_game(args, prog)
    prog = f"{prog} {game}"
    settings = join_if_asked(settings, prog=prog)
    with ends_with_the_others():
        text, settings = parse(
            _parts_option, settings, prog=prog, return_unknown_args=True, add_help=False
        )
        parts = read_parts(text)  # first: it may register the trunk of the settings
        _train(parse_train_config(game, settings, prog=prog), parts)


def _parts_option(parts: str | None = None) -> str | None:
    """Returns the value of `--parts`."""
    return parts


def _train(config: TrainConfig, parts: Parts | None = None) -> None:
    with as_a_program():
        run = train(config, parts=parts)
    show_run(run)


def show_run(run: Run[TrainedPlayer]) -> None:
    """Prints what a run left, once for all its processes; if it was stopped, the
    program ends with status `STOPPED`."""
    if is_first():
        print_run(Console(), run)
    if not run.finished:
        raise SystemExit(STOPPED)


@dataclasses.dataclass(frozen=True)
class _Length:
    """Options that decide the defaults of all others."""

    preset: PresetName = "auto"
    run_dir: str | None = None
    plan: str | None = None
    minutes: float | None = None
    iterations: int | None = None
    trunk: str | None = None
    algorithm: str | None = None
    from_run: Annotated[str | None, tyro.conf.arg(name="from")] = None


def parse_train_config(
    game: str,
    args: Sequence[str] | None = None,
    *,
    prog: str,
    settings: Callable[..., TrainConfig] | None = None,
    purpose: str = "",
) -> TrainConfig:
    """Reads a run's configuration from command-line arguments.

    `--minutes`, `--iterations`, `--run-dir`, `--seed`, `--preset`, `--trunk`,
    `--algorithm`, `--from` and `--plan` are the main ones; every other field of
    `TrainConfig` is an option too. The defaults are the settings of the run in
    `--run-dir` if it has begun, or of the run whose plan is followed.

    Args:
        game: what is learnt.
        args: the arguments, `sys.argv[1:]` by default.
        prog: the program's name, for its help.
        settings: returns the defaults of a new run, with the fields of `TrainConfig`
            that it is given; by default `preset("auto", game, ...)`.
        purpose: for its help, what the settings are for; by default learning.

    Raises:
        ValueError: a value is not allowed.
    """
    args = sys.argv[1:] if args is None else args
    length, rest = parse(
        _Length, args, prog=prog, return_unknown_args=True, add_help=False
    )
    changes: dict[str, Any] = {}
    if length.minutes is not None or length.iterations is not None:
        changes |= {"minutes": length.minutes, "iterations": length.iterations}
    if length.from_run is not None:
        changes["initial_player"] = length.from_run
    if length.run_dir is not None:
        changes["run_dir"] = length.run_dir
    default = _with_trunk(_defaults(length, game, settings, changes), length.trunk)
    default = _with_search(default, length.algorithm)
    config = parse(
        TrainConfig,
        rest,
        default=default,
        prog=prog,
        description=(
            (
                purpose
                or f"Learn {game} by self-play, or go on where this run stopped: with "
                "its own settings, and for more --minutes or --iterations if they are "
                "given. "
            )
            + "--preset {auto,cpu,accelerator} chooses the defaults shown here for a "
            "machine; auto takes what JAX finds. --trunk "
            f"{{{','.join(trunk_names())}}} chooses the network's trunk, and "
            "--network.trunk.... are its settings. --algorithm "
            f"{{{','.join(search_names())}}} chooses the search algorithm, and "
            "--search.... are its settings. --from RUN begins with the player "
            "that another run of the same network left; --plan RUN makes another run "
            "again, with its settings. --distributed makes this one of several "
            "processes that do a run together, all started with the same command and a "
            "--run-dir that all of them see: JAX finds them on a TPU pod, under Slurm "
            "and under Open MPI; elsewhere give --coordinator HOST:PORT (where process "
            "0 runs, and a free port there), --num-processes and --process-id (from "
            "0). A run that a signal stopped is saved and ends with status "
            f"{STOPPED}. `azjax train` takes --parts MODULE:NAME, the "
            "azjax.networks.Parts of your own."
        ),
    )
    if config.game != default.game:
        raise ValueError(f"the game is given once: {game}, not --game {config.game}")
    return config


def _with_trunk(config: TrainConfig, name: str | None) -> TrainConfig:
    """Returns the settings with a trunk of this name, and its own settings."""
    if name is None or trunk_name(config.network.trunk) == name:
        return config
    network = dataclasses.replace(config.network, trunk=trunk_class(name)())
    return dataclasses.replace(config, network=network)


def _with_search(config: TrainConfig, name: str | None) -> TrainConfig:
    """Returns the settings with a search algorithm of this name, and its defaults."""
    if name is None or config.search.algorithm == name:
        return config
    search = search_class(name)(
        tree_reuse_nodes=config.search.tree_reuse_nodes,
        use_solver=config.search.use_solver,
    )
    return dataclasses.replace(config, search=search)


def _defaults(
    length: _Length,
    game: str,
    settings: Callable[..., TrainConfig] | None,
    changes: dict[str, Any],
) -> TrainConfig:
    """Returns the settings of the run that goes on or is made again, or a preset."""
    if length.preset != "auto":
        return preset(length.preset, game, **changes)
    if length.plan is not None:
        settings = functools.partial(repeated_config, length.plan)
    settings = settings or functools.partial(preset, "auto", game)
    new = settings(**changes)
    if new.game != repr(games.make(game)):
        raise ValueError(f"the run in {length.plan} learnt {new.game}, not {game}")
    if not has_begun(new.directory):
        return new
    old = load_config(new.directory)
    if old.game != new.game:
        return new  # refused by `train`
    return dataclasses.replace(old, plan=length.plan, **changes)
