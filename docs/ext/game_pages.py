"""Pages of the games, generated from the games and their docstrings."""

import ast
import inspect
import re
from pathlib import Path

import draw_games
import jax

from azjax import games
from azjax.games import Game
from azjax.games.host import first_state
from azjax.players import load_player, shipped_players

ROOT = Path(__file__).parent.parent.parent
MADE = "This page is generated from the code.\n"
FIELD = re.compile(r"^([a-z]\w*): (.*)")
RULES_TEST = "[verification](../../verification.md#rules)"


def game_pages() -> dict[str, str]:
    """Returns the files of the games by name: gallery, pages and pictures."""
    checks = engines()
    files = {"games.md": gallery()}
    for spec, title, moves in draw_games.POSITIONS:
        name = spec.partition(":")[0]
        files[f"games/{name}.md"] = game_page(name, spec, title, checks.get(name, ()))
        files[f"images/{image_of(spec)}"] = draw_games.draw(spec, moves)
    return files


def gallery() -> str:
    """Returns the page with a picture of each game, which leads to the games' pages."""
    names = [spec.partition(":")[0] for spec, _, _ in draw_games.POSITIONS]
    lines = [
        f"# Games\n\n{MADE}",
        "Sizes are those of the default options. Each game has a page with its rules, "
        "actions and observation.\n",
        "| | game | board | actions | moves at most | bytes of a state |",
        "|---|---|---|---|---|---|",
    ]
    for name, (spec, title, _) in zip(names, draw_games.POSITIONS, strict=True):
        game = games.make(name)
        height, width, _ = game.observation_shape
        lines.append(
            f"| [![{title}](images/{image_of(spec)})](games/{name}.md) "
            f"| [{title}](games/{name}.md)<br>`{name}` | {height} x {width} "
            f"| {game.num_actions} | {game.max_moves} | {state_bytes(game)} |"
        )
    pages = "\n".join(f"games/{name}" for name in names)
    return "\n".join([*lines, f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"])


def game_page(name: str, spec: str, title: str, checked: tuple[str, ...]) -> str:
    """Returns the page of a game."""
    game = games.make(name)
    kind = type(game)
    text, options = rules_and_options(kind)
    symmetries = f"{len(game.symmetries)}, the identity included"
    if "symmetries" in vars(kind):
        symmetries = f"{len(game.symmetries)}. {paragraph(kind.symmetries.__doc__)}"
    half = len(game.pieces) // 2
    sides = (
        f"in text, the pieces of the first are `{game.pieces[:half]}`, those of the "
        f"second `{game.pieces[half:]}`"
    )
    if game.style.sides is not None:
        sides = " and ".join(f"the {side.name}" for side in game.style.sides)
    chance = {"outcomes of chance": str(game.num_outcomes)} if game.num_outcomes else {}
    rows = {
        "make": f"`azjax.games.make({name!r})`",
        "players": f"2; {sides}",
        "actions": str(game.num_actions),
        **chance,
        "longest game": f"{game.max_moves} moves",
        "state": f"{state_bytes(game)} bytes",
        "observation": " x ".join(map(str, game.observation_shape)),
        "symmetries": symmetries,
        "saved games": f"`.{game.record_format.suffix}`",
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    parts = [
        f"# {title}\n\n{MADE}",
        f"```{{image}} ../images/{image_of(spec)}\n:alt: a position of {title}\n"
        ":class: board\n```\n",
        f"## Rules and actions\n\n{text}\n",
        "An illegal action loses the game. A step after the end changes nothing.\n",
        f"## Sizes\n\nWith the default options:\n\n| | |\n|---|---|\n{table}\n",
        f"## Observation\n\n{inspect.getdoc(kind.observe)}\n",
        f"## Reward\n\n{inspect.getdoc(kind.rewards)} Zeros until the game is over.\n",
        f"## Options\n\n{options_text(game, options)}\n",
        f"## Verification\n\n{verification_text(checked)}\n",
        f"## Pretrained players\n\n{players_text(name)}\n",
    ]
    return "\n".join(parts)


def state_bytes(game: Game) -> int:
    """Returns the bytes of one position."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(first_state(game)))


def rules_and_options(kind: type[Game]) -> tuple[str, dict[str, str]]:
    """Returns a game's class docstring without its fields, and the fields' meanings."""
    rules: list[str] = []
    options: dict[str, str] = {}
    for line in (inspect.getdoc(kind) or "").splitlines():
        match = FIELD.match(line.strip())
        if match:
            options[match[1]] = match[2]
        elif options and line.strip():
            last = next(reversed(options))
            options[last] += f" {line.strip()}"
        elif line.strip() != "Args:":
            rules.append(line)
    return "\n".join(rules).strip(), options


def options_text(game: Game, meanings: dict[str, str]) -> str:
    """Returns the options of a game as a table."""
    if not game.options:
        return "None."
    rows = [
        f"| `{key}` | `{value}` | {paragraph(meanings.get(key))} |"
        for key, value in game.options.items()
    ]
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *rows])


def verification_text(checked: tuple[str, ...]) -> str:
    """Returns what the rules were compared with."""
    if not checked:
        return f"See {RULES_TEST}."
    return (
        f"`python experiments/verify_games.py` compares the rules, in random games, "
        f"with: {', '.join(checked)}. The numbers: {RULES_TEST}."
    )


def players_text(name: str) -> str:
    """Returns the players that ship for a game, with a command for each."""
    specs = [
        repr(game)
        for game in (
            load_player(path).game for path in sorted(shipped_players().iterdir())
        )
        if game.name == name
    ]
    if not specs:
        return f"None. `azjax train {name}` makes one."
    commands = "\n".join(f"azjax play {spec}" for spec in specs)
    return (
        "One for each of these boards; its card is in the "
        f"[model zoo](../model_zoo.md).\n\n```sh\n{commands}\n```"
    )


def image_of(spec: str) -> str:
    """Returns the file name of a game's picture."""
    return re.sub(r"\W", "_", spec) + ".svg"


def paragraph(text: str | None) -> str:
    """Returns a docstring as one line of Markdown."""
    return " ".join(inspect.cleandoc(text or "").split()).replace("|", "\\|")


def engines() -> dict[str, tuple[str, ...]]:
    """Returns the engines of each game in `experiments/verify_games.py`.

    The file is parsed, not imported, as it imports the engines.
    """
    tree = ast.parse((ROOT / "experiments" / "verify_games.py").read_text())
    found: dict[str, list[str]] = {}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or len(call.args) < 2:
            continue
        texts = [a.value for a in call.args[:2] if isinstance(a, ast.Constant)]
        if getattr(call.func, "id", "") in ("Check", "small") and len(texts) == 2:
            game, engine = texts
            names = found.setdefault(str(game).partition(":")[0], [])
            if engine not in names:
                names.append(str(engine))
    return {name: tuple(names) for name, names in found.items()}
