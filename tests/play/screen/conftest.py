"""A person at the full screen, by Textual's pilot."""

import asyncio

import pytest
from textual import events

from azjax import games
from azjax.play.screen import PlayApp
from azjax.play.session import Session

GAME = games.make("tic_tac_toe")


class Page:
    """What a person sees, and can do."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    async def press(self, *keys):
        """Presses keys faster than they are dealt with, and waits for the answer."""
        self.send(*keys)
        await self.settle()

    def send(self, *keys):
        """Presses keys, and waits for nothing."""
        for key in keys:
            character = key if len(key) == 1 else None
            self.app.post_message(events.Key(key, character))

    async def settle(self):
        """Waits until all is dealt with and nobody thinks."""
        await self.pass_on()
        controller = self.app.session.controller
        while not controller.is_started or controller.thinking is not None:
            await self.pilot.pause(0.01)
        await self.pass_on()

    async def pass_on(self):
        """Waits until messages are dealt with, and those that they lead to: a key goes
        from the app to its screen, the line and back to the app, which shows it."""
        for _ in range(6):
            if self.app.return_code is None:  # an app that ends answers no more
                await self.pilot.pause(0)

    @property
    def moves(self):
        return " ".join(move.text for move in self.app.session.controller.moves)

    @property
    def message(self):
        return str(self.app.message.render())

    @property
    def title(self):
        return str(self.app.title_line.render())


@pytest.fixture
def drive(opponent):
    """Has `visit(page)` look at an app that runs; returns the app."""

    async def run(visit, game, player, size, *, saved, settles):
        app = PlayApp(lambda run: Session(game, player, name="it", user=0, run=run))
        app.session.begin(saved)
        async with app.run_test(size=size) as pilot:
            page = Page(app, pilot)
            await (page.settle() if settles else page.pass_on())
            await visit(page)
        assert app.callbacks.background.close(seconds=60)
        return app

    def call(
        visit, game=GAME, player=opponent, size=(100, 30), *, saved=None, settles=True
    ):
        return asyncio.run(run(visit, game, player, size, saved=saved, settles=settles))

    return call
