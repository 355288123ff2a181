import doctest
import sys

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx
import pytest
from coin_toss import CoinToss
from compiled_games import compiled, play, single
from pgx.experimental import act_randomly, auto_reset
from training.tiny_runs import config

from azjax import games
from azjax.games import make, registry
from azjax.games.adapters import pgx as module
from azjax.games.adapters.pgx import PgxGame, from_pgx, to_pgx
from azjax.players import load_player
from azjax.training import train

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


@pytest.mark.parametrize("name", ["tic_tac_toe", "kalah:3,3"])
def test_pgxs_api_test_passes(name, monkeypatch):
    # pgx 2.6 selects random actions in a way that JAX 0.10 rejects for a single state.
    def act_randomly(rng_key, legal_action_mask):
        logits = jnp.where(legal_action_mask, 0.0, -jnp.inf)
        return jax.random.categorical(rng_key, logits)

    monkeypatch.setattr("pgx._src.api_test.act_randomly", jax.jit(act_randomly))
    pgx.api_test(to_pgx(make(name), id="tic_tac_toe"), 3)  # it wants a name of pgx


def test_an_argument_that_is_not_a_game_is_refused():
    with pytest.raises(ValueError, match=r"game must be a Game.*: 'go'"):
        to_pgx("go")


def test_the_attributes_of_an_environment_need_no_state():
    env = to_pgx(CONNECT_FOUR)
    assert (env.num_actions, env.observation_shape) == (7, (6, 7, 2))
    assert (env.num_players, env.id, env.version) == (2, "connect_four", "v0")
    # A game can have its pgx name.
    env = to_pgx(make("tic_tac_toe"), id="othello")
    state = jax.eval_shape(env.init, jax.random.key(0))
    assert env.id == state.env_id == "othello"


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


def test_games_restart_automatically():
    env = to_pgx(CONNECT_FOUR)
    step = jax.vmap(auto_reset(env.step, env.init))

    def move(states, rng_key):
        action_key, step_key = jax.random.split(rng_key)
        action = act_randomly(action_key, states.legal_action_mask)
        states = step(states, action, jax.random.split(step_key, NUM_GAMES))
        return states, (states.terminated, states.rewards)

    @jax.jit
    def play_games(init_keys, move_keys):
        return jax.lax.scan(move, jax.vmap(env.init)(init_keys), move_keys)

    keys = jax.random.split(jax.random.key(1), 100)
    last, (terminated, rewards) = jax.device_get(play_games(keys[:NUM_GAMES], keys))
    assert (terminated.sum(axis=0) >= 2).all()
    np.testing.assert_array_equal(rewards.sum(axis=-1), 0)
    np.testing.assert_array_equal(rewards[~terminated], 0)
    assert (rewards[terminated] != 0).any()
    assert (last._step_count < 100).all()


@pytest.mark.slow
def test_the_keys_draw_the_outcomes_of_chance():
    env = to_pgx(CoinToss())

    @jax.jit
    @jax.vmap
    def play(rng_key):
        init_key, action_key, step_key = jax.random.split(rng_key, 3)
        first = env.init(init_key)
        action = any_action(action_key, first.legal_action_mask)
        return first, env.step(first, action, step_key)

    keys = jax.random.split(jax.random.key(0), 64)
    first, after = jax.device_get(play(keys))
    for states in first, after:
        position = states._position
        assert not position.waits.any()
        mover = states._first_player ^ position.current_player
        np.testing.assert_array_equal(states.current_player, mover)
        assert set(position.current_player) == {0, 1}
    # The coin ends some of the games, and pays the player whose turn it is.
    assert after.terminated.any()
    np.testing.assert_array_equal(after.rewards.sum(axis=1), 0)
    chex.assert_trees_all_equal(jax.device_get(play(keys))[1], after)
    with pytest.raises(ValueError, match=r"coin_toss has chance: step\(.*key\) needs"):
        jax.eval_shape(env.step, single(first), 0)


def test_a_search_written_for_pgx_finds_the_winning_move():
    env = to_pgx(make("tic_tac_toe"))

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
    def search(init_keys, moves, rng_key):
        step = jax.vmap(env.step, in_axes=(0, None))
        states = jax.vmap(env.init)(init_keys)
        states, _ = jax.lax.scan(lambda s, a: (step(s, a), None), states, moves)
        root = mctx.RootFnOutput(
            prior_logits=jnp.zeros((4, 9)), value=jnp.zeros(4), embedding=states
        )
        output = mctx.gumbel_muzero_policy(
            None,
            rng_key,
            root,
            recurrent_fn,
            num_simulations=16,
            invalid_actions=~states.legal_action_mask,
            qtransform=mctx.qtransform_completed_by_mix_value,
        )
        return states.current_player, output.action

    keys = jax.random.split(jax.random.key(0), 4)
    # The first player wins on the last cell of the top row.
    players, actions = jax.device_get(search(keys, np.array([0, 3, 1, 4]), keys[0]))
    assert len(set(players)) == 2
    np.testing.assert_array_equal(actions, 2)


def test_states_are_rendered_by_azjax(tmp_path):
    env = to_pgx(compiled("connect_four"))
    first = jax.jit(lambda key: env.step(env.init(key), 3))
    state = jax.device_get(first(jax.random.key(0)))
    position = play(CONNECT_FOUR, "4")
    assert CONNECT_FOUR.to_svg(position)[5:] in state.to_svg(scale=2)
    assert 'height="' in state.to_svg()
    many = jax.tree.map(lambda leaf: np.stack([leaf] * 3), state)
    many.save_svg(tmp_path / "many.svg")
    drawn = (tmp_path / "many.svg").read_text()
    assert drawn == many._repr_html_()
    assert drawn.count("<svg ") == 4


# pgx's games in azjax.


def record_games(games, look, num_games):
    """Returns `look(states)` of all positions of random games, `[B, T, ...]`, and the
    last positions; the same moves are made by the rules of each of the games.
    """

    def play_move(states, rng_key):
        legal = games[0].legal_action_mask(states[0])
        action = jax.random.categorical(rng_key, jnp.where(legal, 0.0, -jnp.inf))
        after = [g.step(s, action) for g, s in zip(games, states, strict=True)]
        return after, look(*states)

    def play_game(rng_key):
        # One step more, which changes nothing, so that the end is looked at.
        keys = jax.random.split(rng_key, games[0].max_moves + 1)
        return jax.lax.scan(play_move, [game.init() for game in games], keys)

    keys = jax.random.split(jax.random.key(0), num_games)
    return jax.device_get(jax.jit(jax.vmap(play_game))(keys))


def test_pgxs_connect_four_equals_azjaxs():
    games = [from_pgx("connect_four"), CONNECT_FOUR]
    for name in "num_actions", "observation_shape", "max_moves":
        assert getattr(games[0], name) == getattr(games[1], name)

    def look(*states):
        """Returns facts of the position in both games."""
        facts = ("observe", "rewards", "board", "legal_action_mask")
        return {
            fact: [getattr(g, fact)(s) for g, s in zip(games, states, strict=True)]
            for fact in facts
        } | {fact: [getattr(s, fact) for s in states] for fact in FACTS[:2]}

    _, seen = record_games(games, look, NUM_GAMES)
    found, wanted = seen.pop("legal_action_mask")
    over = seen["terminated"][1]
    np.testing.assert_array_equal(found, wanted | over[:, :, None])
    assert over[:, -1].all()
    for fact, (found, wanted) in seen.items():
        np.testing.assert_array_equal(found, wanted, err_msg=fact)
        assert found.dtype == wanted.dtype


def test_an_illegal_action_loses_and_a_finished_game_stays():
    game = compiled("pgx:connect_four")
    full = play(game, "0 0 0 0 0 0 3")
    for action in -1, 0, 7, 100:
        lost = game.step(full, np.int32(action))
        assert lost.terminated
        np.testing.assert_array_equal(game.rewards(lost), [1, -1])
        for any_action in -1, 3, 7:
            after = game.step(lost, np.int32(any_action))
            chex.assert_trees_all_equal(after, lost)


def test_dtypes_do_not_change():
    game = from_pgx("othello")
    first = jax.eval_shape(game.init)
    after = jax.eval_shape(game.step, first, jnp.int32(19))
    chex.assert_trees_all_equal_shapes_and_dtypes(after, first)
    chex.assert_type(jax.eval_shape(game.observe, first), jnp.float32)
    chex.assert_type([first.current_player, first.terminated], [jnp.int8, bool])


@pytest.mark.slow
def test_players_of_a_pgx_game_alternate_and_its_board_is_not_turned():
    game = compiled("pgx:animal_shogi")

    def look(state):
        player = state.pgx_state.current_player
        return state.current_player, player, state.terminated, game.board(state)

    (ends,), (players, theirs, terminated, boards) = record_games([game], look, 8)
    np.testing.assert_array_equal(players, theirs)
    moved = ~terminated[:, :-1]
    turns = np.arange(moved.shape[1]) % 2
    assert ((players[:, :-1] == turns) | ~moved).all()
    assert terminated[:, -1].all()
    assert game.to_text(game.init()).split("\n")[1:] == [
        "4 g  l  e",
        "3 .  c  .",
        "2 .  C  .",
        "1 E  L  G",
    ]
    # A move changes two cells; a move of a piece from the hand changes one.
    changes = (boards[:, 1:] != boards[:, :-1]).sum(axis=(2, 3))
    assert set(changes[moved]) == {1, 2}
    assert (changes[~moved] == 0).all()
    # It is rendered by pgx.
    assert game.to_svg(single(ends)).startswith("<svg")


def test_the_notation_of_actions_is_pgxs_numbers():
    game = compiled("pgx:tic_tac_toe")
    state = play(game, "4")
    assert game.text_to_action(state, " 8 ") == 8
    with pytest.raises(ValueError, match="not legal here; legal: 0 1 2 3 5 6 7 8"):
        game.text_to_action(state, "4")
    assert "[" not in game.to_text(state, 4)


def test_other_games_and_options_are_refused():
    for id in "2048", "backgammon", "kuhn_poker", "nim", "", "Hex":
        with pytest.raises(ValueError, match=rf"must be one of .*animal_shogi.*{id}"):
            make(f"pgx:{id}")
    with pytest.raises(ValueError, match="pgx has no option 'size'; its options: id"):
        make("pgx:hex,size=5")
    # The name alone is no game.
    assert "pgx" not in games.available()


def test_a_game_of_pgx_can_be_recreated_from_its_name_and_options():
    game = make("pgx:othello")
    assert isinstance(game, PgxGame)
    assert make(game.name, **game.options) == make(repr(game)) == from_pgx("othello")
    assert game != make("pgx:hex")


@pytest.mark.slow
def test_training_on_a_game_of_pgx_saves_a_loadable_player(tmp_path):
    run = train(config(tmp_path / "run", game="pgx:tic_tac_toe", iterations=3))
    assert run.finished
    assert run.last["updates"] > 0
    assert load_player(run.directory).game == make("pgx:tic_tac_toe")


def test_a_missing_pgx_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    monkeypatch.delitem(sys.modules, module.__name__)
    monkeypatch.delitem(registry._GAMES, "pgx")
    with pytest.raises(ValueError, match=r"pip install 'azjax\[pgx\]'"):
        make("pgx:hex")
