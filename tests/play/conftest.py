"""Pages opened in a browser, and the threads that compile programs."""

import importlib
import threading

import jax
import pytest

TIMEOUT = 30_000  # ms; the machine can be loaded
YOURS = "#board[data-turn=user]"
OVER = "#board[data-turn=nobody]"

# The page's pauses for human users are five times shorter.
HURRY = """{
  const { setTimeout } = window;
  window.setTimeout = (call, time, ...rest) => setTimeout(call, time / 5, ...rest);
}"""


class Visit:
    """An open page, and its errors and warnings.

    hurries: whether pauses are shortened; tests that act during a pause need it in full
        length.
    """

    def __init__(self, browser, url, *, hurries=True, **options):
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(TIMEOUT)
        self.requests, self.problems = [], []
        if hurries:
            self.context.add_init_script(HURRY)
        self.page = self.context.new_page()
        self.page.on("request", self.note_request)
        self.page.on("console", self.note_console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.open(url)

    def open(self, url):
        """Loads an address, also if the current one differs only behind `#`."""
        self.page.goto("about:blank")
        self.requests.clear()
        self.problems.clear()
        self.origin = "/".join(url.split("/")[:3]) + "/"
        self.page.goto(url)

    def forget(self):
        """Closes the address, and removes its data in the browser."""
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear()")
        self.page.goto("about:blank")

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
        """Waits until a matching element is visible.

        Checks at each frame; locators check only twice a second.
        """
        self.page.wait_for_function(
            "selector => document.querySelector(selector)?.checkVisibility()",
            arg=selector,
        )

    def target(self, number):
        return self.find(".targets button").nth(number)

    def play(self, number):
        """Makes a move and waits for the reply, unless the game is over."""
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
        return self.find(".piece").count() - self.find(".ghost .piece").count()

    def weaken(self):
        """Sets the computer to few simulations."""
        self.find("#strength").select_option("Beginner")


@pytest.fixture(scope="module")
def browser(chromium):
    """Chromium, without a window."""
    # The import takes half a second: not for all tests of these folders.
    playwright = importlib.import_module("playwright.sync_api")
    args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    # Optimizing the network's program would take longer than these few moves.
    args += ["--js-flags=--liftoff-only"]
    # Requests to other hosts fail. A `route` that blocks them would see all requests.
    args += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    playwright.expect.set_options(timeout=TIMEOUT)
    with playwright.sync_playwright() as running:
        yield running.chromium.launch(executable_path=chromium, args=args)


@pytest.fixture(scope="module")
def tabs():
    """Open pages that tests use in turn: a new context costs a second."""
    return []


@pytest.fixture
def open_page(browser, tabs):
    """Opens an address in a browser without data of earlier visits.

    Each test has one page with the usual options, and may have others.
    """
    opened = []

    def open_address(url, **options):
        if not options and tabs:
            tabs[0].open(url)
            return tabs[0]
        visit = Visit(browser, url, **options)
        (opened if options else tabs).append(visit)
        return visit

    yield open_address
    for each in opened:
        each.context.close()
    for each in tabs:
        each.forget()


@pytest.fixture
def compilations():
    """Names of the threads that compile programs during the test."""
    threads = []

    def note(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            threads.append(threading.current_thread().name)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield threads
    jax.monitoring.unregister_event_duration_listener(note)
