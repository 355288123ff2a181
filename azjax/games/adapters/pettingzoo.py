"""Games of azjax as PettingZoo's environments.

>>> from azjax import games
>>> from azjax.games.adapters.pettingzoo import to_pettingzoo
>>> env = to_pettingzoo(games.make("tic_tac_toe"), render_mode="ansi")
>>> env.reset(seed=0)
>>> for agent in env.agent_iter():
...     observation, reward, terminated, truncated, info = env.last()
...     env.step(None if terminated else int(observation["action_mask"].argmax()))
...     if terminated:
...         print(agent, "has", reward)
player_1 has -1.0
player_0 has 1.0
>>> print(env.render())
  a  b  c
3 X  O [X]
2 O [X] O
1[X] .  .
"""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import host
from azjax.games.core import Game, State

try:
    import gymnasium
    from gymnasium import spaces
    from pettingzoo import AECEnv
    from pettingzoo.utils import wrappers
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "this needs the library PettingZoo: pip install 'azjax[pettingzoo]'",
        name="pettingzoo",
    ) from error

RENDER_MODES = ("ansi",)


class _View(NamedTuple):
    """What is to be known of a position.

    observation: `[H, W, C]` float32; seen by the player to move.
    action_mask: `[A]` int8; all 0 once the game is over.
    rewards: `[2]` float32.
    """

    observation: jax.Array
    action_mask: jax.Array
    rewards: jax.Array


class PettingZooEnv(AECEnv):
    """A game of azjax as an environment in which agents take turns.

    Agents `player_0`, who moves first, and `player_1` observe a dictionary, as in
    PettingZoo's classic games: `observation`, `[H, W, C]` float32, and `action_mask`,
    `[A]` int8, all 0 for the agent that is not to move and once the game is over. The
    position is shown to both agents from the side of the agent to move. Both agents get
    their results when the game ends.

    An illegal action, also one that is no action, ends the game as a loss for the
    agent; its opponent wins. No `TerminateIllegalWrapper` is needed: by its rules, the
    opponent would get nothing.

    In games with chance, the seed of `reset` determines the outcomes; without any seed
    they are random. `reset` and `step` draw the outcome that the position waits for.

    game: what is played.
    render_mode: `ansi`, for `render` to return a text, or None.
    """

    def __init__(self, game: Game, render_mode: str | None = None):
        super().__init__()
        if not isinstance(game, Game):
            raise ValueError(
                f"game must be a Game, as azjax.games.make returns it: {game!r}"
            )
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(
                f"render_mode must be None or one of {RENDER_MODES}: {render_mode!r}"
            )
        self.game = game
        self.render_mode = render_mode
        self._rng = np.random.default_rng()
        self.metadata = {
            "render_modes": list(RENDER_MODES),
            "name": f"azjax_{game.name}_v0",
            "is_parallelizable": False,
        }
        self.possible_agents = ["player_0", "player_1"]
        observation_space = {
            "observation": spaces.Box(
                -np.inf, np.inf, game.observation_shape, np.float32
            ),
            "action_mask": spaces.Box(0, 1, (game.num_actions,), np.int8),
        }
        self.observation_spaces = {
            agent: spaces.Dict(observation_space) for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: spaces.Discrete(game.num_actions) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> spaces.Space:
        """Returns what the agent may observe."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Returns the A actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> None:
        """Begins a game; a seed determines the outcomes of chance of this game and of
        later ones, which begin without a seed."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._state, self._view = jax.device_get(_first(self.game))
        self._draw_outcome()
        self._last_action = None
        self.agents = self.possible_agents[:]
        self.agent_selection = self.agents[int(self._state.current_player)]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}

    def step(self, action: int | None) -> None:
        """Makes the move of `agent_selection`; None once it has a result."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        action = operator.index(action)  # pyright: ignore[reportArgumentType]
        is_legal = action in np.flatnonzero(self._view.action_mask)
        self._last_action = action if is_legal else None
        # All actions that are not legal do what -1 does.
        number: Any = np.int32(action if is_legal else -1)
        self._state, self._view = jax.device_get(_next(self.game, self._state, number))
        self._draw_outcome()
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict(zip(self.agents, self._view.rewards.tolist(), strict=True))
        self.terminations = dict.fromkeys(self.agents, bool(self._state.terminated))
        self.agent_selection = self.agents[int(self._state.current_player)]
        self._accumulate_rewards()

    def _draw_outcome(self) -> None:
        if host.waits_for_chance(self.game, self._state):
            move = host.random_outcome_move(self.game, self._state, self._rng)
            outcome: Any = np.int32(move - self.game.num_actions)
            after = _after_outcome(self.game, self._state, outcome)
            self._state, self._view = jax.device_get(after)

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """Returns what the agent sees."""
        action_mask = np.asarray(self._view.action_mask)
        return {
            "observation": np.asarray(self._view.observation),
            "action_mask": action_mask * np.int8(agent == self.agent_selection),
        }

    def render(self) -> str | None:
        """Returns the position as text, if the render mode is `ansi`."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing without a render_mode")
            return None
        return self.game.to_text(self._state, self._last_action)

    def close(self) -> None:
        """Does nothing: no window is open."""


def to_pettingzoo(game: Game, render_mode: str | None = None) -> AECEnv:
    """Returns a game of azjax as an environment of PettingZoo, a `PettingZooEnv` that
    insists on `reset` before anything else.

    Args:
        game: what is played.
        render_mode: `ansi` or None.
    """
    return wrappers.OrderEnforcingWrapper(PettingZooEnv(game, render_mode))


@functools.partial(jax.jit, static_argnames="game")
def _first(game: Game) -> tuple[State, _View]:
    state = game.init()
    return state, _look(game, state)


@functools.partial(jax.jit, static_argnames="game")
def _next(game: Game, state: State, action: jax.Array) -> tuple[State, _View]:
    state = game.step(state, action)
    return state, _look(game, state)


@functools.partial(jax.jit, static_argnames="game")
def _after_outcome(game: Game, state: State, outcome: jax.Array) -> tuple[State, _View]:
    state = game.chance_step(state, outcome)
    return state, _look(game, state)


def _look(game: Game, state: State) -> _View:
    legal = game.legal_action_mask(state) & ~state.terminated
    return _View(game.observe(state), legal.astype(jnp.int8), game.rewards(state))
