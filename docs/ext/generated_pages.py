"""Sphinx extension: writes the pages that are generated from the code.

`docs/generated/` gets the gallery of games with a page for each, the reference of the
settings, and the reference of the commands, before Sphinx reads the sources.
"""

import contextlib
import dataclasses
import inspect
import io
import os
from pathlib import Path
from typing import Any
from unittest import mock

from game_pages import FIELD, MADE, game_pages
from sphinx.application import Sphinx

from azjax import cli
from azjax.networks import ConvTrunkConfig, DenseTrunkConfig, NetworkConfig
from azjax.players import load_player, shipped_players
from azjax.search import AlphaZeroConfig, GumbelConfig
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
)
from azjax.training.analysis.model_card import CARD_FILE
from azjax.training.config import DataConfig, ReportConfig

SETTINGS = (
    ("Run", "", TrainConfig),
    ("Self-play", "self-play.", SelfPlayConfig),
    ("Replay", "replay.", ReplayConfig),
    ("Learner", "learner.", LearnerConfig),
    ("Evaluation", "evaluation.", EvaluationConfig),
    ("Checkpoints", "checkpoint.", CheckpointConfig),
    ("Kept games", "data.", DataConfig),
    ("Metrics", "report.", ReportConfig),
    ("Network", "network.", NetworkConfig),
    ("Trunk `dense`", "network.trunk.", DenseTrunkConfig),
    ("Trunk `conv`", "network.trunk.", ConvTrunkConfig),
    ("Search `gumbel`", "search.", GumbelConfig),
    ("Search `alphazero`", "search.", AlphaZeroConfig),
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the handler."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}


def write_pages(app: Sphinx) -> None:
    """Writes all generated pages; unchanged files keep their time."""
    directory = Path(app.srcdir) / "generated"
    files = {
        "configuration.md": configuration_page(),
        "commands.md": commands_page(),
        "model_zoo.md": model_zoo_page(),
        **game_pages(),
    }
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def model_zoo_page() -> str:
    """Returns the page of the players that ship: their cards."""
    lines = [
        "# Model zoo",
        MADE,
        "These players ship with azjax and are loaded by `network:pretrained` and "
        "`alphazero:pretrained`, with the game and the options that they were trained "
        "for. `azjax play GAME` offers them first. Their cards come from the runs that "
        "made them; intervals are 95%.",
        "",
    ]
    for directory in sorted(shipped_players().iterdir()):
        card = (directory / CARD_FILE).read_text()
        game = repr(load_player(directory).game)
        lines += [f"#{card}", "```sh", f"azjax play {game}"]
        lines += [f"azjax evaluate pretrained --game {game}", "```", ""]
    return "\n".join(lines)


def configuration_page() -> str:
    """Returns the reference of the settings of `azjax train`."""
    sections = [
        f"# Settings of a run\n\n{MADE}\n"
        "Each field of these dataclasses is an option of `azjax train GAME`. The "
        "defaults below are those of the dataclasses; `azjax train GAME --help` prints "
        "those of the preset for the game and the machine.\n"
    ]
    for title, prefix, kind in SETTINGS:
        sections.append(f"## {title}\n\n`{kind.__module__}.{kind.__name__}`\n")
        sections.append("| option | default | meaning |\n|---|---|---|")
        meanings = field_meanings(kind)
        for field in dataclasses.fields(kind):
            if dataclasses.is_dataclass(default_of(field)):
                continue  # a section of its own
            option = f"--{prefix}{field.name}".replace("_", "-")
            default = repr(default_of(field)).replace("|", "\\|")
            meaning = meanings.get(field.name, "").replace("|", "\\|")
            sections.append(f"| `{option}` | `{default}` | {meaning} |")
        sections.append("")
    return "\n".join(sections)


def default_of(field: dataclasses.Field) -> object:
    """Returns the default of a field; the text "required" without one."""
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return "required"


def field_meanings(kind: type) -> dict[str, str]:
    """Returns the meaning of each field in the docstrings of a class and its bases."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        name = ""
        for line in inspect.cleandoc(base.__doc__ or "").splitlines():
            match = FIELD.match(line.strip())
            if match:
                name = match[1]
                meanings[name] = match[2]
            elif name and line.strip():
                meanings[name] += f" {line.strip()}"
            else:
                name = ""
    return meanings


def commands_page() -> str:
    """Returns the help texts of all commands."""
    sections = [
        f"# Command line\n\n{MADE}\n```text\n{help_of()}\n```\n",
        "The settings of `azjax train`, `azjax train-q` and `azjax plan` follow the "
        "game: [settings of a run](configuration.md).\n",
    ]
    for name in cli.COMMANDS:
        sections.append(f"## azjax {name}\n\n```text\n{help_of(name)}\n```\n")
    return "\n".join(sections)


def help_of(*args: str) -> str:
    """Returns the help text of `azjax` or of one command."""
    text = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "88", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(text),
        contextlib.suppress(SystemExit),
    ):
        cli.main([*args, "--help"])
    return "\n".join(map(str.rstrip, text.getvalue().strip().splitlines()))
