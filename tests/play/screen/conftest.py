"""A simulated user of the full screen, by Textual's pilot."""

import asyncio

import pytest
from textual import events

from azjax import games
from azjax.play.screen import PlayApp
from azjax.play.session import Background, Session

GAME = games.make("tic_tac_toe")


class Page:
    """The user's view of the app, and input to it."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    async def press(self, *keys):
        """Presses keys in quick succession and waits for the result."""
        self.send(*keys)
        await self.settle()

    def send(self, *keys):
        """Presses keys without waiting."""
        for key in keys:
            character = key if len(key) == 1 else None
            self.app.post_message(events.Key(key, character))

    async def settle(self):
        """Waits until all input is processed and no player is computing."""
        await self.pass_on()
        session = self.app.session
        while not session.is_started or session.thinking is not None:
            await self.pilot.pause(0.01)
        await self.pass_on()

    async def pass_on(self):
        """Waits until messages and the messages that follow from them are processed.

        For example, a key goes from the app to its screen, the line and back to the
        app, which displays it.
        """
        for _ in range(6):
            if self.app.return_code is None:  # an app that has ended does not answer
                await self.pilot.pause(0)

    @property
    def moves(self):
        return " ".join(move.text for move in self.app.session.moves)

    @property
    def message(self):
        return str(self.app.message.render())

    @property
    def title(self):
        return str(self.app.title_line.render())


@pytest.fixture
def drive(opponent):
    """Runs `visit(page)` in a running app; returns the app."""

    async def run(visit, game, player, size, *, saved, settles):
        session = Session(game, player, Background(), name="it", user=0)
        app = PlayApp(session)
        session.begin(saved)
        async with app.run_test(size=size) as pilot:
            page = Page(app, pilot)
            await (page.settle() if settles else page.pass_on())
            await visit(page)
        assert session.background.close(seconds=60)
        return app

    def call(
        visit, game=GAME, player=opponent, size=(80, 24), *, saved=None, settles=True
    ):
        return asyncio.run(run(visit, game, player, size, saved=saved, settles=settles))

    return call
