"""The page of `azjax serve`, in a browser; needs playwright and Chromium."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from play.heads import Heads
from play.running_server import PATIENCE, RunningServer
from playwright.sync_api import expect
from training.saved_runs import evaluation_row, save_run
from websockets.sync.client import connect

from azjax import games
from azjax.games import registry
from azjax.games.saved_game import load
from azjax.play.server.positions import describe_start
from azjax.players.serialization import pretrained_directory

GAMES = ("tic_tac_toe", "breakthrough:5,5", "go:9", "hex:3,true", "heads")
LARGE_GAMES = ("othello", "chess", "go:19")
YOURS = "#board[data-turn=user]"
OVER = "#board[data-turn=nobody]"
LEGAL = ".targets button[aria-disabled=false]"
PHONE = {
    "viewport": {"width": 320, "height": 640},
    "is_mobile": True,
    "has_touch": True,
    "color_scheme": "dark",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of Breakthrough, and a stopped run that has a strong player."""
    run = tmp_path_factory.mktemp("runs") / "first"
    (run / "plots").mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"format": 10, "game": "tic_tac_toe"}))
    matplotlib.image.imsave(run / "plots" / "learning.png", np.zeros((40, 60)))
    shutil.copytree(pretrained_directory(games.make("tic_tac_toe")), run / "player")
    add_row(run.parent, iteration=7, policy_loss=0.51234)
    for seed in range(2):
        rows = [evaluation_row(number, random=0.4 / number) for number in (1, 2)]
        path = run.parent / f"run{seed}"
        save_run(path, rows, game="breakthrough:5,5", seed=seed)
    return run.parent


def add_row(runs, **row):
    with (runs / "first" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


@contextlib.contextmanager
def learning(runs):
    """Locks the run's directory, as its training process does."""
    with (runs / "first" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def server(runs):
    registry._GAMES["heads"] = Heads
    engine = Path(__file__).parents[1] / "players" / "gtp_engine.py"
    failing = [
        f"breakthrough:5,5={name}=gtp:{sys.executable} {engine} {does} {os.devnull}"
        for name, does in (("dying", "dies"), ("beaten", "resigns"))
    ]
    with RunningServer(GAMES, runs, failing) as server:
        compile_search(server)
        yield server
    del registry._GAMES["heads"]


def compile_search(server):
    """Makes the server compile the search of the shipped player."""
    start = {"game": "tic_tac_toe", "player": "alphazero:pretrained"}
    with connect(f"ws://127.0.0.1:{server.port}/socket") as socket:
        for number, (method, params) in enumerate(
            {"start": start, "decide": {"actions": [], "simulations": 64}}.items()
        ):
            socket.send(json.dumps({"id": number, "method": method, "params": params}))
            while json.loads(socket.recv(PATIENCE))["kind"] != "answer":
                pass


@pytest.fixture(scope="module")
def large_server(runs):
    """Serves games whose rules compile slowly."""
    with RunningServer(LARGE_GAMES, runs) as server:
        yield server


@pytest.fixture
def visit(open_page, server):
    """Opens an address of the server; errors on the page fail the test."""
    yield from visits(open_page, server)


@pytest.fixture
def large_visit(open_page, large_server):
    yield from visits(open_page, large_server)


def visits(open_page, server):
    opened = []

    def open_address(path, **options):
        opened.append(open_page(server.url + path, **options))
        return opened[-1]

    yield open_address
    for each in opened:
        assert each.problems == []


def play(visit, game, player="random", **options):
    """Opens a game's page and waits for the user's turn."""
    page = visit(f"play/{games.make(game)}/?player={player}", **options)
    page.wait_for_turn()
    return page


def point(page, *cells):
    """Makes a move by clicking cells, and waits for the reply."""
    move(page, *map(page.target, cells))


def move(page, *buttons):
    moves = int(page.find("#board").get_attribute("data-moves"))
    for button in buttons:
        button.click()
    page.wait_for(f"{YOURS}[data-moves='{moves + 2}'], {OVER}")


def legal(page):
    """Returns the cells that can be clicked."""
    return page.page.evaluate(
        f"[...document.querySelectorAll('.targets button')]"
        f".flatMap((one, cell) => one.matches('{LEGAL}') ? [cell] : [])"
    )


def test_the_lobby_links_to_games_and_runs_and_is_refreshed(visit, server, runs):
    page = visit("", hurries=True)  # a context of its own, because of the clock
    page.page.goto(f"{server.url}runs/nothing/")
    page.find("a").click()
    expect(page.find("#games > li")).to_have_count(len(GAMES))
    assert "404" in page.problems.pop()
    for number in range(len(GAMES)):
        picture = page.find("#games img").nth(number)
        expect(picture).not_to_have_js_property("naturalWidth", 0)
    page.page.clock.install()
    page.page.reload()
    link = page.find("#runs a:text-is('first: Tic Tac Toe')")
    state = page.find("#runs li").filter(has_text="first").locator("span")
    expect(state).to_have_text("stopped")
    link.focus()
    page.page.evaluate("document.querySelector('#games > li').id = 'untouched'")
    with learning(runs):
        page.page.clock.fast_forward(10_000)
        expect(state).to_have_text("training")
    expect(link).to_be_focused()
    expect(page.find("#untouched")).to_have_count(1)
    game = page.find("#games > li").nth(0)
    expect(game.locator(".primary")).to_have_text("Play AlphaZero")
    expect(game.locator("> div > .later")).to_have_text("strong: 64 simulations a move")
    expect(game.locator(".primary")).to_have_attribute(
        "href", "play/tic_tac_toe/?player=alphazero%3Apretrained"
    )
    game.locator("summary").click()
    expect(game.locator("li:has(a:text-is('Random')) > .later")).to_have_text(
        "easiest: any move"
    )
    game.locator("a:text-is('Random')").click()
    page.wait_for_turn()
    assert page.page.title() == "Tic Tac Toe against Random"


@pytest.mark.slow
def test_the_board_is_drawn_while_the_rules_compile(visit, server):
    page = visit("", hurries=True)  # a context of its own, because of the route
    game = games.make("tic_tac_toe")
    preview = describe_start(game, "tic_tac_toe")._asdict()
    held = []

    def hold(socket):
        """Delays the answer to the start, as a server does that compiles the rules."""
        there = socket.connect_to_server()

        def take(text):
            message = json.loads(text)
            there.send(text)
            if message["method"] != "start":
                return
            for kind, value in (
                ("stage", "Compiling the rules"),
                ("progress", preview),
            ):
                socket.send(json.dumps({**message, "kind": kind, "value": value}))

        def pass_on(text):
            message = json.loads(text)
            is_description = message["kind"] == "answer" and "strengths" in str(text)
            if is_description and not held:
                held.append(lambda: socket.send(text))
            elif message["kind"] == "answer":
                socket.send(text)

        socket.on_message(take)
        there.on_message(pass_on)

    page.page.route_web_socket("**/socket", hold)
    page.page.goto(f"{server.url}play/tic_tac_toe/?player=random")
    expect(page.find("#status")).to_have_text("Compiling the rules")
    expect(page.find("#board > svg").first).to_be_visible()
    expect(page.find("#title")).to_have_text("Tic Tac Toe")
    assert legal(page) == []
    # What is chosen meanwhile holds for the first game.
    opposite = page.target(8).get_attribute("style")
    page.find("#flip").click()
    assert page.target(0).get_attribute("style") == opposite
    page.find("#opponent").select_option("greedy")
    page.find("label:has-text('Computer')").click()
    expect(page.find("#new-game")).to_have_js_property("inert", True)
    while not held:
        page.page.wait_for_timeout(50)
    held[0]()
    page.wait_for(f"{YOURS}[data-moves='1']")
    expect(page.find("#player")).to_have_text("Greedy")
    expect(page.find("#new-game")).to_have_js_property("inert", False)
    assert page.target(0).get_attribute("style") == opposite
    assert len(legal(page)) == 8
    expect(page.find(".entry")).to_have_count(1)


def test_moves_from_cell_to_cell_are_made_saved_and_continued(visit, tmp_path):
    page = play(visit, "breakthrough:5,5")
    # The first cell can be dropped and changed.
    page.target(16).click()
    expect(page.find(".dot")).to_have_count(3)
    expect(page.target(16)).to_have_attribute("aria-pressed", "true")
    page.target(15).click()
    expect(page.find(".dot")).to_have_count(2)
    page.page.keyboard.press("Escape")
    expect(page.find(".dot, .ring")).to_have_count(0)
    assert page.target(15).get_attribute("aria-label") == "a2: white man"
    assert page.target(12).get_attribute("aria-label") == "c3: empty"
    point(page, 16, 12)
    status = page.status()
    page.page.reload()
    page.wait_for_turn()
    assert page.status() == status
    assert re.search(r"player=random#you=0&moves=\d+-\d+$", page.page.url)
    page.find("#first").click()
    expect(page.target(16)).to_have_attribute("aria-label", "b2: white man")
    assert legal(page) == []
    saved, actions = saved_game(page, tmp_path)
    assert saved.players == ("human", "random")
    assert len(actions) == 2
    page.find("#undo").click()
    page.wait_for(f"{YOURS}[data-moves='0']")
    while not page.is_over():
        start = legal(page)[0]
        page.target(start).click()
        expect(page.find(".ring")).not_to_have_count(0)
        end = next(cell for cell in legal(page) if cell < start - 3)
        point(page, end)
    assert re.fullmatch("You win!|The computer wins.", page.status())
    assert sum(page.score()) == 1


def saved_game(page, folder):
    """Saves the game of Breakthrough; returns it and its actions."""
    with page.page.expect_download() as download:
        page.find("#save-game").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return load(path, games.make("breakthrough:5,5"))


def test_an_opponent_that_fails_can_be_replaced_and_one_that_resigns_has_lost(
    visit, tmp_path
):
    page = play(visit, "breakthrough:5,5", "dying")
    page.target(legal(page)[0]).click()
    page.target(next(cell for cell in legal(page) if cell < 15)).click()
    expect(page.find("#notice")).to_have_text("the opponent failed")
    expect(page.find("#status")).to_contain_text("failed: choose another")
    page.find("#opponent").select_option("random")
    expect(page.find("#board")).to_have_attribute("data-moves", "2")
    expect(page.find("#status")).to_contain_text("Your turn")
    expect(page.find("#notice")).to_be_hidden()
    page.find("#opponent").select_option("beaten")
    page.find("#new-game").click()
    page.wait_for(f"{YOURS}[data-moves='0']")
    point(page, 16, 12)
    assert page.status() == "You win: resignation."
    assert page.score() == [1, 0, 0]
    assert legal(page) == []
    page.page.reload()
    page.wait_for(OVER)
    assert page.score() == [1, 0, 0]
    saved, _ = saved_game(page, tmp_path)
    assert (saved.result, saved.is_forfeit) == ("first wins", True)
    page.find("#undo").click()
    page.wait_for(f"{YOURS}[data-moves='0']")
    assert page.score() == [0, 0, 0]
    page.find("label:has-text('Computer')").click()
    page.wait_for(OVER)
    assert page.status() == "You win: resignation."


def test_the_second_player_sees_the_board_turned(visit):
    page = play(visit, "breakthrough:5,5")

    def heights(*cells):
        tops = [page.target(cell).bounding_box()["y"] for cell in cells]
        return [top - page.find("#board").bounding_box()["y"] for top in tops]

    above, below = heights(0, 24)
    assert above < below
    page.find("label:has-text('Computer')").click()
    page.wait_for(f"{YOURS}[data-moves='1']")
    assert heights(24, 0) == pytest.approx([above, below])
    assert page.find(".labels text").all_text_contents() == [*"edcba12345"]
    expect(page.find(".slides")).to_have_count(1)  # the computer's man
    assert page.target(0).get_attribute("aria-label") == "a5: black man"
    free, square = 11, "b3"
    if "white" in page.target(free).get_attribute("aria-label"):
        free, square = 12, "c3"
    page.page.keyboard.press("Tab")  # from now on, arrow keys move on the board
    page.target(5).focus()  # on the right edge, with column b to its left
    steps = ["ArrowLeft"] * (free - 10)
    for key in ("ArrowRight", *steps, "Enter", "ArrowUp", "Enter"):
        page.page.keyboard.press(key)
    page.wait_for(f"{YOURS}[data-moves='3']")
    assert page.target(free).get_attribute("aria-label") in (
        f"{square}: black man",
        f"{square}: white man",  # if captured
    )
    page.find("label:has-text('You')").click()
    page.find("#new-game").click()
    page.wait_for(f"{YOURS}[data-moves='0']")
    assert heights(0, 24) == pytest.approx([above, below])


@pytest.mark.slow
def test_hexagons_can_be_clicked_and_other_actions_have_buttons(visit):
    page = play(visit, "hex:3,true")
    page.find("label:has-text('Computer')").click()
    page.wait_for(f"{YOURS}[data-moves='1']")
    page.find(".entry button:has-text('Swap')").click()
    page.wait_for(f"{YOURS}[data-moves='3']")
    expect(page.find(".entry button")).to_have_count(0)
    while not page.is_over():
        point(page, legal(page)[0])
    assert sum(page.score()) == 1
    winning = page.find(".targets button[aria-label$=', wins']")
    assert winning.count() == page.find(".wins").count() >= 3


@pytest.mark.slow
def test_on_a_phone_a_small_cell_is_confirmed_and_a_review_can_be_stopped(visit):
    page = play(visit, "go:9", **PHONE)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 320
    box = page.find("#board").bounding_box()
    assert (box["x"], box["width"]) == (8, 304)
    size = page.find("#board .labels text").first.evaluate(
        "text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a"
    )
    assert size == pytest.approx(10, abs=0.1)
    page.target(40).tap()
    expect(page.find(".aim")).to_be_visible()
    assert page.find("#board").get_attribute("data-moves") == "0"
    page.target(41).tap()
    page.find(".entry button:has-text('Play f5')").tap()
    page.wait_for(f"{YOURS}[data-moves='2']")
    assert page.target(41).get_attribute("aria-label") == "f5: black stone"
    page.find(".entry button:has-text('Pass')").tap()
    page.wait_for(f"{YOURS}[data-moves='4'], {OVER}")
    # A review can be stopped.
    page.find("#review > summary").tap()
    read(page, " ".join(f"{column}{row}" for row in (1, 9) for column in "abcdefghj"))
    page.find("#stop-review").tap()
    expect(page.find("#review-game")).to_be_visible()
    expect(page.find("#stop-review")).to_be_hidden()
    expect(page.find("#summaries")).to_be_empty()
    page.find("#new-game").tap()
    page.wait_for_turn()
    expect(page.find("#review-view")).to_be_hidden()


def test_moves_are_keys_and_text_and_another_opponent_waits_for_the_next_game(visit):
    # A player that cannot be started is replaced.
    page = play(visit, "tic_tac_toe", "somebody")
    opponent, later = page.find("#opponent"), page.find("#later")
    expect(page.find("#notice")).to_contain_text("unknown player 'somebody'")
    assert opponent.input_value() == "alphazero:pretrained"
    assert "player=alphazero" in page.page.url
    # Before the first move, the opponent is replaced at once.
    opponent.select_option("random")
    expect(page.find("#player")).to_have_text("Random")
    page.target(0).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowLeft", "ArrowLeft", "Enter"):
        page.page.keyboard.press(key)
    page.wait_for(f"{YOURS}[data-moves='2']")
    assert page.target(3).get_attribute("aria-label") == "a2: cross"
    page.find(".entry input").fill("a9")
    page.page.keyboard.press("Enter")
    expect(page.find(".entry p")).to_contain_text("'a9' is no action of tic_tac_toe;")
    free = legal(page)[0]
    page.find(".entry input").fill(f" {'abc'[free % 3].upper()}{3 - free // 3}")
    page.page.keyboard.press("Enter")
    page.wait_for(f"{YOURS}[data-moves='4'], {OVER}")
    page.find("#undo").click()
    page.wait_for(f"{YOURS}[data-moves='2']")
    opponent.select_option("greedy")
    expect(later).to_have_text("Applies to the next game.")
    expect(page.find("#player")).to_have_text("Random")
    point(page, legal(page)[0])
    page.find("#new-game").click()
    expect(page.find("#player")).to_have_text("Greedy")
    expect(later).to_be_hidden()
    expect(page.find("#status")).to_contain_text("You move first, with crosses")
    assert page.page.url.endswith("?player=greedy")
    # An opponent that cannot start changes nothing.
    point(page, legal(page)[0])
    page.page.evaluate(
        "document.querySelector('#opponent').append(new Option('gone', 'gone'))"
    )
    opponent.select_option("gone")
    page.target(legal(page)[0]).click()
    page.find("#new-game").click()
    expect(page.find("#notice")).to_contain_text("unknown player 'gone'")
    expect(opponent).to_have_value("greedy")
    page.wait_for(f"{YOURS}[data-moves='4'], {OVER}")


def test_changing_the_opponent_cancels_no_move_and_the_server_sends_the_tree(visit):
    page = play(visit, "tic_tac_toe")
    page.page.evaluate(
        """() => {
            const opponent = document.querySelector("#opponent");
            opponent.value = "greedy";
            opponent.dispatchEvent(new Event("change"));
            document.querySelectorAll(".targets button")[4].click();
        }"""
    )
    page.wait_for(f"{YOURS}[data-moves='2']")
    expect(page.find("#player")).to_have_text("Greedy")
    expect(page.find("#later")).to_be_hidden()
    assert re.search(r"player=greedy#you=0&moves=4-\d$", page.page.url)
    # Another opponent is chosen before the first move of a game.
    page.find("#undo").click()
    page.wait_for(f"{YOURS}[data-moves='0']")
    page.find("#opponent").select_option("random")
    page.find("#analysis > summary").click()
    expect(page.find("#moves tr")).not_to_have_count(0)
    expect(page.find("#speed")).to_be_hidden()
    expect(page.find(".strength")).to_be_hidden()
    page.find("#opponent").select_option("alphazero:pretrained")
    expect(page.find("#player")).to_have_text("AlphaZero")
    expect(page.find(".strength")).to_be_visible()
    expect(page.find("#speed")).to_contain_text("simulations")
    expect(page.find(".estimate")).not_to_have_count(0)
    page.find("#tree button[aria-label^='b2: ']").click()
    expect(page.find("#status")).to_contain_text("What if b2?")
    expect(page.find(".estimate").first).to_be_visible()
    page.find("#opponent").select_option("random")
    expect(page.find("#branches")).to_be_hidden()
    expect(page.find("#status")).to_have_text("You move first, with crosses.")
    point(page, legal(page)[0])


def read(page, text):
    """Reviews the game of a text."""
    page.find("#game-text").fill(text)
    page.find("#read-game").click()


BLUNDER = "a1 b1 b2 c3 a3 a2 c1"  # b1 loses


def test_games_are_reviewed_and_the_played_game_goes_on(visit):
    page = play(visit, "tic_tac_toe")
    summaries, verdict = page.find("#summaries"), page.find("#verdict")
    page.find("#review > summary").click()
    expect(page.find("#review-game")).to_be_disabled()
    point(page, 4)
    page.find("#review-game").click()
    expect(summaries).to_contain_text("loses")
    # One of several equal replies: the reviewer's own or another one.
    expect(verdict).to_contain_text(re.compile("reviewer's move|Better: "))
    expect(page.find("#review-view")).to_be_visible()
    point(page, legal(page)[0])
    expect(page.find("#review-view")).to_be_hidden()
    expect(page.find("#played [data-mark]:not([data-mark=''])")).to_have_count(0)
    # A pasted game.
    read(page, BLUNDER)
    expect(summaries).to_contain_text("rings: 0 ?!, 0 ?, 1 ??; loses")
    expect(page.find("#played [data-mark='??']")).to_have_text(["b1"])
    expect(page.find("#curve .dot-mark")).to_have_count(1)
    expect(page.find("#curve svg")).to_have_attribute(
        "aria-label", "Value over 7 moves; crosses above, rings below"
    )
    expect(page.find("#next-mistake")).to_be_visible()
    page.find("#next-mistake").click()
    expect(page.find("#status")).to_have_text("Move 2 of 7: b1.")
    expect(verdict).to_contain_text("Blunder: b1 ?? loses")
    expect(page.find(".better .ring")).to_have_count(1)
    label = page.find("#played [data-mark='??']").get_attribute("aria-label")
    found = re.fullmatch("Move 2: b1, blunder, better (..)", label)
    assert found is not None
    page.find("#better").click()
    expect(page.find("#status")).to_contain_text(f"What if {found[1]}?")
    expect(page.find(".better .ring")).to_have_count(0)
    page.find("#played button").nth(6).click()
    expect(page.find("#status")).to_contain_text("A win for crosses")
    expect(verdict).not_to_contain_text("Blunder")
    box = page.find("#curve").bounding_box()
    page.find("#curve").click(position={"x": box["width"] * 3.1 / 7, "y": 5})
    expect(page.find("#board")).to_have_attribute("data-ply", "3")


HOSTILE = "<img src=x onerror=alert(1)><b>"
SAVED = f"azjax game 1\ngame: tic_tac_toe\nfirst: {HOSTILE}\nsecond: b\n"


def test_nothing_in_a_file_is_executed(visit):
    page = play(visit, "tic_tac_toe")
    notice = page.find("#notice")
    page.find("#review > summary").click()

    def choose(text):
        file = {"name": "a.pgn", "mimeType": "x/y", "buffer": text.encode()}
        page.find("#game-file").set_input_files(files=[file])

    choose("1. e4 " * 1_700_000)  # 10 MB
    expect(notice).to_have_text(
        "This has 10,200 kB; a game may have 60 kB. Give one game alone."
    )
    choose(HOSTILE)
    expect(notice).to_contain_text("move 1: '<img' is no action of tic")
    read(page, "\x01" * 20_000)  # six bytes each in JSON
    expect(notice).to_contain_text("This has 121 kB")
    choose(f"{SAVED}result: unfinished\n\n1. b2\n")
    title = f"{HOSTILE} \N{EN DASH} b: unfinished"
    expect(page.find("#review-title")).to_have_text(title)
    expect(page.find("#summaries")).to_contain_text("loses")
    expect(notice).to_be_hidden()
    expect(page.find("main img, main b")).to_have_count(0)


@pytest.mark.slow
def test_a_game_is_watched_from_the_address(visit):
    page = visit("play/tic_tac_toe/?player=random&watch", hurries=False)
    page.wait_for("#board:not([data-moves='0'])")
    page.find("#pause").click()
    expect(page.find("#status")).to_contain_text("Paused")


def test_runs_are_shown_while_they_learn_and_compared(visit, runs):
    with learning(runs):
        page = visit("runs/first/")
        expect(page.find("#title")).to_have_text("first: Tic Tac Toe")
        expect(page.find("#state")).to_have_text("Training.")
        expect(page.find("#plot")).to_be_visible()
        expect(page.find("#latest")).to_contain_text(re.compile(r"Policy loss\s*0.512"))
        add_row(runs, iteration=1234)
        expect(page.find("#latest")).to_contain_text("1,234")
    expect(page.find("#state")).to_contain_text("Stopped; the same command resumes")
    page.find("#sample").click()
    page.wait_for("#board:not([data-moves='0'])")
    expect(page.find("#sample-status")).to_contain_text("Last move: ")
    page.find("#play").click()
    page.wait_for_turn()
    assert page.find("#player").inner_text() == "AlphaZero (run first)"
    page = visit("")
    page.find("text=Compare the 2 runs of Breakthrough").click()
    expect(page.find("#title")).to_have_text("Breakthrough 5x5: runs compared")
    expect(page.find("#plot")).to_be_visible()
    expect(page.find("#compared thead a")).to_have_text(["run0", "run1"])
    seeds = page.find("#compared tr:has(th:text-is('seed')) td")
    expect(seeds).to_have_text(["0", "1"])
    page.find("#choice input").nth(0).uncheck()
    expect(page.find("#compared thead a")).to_have_text(["run1"])
    expect(page.find("#choice input").nth(1)).to_be_disabled()
    assert page.page.url.endswith("?run=run1")
    page.find("#compared thead a").click()
    expect(page.find("#title")).to_have_text("run1: Breakthrough 5x5")


def test_the_server_rolls_and_outcomes_are_shown_and_taken_back(visit):
    page = play(visit, "heads")
    assert page.status() == "Heads. You move first, with crosses."
    expect(page.find("#undo")).to_be_disabled()
    page.target(4).click()
    page.wait_for(f"{YOURS}[data-moves='5']")
    computers = page.find("#played button").nth(3).inner_text()
    assert page.status() == f"Computer played {computers}. Heads. Your turn."
    expect(page.find("#played li")).to_have_text([f"headsb2heads{computers}", "heads"])
    expect(page.find("#board .last")).to_have_count(1)
    # A position in which a player or nobody is to move can be looked at and analyzed.
    page.find("#analysis > summary").click()
    expect(page.find("#moves tr")).not_to_have_count(0)
    for number, text in (4, computers), (3, "heads"), (2, "b2"):
        page.find("#previous").click()
        expect(page.find("#status")).to_contain_text(f"Move {number} of 5: {text}.")
    page.find("#last").click()
    page.find("#analysis > summary").click()
    address = page.page.url
    page.find("#undo").click()
    page.wait_for(f"{YOURS}[data-moves='1']")
    assert page.status() == "Heads. You move first, with crosses."
    # A list of moves has outcomes; the server draws one if it ends before.
    page.open(address.rpartition("-")[0])
    page.wait_for(f"{YOURS}[data-moves='5']")
    assert page.page.url == address
    page.open(address.replace("moves=9-4", "moves=11-4"))
    expect(page.find("#notice")).to_contain_text("action 11, number 1, is no outcome")
    page.find("label:has-text('Computer')").click()
    page.wait_for(f"{YOURS}[data-moves='3']")


def test_a_game_continues_after_a_lost_connection(open_page, server):
    page = open_page(f"{server.url}play/tic_tac_toe/?player=random")
    page.wait_for_turn()
    point(page, legal(page)[0])
    server.stop()
    expect(page.find("#notice")).to_contain_text("The server does not answer")
    page.target(legal(page)[0]).click()
    page.find("#undo").click()
    expect(page.find("#board")).to_have_attribute("data-moves", "0")
    page.target(4).click()
    server.start()
    page.wait_for(f"{YOURS}[data-moves='2']")
    assert page.target(4).get_attribute("aria-label") == "b2: cross"
    expect(page.find("#notice")).to_be_hidden()
    # Chromium requests the icon after each change of the address.
    known = ("WebSocket", "Failed to load resource")
    assert all(any(text in problem for text in known) for problem in page.problems)


@pytest.mark.slow
def test_a_whole_game_of_othello(large_visit):
    page = play(large_visit, "othello")
    while not page.is_over():
        cells = legal(page)
        if cells:
            point(page, cells[-1])
        else:
            move(page, page.find(".entry button:has-text('Pass')"))
    assert re.search(r": \d+ to \d+\.$", page.status())
    assert int(page.find("#board").get_attribute("data-moves")) >= 9
    assert sum(page.score()) == 1


@pytest.mark.slow
def test_a_pawn_promotes_to_the_chosen_piece(large_visit):
    # a4 b5, axb5 a6, bxa6 h6, a7 h5
    moves = "3512-3585-2337-3504-1832-4015-1168-3431"
    page = large_visit(f"play/chess/?player=random#you=0&moves={moves}")
    page.wait_for_turn()
    start, end = 8, 1  # a7 and b8
    page.target(start).click()
    page.target(end).click()
    expect(page.find(".piece-choice button")).to_have_count(4)
    page.page.keyboard.press("Escape")
    expect(page.find(".piece-choice")).to_be_hidden()
    expect(page.target(end)).to_be_focused()
    page.target(start).click()
    page.target(end).click()
    expect(page.find("[aria-label='white queen']")).to_be_focused()
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Enter")
    page.wait_for(f"{YOURS}[data-moves='10']")
    there = page.target(end).get_attribute("aria-label")
    assert there in ("b8: white knight", "b8: black rook")  # a recapture
    # A position is set up; its user moves first, with either color.
    page.find("#setup").fill("nonsense")
    page.page.keyboard.press("Enter")
    expect(page.find("#later")).to_be_visible()
    page.find("#resign").click()
    expect(page.find("#status")).to_have_text("The computer wins: resignation.")
    page.find("#new-game").click()
    expect(page.find("#notice")).to_contain_text("FEN 'nonsense'")
    expect(page.find("#setup")).to_have_value("")
    page.find("#setup").fill("4k3/8/8/8/8/8/7P/4K3 b - - 0 1")
    page.page.keyboard.press("Enter")
    expect(page.find("#status")).to_contain_text("You move first, with black pieces")
    for cell in (4, 3):
        page.target(cell).click()
    page.wait_for(f"{YOURS}[data-moves='2']")
    status = page.status()
    page.page.reload()
    page.wait_for_turn()
    assert page.status() == status
    assert page.target(3).get_attribute("aria-label") == "d8: black king"
    expect(page.find("#save-game")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("game", LARGE_GAMES)
def test_the_page_fits_a_phone(large_visit, game):
    page = play(large_visit, game, **PHONE)
    page.find("#analysis > summary").tap()
    expect(page.find("#moves tr").first).to_be_visible()
    for width, height in [(320, 568), (390, 844), (844, 390)]:
        page.page.set_viewport_size({"width": width, "height": height})
        assert page.page.evaluate("innerWidth") == width
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
