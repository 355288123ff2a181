"""A batch of games with automatic reset."""

import dataclasses
import itertools
from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from azjax.checks import check_int
from azjax.games.core import Game, State, select

S = TypeVar("S", bound=State)

_BLOCK = 16  # actions that are counted one by one
_MAX_ACTIONS = 2**16  # up to here a product of halves of the 32 bits does not overflow


def random_action(rng_key: jax.Array, legal_action_mask: jax.Array) -> jax.Array:
    """Samples a legal action in each position, uniformly.

    It draws 32 random bits per position; `jax.random.categorical` draws 32 per action
    and takes 3 to 40 times as long on a CPU. The probabilities differ by at most
    `2**-32`.

    Args:
        rng_key: one key, consumed.
        legal_action_mask: `[..., A]` bool, at most 65,536 actions.

    Returns:
        `[...]` int32; 0 where no action is legal.

    Raises:
        ValueError: the mask has another shape or dtype.
    """
    shape, dtype = legal_action_mask.shape, legal_action_mask.dtype
    if not shape or not 1 <= shape[-1] <= _MAX_ACTIONS or dtype != jnp.bool_:
        raise ValueError(
            f"legal_action_mask must be [..., A] bool, of 1 to {_MAX_ACTIONS} actions: "
            f"{list(shape)} {dtype}"
        )
    bits = jax.random.bits(rng_key, shape[:-1], jnp.uint32)
    return jnp.vectorize(_legal_action, signature="(),(a)->()")(bits, legal_action_mask)


def _legal_action(bits: jax.Array, legal_action_mask: jax.Array) -> jax.Array:
    """Returns the legal action that `bits` (`[]` uint32) choose from `[A]`."""
    num_actions = legal_action_mask.shape[0]
    if num_actions <= _BLOCK:
        counts_so_far = _running_counts(legal_action_mask)
        return _place(counts_so_far, _scale(bits, counts_so_far[-1]))
    num_blocks = -(-num_actions // _BLOCK)
    padding = num_blocks * _BLOCK - num_actions
    blocks = jnp.pad(legal_action_mask, (0, padding)).reshape(num_blocks, _BLOCK)
    counts = blocks.sum(axis=1, dtype=jnp.uint32)
    counts_so_far = jnp.cumsum(counts, dtype=jnp.uint32)
    count = counts_so_far[-1]
    rank = _scale(bits, count)
    # Find the block of the action that has `rank` legal actions before it.
    is_before = counts_so_far <= rank
    block = is_before.sum(dtype=jnp.int32)
    rank -= jnp.where(is_before, counts, 0).sum(dtype=jnp.uint32)
    action = block * _BLOCK + _place(_running_counts(blocks[block]), rank)
    return jnp.where(count > 0, action, 0)


def _running_counts(legal_action_mask: jax.Array) -> list[jax.Array]:
    """Returns the inclusive running counts of legal actions."""
    # Unrolled, because XLA fuses these sums but not a cumulative sum.
    return list(itertools.accumulate(legal_action_mask.astype(jnp.uint32)))


def _place(counts_so_far: list[jax.Array], rank: jax.Array) -> jax.Array:
    """Returns `[]` int32, the action with `rank` legal ones before it; 0 if none is
    legal."""
    place = sum((count <= rank for count in counts_so_far), jnp.int32(0))
    return jnp.where(counts_so_far[-1] > 0, place, 0)


def _scale(bits: jax.Array, count: jax.Array) -> jax.Array:
    """Returns `bits * count // 2**32`, in 32 bits; `count` is at most 2**16."""
    high, low = bits >> 16, bits & 0xFFFF
    return (high * count + (low * count >> 16)) >> 16


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Openings(Generic[S]):
    """The openings of the next games, prepared by one move per step.

    state: leaves `[B, ...]`; the current position of each opening.
    num_moves: `[B]` int32; moves made so far.
    length: `[B]` int32; moves of the complete opening.
    """

    state: S
    num_moves: jax.Array
    length: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EnvState(Generic[S]):
    """B games in progress.

    state: leaves `[B, ...]`; the positions, none of them finished.
    num_steps: `[B]` int32; steps made in each game.
    openings: start positions of the next games; None without random moves.
    rng_key: random key for the next random moves.
    """

    state: S
    num_steps: jax.Array
    openings: Openings[S] | None
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
    next_state: leaves `[B, ...]`; the position after the step, before any reset. It
        costs nothing in a compiled function that does not use it.
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

    `reset` and `step` are pure functions for the caller to jit or scan. If both are
    jitted, `step` may donate its `EnvState`.

    ```python
    import jax
    from azjax import games

    env = games.VectorEnv(games.make("connect_four"), num_envs=1024)


    def play(carry, rng_key):
        env_state, time_step = carry
        action = games.random_action(rng_key, time_step.legal_action_mask)
        env_state, time_step = env.step(env_state, action)
        return (env_state, time_step), (time_step.reward, time_step.terminated)


    reset_key, play_key = jax.random.split(jax.random.key(0))
    keys = jax.random.split(play_key, 100)
    start = jax.jit(env.reset)(reset_key)
    _, (reward, terminated) = jax.jit(lambda: jax.lax.scan(play, start, keys))()
    print("games:", terminated.sum(), "won by player 0:", (reward[..., 0] > 0).sum())
    ```

    game: the game.
    num_envs: B, the number of games.
    random_moves: number of uniformly random legal moves at the start of each game. A
        game that ends within them starts again with one move less. They are prepared
        during the previous game, at the cost of about one step of the rules per step.
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
            rng_key: one key, consumed. It determines the random moves of all games, now
                and in later steps. Without `random_moves` it has no effect.

        Returns:
            The games, and a time step with zero rewards and nothing terminated.
        """
        states, zeros = self._first_states(), jnp.zeros(self.num_envs, jnp.int32)
        openings = None
        if self.random_moves:
            openings = Openings(states, zeros, zeros + self.random_moves)
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

        Raises:
            ValueError: the actions have another shape or are not integers.
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
        rewards = jax.vmap(game.rewards)(states)
        num_steps = env_state.num_steps + 1
        after = dataclasses.replace(env_state, state=states, num_steps=num_steps)
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

    def _first_states(self) -> S:
        return jax.vmap(lambda _: self.game.init())(jnp.arange(self.num_envs))

    def _begin(self, ended: jax.Array, env_state: EnvState[S]) -> EnvState[S]:
        """Replaces each game that `ended` (`[B]` bool) by a new one."""
        first, zeros = self._first_states(), jnp.zeros_like(env_state.num_steps)
        openings, rng_key = env_state.openings, env_state.rng_key
        begun = first
        if openings is not None:
            openings, rng_key = self._prepare(openings, rng_key, ended)
            begun = openings.state
            next_openings = Openings(first, zeros, zeros + self.random_moves)
            openings = jax.vmap(select)(ended, next_openings, openings)
        return EnvState(
            state=jax.vmap(select)(ended, begun, env_state.state),
            num_steps=jnp.where(ended, 0, env_state.num_steps),
            openings=openings,
            rng_key=rng_key,
        )

    def _prepare(
        self, openings: Openings[S], rng_key: jax.Array, needed: jax.Array
    ) -> tuple[Openings[S], jax.Array]:
        """Makes one move in each opening, and more until `needed` ones are complete."""

        def is_incomplete(carry) -> jax.Array:
            is_first, openings, _ = carry
            return is_first | (needed & (openings.num_moves < openings.length)).any()

        def play_on(carry):
            _, openings, rng_key = carry
            rng_key, action_key = jax.random.split(rng_key)
            keys = jax.random.split(action_key, self.num_envs)
            return jnp.bool(False), jax.vmap(self._play_on)(openings, keys), rng_key

        start = (jnp.bool(True), openings, rng_key)
        return jax.lax.while_loop(is_incomplete, play_on, start)[1:]

    def _play_on(self, opening: Openings[S], rng_key: jax.Array) -> Openings[S]:
        """Makes a random move in one opening, unless it is complete."""
        legal = self.game.legal_action_mask(opening.state)
        after = self.game.step(opening.state, random_action(rng_key, legal))
        longer = Openings(after, opening.num_moves + 1, opening.length)
        shorter = Openings(self.game.init(), jnp.int32(0), opening.length - 1)
        played = select(after.terminated, shorter, longer)
        return select(opening.num_moves >= opening.length, opening, played)
