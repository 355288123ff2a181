"""`azjax sweep`: trains a run for each combination of settings."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import jax
import tyro

from azjax.commands.compare import print_comparison
from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.commands.tables import print_line, tables_console
from azjax.commands.train import parse_train_config
from azjax.program import STOPPED, error_line, is_users_mistake, note
from azjax.training import train
from azjax.training.analysis.comparison import read_runs
from azjax.training.analysis.sweep import is_finished, read_sweep
from azjax.training.run.directory import CONFIG_FILE, check_run_directory
from azjax.training.run.saved_config import outside_settings
from azjax.training.run.signals import exit_on_second_signal
from azjax.training.run.sinks import check_sinks

FAILED = 1  # exit status: a run failed


def sweep_command(
    game: tyro.conf.Positional[str],
    file: tyro.conf.Positional[str],
    /,
    *,
    directory: str | None = None,
    allow: tuple[str, ...] = (),
    modules: ModulesOption = None,
) -> None:
    """Train a run for each combination of the settings in a file, one after the other,
    and compare them.

    The file is TOML: settings of `azjax train` with a value or a list of values. With
    `samples` and `sample_seed` it trains so many random combinations. The same command
    continues a stopped sweep; finished runs are not trained again.

    Args:
        game: a game that `azjax games` lists.
        file: the settings, for example `learner.batch_size = [128, 256]`.
        directory: directory of the run directories; runs/GAME_FILE by default.
        allow: settings that the file may decide although they start programs, or read
            or send something outside of the runs, such as learn_from and
            evaluation.opponents; only for a file of your own.
    """
    own_modules = read_custom_modules(modules)  # first, as it may register a trunk
    path = Path(file)
    name = re.sub("[^a-z0-9]+", "_", f"{game}_{path.stem}".lower())
    configs = []
    for run in read_sweep(path):
        run_dir = f"{directory or f'runs/{name}'}/{run.name}"
        options = [*run.options, f"--run-dir={run_dir}"]
        given = {option.partition("=")[0] for option in run.options}
        try:
            sources = ("config", "repeat_schedule")
            named = [n for n in sources if f"--{n.replace('_', '-')}" in given]
            _check_allowed(named, allow)
            config = parse_train_config(game, options, prog=f"azjax train {game}")
            _check_allowed(outside_settings(config), allow)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        check_run_directory(config)  # writes nothing
        configs.append(config)
    check_sinks(sorted({sink for run in configs for sink in run.report.sinks}))
    failures = []
    with exit_on_second_signal():
        for number, config in enumerate(configs, 1):
            done = "finished already" if is_finished(config) else "train"
            note(f"run {number} of {len(configs)}, {config.directory}: {done}")
            if is_finished(config):
                continue
            try:
                run = train(config, modules=own_modules)
            except (ValueError, OSError) as error:
                if not is_users_mistake(error):
                    raise
                failures.append(f"{config.directory}: {error_line(error)}")
                note(failures[-1])
                continue
            if not run.finished:
                raise SystemExit(STOPPED)
            jax.clear_caches()  # no other run uses these programs
    begun = [
        str(config.directory)
        for config in configs
        if (config.directory / CONFIG_FILE).exists()
    ]
    console = tables_console(as_json=False)
    if len(begun) > 1:
        print_comparison(console, read_runs(begun))
    for text in failures:
        print_line(console, f"failed: {text}")
    if failures:
        raise SystemExit(FAILED)


def _check_allowed(names: Iterable[str], allowed: Collection[str]) -> None:
    """Checks settings that reach outside of the runs: a file may come from anywhere."""
    for name in names:
        if name not in allowed:
            raise ValueError(
                f"{name} reaches outside of the runs, which a file does not decide: "
                f"give --allow {name} if the file is your own"
            )
