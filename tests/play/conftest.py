"""Players whose moves are known, and a background that waits for its test."""

from concurrent.futures import Future

import numpy as np
import pytest

from azjax import games
from azjax.players import ForfeitError, Thought

GAME = games.make("tic_tac_toe")


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


@pytest.fixture
def seat():
    return FirstCell()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def opponent():
    return FirstCellPlayer()
