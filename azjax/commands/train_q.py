"""`azjax train-q`: learn a small game by Q-learning."""

from typing import Annotated

import tyro
from rich.console import Console

from azjax.training.q_config import QConfig
from azjax.training.q_learning import train_q
from azjax.training.signals import as_a_program
from azjax.training.summary import print_q_run


def train_q_command(
    config: Annotated[
        QConfig, tyro.conf.arg(name=""), tyro.conf.PositionalRequiredArgs
    ],
) -> None:
    """Learn what every action of a small game is worth, as a baseline.

    Args:
        config: the run's settings.
    """
    with as_a_program():
        run = train_q(config)
    print_q_run(Console(), run)
