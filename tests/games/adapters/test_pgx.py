import doctest
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx
import pytest
from pgx.experimental import act_randomly, auto_reset

from azjax import games
from azjax.arena import play_match
from azjax.games import make, registry
from azjax.games.adapters import pgx as module
from azjax.games.adapters.pgx import PgxGame, from_pgx, to_pgx
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import RandomPlayer, load_player
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    train,
)

NUM_GAMES = 32
CONNECT_FOUR = make("connect_four")
FACTS = (
    "current_player",
    "terminated",
    "truncated",
    "rewards",
    "legal_action_mask",
    "observation",
    "_step_count",
)


def any_action(rng_key, legal_action_mask):
    """Returns a random legal action, occasionally any action."""
    kind_key, legal_key, any_key = jax.random.split(rng_key, 3)
    num_actions = legal_action_mask.shape[-1]
    legal = jax.random.categorical(
        legal_key, jnp.where(legal_action_mask, 0.0, -jnp.inf)
    )
    anything = jax.random.randint(any_key, (), 0, num_actions)
    return jnp.where(jax.random.uniform(kind_key) < 0.1, anything, legal)


def test_the_examples_of_the_module_run():
    found = doctest.testmod(module)
    assert found.attempted > 5
    assert found.failed == 0


# azjax's games in pgx.


def test_pgxs_api_test_passes(monkeypatch):
    # pgx 2.6 selects random actions in a way that JAX 0.10 rejects for a single state.
    def act_randomly(rng_key, legal_action_mask):
        logits = jnp.where(legal_action_mask, 0.0, -jnp.inf)
        return jax.random.categorical(rng_key, logits)

    monkeypatch.setattr("pgx._src.api_test.act_randomly", jax.jit(act_randomly))
    pgx.api_test(to_pgx(make("tic_tac_toe")), 3)


def test_an_argument_that_is_not_a_game_is_refused():
    with pytest.raises(ValueError, match=r"game must be a Game.*: 'go'"):
        to_pgx("go")


def test_a_game_can_have_its_pgx_name():
    env = to_pgx(make("tic_tac_toe"), id="othello")
    assert env.id == env.init(jax.random.key(0)).env_id == "othello"


def test_connect_four_equals_pgxs():
    """Compares all facts of states, in games with illegal moves and steps after the
    end.
    """
    ours, theirs = to_pgx(CONNECT_FOUR), pgx.make("connect_four")

    def play(rng_key):
        init_key, moves_key = jax.random.split(rng_key)

        def move(states, key):
            action = any_action(key, states[1].legal_action_mask)
            was_illegal = ~states[1].legal_action_mask[action]
            states = tuple(
                env.step(state, action)
                for env, state in zip((ours, theirs), states, strict=True)
            )
            return states, (states, was_illegal)

        states = (ours.init(init_key), theirs.init(init_key))
        keys = jax.random.split(moves_key, ours.game.max_moves + 1)
        return states, jax.lax.scan(move, states, keys)[1]

    keys = jax.random.split(jax.random.key(0), NUM_GAMES)
    played = jax.device_get(jax.jit(jax.vmap(play))(keys))
    first, ((after, expected), was_illegal) = played
    assert set(first[0].current_player) == {0, 1}
    for fact in FACTS:
        a, b = getattr(after, fact), getattr(expected, fact)
        if fact == "observation":
            # pgx places the piece of an illegal move on the board, azjax does not.
            is_legal = np.cumsum(was_illegal, axis=1) == 0
            a, b = a[is_legal], b[is_legal]
        np.testing.assert_array_equal(a, b, err_msg=fact)
    assert was_illegal.any()
    assert after.terminated[:, -1].all()


def test_the_attributes_of_an_environment_need_no_state():
    env = to_pgx(CONNECT_FOUR)
    assert (env.num_actions, env.observation_shape, env.num_players) == (
        7,
        (6, 7, 2),
        2,
    )
    assert (env.id, env.version) == ("connect_four", "v0")


def test_games_restart_automatically():
    env = to_pgx(CONNECT_FOUR)
    step = jax.vmap(auto_reset(env.step, env.init))

    def move(states, rng_key):
        action_key, step_key = jax.random.split(rng_key)
        action = act_randomly(action_key, states.legal_action_mask)
        states = step(states, action, jax.random.split(step_key, NUM_GAMES))
        return states, (states.terminated, states.rewards)

    init_key, moves_key = jax.random.split(jax.random.key(1))
    states = jax.jit(jax.vmap(env.init))(jax.random.split(init_key, NUM_GAMES))
    keys = jax.random.split(moves_key, 100)
    last, (terminated, rewards) = jax.lax.scan(move, states, keys)
    assert (terminated.sum(axis=0) >= 2).all()
    np.testing.assert_array_equal(rewards.sum(axis=-1), 0)
    np.testing.assert_array_equal(rewards[~terminated], 0)
    assert (rewards[terminated] != 0).any()
    assert (last._step_count < 100).all()


def test_a_search_written_for_pgx_finds_the_winning_move():
    env = to_pgx(CONNECT_FOUR)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 4))
    step = jax.jit(jax.vmap(env.step))
    for action in (3, 0, 3, 0, 3, 0):  # the first player wins in column 3
        states = step(states, jnp.full(4, action))

    def recurrent_fn(params, rng_key, action, states):
        mover = states.current_player
        states = jax.vmap(env.step)(states, action)
        reward = states.rewards[jnp.arange(4), mover]
        legal = jnp.where(states.legal_action_mask, 0.0, -jnp.inf)
        discount = jnp.where(states.terminated, 0.0, -1.0)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=legal, value=jnp.zeros(4)
        ), states

    @jax.jit
    def search(rng_key, states):
        root = mctx.RootFnOutput(
            prior_logits=jnp.zeros((4, 7)), value=jnp.zeros(4), embedding=states
        )
        return mctx.gumbel_muzero_policy(
            None,
            rng_key,
            root,
            recurrent_fn,
            num_simulations=32,
            invalid_actions=~states.legal_action_mask,
            qtransform=mctx.qtransform_completed_by_mix_value,
        ).action

    assert len(set(np.asarray(states.current_player))) == 2
    np.testing.assert_array_equal(search(jax.random.key(1), states), 3)


def test_states_are_rendered_by_azjax(tmp_path):
    env = to_pgx(CONNECT_FOUR)
    state = env.step(env.init(jax.random.key(0)), 3)
    assert CONNECT_FOUR.to_svg(state._position)[5:] in state.to_svg(scale=2)
    assert 'height="' in state.to_svg()
    many = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), state)
    many.save_svg(tmp_path / "many.svg")
    drawn = (tmp_path / "many.svg").read_text()
    assert drawn == many._repr_html_()
    assert drawn.count("<svg ") == 4


# pgx's games in azjax.


def random_games(game, num_games=NUM_GAMES):
    """Returns states `[B, max_moves + 1]` of random games, and their actions."""

    def play(rng_key):
        def play_move(state, rng_key):
            legal = game.legal_action_mask(state)
            action = jax.random.categorical(rng_key, jnp.where(legal, 0.0, -jnp.inf))
            return game.step(state, action), (state, action)

        keys = jax.random.split(rng_key, game.max_moves)
        end, (states, actions) = jax.lax.scan(play_move, game.init(), keys)
        states = jax.tree.map(
            lambda path, last: jnp.append(path, last[None], axis=0), states, end
        )
        return states, actions

    games = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), num_games))
    return jax.device_get(games)


def test_pgxs_connect_four_equals_azjaxs():
    game, ours = from_pgx("connect_four"), CONNECT_FOUR
    assert game.num_actions == ours.num_actions
    assert game.observation_shape == ours.observation_shape
    assert game.max_moves == ours.max_moves
    states, actions = random_games(game)

    def replay(actions):
        end, path = jax.lax.scan(
            lambda state, action: (ours.step(state, action), state),
            ours.init(),
            actions,
        )
        return jax.tree.map(lambda a, b: jnp.append(a, b[None], axis=0), path, end)

    expected = jax.jit(jax.vmap(replay))(actions)
    np.testing.assert_array_equal(states.current_player, expected.current_player)
    np.testing.assert_array_equal(states.terminated, expected.terminated)
    for look in ("rewards", "observe", "board"):
        a, b = (
            jax.jit(jax.vmap(jax.vmap(getattr(g, look))))(s)
            for g, s in ((game, states), (ours, expected))
        )
        np.testing.assert_array_equal(a, b, err_msg=look)
        assert a.dtype == b.dtype
    legal, wanted = (
        np.asarray(jax.jit(jax.vmap(jax.vmap(g.legal_action_mask)))(s))
        for g, s in ((game, states), (ours, expected))
    )
    np.testing.assert_array_equal(legal, wanted | states.terminated[:, :, None])


@pytest.mark.parametrize("action", [-1, 0, 7, 100])
def test_an_illegal_action_loses_and_a_finished_game_stays(action):
    game = from_pgx("connect_four")
    step = jax.jit(game.step)
    state = game.init()
    for _ in range(6):
        state = step(state, 0)
    lost = step(step(state, 3), action)
    assert lost.terminated
    np.testing.assert_array_equal(game.rewards(lost), [1, -1])
    for any_action in (-1, 3, 7):
        chex.assert_trees_all_equal(step(lost, any_action), lost)


def test_dtypes_do_not_change():
    game = from_pgx("othello")
    after = jax.eval_shape(game.step, game.init(), jnp.int32(19))
    chex.assert_trees_all_equal_shapes_and_dtypes(after, jax.eval_shape(game.init))
    chex.assert_type(game.observe(game.init()), jnp.float32)
    chex.assert_type(
        [game.init().current_player, game.init().terminated], [jnp.int8, bool]
    )


@pytest.fixture(scope="module")
def animal_shogi():
    """Positions of random games, leaves `[8, 257, ...]`."""
    return random_games(from_pgx("animal_shogi"), 8)[0]


def test_players_of_a_pgx_game_alternate_until_it_ends(animal_shogi):
    states = animal_shogi
    np.testing.assert_array_equal(
        states.current_player, states.pgx_state.current_player
    )
    ongoing = ~np.asarray(states.terminated[:, :-1])
    players = np.arange(ongoing.shape[1]) % 2
    assert ((states.current_player[:, :-1] == players) | ~ongoing).all()
    assert states.terminated[:, -1].all()


def test_the_board_does_not_depend_on_the_player_to_move(animal_shogi, monkeypatch):
    monkeypatch.setattr(PgxGame, "board", jax.jit(PgxGame.board, static_argnums=0))
    game = from_pgx("animal_shogi")
    assert game.to_text(game.init()).split("\n")[1:] == [
        "4 g  l  e",
        "3 .  c  .",
        "2 .  C  .",
        "1 E  L  G",
    ]
    boards = np.asarray(jax.jit(jax.vmap(jax.vmap(game.board)))(animal_shogi))
    changes = (boards[:, 1:] != boards[:, :-1]).sum(axis=(2, 3))
    # A move changes two cells; a move of a piece from the hand changes one.
    moved = ~np.asarray(animal_shogi.terminated[:, :-1])
    assert set(changes[moved]) == {1, 2}
    assert (changes[~moved] == 0).all()


def test_a_game_of_pgx_is_rendered_by_pgx(animal_shogi):
    state = jax.tree.map(lambda leaf: leaf[0, -1], animal_shogi)
    assert from_pgx("animal_shogi").to_svg(state).startswith("<svg")


def test_the_notation_of_actions_is_pgxs_numbers():
    game = from_pgx("tic_tac_toe")
    state = game.step(game.init(), jnp.int32(4))
    assert game.text_to_action(state, " 8 ") == 8
    with pytest.raises(ValueError, match="not legal here; legal: 0 1 2 3 5 6 7 8"):
        game.text_to_action(state, "4")
    assert "[" not in game.to_text(state, 4)


@pytest.mark.parametrize("id", ["2048", "backgammon", "kuhn_poker", "nim", "", "Hex"])
def test_other_games_of_pgx_are_refused(id):
    with pytest.raises(ValueError, match=rf"id must be one of .*animal_shogi.*{id}"):
        make(f"pgx:{id}")


def test_an_unknown_option_is_refused():
    with pytest.raises(ValueError, match="pgx has no option 'size'; its options: id"):
        make("pgx:hex,size=5")


def test_a_game_of_pgx_can_be_recreated_from_its_name_and_options():
    game = make("pgx:othello")
    assert isinstance(game, PgxGame)
    assert make(game.name, **game.options) == make(repr(game)) == from_pgx("othello")
    assert game != make("pgx:hex")


def test_pgx_without_a_game_is_refused():
    assert "pgx" not in games.available()


def test_players_play_a_game_of_pgx():
    game = make("pgx:connect_four")
    player = RandomPlayer(game)
    result = play_match(game, player, player, jax.random.key(0), 8)
    assert result.total.games == 8


@pytest.mark.slow
def test_training_on_a_game_of_pgx_saves_a_loadable_player(tmp_path):
    config = TrainConfig(
        game="pgx:tic_tac_toe",
        iterations=3,
        run_dir=str(tmp_path / "run"),
        network=NetworkConfig(
            trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
        ),
        self_play=SelfPlayConfig(
            num_games=8, moves_per_chunk=4, num_simulations=(2,), temperature_moves=2
        ),
        replay=ReplayConfig(capacity=128, min_window=104, min_positions=32),
        learner=LearnerConfig(batch_size=16, replay_ratio=1.0),
        evaluation=EvaluationConfig(
            num_evaluations=1, num_positions=8, num_simulations=2, num_games=2
        ),
        checkpoint=CheckpointConfig(every_minutes=0.0),
    )
    run = train(config)
    assert run.finished
    assert run.last["updates"] > 0
    assert load_player(run.directory).game == make("pgx:tic_tac_toe")


def test_a_missing_pgx_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    monkeypatch.delitem(sys.modules, module.__name__)
    monkeypatch.delitem(registry._GAMES, "pgx")
    with pytest.raises(ValueError, match=r"pip install 'azjax\[pgx\]'"):
        make("pgx:hex")


ON_DEMAND = """
import sys
import azjax
assert not {"pgx", "pettingzoo", "pyspiel"} & sys.modules.keys()
print(azjax.games.make("pgx:tic_tac_toe"))
"""


def test_the_libraries_are_imported_only_when_used():
    command = [sys.executable, "-c", ON_DEMAND]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "pgx:tic_tac_toe\n"
