"""Draws the page of a player as a visitor sees it, with the search's tree.

python experiments/draw_page.py --file experiments/images/page.png

Exports the player as a static site, opens a game in Chromium, lets the player think and
looks at a position of its tree. Needs playwright and a Chromium.
"""

import dataclasses
import shutil
import tempfile
from pathlib import Path

import tyro
from verify_browser import browser_page, served

from azjax import games, players
from azjax.play.web_export import export_web

WIDTH, HEIGHT = 1100, 900  # pixels


@dataclasses.dataclass(frozen=True)
class Options:
    """What is drawn.

    file: where the picture goes, a PNG.
    run: a run's directory, a player's directory, or `pretrained`.
    game: which player is meant, for `pretrained`.
    moves: the game, as the page's address holds it.
    line: which position of the tree is looked at, by its moves as people write them.
    chromium: the browser's program; Playwright's own if there is none.
    """

    file: Path
    run: str = "pretrained"
    game: str = "connect_four"
    moves: str = "3-2-6-2-1-4-6-0-4-5"
    line: str = "5"
    chromium: str | None = shutil.which("chromium")


def main(options: Options) -> None:
    """Writes the picture."""
    trained = players.load_run(options.run, games.make(options.game))
    with tempfile.TemporaryDirectory() as directory:
        export_web(trained, Path(directory), name="AlphaZero")
        with served(Path(directory)) as url, browser_page(options.chromium) as page:
            page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
            page.emulate_media(reduced_motion="reduce")
            page.goto(f"{url}/index.html#you=0&moves={options.moves}")
            page.locator("summary").click()
            page.wait_for_selector("#speed:has-text('200 simulations')")
            page.locator(f"#tree button[aria-label^='{options.line}: ']").click()
            page.wait_for_selector("#status:has-text('What if')")
            page.locator(".side > [aria-label=Settings]").evaluate(
                "card => { card.hidden = true; }"
            )
            page.locator("main").screenshot(path=options.file)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
