"""Checks the player in the browser against the one in Python, and times it.

    python experiments/verify_browser.py
    python experiments/verify_browser.py --run runs/connect_four --positions 200

Exports the player as a static site, opens it in Chromium, and lets both search random
positions with the same settings, without noise. Exits with an error if they choose
different moves in more than 1% of the positions, or if the page sends requests to other
hosts. Needs playwright and a Chromium.
"""

import contextlib
import dataclasses
import functools
import http.server
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from playwright.sync_api import Page, Request, sync_playwright

from azjax import games, players
from azjax.devices import jit_network
from azjax.games.host import first_state, legal_actions, next_state
from azjax.play.web_export import export_web

LEAST_AGREEMENT = 0.99
DECIDE = """async ([positions, simulations]) => {
  const { WorkerEngine } = await import("./engine.js");
  const engine = new WorkerEngine((error) => { throw error; });
  await engine.start(() => {});
  const decisions = [];
  for (const actions of positions) {
    engine.forget();
    const request = { actions, simulations, purpose: "play" };
    decisions.push(await engine.decide(request, () => {}));
  }
  return decisions;
}"""


@dataclasses.dataclass(frozen=True)
class Options:
    """Options.

    run: a run's directory, a player's directory, or `pretrained`.
    game: the game, for `pretrained`.
    positions: number of positions.
    simulations: per search.
    seed: of the positions.
    chromium: the browser's program; by default Playwright's own.
    json: print one JSON object.
    """

    run: str = "pretrained"
    game: str = "connect_four"
    positions: int = 1000
    simulations: int = 200
    seed: int = 0
    chromium: str | None = shutil.which("chromium")
    json: bool = False


def main(options: Options) -> None:
    """Compares and prints; exits with an error if the two differ."""
    game = games.make(options.game)
    trained = players.load_run(options.run, game)
    actions, states = random_positions(game, options.positions, options.seed)
    expected = python_visits(options, game, states)
    with tempfile.TemporaryDirectory() as directory:
        size = export_web(trained, Path(directory), name=options.run)
        with served(Path(directory)) as url, browser_page(options.chromium) as page:
            foreign: list[str] = []
            page.on("request", functools.partial(note_foreign, foreign, url))
            ready_seconds = seconds_until_ready(page, url)
            # A page of the site without a player.
            page.goto(f"{url}/config.json")
            decisions = page.evaluate(DECIDE, [actions, options.simulations])
    found = browser_visits(decisions, game.num_actions)
    chosen = np.array([decision["action"] for decision in decisions])
    seconds = np.array([decision["seconds"] for decision in decisions])
    results = {
        "positions": options.positions,
        "simulations": options.simulations,
        "same_move": float((chosen == expected.argmax(axis=1)).mean()),
        "same_visits": float((found == expected).all(axis=1).mean()),
        "most_visits_apart": int(np.abs(found - expected).max()),
        "median_move_ms": 1000 * float(np.median(seconds)),
        "p95_move_ms": 1000 * float(np.quantile(seconds, 0.95)),
        "ready_seconds": ready_seconds,
        "site_bytes": size,
        "requests_to_other_hosts": len(foreign),
    }
    if options.json:
        print(json.dumps(results))
    else:
        for name, value in results.items():
            print(f"{name.replace('_', ' '):24} {value:g}")
    if foreign or results["same_move"] < LEAST_AGREEMENT:
        sys.exit("browser and Python differ")


def random_positions(
    game: games.Game, number: int, seed: int
) -> tuple[list[list[int]], Any]:
    """Returns distinct unfinished positions of random games: their actions, and the
    states, leaves `[B, ...]`."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], Any] = {}
    while len(found) < number:
        state, actions = first_state(game), []
        while not state.terminated and len(found) < number:
            if rng.random() < 1 / 8:  # positions of a game are correlated
                found.setdefault(tuple(actions), state)
            action = int(rng.choice(legal_actions(game, state)))
            state = next_state(game, state, action)
            actions.append(action)
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *found.values())
    return [list(actions) for actions in found], states


def python_visits(options: Options, game: games.Game, states: Any) -> np.ndarray:
    """Returns `[B, A]`, the visits of each move in Python's search."""
    spec = f"alphazero:{options.run}?algorithm=alphazero&tree_reuse_nodes=0"
    settings = f"&use_solver=false&simulations={options.simulations}"
    player = players.load(spec + settings, game)
    assert isinstance(player, players.AlphaZeroPlayer)
    analyze = jit_network(
        lambda key, states: player.analyze(key, states, None)[1].visits
    )
    return np.asarray(analyze(jax.random.key(0), states))


def browser_visits(decisions: list[dict], num_actions: int) -> np.ndarray:
    """Returns `[B, A]`, the visits of each move in the browser's search."""
    visits = np.zeros((len(decisions), num_actions), np.int32)
    for row, decision in zip(visits, decisions, strict=True):
        for move in decision["moves"]:
            row[move["action"]] = move["visits"]
    return visits


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serves a directory as `python -m http.server` does; yields its address."""
    handler = functools.partial(_QuietHandler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextlib.contextmanager
def browser_page(chromium: str | None) -> Iterator[Page]:
    """Opens a headless browser; yields an empty page."""
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=args)
        page = browser.new_page()
        page.set_default_timeout(0)
        yield page
        browser.close()


def note_foreign(foreign: list[str], url: str, request: Request) -> None:
    """Records a request to another host."""
    if not request.url.startswith(url):
        foreign.append(request.url)


def seconds_until_ready(page: Page, url: str) -> float:
    """Opens the site; returns the seconds until the player is ready."""
    start = time.perf_counter()
    page.goto(f"{url}/index.html")
    page.wait_for_selector("#loading.done", state="attached")
    return time.perf_counter() - start


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
