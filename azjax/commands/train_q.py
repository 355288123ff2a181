"""`azjax train-q`: learns a small game by Q-learning."""

from collections.abc import Sequence

import tyro
from rich.console import Console

from azjax.commands.parsing import parse_known
from azjax.commands.train import Given, continued, parse_settings
from azjax.program import STOPPED
from azjax.training.analysis.summary import print_q_run
from azjax.training.config import QConfig
from azjax.training.q_learning import train_q
from azjax.training.run.signals import exit_on_second_signal


def train_q_command(game: tyro.conf.Positional[str]) -> None:
    """Learn the action values of a small game, as a baseline, on one device; `azjax
    train-q GAME --help` lists the settings.

    Args:
        game: a game that `azjax games` lists.
    """


def train_q_with_settings(game: str, args: Sequence[str], *, prog: str) -> None:
    """Learns a game with the settings in the arguments; see `train_with_settings`."""
    config = parse_q_config(game, args, prog=prog)
    with exit_on_second_signal():
        run = train_q(config)
    print_q_run(Console(), run)
    if not run.finished:
        raise SystemExit(STOPPED)


def parse_q_config(game: str, args: Sequence[str], *, prog: str) -> QConfig:
    """Reads a run's configuration from command-line arguments.

    Every field of `QConfig` is an option. The defaults are the settings of the run in
    `--run-dir` if it has begun.
    """
    given, rest = parse_known(Given, args, prog=prog)
    changes = given.changes()
    return parse_settings(
        continued(QConfig(game, **changes), changes, args),
        rest,
        prog=prog,
        description=(
            f"Learn the action values of {game}, as a baseline, or continue a stopped "
            "run with its own settings, and for more --minutes or --iterations if "
            "given. It plays and learns on one device, in one process; evaluations use "
            "all devices of the process."
        ),
    )
