"""`azjax train-q`: learns a small game by Q-learning."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tyro
from rich.console import Console

from azjax.commands.common import STOPPED, note
from azjax.commands.parsing import parse, split_game
from azjax.commands.train import asks_for_help, given_outside
from azjax.training.analysis.summary import print_q_run
from azjax.training.config import QConfig
from azjax.training.q_learning import train_q
from azjax.training.run.directory import has_begun
from azjax.training.run.saved_config import load_q_config
from azjax.training.run.signals import exit_on_second_signal


def train_q_command(game: tyro.conf.Positional[str]) -> None:
    """Learn the action values of a small game, as a baseline, on one device; `azjax
    train-q GAME --help` lists the settings.

    Args:
        game: a game that `azjax games` lists.
    """
    _train(QConfig(game))


def train_q_with_settings(args: Sequence[str], prog: str) -> None:
    """Learns the game of the first argument with the settings of the others; `prog` is
    the program's name with that of the command."""
    game, settings = split_game(args, prog)
    _train(parse_q_config(game, settings, prog=f"{prog} {game}"))


def _train(config: QConfig) -> None:
    with exit_on_second_signal():
        run = train_q(config)
    print_q_run(Console(), run)
    if not run.finished:
        raise SystemExit(STOPPED)


@dataclasses.dataclass(frozen=True)
class _Given:
    """Options on which the defaults of all others depend."""

    run_dir: str | None = None
    minutes: float | None = None
    iterations: int | None = None


def parse_q_config(game: str, args: Sequence[str], *, prog: str) -> QConfig:
    """Reads a run's configuration from command-line arguments.

    Every field of `QConfig` is an option. The defaults are the settings of the run in
    `--run-dir` if it has begun.
    """
    given, rest = parse(
        _Given, args, prog=prog, return_unknown_args=True, add_help=False
    )
    changes: dict[str, Any] = {}
    if given.minutes is not None or given.iterations is not None:
        changes |= {"minutes": given.minutes, "iterations": given.iterations}
    default = QConfig(game, run_dir=given.run_dir, **changes)
    is_help = given.run_dir is None and asks_for_help(rest)
    if has_begun(default.directory) and not is_help:
        old = load_q_config(default.directory, report=note, allowed=given_outside(rest))
        if old.game == default.game:  # else `train_q` rejects it
            default = dataclasses.replace(old, run_dir=given.run_dir, **changes)
    config = parse(
        QConfig,
        rest,
        default=default,
        prog=prog,
        description=(
            f"Learn the action values of {game}, as a baseline, or continue a stopped "
            "run with its own settings, and for more --minutes or --iterations if "
            "given. It plays and learns on one device, in one process; evaluations use "
            "all devices of the process."
        ),
    )
    if config.game != default.game:
        raise ValueError(f"--game {config.game} contradicts the game {game}")
    return config
