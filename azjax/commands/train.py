"""`azjax train`: learns a game by self-play."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import tyro
from rich.console import Console

from azjax import games
from azjax.commands.common import HELP_OPTIONS, STOPPED, note
from azjax.commands.custom_modules import read_custom_modules
from azjax.commands.parsing import parse, split_game
from azjax.devices import use_all_cores
from azjax.networks import CustomModules
from azjax.networks.trunks import TRUNKS
from azjax.players import TrainedPlayer
from azjax.search import SEARCHES
from azjax.training import (
    Run,
    TrainConfig,
    load_config,
    preset,
    repeated_config,
    train,
)
from azjax.training.analysis.summary import print_run
from azjax.training.presets import PresetName
from azjax.training.run.directory import has_begun
from azjax.training.run.processes import (
    exit_if_process_lost,
    is_first_process,
    join_processes,
)
from azjax.training.run.saved_config import OUTSIDE, config_from_file, outside_settings
from azjax.training.run.signals import exit_on_second_signal


def train_command(game: tyro.conf.Positional[str]) -> None:
    """Learn a game by self-play; `azjax train GAME --help` lists the settings.

    Args:
        game: a game that `azjax games` lists.
    """
    _train(preset("auto", game))


def train_with_settings(args: Sequence[str], prog: str) -> None:
    """Learns the game of the first argument with the settings of the others; `prog` is
    the program's name with that of the command."""
    game, settings = split_game(args, prog)
    prog = f"{prog} {game}"
    settings = join_if_asked(settings, prog=prog)
    with exit_if_process_lost():
        text, settings = parse(
            _modules_option,
            settings,
            prog=prog,
            return_unknown_args=True,
            add_help=False,
        )
        modules = read_custom_modules(text)  # first, as it may register a trunk
        _train(parse_train_config(game, settings, prog=prog), modules)


def _modules_option(modules: str | None = None) -> str | None:
    """Returns the value of `--modules`."""
    return modules


def _train(config: TrainConfig, modules: CustomModules | None = None) -> None:
    with exit_on_second_signal():
        run = train(config, modules=modules)
    show_run(run)


def show_run(run: Run[TrainedPlayer]) -> None:
    """Prints the results of a run, in the first process; if the run was stopped, exits
    with status `STOPPED`."""
    if is_first_process():
        print_run(Console(), run)
    if not run.finished:
        raise SystemExit(STOPPED)


@dataclasses.dataclass(frozen=True)
class _Processes:
    """The processes of a run and this one's index; see `join_processes`."""

    distributed: bool = False
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None


def join_if_asked(args: Sequence[str], *, prog: str) -> Sequence[str]:
    """Joins the other processes of a run if the arguments contain `--distributed`, and
    otherwise makes each core of a CPU a device; call it before JAX computes. Returns
    the other arguments."""
    processes, rest = parse(
        _Processes, args, prog=prog, return_unknown_args=True, add_help=False
    )
    where = (processes.coordinator, processes.num_processes, processes.process_id)
    if processes.distributed:
        join_processes(*where)
    elif any(value is not None for value in where):
        raise ValueError(
            "--coordinator, --num-processes and --process-id need --distributed"
        )
    else:
        use_all_cores()
    return rest


@dataclasses.dataclass(frozen=True)
class _Length:
    """Options on which the defaults of all others depend."""

    preset: PresetName = "auto"
    run_dir: str | None = None
    repeat_schedule: str | None = None
    config: str | None = None
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

    The main options are `--minutes`, `--iterations`, `--run-dir`, `--seed`, `--preset`,
    `--trunk`, `--algorithm`, `--from`, `--repeat-schedule` and `--config`; every field
    of `TrainConfig` is an option. The defaults are the settings of the run in
    `--run-dir` if it has begun, of the run in `--repeat-schedule`, or in the file
    `--config`.

    Args:
        game: game spec.
        args: the arguments, `sys.argv[1:]` by default.
        prog: the program's name, for its help.
        settings: returns the defaults of a new run, given changed fields of
            `TrainConfig`; by default `preset("auto", game, ...)`.
        purpose: first sentence of the help.

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
    default = _defaults(length, game, settings, changes, args)
    network, search = default.network, default.search
    if length.trunk is not None and TRUNKS.name_of(network.trunk) != length.trunk:
        network = dataclasses.replace(network, trunk=TRUNKS.find(length.trunk)())
    if length.algorithm not in (None, search.algorithm):
        search = SEARCHES.find(length.algorithm)(
            tree_reuse_nodes=search.tree_reuse_nodes, use_solver=search.use_solver
        )
    default = dataclasses.replace(default, network=network, search=search)
    config = parse(
        TrainConfig,
        rest,
        default=default,
        prog=prog,
        description=_description(game, purpose),
    )
    if config.game != default.game:
        raise ValueError(f"--game {config.game} contradicts the game {game}")
    return config


def given_outside(args: Sequence[str]) -> list[str]:
    """Returns the names of the settings in `OUTSIDE` that the command line has, which
    then replace those of a file."""
    given = {arg.partition("=")[0].replace("_", "-") for arg in args}
    return [
        name
        for name, option in OUTSIDE.items()
        if given & {option, f"--{name.replace('_', '-')}"}
    ]


def asks_for_help(args: Sequence[str]) -> bool:
    """Returns whether the command line asks for its help, which has the defaults of a
    game: those of a run only with `--run-dir`."""
    return not set(HELP_OPTIONS).isdisjoint(args)


def _description(game: str, purpose: str) -> str:
    """Returns the help text above the options."""
    purpose = purpose or (
        f"Learn {game} by self-play, or continue a stopped run with its own settings, "
        "and for more --minutes or --iterations if given. The defaults below are those "
        "of a new run; with --run-dir RUN, those of RUN if it has begun. "
    )
    return purpose + (
        "--preset {auto,cpu,accelerator} selects defaults for a machine; auto uses the "
        f"backend that JAX finds. --trunk {{{','.join(TRUNKS.names)}}} selects the "
        "network's trunk, and --network.trunk.* are its settings. --algorithm "
        f"{{{','.join(SEARCHES.names)}}} selects the search algorithm, and --search.* "
        "are its settings. --from RUN starts "
        "with the weights of another run of the same network (with --network.heads "
        "board, also of another board size); --repeat-schedule RUN reproduces "
        "another run with its settings; --config FILE takes the settings of another "
        "run's config.json as defaults. --distributed makes this one of several "
        "processes of a run, all started with the same command and a shared --run-dir: "
        "JAX finds them on a TPU pod, under Slurm and under Open MPI; elsewhere give "
        "--coordinator HOST:PORT (the host of process 0, and a free port), "
        "--num-processes and --process-id (from 0). A run stopped by a signal is saved "
        f"and exits with status {STOPPED}. `azjax train` takes --modules MODULE:NAME, "
        "an azjax.networks.CustomModules with custom modules."
    )


def _defaults(
    length: _Length,
    game: str,
    settings: Callable[..., TrainConfig] | None,
    changes: dict[str, Any],
    args: Sequence[str],
) -> TrainConfig:
    """Returns the settings of the run to continue or to reproduce, of a file, or a
    preset."""
    sources = {"--repeat-schedule": length.repeat_schedule, "--config": length.config}
    given = [option for option, source in sources.items() if source is not None]
    given += ["--preset"] if length.preset != "auto" else []
    if len(given) > 1:
        raise ValueError(f"give one of {' and '.join(given)}: each selects settings")
    allowed = given_outside(args)
    if length.preset != "auto":
        return preset(length.preset, game, **changes)
    if length.repeat_schedule is not None:
        settings = functools.partial(
            repeated_config, length.repeat_schedule, report=note, allowed=allowed
        )
    if length.config is not None:
        settings = functools.partial(
            config_from_file, length.config, report=note, allowed=allowed
        )
    settings = settings or functools.partial(preset, "auto", game)
    new = settings(**changes)
    if new.game != repr(games.make(game)):
        source = length.repeat_schedule or length.config
        raise ValueError(f"the run in {source} is of {new.game}, not of {game}")
    if length.config is not None or not has_begun(new.directory):
        return new
    if length.run_dir is None and asks_for_help(args):
        return new
    saved = load_config(new.directory, allowed=OUTSIDE)
    own, found = outside_settings(new), outside_settings(saved)
    allowed += [name for name in own if own[name] == found.get(name)]  # of a script
    old = load_config(new.directory, report=note, allowed=allowed)
    if old.game != new.game:
        return new  # rejected by `train`
    return dataclasses.replace(old, repeat_schedule=length.repeat_schedule, **changes)
