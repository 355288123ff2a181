"""The input line for moves and commands."""

import threading

from textual import events
from textual.widgets import Input

from azjax import games, players


def test_moves_and_commands_are_completed_and_the_line_keeps_the_focus(drive):
    async def visit(page):
        await page.press("c")
        await page.press("tab")
        assert page.app.entry.value == "c3"
        await page.press("enter")
        assert page.moves == "c3 a3"
        await page.press(*"zz", "tab")
        assert page.app.entry.value == "zz"
        await page.press("escape", *"ana", "tab", "enter")
        assert page.app.session.is_analyzing
        await page.pilot.click(page.app.message)
        await page.pilot.click(page.app.panel)
        await page.press(*"b2", "enter")
        assert page.moves == "c3 a3 b2 b3"
        assert isinstance(page.app.focused, Input)

    drive(visit)


def test_lines_typed_in_quick_succession_are_processed_in_order(drive):
    async def visit(page):
        await page.press(*"zz", "enter", *"yx", "backspace", "y", "enter")
        assert page.message.startswith("'yy' is no action")
        await page.press("enter", "f4", "up", "enter", "f4", *"b2")
        assert page.moves == ""
        assert page.app.entry.value == "b2"

    drive(visit)


def test_a_pasted_text_does_not_make_a_move(drive):
    async def visit(page):
        for text in ("", "\n\n", "\x1b[A\x00", "b2\nc3\n", "x" * 9999):
            page.app.post_message(events.Paste(text))
            await page.settle()
            assert page.moves == ""
            assert page.app.entry.value == text.split("\n")[0]
            await page.press("escape")

    drive(visit)


def test_a_pass_is_offered(drive):
    async def visit(page):
        assert page.title.startswith(f" {game} "), "with its size"
        assert "pass" in page.app.entry.placeholder
        await page.press(*"pass", "enter")
        assert page.moves == "pass"

    game = games.make("go:3")
    drive(visit, game, players.HumanPlayer())


def test_keys_pressed_during_the_opponents_search_have_no_effect(drive, opponent):
    may_answer = threading.Event()

    async def visit(page):
        seat = opponent.sessions[0]
        choose = seat.choose
        seat.choose = lambda *args: may_answer.wait(60) and choose(*args)
        page.send(*"b2", "enter", *"c3", "enter")
        await page.pass_on()
        assert page.message == "it is not your turn"
        page.send("enter", "space", "f2", "f3", "f3", "f5")
        await page.pass_on()
        assert page.moves == "b2"
        page.send("f4", *"a1", "enter", "f8", "f8", "f6")
        await page.pass_on()
        may_answer.set()
        await page.settle()
        assert page.moves == "a3"

    drive(visit)
