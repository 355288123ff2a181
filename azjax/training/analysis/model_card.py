"""Model cards: what is known about a trained player, in Markdown."""

import html
import json
from collections.abc import Iterator
from pathlib import PurePath

from azjax.files import Directory
from azjax.games import Game, game_title
from azjax.networks.trunks import TRUNKS
from azjax.program import program_for
from azjax.training.analysis.summary import result_texts
from azjax.training.config import TrainConfig
from azjax.training.run.metrics import METRICS_FILE, iterate_metrics
from azjax.training.run.saved_config import OUTSIDE, load_config

CARD_FILE = "card.md"
PAGE_FILE = "README.md"
MAX_CARD_BYTES = 2**20
LICENSE = "Apache-2.0"

_PLAY_HEADING = "## Play against it"


def model_card(directory: Directory, *, hardware: str = "") -> str:
    """Returns the card of the player of a run directory, of any origin; `hardware` is
    that on which the run was made, which it does not record."""
    config = load_config(directory, allowed=OUTSIDE)
    first = last = None
    for row in iterate_metrics(directory / METRICS_FILE):
        if row["kind"] == "evaluation":
            first, last = first or row, row
    if first is None or last is None:
        raise ValueError(f"{directory} has no evaluation, so its strength is unknown")
    initial = first if first["iteration"] == 0 and first is not last else None
    lines = [f"# {game_title(config.game)}", "", "| | |", "|---|---|"]
    facts = [*_settings(config), *result_texts(initial, last)]
    if hardware:
        facts.append(("hardware", hardware))
    facts.append(("license", LICENSE))
    lines += [f"| {_cell(name)} | {_cell(text)} |" for name, text in facts]
    return "\n".join(lines) + "\n"


def hub_page(card: str, game: Game, repository: str) -> str:
    """Returns the README.md of a player's repository USER/NAME on the Hugging Face Hub,
    with its card."""
    name = repository.rpartition("/")[2]
    program = program_for(game)
    tags = ("alphazero", "jax", game.name)
    return "\n".join(
        [
            "---",
            "library_name: azjax",
            f"license: {LICENSE.lower()}",
            "tags:",
            *(f"- {json.dumps(tag)}" for tag in tags),  # JSON is valid YAML
            "---",
            card.rstrip(),
            "",
            _PLAY_HEADING,
            "",
            "The player was trained by azjax, AlphaZero in JAX; `pip install "
            "'azjax[hub]'` installs what the first command needs. Intervals above are "
            "95%.",
            "",
            "```sh",
            f"{program} pull {repository}",
            f"{program} play {game!r} --opponent alphazero:./{name}",
            "```",
            "",
        ]
    )


def card_of_page(page: str) -> str:
    """Returns the card in a README.md that `hub_page` returned; another text without
    its front matter."""
    if page.startswith("---\n") and "\n---\n" in page:
        page = page.partition("\n---\n")[2]
    return page.partition(f"\n{_PLAY_HEADING}\n")[0].rstrip() + "\n"


def _settings(config: TrainConfig) -> Iterator[tuple[str, str]]:
    """Yields what the player is and how it was trained."""
    trunk = config.network.trunk
    shape = ", ".join(f"{name} {value}" for name, value in vars(trunk).items())
    yield "game", config.game
    heads, dtype = config.network.heads, config.network.dtype
    name = TRUNKS.name_of(trunk)
    length = config.network.line_length
    planes = f"planes of the cells that complete {length} in a row; " if length else ""
    network = f"trunk {name}: {shape}; {planes}heads: {heads}; trained in {dtype}"
    yield "network", network
    stages = dict.fromkeys(
        config.self_play.simulations_at(number / 100) for number in range(100)
    )
    simulations = ", then ".join(map(str, stages))
    yield "search", f"{config.search.algorithm}, {simulations} simulations"
    yield "seed", str(config.seed)
    # Only the names of directories: a card says nothing about the machine.
    if config.initial_player is not None:
        yield "initial weights", PurePath(config.initial_player).name
    if config.learn_from:
        names = (PurePath(source).name for source in config.learn_from)
        yield "learned from stored games of", ", ".join(names)
        stored = config.stored_slots / config.self_play.num_games
        yield "fraction of stored games", f"{stored:g}"
    if config.notes:
        yield "notes", config.notes


def _cell(text: str) -> str:
    """Returns text for a cell of a table, without markup."""
    line = " ".join(html.escape(text, quote=False).split())
    return "".join(f"\\{c}" if c in "\\`*_[]|#~" else c for c in line)
