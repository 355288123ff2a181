"""A batch of games with automatic reset."""

import dataclasses
from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from azjax.games.chance import after_chance
from azjax.games.core import Game, State, initial_states, select
from azjax.games.random_moves import play_random_moves
from azjax.settings import check_int

S = TypeVar("S", bound=State)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _OpeningMoves(Generic[S]):
    """The openings of the next games, prepared by one move per step.

    state: leaves `[B, ...]`; the current position of each opening.
    num_left: `[B]` int32; moves until it is complete.
    """

    state: S
    num_left: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EnvState(Generic[S]):
    """B games in progress.

    state: leaves `[B, ...]`; the positions, none of which is finished or waits for
        chance.
    num_steps: `[B]` int32; steps made in each game.
    openings: start positions of the next games; None without random moves.
    rng_key: random key for the next random moves and outcomes of chance.
    """

    state: S
    num_steps: jax.Array
    openings: _OpeningMoves[S] | None
    rng_key: jax.Array


class TimeStep(NamedTuple, Generic[S]):
    """The outcome of a step of B games, and the next observation.

    The first three fields describe the position in which the next action is chosen:
    after the end of a game, the first position of the next game. The other fields
    describe the step.

    observation: `[B, H, W, C]` float32, from the view of the player to move.
    legal_action_mask: `[B, A]` bool.
    current_player: `[B]` int8; the player to move.
    reward: `[B, 2]` float32; rewards of players 0 and 1: 1 for the winner and -1 for
        the loser in the last step of a game, otherwise 0.
    terminated: `[B]` bool; whether the step ended the game.
    episode_length: `[B]` int32; steps of the game up to this one, without the random
        moves before them.
    next_state: leaves `[B, ...]`; the position after the step and the outcome of chance
        that follows it, before any reset. It costs nothing in a compiled function that
        does not use it.
    """

    observation: jax.Array
    legal_action_mask: jax.Array
    current_player: jax.Array
    reward: jax.Array
    terminated: jax.Array
    episode_length: jax.Array
    next_state: S

    @property
    def episode_return(self) -> jax.Array:
        """`[B, 2]` float32; each player's return, where `terminated`: the last reward,
        since there are no others."""
        return self.reward


@dataclasses.dataclass(frozen=True)
class VectorEnv(Generic[S]):
    """Plays B games at once and resets each game in the step that ends it.

    In games with chance, each step and reset draws the outcomes that games wait for.

    `reset` and `step` are pure functions for the caller to jit or scan. If both are
    jitted, `step` may donate its `EnvState`.

    game: the game.
    num_envs: B, the number of games.
    random_moves: number of uniformly random legal moves at the start of each game,
        except those that would end it. They are prepared during the previous game, at
        the cost of about one step of the rules per step.

    Example:
        Nine random moves in each of 64 games of tic-tac-toe, in one program:

        >>> env = games.VectorEnv(games.make("tic_tac_toe"), num_envs=64)
        >>> def play(carry, rng_key):
        ...     env_state, time_step = carry
        ...     action = games.random_action(rng_key, time_step.legal_action_mask)
        ...     env_state, time_step = env.step(env_state, action)
        ...     return (env_state, time_step), (time_step.reward, time_step.terminated)
        >>> reset_key, play_key = jax.random.split(jax.random.key(0))
        >>> start, keys = jax.jit(env.reset)(reset_key), jax.random.split(play_key, 9)
        >>> _, (reward, terminated) = jax.jit(lambda: jax.lax.scan(play, start, keys))()
        >>> reward.shape
        (9, 64, 2)
        >>> bool(terminated.any(axis=0).all())  # no game has more than nine moves
        True
    """

    game: Game[S]
    num_envs: int
    random_moves: int = 0

    def __post_init__(self) -> None:
        """Checks the values."""
        if not isinstance(self.game, Game):
            raise ValueError(
                f"game must be a Game, as azjax.games.make returns it: {self.game!r}"
            )
        check_int("num_envs", self.num_envs, 1)
        name = f"random_moves of {self.game!r}"
        check_int(name, self.random_moves, 0, self.game.max_moves - 1)

    def reset(self, rng_key: jax.Array) -> tuple[EnvState[S], TimeStep[S]]:
        """Starts all games.

        Args:
            rng_key: one key, consumed. It determines the random moves and the outcomes
                of chance of all games, now and in later steps. Without both it has no
                effect.

        Returns:
            The games, and a time step with zero rewards and nothing terminated.
        """
        states = initial_states(self.game, self.num_envs)
        zeros = jnp.zeros(self.num_envs, jnp.int32)
        openings = self._new_openings(states) if self.random_moves else None
        every = jnp.ones(self.num_envs, bool)
        env_state = self._begin(every, EnvState(states, zeros, openings, rng_key))
        no_rewards = jnp.zeros((self.num_envs, 2), jnp.float32)
        return env_state, self._look(
            env_state, no_rewards, ~every, zeros, env_state.state
        )

    def step(
        self, env_state: EnvState[S], action: jax.Array
    ) -> tuple[EnvState[S], TimeStep[S]]:
        """Makes one move in each game, and resets the games that end.

        Args:
            env_state: the games.
            action: `[B]` integers, for the players to move. An illegal action,
                including -1 and A, loses the game.
        """
        action = jnp.asarray(action)
        is_integer = jnp.issubdtype(action.dtype, jnp.integer)
        if action.shape != (self.num_envs,) or not is_integer:
            raise ValueError(
                f"action must be [{self.num_envs}] integers, one for each game: "
                f"{list(action.shape)} {action.dtype}"
            )
        game = self.game
        states = jax.vmap(game.step)(env_state.state, action.astype(jnp.int32))
        rng_key = env_state.rng_key
        if game.num_outcomes:
            rng_key, chance_key = jax.random.split(rng_key)
            states, _ = after_chance(game, chance_key, states)
        rewards = jax.vmap(game.rewards)(states)
        num_steps = env_state.num_steps + 1
        after = EnvState(states, num_steps, env_state.openings, rng_key)
        env_state = self._begin(states.terminated, after)
        return env_state, self._look(
            env_state, rewards, states.terminated, num_steps, states
        )

    def _look(
        self,
        env_state: EnvState[S],
        reward: jax.Array,
        terminated: jax.Array,
        episode_length: jax.Array,
        next_state: S,
    ) -> TimeStep[S]:
        return TimeStep(
            observation=jax.vmap(self.game.observe)(env_state.state),
            legal_action_mask=jax.vmap(self.game.legal_action_mask)(env_state.state),
            current_player=env_state.state.current_player,
            reward=reward,
            terminated=terminated,
            episode_length=episode_length,
            next_state=next_state,
        )

    def _new_openings(self, states: S) -> _OpeningMoves[S]:
        return _OpeningMoves(
            states, jnp.full(self.num_envs, self.random_moves, jnp.int32)
        )

    def _begin(self, ended: jax.Array, env_state: EnvState[S]) -> EnvState[S]:
        """Replaces each game that `ended` (`[B]` bool) by a new one."""
        begun = first = initial_states(self.game, self.num_envs)
        openings, rng_key = env_state.openings, env_state.rng_key
        if openings is not None:
            rng_key, moves_key = jax.random.split(rng_key)
            # All moves that are left where a game begins, otherwise one.
            num_left = openings.num_left
            num_moves = jnp.where(ended, num_left, jnp.minimum(num_left, 1))
            begun = play_random_moves(self.game, moves_key, openings.state, num_moves)
            openings = _OpeningMoves(begun, num_left - num_moves)
            openings = jax.vmap(select)(ended, self._new_openings(first), openings)
        elif self.game.num_outcomes:
            rng_key, chance_key = jax.random.split(rng_key)
            begun, _ = after_chance(self.game, chance_key, first)
        return EnvState(
            state=jax.vmap(select)(ended, begun, env_state.state),
            num_steps=jnp.where(ended, 0, env_state.num_steps),
            openings=openings,
            rng_key=rng_key,
        )
