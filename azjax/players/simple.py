"""Players without a search: at random, by a network's policy or its action values, a
person, and perfect players."""

import importlib
import random
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.games import ConnectFour, Game, State, random_action
from azjax.games.host import first_state, next_state
from azjax.games.ur import RoyalGameOfUr
from azjax.networks import (
    Network,
    QNetwork,
    QParams,
    Variables,
    every_action_value,
    expected_value,
)
from azjax.players.core import Choice, ForfeitError, MoveDecision
from azjax.players.model import evaluate, evaluate_symmetries
from azjax.players.ur_solution import (
    MAX_SOLVED_PIECES,
    Solution,
    action_values,
    is_solved,
    solve,
)
from azjax.search.keys import draw, draw_uniform, split_keys


def uniform(mask: jax.Array) -> jax.Array:
    """Returns `[B, A]` float32: equal probabilities where `mask` is True, else 0."""
    return mask / mask.sum(axis=-1, keepdims=True, dtype=jnp.float32)


def choose_uniformly(rng_key: jax.Array, mask: jax.Array, value: jax.Array) -> Choice:
    """Chooses one of the actions in `mask` (`[B, A]` bool), each with the same
    probability; the key is consumed."""
    return Choice(draw(random_action, rng_key, mask), uniform(mask), value)


@struct.dataclass
class RandomPlayer:
    """Chooses every legal move with the same probability."""

    draws_in_lanes: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        legal = jax.vmap(self.game.legal_action_mask)(states)
        value = jnp.zeros(len(legal), jnp.float32)
        return choose_uniformly(rng_key, legal, value)


@struct.dataclass
class NetworkPlayer:
    """Chooses the legal move with the highest policy logit.

    With a temperature T above 0 it samples from softmax(logits / T) instead. With
    `use_symmetries` it averages the network's outputs over the symmetries of the game.
    """

    draws_in_lanes: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    network: Network = struct.field(repr=False)
    variables: Variables = struct.field(repr=False)
    temperature: float = struct.field(pytree_node=False, default=0.0)
    use_symmetries: bool = struct.field(pytree_node=False, default=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed and has no effect
        at temperature 0."""
        outputs = evaluate_symmetries if self.use_symmetries else evaluate
        logits, result = outputs(self.game, self.network, self.variables, states)
        policy = jax.nn.softmax(logits)
        action = logits.argmax(axis=-1)
        if self.temperature:
            legal = jax.vmap(self.game.legal_action_mask)(states)
            top = logits.max(axis=-1, keepdims=True)
            scaled = jnp.where(legal, (logits - top) / self.temperature, -jnp.inf)
            policy = jax.nn.softmax(scaled)
            action = draw(jax.random.categorical, rng_key, scaled)
        value = expected_value(result)
        return Choice(action.astype(jnp.int32), policy, value, draw=result[:, 1])


@struct.dataclass
class QPlayer:
    """Chooses the first legal move with the highest value.

    epsilon: `[]` probability of a random legal move instead.
    """

    draws_in_lanes: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    network: QNetwork = struct.field(repr=False)
    params: QParams = struct.field(repr=False)
    epsilon: jax.Array | float = 0.0

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions.

        The key is consumed and has no effect if `epsilon` is 0. The policy is the
        distribution that is sampled.
        """
        values = legal_action_values(self.game, self.network, self.params, states)
        legal = jnp.isfinite(values)
        greedy = jax.nn.one_hot(
            values.argmax(axis=-1), legal.shape[-1], dtype=jnp.float32
        )
        return Choice(
            action=epsilon_greedy(rng_key, values, self.epsilon),
            policy=(1 - self.epsilon) * greedy + self.epsilon * uniform(legal),
            value=values.max(axis=-1),
        )


def legal_action_values(
    game: Game, network: QNetwork, params: QParams, states: State
) -> jax.Array:
    """Returns `[B, A]` action values for the player to move, in [-1, 1]; -inf where
    illegal.

    Args:
        game: the game.
        network: structure of the network.
        params: parameters of the network.
        states: the positions, leaves `[B, ...]`, none of them terminated.
    """
    observation = jax.vmap(game.observe)(states)
    values = every_action_value(network, params, observation, states.current_player)
    return jnp.where(jax.vmap(game.legal_action_mask)(states), values, -jnp.inf)


def epsilon_greedy(
    rng_key: jax.Array, values: jax.Array, epsilon: jax.Array | float
) -> jax.Array:
    """Returns `[B]` int32: the best action, or with probability `epsilon` a random
    legal action.

    Args:
        rng_key: consumed; one key, or `[L]` for L lanes of the batch.
        values: `[B, A]`, -inf where illegal.
        epsilon: `[]` in [0, 1].
    """
    explore_key, action_key = split_keys(rng_key, 2)
    best = values.argmax(axis=-1)
    explores = draw_uniform(explore_key, best) < epsilon
    random = draw(random_action, action_key, jnp.isfinite(values))
    return jnp.where(explores, random, best).astype(jnp.int32)


class HumanPlayer:
    """Asks for moves, line by line: a person in matches and tournaments.

    `azjax play` has its own interface, with undo.

    Args:
        read: shows a prompt and returns a line; raises EOFError at the end of the
            input.
        write: prints a line.
    """

    def __init__(
        self,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = print,
    ):
        self._read, self._write = read, write

    def start_session(self, game: Game, seed: int) -> "HumanSession":
        """Starts a session for a new game."""
        del seed
        return HumanSession(game, self._read, self._write)


class HumanSession:
    """A person in one game."""

    def __init__(
        self, game: Game, read: Callable[[str], str], write: Callable[[str], object]
    ):
        self._game, self._read, self._write = game, read, write

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Prints the position and asks until the answer is a legal move."""
        game = self._game
        actions = [move for move in moves if move < game.num_actions]
        text = game.to_text(state, actions[-1] if actions else None)
        if moves and moves[-1] >= game.num_actions:  # an outcome of chance
            before = first_state(game)
            for move in moves[:-1]:
                before = next_state(game, before, move)
            text += "\n" + game.move_to_text(before, moves[-1])
        self._write("\n" + text)
        while True:
            try:
                text = self._read("your move, or resign: ")
            except EOFError as error:
                raise ForfeitError("end of input") from error
            if text.strip() == "resign":
                raise ForfeitError("resigned")
            try:
                return MoveDecision(self._game.text_to_action(state, text))
            except ValueError as error:
                self._write(str(error))

    def close(self) -> None:
        """Does nothing."""


class PerfectPlayer:
    """Plays Connect Four by exact scores: fastest win, slowest loss, ties at random.

    bitbully searches; the first twelve moves are in its opening book.

    Raises:
        ValueError: bitbully is not installed.
    """

    def __init__(self) -> None:
        try:
            self._bitbully = importlib.import_module("bitbully")
        except ModuleNotFoundError:
            raise ValueError(
                "the player 'perfect' needs the solver bitbully: "
                "pip install 'azjax[solver]'"
            ) from None
        self._solver = self._bitbully.BitBully()

    def start_session(self, game: Game, seed: int) -> "_PerfectSession":
        """Starts a session for a game of Connect Four."""
        check_game(game)
        return _PerfectSession(self._bitbully, self._solver, game, seed)


class _PerfectSession:
    def __init__(self, bitbully: ModuleType, solver, game: Game, seed: int):
        self._bitbully = bitbully
        self._solver = solver
        self._num_actions = game.num_actions
        self._random = random.Random(seed)

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move; the value is the exact result."""
        del state
        board = self._bitbully.Board([int(move) for move in moves])
        scores = self._solver.score_all_moves(board)
        top = max(scores.values())
        best = sorted(move for move, score in scores.items() if score == top)
        policy = np.zeros(self._num_actions, np.float32)
        policy[best] = 1 / len(best)
        return MoveDecision(self._random.choice(best), policy, float(np.sign(top)))

    def close(self) -> None:
        """Does nothing."""


@struct.dataclass
class PerfectUrPlayer:
    """Plays the Royal Game of Ur with the highest win probability, ties at random.

    The value is the expected result, 2p - 1 with a win probability of p.
    """

    draws_in_lanes: ClassVar[bool] = True
    game: RoyalGameOfUr = struct.field(pytree_node=False)
    solution: Solution = struct.field(repr=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        values, _ = action_values(self.game, self.solution, states)
        highest = values.max(axis=-1)
        return choose_uniformly(rng_key, values == highest[:, None], highest)


def make_perfect_player(game: Game) -> PerfectPlayer | PerfectUrPlayer:
    """Builds the perfect player of a game.

    Raises:
        ValueError: there is none, or its solver is not installed.
    """
    if isinstance(game, RoyalGameOfUr) and is_solved(game):
        return PerfectUrPlayer(game, jax.tree.map(jnp.asarray, solve(game.num_pieces)))
    check_game(game)
    return PerfectPlayer()


def perfect_player(game: Game) -> PerfectPlayer | PerfectUrPlayer | None:
    """Returns the perfect player of a game; None if there is none, or if its solver is
    not installed."""
    try:
        return make_perfect_player(game)
    except ValueError:
        return None


def check_game(game: Game) -> None:
    """Checks that the game is Connect Four."""
    if not isinstance(game, ConnectFour):
        raise ValueError(
            f"the player 'perfect' plays connect_four, and ur with at most "
            f"{MAX_SOLVED_PIECES} pieces and no low max_moves, not {game}; minimax "
            "plays small games perfectly, such as minimax:9 in tic_tac_toe"
        )
