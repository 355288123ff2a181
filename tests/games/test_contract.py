"""What `azjax.games.Game` promises, for every registered game."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import available, game_options, make

NUM_GAMES = 64

every_game = pytest.mark.parametrize(
    "game", [make(name) for name in available()], ids=repr
)


def random_action(game, rng_key, state):
    """Returns a random legal action; for a finished game, any action."""
    legal = game.legal_action_mask(state) | state.terminated
    return jax.random.categorical(rng_key, jnp.where(legal, 0.0, -jnp.inf))


@functools.cache
def random_games(game):
    """Returns states `[NUM_GAMES, max_moves + 1]` and the actions between them."""

    def play(rng_key):
        def play_move(state, rng_key):
            action = random_action(game, rng_key, state)
            return game.step(state, action), (state, action)

        keys = jax.random.split(rng_key, game.max_moves)
        end, (states, actions) = jax.lax.scan(play_move, game.init(), keys)
        states = jax.tree.map(
            lambda path, last: jnp.append(path, last[None], axis=0), states, end
        )
        return states, actions

    keys = jax.random.split(jax.random.key(0), NUM_GAMES)
    return jax.jit(jax.vmap(play))(keys)


def all_positions(game):
    """Returns every position of the random games, `[NUM_GAMES * (max_moves + 1)]`."""
    states, _ = random_games(game)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)


def state_bytes(game):
    leaves = jax.tree.leaves(jax.eval_shape(game.init))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


@every_game
def test_a_game_can_be_made_again_from_its_name_and_options(game):
    again = make(game.name, **game.options)
    assert again == game
    assert hash(again) == hash(game)
    assert set(game.options) == set(game_options(game.name))


@every_game
def test_an_unknown_option_is_refused_by_name(game):
    with pytest.raises(ValueError, match="no_such_option"):
        make(game.name, no_such_option=1)


@every_game
def test_player_0_moves_first_in_a_game_that_goes_on(game):
    state = game.init()
    assert state.current_player == 0
    assert not state.terminated
    assert game.legal_action_mask(state).any()
    np.testing.assert_array_equal(game.rewards(state), [0, 0])


@every_game
def test_shapes_and_dtypes_are_as_promised(game):
    state = game.init()
    chex.assert_type(state.current_player, jnp.int8)
    chex.assert_type(state.terminated, bool)
    chex.assert_shape([state.current_player, state.terminated], ())
    chex.assert_type(game.legal_action_mask(state), bool)
    chex.assert_shape(game.legal_action_mask(state), (game.num_actions,))
    chex.assert_type(game.observe(state), jnp.float32)
    chex.assert_shape(game.observe(state), game.observation_shape)
    chex.assert_type(game.rewards(state), jnp.float32)
    chex.assert_shape(game.rewards(state), (2,))


@every_game
def test_a_step_keeps_shapes_and_dtypes(game):
    state = game.init()
    after = jax.eval_shape(game.step, state, jnp.int32(0))
    chex.assert_trees_all_equal_shapes_and_dtypes(after, jax.eval_shape(lambda: state))


@every_game
def test_a_step_compiles_once(game):
    step = jax.jit(jax.vmap(game.step))
    states = jax.vmap(lambda _: game.init())(jnp.arange(3))
    for _ in range(3):
        states = step(states, jnp.zeros(3, jnp.int32))
    assert step._cache_size() == 1


@every_game
def test_many_games_at_once_are_what_single_games_are(game):
    states, actions = random_games(game)
    single = game.init()
    for action in actions[0][:5]:
        single = game.step(single, action)
    chex.assert_trees_all_equal(single, jax.tree.map(lambda leaf: leaf[0, 5], states))


@every_game
def test_every_game_ends_within_max_moves(game):
    states, _ = random_games(game)
    assert states.terminated[:, -1].all()


@every_game
def test_there_is_a_legal_action_until_the_game_is_over(game):
    states = all_positions(game)
    legal = jax.vmap(game.legal_action_mask)(states)
    assert (legal.any(axis=1) | states.terminated).all()


@every_game
def test_a_finished_game_stays_finished(game):
    states, _ = random_games(game)
    end = jax.tree.map(lambda leaf: leaf[:, -1], states)
    step = jax.jit(jax.vmap(game.step))
    for action in range(-1, game.num_actions + 1):
        after = step(end, jnp.full(NUM_GAMES, action, jnp.int32))
        chex.assert_trees_all_equal(after, end)


@every_game
def test_an_illegal_action_loses_for_the_mover(game):
    states = all_positions(game)
    legal = np.asarray(jax.vmap(game.legal_action_mask)(states))
    legal = np.pad(legal, ((0, 0), (1, 1)))  # -1 and A are no actions
    illegal = ~legal & ~np.asarray(states.terminated)[:, None]
    row, action = np.nonzero(illegal)
    before = jax.tree.map(lambda leaf: leaf[row], states)
    after = jax.vmap(game.step)(before, jnp.asarray(action - 1, jnp.int32))
    loser_first = np.asarray(before.current_player)[:, None] == [0, 1]
    assert after.terminated.all()
    np.testing.assert_array_equal(
        jax.vmap(game.rewards)(after), np.where(loser_first, -1, 1)
    )


@every_game
def test_rewards_sum_to_zero_and_wait_for_the_end(game):
    states = all_positions(game)
    rewards = np.asarray(jax.vmap(game.rewards)(states))
    assert (rewards.sum(axis=1) == 0).all()
    assert (rewards[~np.asarray(states.terminated)] == 0).all()
    assert set(np.unique(rewards)) <= {-1, 0, 1}


@every_game
def test_observations_are_finite(game):
    observations = jax.vmap(game.observe)(all_positions(game))
    assert jnp.isfinite(observations).all()


@every_game
def test_the_first_symmetry_changes_nothing(game):
    first = game.symmetries[0]
    observation = jnp.arange(np.prod(game.observation_shape), dtype=jnp.float32)
    observation = observation.reshape(game.observation_shape)
    np.testing.assert_array_equal(first.observation(observation), observation)
    np.testing.assert_array_equal(first.actions, np.arange(game.num_actions))


@every_game
def test_the_symmetries_are_different_permutations(game):
    permutations = {tuple(symmetry.actions.tolist()) for symmetry in game.symmetries}
    assert len(permutations) == len(game.symmetries)
    assert all(sorted(p) == list(range(game.num_actions)) for p in permutations)


@every_game
def test_the_image_of_a_game_is_a_game(game):
    states, actions = random_games(game)
    for symmetry in game.symmetries:
        # Entry `a` of the image's policy is entry `actions[a]` of the policy.
        image_of_action = np.argsort(symmetry.actions)
        images = play_actions(game, jnp.asarray(image_of_action)[actions])
        np.testing.assert_array_equal(images.terminated, states.terminated)
        for look, transform in (
            (game.observe, symmetry.observation),
            (game.legal_action_mask, lambda mask, s=symmetry: mask[..., s.actions]),
            (game.rewards, lambda rewards: rewards),
        ):
            look = jax.jit(jax.vmap(jax.vmap(look)))  # noqa: PLW2901
            np.testing.assert_array_equal(look(images), transform(look(states)))


def play_actions(game, actions):
    """Returns the positions `[B, T + 1]` on the way of actions `[B, T]`."""

    def play(actions):
        end, states = jax.lax.scan(
            lambda state, action: (game.step(state, action), state),
            game.init(),
            actions,
        )
        return jax.tree.map(
            lambda path, last: jnp.append(path, last[None], axis=0), states, end
        )

    return jax.jit(jax.vmap(play))(actions)


@every_game
def test_the_text_of_an_action_can_be_read_back(game):
    actions = range(game.num_actions)
    texts = [game.action_to_text(action) for action in actions]
    assert len(set(texts)) == game.num_actions
    assert [game.text_to_action(text) for text in texts] == list(actions)
    assert [game.text_to_action(f" {text.upper()}\n") for text in texts] == list(
        actions
    )


@every_game
@pytest.mark.parametrize("text", ["", "no action", "0", "-1", "a0", "z99"])
def test_text_that_is_no_action_is_refused(game, text):
    with pytest.raises(ValueError, match=repr(text)):
        game.text_to_action(text)


@every_game
def test_every_position_of_a_game_can_be_drawn(game):
    states, actions = random_games(game)
    for move in range(0, game.max_moves + 1, max(1, game.max_moves // 6)):
        state = jax.tree.map(lambda leaf, move=move: leaf[0, move], states)
        last_action = int(actions[0, move - 1]) if move else None
        assert game.to_text(state, last_action).isascii()
        assert game.to_svg(state, last_action).startswith("<svg")


@every_game
def test_a_policy_is_drawn_with_its_name(game):
    policy = np.full(game.num_actions, 1 / game.num_actions)
    svg = game.to_svg(game.init(), policies={"network": policy, "search": policy})
    assert ">network<" in svg
    assert ">search<" in svg


@every_game
def test_a_state_is_much_smaller_than_its_observation(game):
    assert state_bytes(game) < 4 * np.prod(game.observation_shape)


def test_a_connect_four_state_has_at_most_32_bytes():
    assert state_bytes(make("connect_four")) <= 32
