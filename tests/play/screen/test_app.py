import threading

import numpy as np
import pytest
from flax import struct
from play.heads import Heads
from rich.console import Console
from textual import events
from textual.geometry import Size
from textual.widgets import Input

from azjax import games, players
from azjax.games.host import first_state, legal_actions, next_state
from azjax.play.screen.app import Help, Pointing, Waiting, side_panel

GAME = games.make("tic_tac_toe")


def test_a_game_is_played_by_typing_and_wrong_lines_are_explained(drive):
    async def visit(page):
        assert "your move, with the crosses" in page.title
        for text in ("z9", "[/bold]", "load", "load /nowhere"):
            page.app.entry.insert_text_at_cursor(text)
            await page.press("enter")
            assert page.app.message.has_class("-wrong")
            assert page.moves == ""
        assert page.message == "/nowhere: No such file or directory"
        await page.press("f2")
        assert page.message == "it would play a3"
        assert page.moves == ""
        await page.press(*"b2", "enter")
        assert page.moves == "b2 a3"
        assert not page.app.message.has_class("-wrong")
        assert page.message == "it plays a3, expects +0.50 for the rings"
        await page.press(*"c3", "enter")
        await page.press(*"a1", "enter")
        assert "you win" in page.title

    drive(visit)


def test_a_game_is_played_with_the_cursor_and_the_mouse(drive):
    async def visit(page):
        await page.press("enter")
        await page.press("up", "right", "enter")
        assert page.moves == "b2 a3 c3 b3"
        await page.press("space")
        assert page.message == "no move starts there"
        lines = str(page.app.board.render()).rstrip().split("\n")
        (row,) = (row for row, line in enumerate(lines) if line.split()[:1] == ["1"])
        await page.pilot.click(page.app.board, offset=(lines[-1].index("b"), row))
        await page.settle()
        assert page.moves == "b2 a3 c3 b3 b1 a2"
        await page.press("left", "enter")
        assert page.moves == "b2 a3 c3 b3 b1 a2 a1"

    drive(visit)


def test_a_piece_is_selected_and_then_moved(drive):
    async def visit(page):
        await page.press("down", "down", "enter")
        await page.press("escape")
        await page.press("up", "right", "enter")
        assert page.moves == "", "it is deselected"
        assert page.message == "no move starts there"
        await page.press("down", "left", "enter", "up", "right", "enter")
        assert page.moves == "e2f3"

    drive(visit, games.make("breakthrough"), players.HumanPlayer())


def test_function_keys_undo_moves_change_sides_and_start_games(drive, monkeypatch):
    async def visit(page):
        await page.press(*"b2", "enter")
        await page.press("f4")
        assert page.moves == ""
        await page.press("f5")
        assert page.moves == "b2 a3"
        await page.press("f6")
        assert page.moves == "b2 a3 b3"
        await page.press("f8")
        assert page.moves == "b2 a3 b3"
        assert "press F8 again" in page.message
        await page.press("f8")
        assert page.moves == "a3"
        await page.press("f7")  # the game plays itself
        while page.app.session.result is None:
            await page.pilot.pause(0.02)
        assert "the crosses win" in page.title

    monkeypatch.setattr("azjax.play.screen.app.MOVE_INTERVAL", 0.0)
    drive(visit)


def test_the_analysis_is_shown_on_request(drive, opponent):
    async def visit(page):
        session = opponent.sessions[0]
        choose = session.choose

        def choose_with_analysis(state, moves):
            decision = choose(state, moves)
            line = np.int32([decision.action, *[-1] * 15])
            visits, values = np.full(9, 4), np.full(9, 0.25, np.float32)
            found = players.Analysis(decision.policy, visits, values, line)
            return decision._replace(analysis=found)

        session.choose = choose_with_analysis
        await page.press("f3")
        await page.press(*"b2", "enter")
        assert page.app.session.values() == [0.5, -0.5, 0.5]
        svg = page.app.export_screenshot()
        for word in ("prior", "visits", "value", "then"):
            assert word in svg
        await page.press("f3")
        assert "visits" not in page.app.export_screenshot()

    drive(visit)


def test_any_key_or_click_closes_the_help_and_has_no_other_effect(drive):
    async def visit(page):
        await page.press(*"help", "enter")
        await page.pass_on()
        assert isinstance(page.app.screen, Help)
        await page.press("x")
        assert not isinstance(page.app.screen, Help)
        # In quick succession.
        for keys in ("xy", ["ctrl+q", "x"], ["enter", "f1", "f8", "b"]):
            await page.press("f1")
            await page.press(*keys)
            assert not isinstance(page.app.screen, Help)
            assert page.app.entry.value == ""
        await page.press("f1")
        page.app.post_message(events.Paste("b2\nc3\n"))
        await page.press(*"b2", "enter", *"c3", "enter")
        assert not isinstance(page.app.screen, Help)
        assert page.moves == ""
        # It opens only once.
        await page.press("f1", "f1", "f1")
        assert len(page.app.screen_stack) == 2
        await page.pilot.click(times=2)
        await page.pass_on()
        assert len(page.app.screen_stack) == 1
        # The window changes.
        await page.press("f1")
        for size in (Size(20, 5), Size(1, 1), Size(80, 24)):
            page.app.post_message(events.Resize(size, size))
            await page.press("x", "f3", "f1")
        await page.press("x", "y")
        await page.press("escape", *"b2", "enter")
        assert page.moves == "b2 a3"

    drive(visit)


def test_keys_pressed_after_the_last_one_change_nothing(drive):
    async def visit(page):
        await page.press("ctrl+q", "ctrl+q", "f1", "x")
        page.app.leave(130)

    app = drive(visit)
    assert app.return_code == 0


@struct.dataclass
class Slow:
    """A random player whose compilation waits for an event."""

    may_compile: threading.Event = struct.field(pytree_node=False)

    def choose(self, rng_key, states):
        assert self.may_compile.wait(60)
        return players.RandomPlayer(GAME).choose(rng_key, states)


@pytest.fixture
def may_compile():
    return threading.Event()


def test_keys_do_nothing_while_the_opponent_is_compiled(drive, may_compile):
    async def visit(page):
        app = page.app
        assert isinstance(app.screen, Waiting)
        assert "compiling it" in page.title
        assert "compiling it" in app.export_screenshot().replace("&#160;", " ")
        page.send(*"b2", "enter", "f3", "f8", "f1", "escape", "ctrl+z")
        app.post_message(events.Paste("b2"))
        await page.pilot.pause(0.2)
        assert app.session.seconds(0) == 0
        may_compile.set()
        await page.settle()
        assert len(app.screen_stack) == 1
        assert (page.moves, app.entry.value) == ("", "")
        assert not app.session.is_analyzing
        await page.press(*"b2", "enter")
        assert page.moves.startswith("b2 ")

    drive(visit, player=Slow(may_compile), settles=False)


@pytest.mark.parametrize(("key", "status"), [("ctrl+q", 0), ("ctrl+c", 130)])
def test_the_user_can_quit_while_the_opponent_is_compiled(
    drive, may_compile, key, status
):
    async def visit(page):
        await page.pilot.press(key)
        assert page.app.return_code == status
        may_compile.set()

    drive(visit, player=Slow(may_compile), settles=False)


def test_a_saved_game_is_shown_from_the_start(drive, tmp_path):
    path = tmp_path / "game.txt"
    head = "azjax game 1\ngame: tic_tac_toe\nfirst: human\nsecond: it\n"
    path.write_text(f"{head}result: unfinished\n\n1. b2 a3\n")

    async def visit(page):
        lines = str(page.app.board.render()).strip().split("\n")
        assert [line.strip() for line in lines] == ["3 O", "2   X", "1", "a b c"]

    drive(visit, size=(40, 11), saved=str(path), settles=False)


def test_a_game_is_saved_after_its_opponent_died(drive, opponent, tmp_path):
    async def visit(page):
        opponent.sessions[0].is_dead = True
        await page.press(*"b2", "enter")
        assert "the engine died" in page.message
        assert "you win" in page.title
        page.app.entry.insert_text_at_cursor(f"save {tmp_path}/game.txt")
        await page.press("enter")
        assert (tmp_path / "game.txt").exists()

    drive(visit)


def test_the_board_fits_any_window_or_a_message_says_that_it_is_too_small(drive):
    async def visit(page):
        assert "too small" in str(page.app.board.render())
        await page.press("f3")
        for size in ((120, 40), (80, 24), (40, 20), (20, 8), (3, 2)):
            await page.pilot.resize_terminal(*size)
            await page.press(*"b2", "enter")
            assert page.moves == "b2 a3"
            await page.press("f4")
            assert page.moves == ""
        await page.pilot.resize_terminal(100, 30)
        await page.pass_on()
        assert "too small" not in str(page.app.board.render())
        await page.press(*"b2", "enter")
        await page.press(*"c3", "enter")
        assert page.moves == "b2 a3 c3 b3"

    drive(visit, size=(70, 6))


@pytest.mark.parametrize(
    ("keys", "status"), [(["ctrl+c"], 130), (["ctrl+q"], 0), ([*"quit", "enter"], 0)]
)
def test_the_user_can_quit(drive, keys, status):
    async def visit(page):
        page.send(*keys)
        await page.pass_on()

    app = drive(visit)
    assert (app.return_code or 0) == status


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


def position(name, *moves):
    game = games.make(name)
    state = first_state(game)
    for text in moves:
        state = next_state(game, state, game.text_to_action(state, text))
    return game, state, Pointing(game, state, legal_actions(game, state))


@pytest.mark.parametrize("name", sorted(set(games.available())))
def test_every_legal_move_can_be_made_by_cells_or_has_a_name(name):
    game, state, pointing = position(name)
    for action in legal_actions(game, state):
        cells = game.action_cells(state, action)
        found = pointing.action(cells) if cells else action
        assert found == action
        assert (action in pointing.unplaced) == (not cells)
        assert len(cells) < 2 or pointing.can_begin(cells[0])


def test_connect_four_needs_only_a_column():
    _, _, pointing = position("connect_four", "4")
    assert pointing.action(((0, 3),)) == 3
    assert pointing.action(((5, 3),)) == 3
    assert pointing.hints(None) == [(4 if c == 3 else 5, c) for c in range(7)]


def test_a_piece_is_selected_before_its_target():
    game, state, pointing = position("breakthrough")
    start = (6, 2)
    assert pointing.action((start,)) is None
    assert pointing.can_begin(start)
    assert sorted(pointing.hints(start)) == [(5, 1), (5, 2), (5, 3)]
    action = pointing.action((start, (5, 3)))
    assert game.action_to_text(state, action) == "c2d3"


def test_a_pawn_promotes_to_a_queen_by_default():
    game = games.make("chess")
    state = game.from_fen("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    pointing = Pointing(game, state, legal_actions(game, state))
    action = pointing.action(((1, 0), (0, 0)))
    assert game.action_to_text(state, action) == "a7a8q"


def test_a_pass_has_a_name():
    game, state, pointing = position("go:5")
    assert [game.action_to_text(state, a) for a in pointing.unplaced] == ["pass"]


def test_hints_are_shown_if_few_cells_are_legal():
    assert len(position("othello")[2].hints(None)) == 4
    assert position("go:5")[2].hints(None) == []
    assert position("tic_tac_toe")[2].hints(None) == []


def test_outcomes_of_chance_are_shown_above_the_board_and_among_the_moves(drive):
    async def visit(page):
        assert page.title.endswith("heads: your move, with the crosses")
        await page.press("enter")
        assert page.moves == "heads b2 heads a3 heads"
        assert page.message == "heads: it plays a3, expects +0.50 for the rings"
        assert page.title.endswith("heads: your move, with the crosses")
        console = Console(width=60, color_system=None)
        with console.capture() as capture:
            console.print(side_panel(page.app.session))
        lines = [line.split() for line in capture.get().splitlines()]
        assert lines[-1] == ["1.", "heads", "b2", "heads", "a3", "2.", "heads"]
        await page.press("f4")
        assert page.moves == "heads"

    drive(visit, Heads())
