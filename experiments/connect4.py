"""Learns Connect Four from nothing, and shows how far from perfect play it is.

    python experiments/connect4.py                     20 minutes, with a network and
                                                       a batch that suit the machine
    python experiments/connect4.py --minutes 5         any length
    python experiments/connect4.py --help              all settings

Ctrl-C stops and saves the run; the same command goes on from there.
"""

from rich.console import Console

from azjax import cli, train
from azjax.commands.train import parse_train_config
from azjax.training.signals import as_a_program
from azjax.training.summary import print_run


def main() -> None:
    """Configures the run, trains, and reports."""
    config = parse_train_config("connect_four", prog="connect4.py")
    with as_a_program():
        run = train(config)
    print_run(Console(), run)


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
