"""`azjax train`: learns a game by self-play."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import tyro
from rich.console import Console

from azjax import games
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.commands.parsing import parse, parse_known
from azjax.devices import use_all_cores
from azjax.networks.trunks import TRUNKS
from azjax.players import TrainedPlayer
from azjax.program import HELP_OPTIONS, STOPPED, note
from azjax.search import SEARCHES
from azjax.training import (
    Run,
    TrainConfig,
    preset,
    repeated_config,
    train,
)
from azjax.training.analysis.summary import print_run
from azjax.training.config import RunConfig
from azjax.training.presets import PresetName
from azjax.training.run.directory import has_begun
from azjax.training.run.processes import (
    exit_if_process_lost,
    is_first_process,
    join_processes,
)
from azjax.training.run.saved_config import (
    OUTSIDE,
    config_from_file,
    load_settings,
    outside_settings,
)
from azjax.training.run.signals import exit_on_second_signal

C = TypeVar("C", bound=RunConfig)


def train_command(game: tyro.conf.Positional[str]) -> None:
    """Learn a game by self-play; `azjax train GAME --help` lists the settings.

    Args:
        game: a game that `azjax games` lists.
    """


def train_with_settings(game: str, args: Sequence[str], *, prog: str) -> None:
    """Learns a game with the settings in the arguments; `prog` is the program's name
    with those of the command and the game."""
    settings = join_if_asked(args, prog=prog)
    with exit_if_process_lost():
        text, settings = parse_known(_modules_option, settings, prog=prog)
        modules = read_custom_modules(text)  # first, as it may register a trunk
        config = parse_train_config(game, settings, prog=prog)
        with exit_on_second_signal():
            run = train(config, modules=modules)
        show_run(run)


def _modules_option(modules: ModulesOption = None) -> str | None:
    return modules


def show_run(run: Run[TrainedPlayer]) -> None:
    """Prints the results of a run, in the first process; if the run was stopped, exits
    with status `STOPPED`."""
    if is_first_process():
        print_run(Console(), run)
    if not run.finished:
        raise SystemExit(STOPPED)


@dataclasses.dataclass(frozen=True)
class Processes:
    """The processes of a run and this one's index; see `join_processes`."""

    distributed: bool = False
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None


def join_if_asked(args: Sequence[str], *, prog: str) -> Sequence[str]:
    """Joins the other processes of a run if the arguments contain `--distributed`, and
    otherwise makes each core of a CPU a device; call it before JAX computes. Returns
    the other arguments."""
    processes, rest = parse_known(Processes, args, prog=prog)
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
class Given:
    """Options of both algorithms on which the defaults of all others depend."""

    run_dir: str | None = None
    minutes: float | None = None
    iterations: int | None = None

    def changes(self) -> dict[str, Any]:
        """Returns the settings that are given."""
        length = {"minutes": self.minutes, "iterations": self.iterations}
        changes = {} if length == dict.fromkeys(length) else length
        return changes | ({} if self.run_dir is None else {"run_dir": self.run_dir})


@dataclasses.dataclass(frozen=True)
class _GivenToTrain(Given):
    """Those of AlphaZero."""

    preset: PresetName = "auto"
    repeat_schedule: str | None = None
    config: str | None = None
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
    given, rest = parse_known(_GivenToTrain, args, prog=prog)
    changes = given.changes()
    if given.from_run is not None:
        changes["initial_player"] = given.from_run

    # The settings of a run to reproduce, of a file, or of a preset.
    sources = {
        "--repeat-schedule": given.repeat_schedule,
        "--config": given.config,
        "--preset": None if given.preset == "auto" else given.preset,
    }
    named = [option for option, source in sources.items() if source is not None]
    if len(named) > 1:
        raise ValueError(f"give one of {' and '.join(named)}: each selects settings")
    option = named[0] if named else ""
    if option in ("--repeat-schedule", "--config"):
        load = repeated_config if option == "--repeat-schedule" else config_from_file
        allowed = given_outside(args)
        default = load(sources[option], report=note, allowed=allowed, **changes)
    elif option == "--preset" or settings is None:
        default = preset(given.preset, game, **changes)
    else:
        default = settings(**changes)
    if default.game != repr(games.make(game)):
        source = sources.get(option)
        raise ValueError(f"the run in {source} is of {default.game}, not of {game}")
    if option in ("", "--repeat-schedule"):
        changes["repeat_schedule"] = given.repeat_schedule
        default = continued(default, changes, args)

    network, search = default.network, default.search
    if given.trunk is not None and TRUNKS.name_of(network.trunk) != given.trunk:
        network = dataclasses.replace(network, trunk=TRUNKS.find(given.trunk)())
    if given.algorithm not in (None, search.algorithm):
        search = SEARCHES.find(given.algorithm)(
            tree_reuse_nodes=search.tree_reuse_nodes, use_solver=search.use_solver
        )
    return parse_settings(
        dataclasses.replace(default, network=network, search=search),
        rest,
        prog=prog,
        description=_description(game, purpose),
    )


def continued(new: C, changes: Mapping[str, Any], args: Sequence[str]) -> C:
    """Returns the settings of the run in the directory of new settings, with changes,
    if it has begun, and otherwise the new ones.

    Args:
        new: the settings that the run has if it is new.
        changes: settings that the command line changes.
        args: all arguments; help has the defaults of a game, those of a run only with
            `--run-dir`.
    """
    directory, asks_for_help = new.directory, not set(HELP_OPTIONS).isdisjoint(args)
    if not has_begun(directory) or (asks_for_help and "run_dir" not in changes):
        return new
    own = outside_settings(new)
    found = outside_settings(load_settings(type(new), directory, allowed=OUTSIDE))
    of_script = [name for name in own if own[name] == found.get(name)]
    allowed = [*given_outside(args), *of_script]
    old = load_settings(type(new), directory, report=note, allowed=allowed)
    # A run of another game is refused later.
    return dataclasses.replace(old, **changes) if old.game == new.game else new


def parse_settings(
    default: C, args: Sequence[str], *, prog: str, description: str
) -> C:
    """Reads the settings of a run, every field of which is an option.

    Args:
        default: the settings of options that are not given.
        args: the arguments.
        prog: the program's name, for its help.
        description: help text above the options.
    """
    config = parse(
        type(default), args, default=default, prog=prog, description=description
    )
    if config.game != default.game:
        raise ValueError(f"--game {config.game} contradicts the game {default.game}")
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
