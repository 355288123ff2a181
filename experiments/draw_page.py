"""Takes a screenshot of a player's page, with the search tree.

python experiments/draw_page.py --file experiments/images/page.png

Exports the player as a static site, opens a game in Chromium, starts a search and opens
a position of its tree. Needs playwright and a Chromium.
"""

import dataclasses
import shutil
import tempfile
from pathlib import Path

import tyro
from verify_browser import browser_page, served

from azjax import games, players
from azjax.play.web_export import export_web

WIDTH, HEIGHT = 1280, 900  # pixels
TIMEOUT = 60_000  # ms; ends the wait if the search has no such line


@dataclasses.dataclass(frozen=True)
class Options:
    """Options.

    file: the PNG to write.
    run: a run directory, a player's directory, or `pretrained`.
    game: the game, for `pretrained`.
    moves: the moves of the game, as in the page's address.
    line: moves to the position of the tree that is opened.
    chromium: the browser's program; by default Playwright's own.
    """

    file: Path
    run: str = "pretrained"
    game: str = "connect_four"
    moves: str = "3-2-6-2-1-4-6-0-4-5"
    line: str = "3"
    chromium: str | None = shutil.which("chromium")


def main(options: Options) -> None:
    """Writes the picture."""
    trained = players.load_run(options.run, games.make(options.game))
    with tempfile.TemporaryDirectory() as directory:
        export_web(trained, Path(directory), name="AlphaZero")
        with served(Path(directory)) as url, browser_page(options.chromium) as page:
            page.set_default_timeout(TIMEOUT)
            page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
            page.emulate_media(reduced_motion="reduce")
            page.goto(f"{url}/index.html#you=0&moves={options.moves}")
            page.locator("#analysis > summary").click()
            done = f"{players.DEFAULT_SIMULATIONS} simulations"
            page.wait_for_selector(f"#speed:has-text('{done}')")
            page.locator(f"#tree button[aria-label^='{options.line}: ']").click()
            page.wait_for_selector("#status:has-text('What if')")
            page.evaluate("scrollTo(0, 0)")  # The board follows when the page scrolls.
            page.locator("main").screenshot(path=options.file)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
