"""The page in a browser; needs playwright and Chromium."""

import dataclasses
import functools
import http.server
import json
import os
import re
import shutil
import threading

import jax
import numpy as np
import pytest
from playwright.sync_api import expect

from azjax import games, players
from azjax.games.saved_game import load
from azjax.play.page_files import browser_games
from azjax.play.web_export import export_web

YOURS = "#board[data-turn=user]"
OVER = "#board[data-turn=nobody]"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Serves one folder with a site for each game; yields its address and path."""
    folder = tmp_path_factory.mktemp("sites")
    for name in browser_games():
        trained = players.load_run("pretrained", games.make(name))
        export_web(trained, folder / name, name="shipped")
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


@pytest.fixture
def visit(open_page, sites):
    """Opens a game's page; errors on the page fail the test."""
    opened = []

    def open_game(name="connect_four", link="", **options):
        opened.append(open_page(f"{sites[0]}/{name}/{link}", **options))
        opened[-1].wait_for_turn()
        return opened[-1]

    yield open_game
    for each in opened:
        assert each.problems == []


def open_link(page, link):
    """Sets the address of an open page to another game."""
    page.page.evaluate("link => { location.hash = link; }", link)


class Rules:
    """The game on the page, by the Python rules."""

    def __init__(self, name):
        self.game = games.make(name)
        self.step = jax.jit(self.game.step)
        self.look = jax.jit(
            lambda state: (
                self.game.legal_action_mask(state),
                self.game.rewards(state) * state.terminated,
            )
        )
        self.state = self.game.init()

    def legal(self):
        return np.flatnonzero(self.look(self.state)[0]).tolist()

    def play(self, action):
        self.state = self.step(self.state, np.int32(action))

    def winning(self, player):
        """Returns the actions with which a player would win immediately."""
        state = jax.device_get(self.state)
        if self.game.name == "tic_tac_toe":
            state = dataclasses.replace(state, current_player=np.int8(player))
        elif state.current_player != player:
            state = dataclasses.replace(
                state, stones=state.stones[::-1], status=1 - state.status
            )
        after = {a: self.step(state, np.int32(a)) for a in self.legal()}
        return [a for a, state in after.items() if self.look(state)[1][player] == 1]

    def careless_move(self):
        """Returns a move that threatens to win, or one that lets the opponent win."""
        before = self.state
        choices = []
        for action in self.legal():
            self.play(action)
            choices.append((bool(self.winning(1)), bool(self.winning(0)), -action))
            self.state = before
        return -max(choices)[2]


@pytest.mark.parametrize(
    "name", [pytest.param("connect_four", marks=pytest.mark.slow), "tic_tac_toe"]
)
def test_a_whole_game_is_played_and_the_computer_wins_and_blocks(visit, name):
    page, rules = visit(name), Rules(name)
    blocked = False
    while not page.is_over():
        action = rules.careless_move()
        page.play(action)
        rules.play(action)
        wins, threats = rules.winning(1), rules.winning(0)
        if wins:
            break
        text = re.search("Computer played (.+?)\\.", page.status())
        assert text is not None, page.status()
        answer = rules.game.text_to_action(rules.state, text[1])
        if len(threats) == 1:
            assert answer == threats[0]
            blocked = True
        rules.play(answer)
    assert page.status() == "The computer wins."
    assert page.find(".wins").count() >= (4 if name == "connect_four" else 3)
    assert page.score() == [0, 0, 1]
    assert blocked
    # All requests go to the page's own host, those of the worker too.
    names = {url.rpartition("/")[2] for url in page.requests}
    assert {"worker.js", "network.onnx.gz", f"{name}.js"} <= names
    assert sum(f"{other}.js" in names for other in browser_games()) == 1


def test_moves_are_clicked_typed_and_taken_back_and_either_side_begins(visit):
    page = visit("tic_tac_toe")
    board, later = page.find("#board"), page.find("#later")
    assert "#" not in page.page.url
    assert page.find("#undo").is_disabled()
    page.find(".entry input").fill("d4")
    page.page.keyboard.press("Enter")
    expect(page.find(".entry p")).to_contain_text("'d4' is no legal move; legal are a3")
    page.find(".entry input").fill(" B2 ")
    page.page.keyboard.press("Enter")
    page.wait_for(f"{YOURS}[data-moves='2']")
    assert page.target(4).get_attribute("aria-label") == "b2: cross"
    # A choice of who begins does not end the game.
    page.find("label:has-text('Computer')").click()
    expect(later).to_have_text("Applies to the next game.")
    assert board.get_attribute("data-moves") == "2"
    page.find("label:has-text('You')").click()
    expect(later).to_be_hidden()
    page.find("label:has-text('Computer')").click()
    page.find("#new-game").click()
    page.wait_for(f"{YOURS}[data-moves='1']")
    expect(later).to_be_hidden()
    expect(page.find(".piece[data-kind='0']")).to_have_count(1)
    assert page.find("#undo").is_disabled()
    assert page.find("body").get_attribute("data-you") == "1"
    # No move of the user would be lost.
    page.find("label:has-text('You')").click()
    page.wait_for(f"{YOURS}[data-moves='0']")
    # A decision of an abandoned game does not affect the next game.
    page.find("#strength").press("End")
    page.target(4).click()
    page.wait_for("#board:not([data-moves='0'])")
    page.find("#new-game").click()
    page.wait_for("#board[data-moves='0']")
    page.target(0).click()
    page.find("#undo").click()
    expect(page.find("#strength-text")).to_have_text("1600 simulations a move")
    page.weaken()
    text = "1 simulation a move, chosen by chance"
    expect(page.find("#strength-text")).to_have_text(text)
    page.page.evaluate("Math.random = () => 1 - 1e-9")  # the last of the moves
    page.play(8)
    expect(page.find(".piece[data-kind='0']")).to_have_count(1)
    expect(page.find(".piece[data-kind='1']")).to_have_count(1)
    assert page.target(8).get_attribute("aria-label") == "c1: cross"
    assert page.target(7).get_attribute("aria-label") == "b1: ring"
    page.find("#resign").click()
    expect(page.find("#status")).to_have_text("The computer wins: resignation.")
    assert page.score() == [0, 0, 1]
    page.find("#undo").click()
    page.wait_for(f"{YOURS}[data-moves='2']")  # the resignation is taken back alone
    assert page.score() == [0, 0, 0]
    page.find("#undo").click()
    expect(page.find("#resign")).to_be_disabled()


def test_a_game_is_a_link_and_an_invalid_link_keeps_the_current_game(visit):
    page = visit("tic_tac_toe", "#you=0&moves=4-4")
    board, notice = page.find("#board"), page.find("#notice")
    expect(notice).to_have_text(
        "The link has no valid game: action 4, number 2, is not legal"
    )
    assert "#" not in page.page.url
    page.play(4)
    expect(notice).to_be_hidden()
    url, status = page.page.url, page.status()
    assert re.search(r"#you=0&moves=4-\d$", url), url
    for link, says in [
        ("#moves=4", "“you” must be 0, 1 or nobody"),
        ("#you=0&moves=4-x", "“moves” must be numbers, as in 3-3-2: “4-x”"),
        ("#you=0&moves=" + 5000 * "4-", "“moves” is too long"),
        ("#you=0&moves=0-3-1-4-2-5", "action 5, number 6, is not legal"),
    ]:
        open_link(page, link)
        expect(notice).to_contain_text(says)
        assert page.page.url == url
        assert page.find(f"{YOURS}[data-moves='2']").count() == 1
    page.page.reload()
    page.wait_for_turn()
    expect(page.find("#status")).to_have_text(status)
    assert board.get_attribute("data-moves") == "2"
    page.find("#undo").click()
    expect(board).to_have_attribute("data-moves", "0")
    open_link(page, "#you=1&moves=4-0")
    page.wait_for(f"{YOURS}[data-moves='3']")
    assert page.find("input[value=computer]").is_checked()


def test_a_game_is_saved_and_counted_once(visit, tmp_path):
    page = visit("tic_tac_toe", "#you=0&moves=0-3-1-4")

    def saved():
        with page.page.expect_download() as download:
            page.find("#save-game").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return load(path, games.make("tic_tac_toe"))

    game, actions = saved()
    assert actions == [0, 3, 1, 4]
    assert game.players == ("human", "shipped")
    assert game.result == "unfinished"
    # A finished continuation shows its result; it is not counted.
    analyze(page)
    branch(page, "c3").click()
    expect(page.find("#status")).to_have_text("What if c3? You win!")
    assert page.score() == [0, 0, 0]
    page.page.keyboard.press("Escape")
    page.find("#last").click()
    page.play(2)
    expect(page.find("#branches")).to_be_hidden()
    assert saved()[0].result == "first wins"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.find("#copy-link").click()
    expect(page.find("#shared")).to_have_text("Link copied.")
    link = page.page.evaluate("navigator.clipboard.readText()")
    assert link == page.page.url
    assert link.endswith("/tic_tac_toe/#you=0&moves=0-3-1-4-2")
    page.page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
    )
    page.find("#copy-link").click()
    expect(page.find("#link")).to_have_value(link)
    # The game is counted once. This browser has counted it, so undo removes it; it has
    # not counted others.
    assert (page.status(), page.score()) == ("You win!", [1, 0, 0])
    page.page.reload()
    page.wait_for_turn()
    assert (page.status(), page.score()) == ("You win!", [1, 0, 0])
    page.find("#undo").click()
    page.wait_for(YOURS)
    expect(page.find("#link")).to_be_hidden()
    assert page.score() == [0, 0, 0]
    page.play(2)
    open_link(page, "#you=1&moves=8-3-7-4-6")
    expect(page.find("#status")).to_have_text("The computer wins.")
    page.find("#undo").click()
    page.wait_for(f"{YOURS}[data-moves='3']")
    assert page.score() == [1, 0, 0]


@pytest.mark.slow
def test_the_score_is_kept_and_a_new_game_is_empty(visit):
    page = visit()
    page.weaken()
    while not page.is_over():
        for column in range(7):
            if page.target(column).get_attribute("aria-disabled") == "false":
                page.play(column)
                break
    assert sum(page.score()) == 1
    page.find("#undo").click()
    page.wait_for_turn()
    assert page.score() == [0, 0, 0]
    page.find("#new-game").click()
    expect(page.find("#status")).to_have_text("You move first, with yellow discs.")
    assert page.pieces() == 0
    page.page.evaluate(
        "numbers => localStorage.setItem("
        "  'azjax score: connect_four: shipped', JSON.stringify(numbers))",
        {"you": 3, "draws": 1, "computer": 4},
    )
    page.page.reload()
    page.wait_for_turn()
    assert page.score() == [3, 1, 4]
    page.find("#reset-score").click()
    assert page.score() == [0, 0, 0]


def analyze(page):
    """Opens the analysis and waits for the end of the search."""
    page.find("#analysis > summary").click()
    expect(page.find("#speed")).to_contain_text("64 simulations")


def branch(page, *moves):
    """Returns the element of a position in the tree."""
    return page.find(f"#tree button[aria-label^='{' '.join(moves)}: ']")


def choose_branch(page):
    """Selects a position as soon as the tree belongs to the shown position."""
    page.page.evaluate(
        """() => new Promise((resolve) => {
            const timer = setInterval(() => {
                const found = document.querySelector("#tree:not(.old) [data-side]");
                if (!found) return;
                clearInterval(timer);
                found.click();
                resolve();
            }, 10);
        })"""
    )


def test_a_game_is_played_by_keyboard_and_analyzed(visit):
    page = visit()
    page.target(0).focus()
    page.page.keyboard.press("ArrowRight")
    expect(page.target(1)).to_be_focused()
    expect(page.find(".ghost .piece")).to_have_count(1)
    page.page.keyboard.press("Enter")
    page.wait_for(f"{YOURS}[data-moves='2']")
    expect(page.target(1)).to_have_attribute("aria-label", re.compile("2: yellow disc"))
    page.page.keyboard.press("7")
    page.wait_for(f"{YOURS}[data-moves='4']")
    expect(page.target(6)).to_have_attribute("aria-label", re.compile("7: yellow disc"))
    # Undo takes back both moves.
    assert page.pieces() == 4
    page.find("#undo").click()
    expect(page.find(".falls")).to_have_count(2)
    expect(page.target(1)).to_have_attribute("aria-label", re.compile("2: yellow disc"))
    page.find("#undo").click()
    expect(page.find(".falls")).to_have_count(0)
    assert page.find("#undo").is_disabled()
    # A changed setting does not cancel a move.
    assert page.find(".estimate").count() == 0
    page.page.evaluate(
        """() => {
            document.querySelectorAll(".targets button")[3].click();
            document.querySelector("#strength").dispatchEvent(new Event("change"));
            document.querySelector("#analysis").open = true;
        }"""
    )
    page.wait_for(f"{YOURS}[data-moves='2']")
    assert page.page.url.split("moves=3-")[1].isdigit()
    expect(page.find("#speed")).to_contain_text(
        re.compile(r"^64 simulations, [\d,]+ a")
    )
    expect(page.find("#moves tr")).to_have_count(7)
    expect(page.find("#moves .best")).to_have_count(1)
    chances = re.findall(r"(\d+)%", page.find("#chances-text").inner_text())
    assert 98 <= sum(map(int, chances)) <= 102
    expect(page.find(".estimate .share").first).to_be_visible()
    assert re.fullmatch(r"[1-7]( [1-7])*", page.find("#line").inner_text())
    assert page.find("#chart .curve").count() == 1
    page.find("#on-board").uncheck()
    assert page.find(".estimate").count() == 0
    page.find("#new-game").focus()
    page.page.keyboard.press("Enter")
    expect(page.find(".falls")).to_have_count(0)


def test_the_tree_shows_continuations(visit):
    page = visit("connect_four", "#you=0&moves=3-3-3-3-2-1")
    analyze(page)
    status, marked = page.find("#status"), page.find("#tree [aria-pressed=true]")
    expect(marked).to_have_text("Now")
    best = page.find("#moves .best th").inner_text()
    branch(page, best).click()
    expect(status).to_have_text(f"What if {best}? » to continue.")
    about = rf"{best}: [\d,]+ visits, prior \d+%; You .[01].\d\d"
    expect(page.find("#branch")).to_have_text(re.compile(about))
    expect(branch(page, best)).to_have_attribute("aria-label", re.compile(about))
    assert page.pieces() == 7
    expect(page.find(".estimate").first).to_be_visible()
    page.target(0).click(force=True)
    assert page.find("#board").get_attribute("data-moves") == "6"
    # Arrow keys and buttons move through the tree.
    page.page.keyboard.press("Tab")
    page.find("#tree .root").focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.page.keyboard.press(key)
    expect(status).to_contain_text(re.compile(rf"What if {best} \d\?"))
    expect(marked).to_be_focused()
    expect(page.find(".falls")).to_have_count(8)
    page.page.keyboard.press("ArrowUp")
    expect(status).to_contain_text(f"What if {best}?")
    for times in range(2, 7):
        page.find("#next").click()
        expect(page.find(".falls")).to_have_count(6 + times)
        expect(page.find("#branch")).to_contain_text("visit")
        expect(status).to_contain_text("What if …" if times > 4 else "What if")
    for _ in range(6):
        page.find("#previous").click()
    expect(status).to_have_text("Computer played 2. Your turn.")
    expect(marked).to_have_text("Now")
    assert page.pieces() == 6
    # An earlier position also has a tree; the game continues from its own.
    page.find("#first").click()
    expect(status).to_contain_text("Move 0 of 6: the beginning.")
    page.find("#next").click()
    expect(status).to_have_text("Move 1 of 6: 4. » to continue.")
    choose_branch(page)
    expect(status).to_contain_text("What if")
    expect(page.find(".falls")).to_have_count(2)
    page.find("#last").click()
    expect(status).to_have_text("Computer played 2. Your turn.")


def test_a_game_continues_after_stepping_through_it(visit):
    page = visit("connect_four", "#you=0&moves=3-3-3-3-2-1")
    status, played = page.find("#status"), page.find("#played button")
    page.find("#analysis > summary").click()
    expect(page.find("#moves tr")).to_have_count(7)
    page.find("#previous").click()
    expect(status).to_have_text("Move 5 of 6: 3. » to continue.")
    assert played.all_inner_texts() == [*"444432"]
    expect(page.find("#played [aria-current]")).to_have_text("3")
    expect(page.find("#chances-text")).to_contain_text("%")
    expect(page.find(".estimate").first).to_be_visible()
    expect(page.find("#chart .now")).to_have_count(1)
    page.page.keyboard.press("ArrowLeft")
    played.nth(0).click()
    expect(status).to_contain_text("Move 1 of 6: 4.")
    assert page.pieces() == 1
    page.page.keyboard.press("ArrowRight")
    expect(played.nth(1)).to_be_focused()
    page.target(0).click(force=True)
    assert page.find("#board").get_attribute("data-moves") == "6"
    # Undo ends a continuation, and takes back the moves of the game.
    choose_branch(page)
    expect(status).to_contain_text("What if")
    page.find("#undo").click()
    expect(status).to_have_text("Computer played 4. Your turn.")
    expect(played).to_have_count(4)
    page.find("#previous").click()
    page.find("#undo").click()
    expect(played).to_have_count(2)
    page.play(2)
    expect(page.find("#played [aria-current]")).to_have_count(1)
    assert page.pieces() == 4


@pytest.mark.slow
def test_arrow_keys_step_through_the_game_after_a_click(visit):
    page = visit(hurries=False)
    page.target(3).click()
    page.wait_for(f"{YOURS}[data-moves='2']")
    board = page.find("#board")
    page.page.keyboard.press("ArrowLeft")
    expect(board).to_have_attribute("data-ply", "1")
    page.page.keyboard.press("ArrowRight")
    expect(board).to_have_attribute("data-ply", "2")
    page.find("label:has-text('Just watch')").click()
    page.page.keyboard.press("ArrowLeft")
    expect(board).to_have_attribute("data-ply", "1")
    expect(page.find("[value=watch]")).to_be_checked()


@pytest.mark.slow
def test_a_game_can_be_watched_and_a_continuation_pauses_it(visit):
    page = visit("tic_tac_toe", hurries=False)
    page.find("label:has-text('Just watch')").click()
    page.wait_for(".piece[data-kind='1']")
    page.find("#pause").click()
    pieces = page.pieces()
    expect(page.find("#status")).to_contain_text("Paused")
    page.find("#undo").click()
    expect(page.find(".appears")).to_have_count(pieces - 1)
    page.find("#pause").click()
    page.find("#analysis > summary").click()
    choose_branch(page)
    expect(page.find("#status")).to_contain_text(re.compile(r"What if .*\? Paused\."))
    page.find("#pause").click()
    page.wait_for(OVER)
    assert page.score() == [0, 0, 0]
    assert re.fullmatch(r"A draw\.|A win for (crosses|rings)\.", page.status())


@pytest.mark.slow
@pytest.mark.parametrize("name", browser_games())
def test_the_page_fits_a_phone(visit, name):
    page = visit(name, is_mobile=True, has_touch=True, color_scheme="dark")
    page.weaken()
    page.target(3).tap()
    page.wait_for(f"{YOURS}[data-moves='2']")
    page.find("#analysis > summary").tap()
    expect(page.find("#moves tr").first).to_be_visible()
    for width, height in [(320, 568), (390, 844), (844, 390)]:
        page.page.set_viewport_size({"width": width, "height": height})
        assert page.page.evaluate("innerWidth") == width
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
        for number in range(page.find(".targets button").count()):
            box = page.target(number).bounding_box()
            assert box["width"] >= 36
            assert box["height"] >= 44


@pytest.mark.slow
def test_the_layout_does_not_shift_during_a_game(visit):
    page = visit()
    page.weaken()
    for column in (3, 3, 2):
        page.play(column)
    shifts = page.page.evaluate(
        """() => new Promise((resolve) => {
          new PerformanceObserver((list) => resolve(
            list.getEntries().reduce((sum, entry) => sum + entry.value, 0)
          )).observe({ type: "layout-shift", buffered: true });
          setTimeout(() => resolve(0), 500);
        })"""
    )
    assert shifts < 0.02


FAILURES = {
    "network.onnx.gz": "The player failed: .*network.onnx.gz: 404",
    "config.json": "The player failed: config.json: 404",
    "search.js": "The player failed",
    "analysis.js": "Part of the page did not load",
}


def test_a_site_without_a_file_shows_an_error(open_page, sites):
    url, folder = sites

    def copied(name):
        path = folder / name
        shutil.copytree(folder / "tic_tac_toe", path, copy_function=os.link)
        return path

    for missing, says in FAILURES.items():
        broken = copied(f"without_{missing}")
        (broken / missing).unlink()
        page = open_page(f"{url}/{broken.name}/")
        expect(page.find("#failure")).to_contain_text(re.compile(says))
        expect(page.find("#failure")).to_be_visible()
        expect(page.find("#main")).to_be_hidden()
    network = copied("damaged") / "network.onnx.gz"
    network.unlink()
    network.write_bytes(b"no network")
    page = open_page(f"{url}/damaged/")
    expect(page.find("#failure")).to_contain_text("The player failed")
    # A page opened as a file explains how to serve it.
    page = open_page((folder / "tic_tac_toe" / "index.html").as_uri())
    expect(page.find("#failure")).to_contain_text("python -m http.server")
    assert page.problems == []


def test_the_players_name_is_escaped_and_other_hosts_are_blocked(open_page, sites):
    url, folder = sites
    odd = folder / "odd"
    shutil.copytree(folder / "tic_tac_toe", odd)
    config = json.loads((odd / "config.json").read_text())
    (odd / "config.json").write_text(json.dumps({**config, "player": "<b>&amp;"}))
    page = open_page(f"{url}/odd/")
    page.wait_for_turn()
    assert page.find("#player").inner_text() == "<b>&amp;"
    page.page.evaluate("fetch('https://example.org/').catch(() => null)")
    assert any("Content Security Policy" in problem for problem in page.problems)
    assert not any("example" in url for url in page.requests)
