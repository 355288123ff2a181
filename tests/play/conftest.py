"""Visits of pages in a browser."""

import importlib

import pytest

TIMEOUT = 60_000  # ms; the machine may have other things to do
YOURS = "#board[data-turn=user]"
OVER = "#board[data-turn=nobody]"

# The pauses that the page makes for people pass five times as fast.
HURRY = """{
  const { setTimeout } = window;
  window.setTimeout = (call, time, ...rest) => setTimeout(call, time / 5, ...rest);
}"""


class Visit:
    """A page that is open, and what went wrong on it.

    hurries: whether its pauses are short; where something must be done meanwhile, they
        must not be.
    """

    def __init__(self, browser, url, *, hurries=True, **options):
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(TIMEOUT)
        self.requests, self.problems = [], []
        self.origin = "/".join(url.split("/")[:3]) + "/"
        if hurries:
            self.context.add_init_script(HURRY)
        self.page = self.context.new_page()
        self.page.on("request", self.note_request)
        self.page.on("console", self.note_console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.goto(url)

    def note_request(self, request):
        self.requests.append(request.url)
        if not request.url.startswith((self.origin, "blob:", "data:")):
            self.problems.append(f"asked for {request.url}")

    def note_console(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def find(self, selector):
        return self.page.locator(selector)

    def wait_for(self, selector):
        """Waits until such an element is seen; looks at each frame, unlike locators,
        which look twice a second."""
        self.page.wait_for_function(
            "selector => document.querySelector(selector)?.checkVisibility()",
            arg=selector,
        )

    def target(self, number):
        return self.find(".targets button").nth(number)

    def play(self, number):
        """Makes a move and waits for the answer, if the game goes on."""
        moves = int(self.find("#board").get_attribute("data-moves"))
        self.target(number).click()
        self.wait_for(f"{YOURS}[data-moves='{moves + 2}'], {OVER}")

    def wait_for_turn(self):
        self.wait_for(f"{YOURS}, {OVER}")

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


@pytest.fixture(scope="module")
def browser(chromium):
    """Chromium, without a window."""
    # It takes half a second to import: not for all tests of these folders.
    playwright = importlib.import_module("playwright.sync_api")
    args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    # The network's program is not worth optimizing for so few moves.
    args += ["--js-flags=--liftoff-only"]
    # Nothing leaves the machine. A `route` that refuses it would see all requests.
    args += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    playwright.expect.set_options(timeout=TIMEOUT)
    with playwright.sync_playwright() as running:
        yield running.chromium.launch(executable_path=chromium, args=args)


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
