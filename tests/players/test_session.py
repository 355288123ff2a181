import functools
from typing import ClassVar

import jax
import numpy as np
import pytest
from flax import struct
from players.engines import position

from azjax import games, players
from azjax.games.host import legal_actions

TIC_TAC_TOE = games.make("tic_tac_toe")
after = functools.partial(position, TIC_TAC_TOE)


def start_random(seed):
    player = players.RandomPlayer(TIC_TAC_TOE)
    return players.start_session(player, TIC_TAC_TOE, seed)


def test_a_compiled_player_chooses_in_one_game():
    session = start_random(0)
    decision = session.choose(after([4]), [4])
    assert decision.action in {0, 1, 2, 3, 5, 6, 7, 8}
    assert decision.policy.shape == (9,)
    assert decision.value == 0
    assert decision.analysis is None
    assert decision.draw is None
    session.close()


def test_the_seed_determines_the_moves_of_a_session():
    first, again, other = (
        [session.choose(TIC_TAC_TOE.init(), []).action for _ in range(12)]
        for session in map(start_random, (3, 3, 4))
    )
    assert first == again != other


TACTIC = [0, 3, 1, 4]  # the first player has cells 0 and 1 and takes 2


@pytest.fixture(scope="module")
def decisions():
    """The decisions of a search in the first position and in a tactical one."""
    player = players.load("alphazero:pretrained?simulations=64", TIC_TAC_TOE)
    session = players.start_session(player, TIC_TAC_TOE, seed=0)
    return [session.choose(after(moves), moves) for moves in ([], TACTIC)]


def test_a_search_returns_its_analysis(decisions):
    state, decision = after(TACTIC), decisions[1]
    analysis = decision.analysis
    legal = np.asarray(TIC_TAC_TOE.legal_action_mask(state))
    assert decision.action == 2
    assert analysis.prior.shape == analysis.visits.shape == (9,)
    assert analysis.prior.sum() == pytest.approx(1, abs=1e-5)
    assert (analysis.prior[~legal] == 0).all()
    assert analysis.visits.sum() == 64
    assert (analysis.visits[~legal] == 0).all()
    assert analysis.action_values[2] == 1
    assert analysis.line.tolist() == [2] + [-1] * 15
    network = players.load("network:pretrained", TIC_TAC_TOE)
    alone = players.start_session(network, TIC_TAC_TOE, seed=0).choose(state, [])
    assert decision.draw == pytest.approx(alone.draw, rel=1e-5, abs=1e-5)
    assert 0 < alone.draw < 1


def test_the_line_is_a_legal_sequence_of_moves(decisions):
    line = [action for action in decisions[0].analysis.line.tolist() if action >= 0]
    assert line[0] == decisions[0].action
    assert len(line) >= 3
    for count, action in enumerate(line):
        state = after(line[:count])
        assert action in legal_actions(TIC_TAC_TOE, state)


@struct.dataclass
class Traced:
    """Plays the first legal move and counts traces."""

    num_traces: ClassVar[int] = 0

    def choose(self, rng_key, states):
        del rng_key
        Traced.num_traces += 1
        legal = jax.vmap(TIC_TAC_TOE.legal_action_mask)(states)
        action = legal.argmax(axis=-1).astype(np.int32)
        return players.Choice(action, legal.astype(np.float32), np.zeros(1))


def test_compile_choice_compiles_what_sessions_run():
    players.compile_choice(Traced(), TIC_TAC_TOE)
    assert Traced.num_traces == 1
    session = players.start_session(Traced(), TIC_TAC_TOE, seed=1)
    for moves in ((), (0, 4)):
        assert session.choose(after(moves), moves).action == len(moves) // 2
    assert Traced.num_traces == 1
