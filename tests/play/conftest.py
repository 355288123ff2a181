"""Players whose moves are known, a background that waits for its test, and visits of
pages in a browser."""

import shutil
from concurrent.futures import Future

import numpy as np
import pytest

from azjax import games
from azjax.players import ForfeitError, Thought

GAME = games.make("tic_tac_toe")
CHROMIUM = shutil.which("chromium")
TIMEOUT = 60_000  # ms; the machine may have other things to do
YOURS = "#board[data-turn=visitor]"
OVER = "#board[data-turn=nobody]"


class FirstCell:
    """Takes the first free cell, from a3 on, and is sure of it; or dies."""

    def __init__(self):
        self.is_dead = self.is_closed = False
        self.asked = []

    def choose(self, state, moves):
        self.asked.append(list(moves))
        if self.is_dead:
            raise ForfeitError("the engine died")
        action = int(np.asarray(GAME.legal_action_mask(state)).argmax())
        return Thought(action, np.eye(9, dtype=np.float32)[action], 0.5)

    def close(self):
        self.is_closed = True


class FirstCellPlayer:
    """Sits down as a `FirstCell`; remembers its seats."""

    def __init__(self):
        self.seats = []

    def sit(self, game, seed):
        self.seats.append(FirstCell())
        return self.seats[-1]


class Later:
    """Works when it is told to, as a thread may be slow."""

    def __init__(self):
        self.waiting = []

    def __call__(self, work, then):
        self.waiting.append((work, then))

    def work(self):
        """Does the first thing that waits, and hands it on."""
        work, then = self.waiting.pop(0)
        outcome = Future()
        try:
            outcome.set_result(work())
        except ForfeitError as error:
            outcome.set_exception(error)
        then(outcome)


class Visit:
    """A page that is open, and what went wrong on it."""

    def __init__(self, browser, url, **options):
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(TIMEOUT)
        self.requests, self.problems = [], []
        self.context.route("**/*", self.only_own(url))
        self.page = self.context.new_page()
        self.page.on("console", self.note_console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.goto(url)

    def only_own(self, url):
        origin = "/".join(url.split("/")[:3])

        def handle(route):
            self.requests.append(route.request.url)
            if route.request.url.startswith(origin + "/"):
                route.continue_()
            else:
                self.problems.append(f"asked for {route.request.url}")
                route.abort()

        return handle

    def note_console(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def find(self, selector):
        return self.page.locator(selector)

    def target(self, number):
        return self.find(".targets button").nth(number)

    def play(self, number):
        """Makes a move and waits for the answer, if the game goes on."""
        moves = int(self.find("#board").get_attribute("data-moves"))
        self.target(number).click()
        self.page.wait_for_selector(f"{YOURS}[data-moves='{moves + 2}'], {OVER}")

    def wait_for_turn(self):
        self.page.wait_for_selector(f"{YOURS}, {OVER}")

    def is_over(self):
        return self.find(OVER).count() == 1

    def status(self):
        return self.find("#status").inner_text()

    def score(self):
        names = ("you", "draws", "computer")
        return [int(self.find(f"#score-{name}").inner_text()) for name in names]

    def pieces(self):
        return self.find(".piece, .stroke").count() - self.find(".ghost .piece").count()

    def weaken(self):
        """Makes the computer quick and weak."""
        self.find("#strength").press("Home")


@pytest.fixture
def seat():
    return FirstCell()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def opponent():
    return FirstCellPlayer()


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    playwright.expect.set_options(timeout=TIMEOUT)
    with playwright.sync_playwright() as running:
        yield running.chromium.launch(executable_path=CHROMIUM, args=args)


@pytest.fixture
def open_page(browser):
    """Opens an address in a browser that knows nothing of earlier visits."""
    opened = []

    def open_address(url, **options):
        opened.append(Visit(browser, url, **options))
        return opened[-1]

    yield open_address
    for each in opened:
        each.context.close()
