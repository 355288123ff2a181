import json
import pickle

import chex
import pytest
import safetensors.numpy
from fake_hub import Repository, sha

from azjax import cli, games, players
from azjax.players.serialization import player_bytes

NAME = "ann/tic"
FILE = "player.safetensors"
CARD = "# Tic-tac-toe\n\nIt plays.\n"


@pytest.fixture(scope="module")
def player():
    return players.load_run("pretrained", games.make("tic_tac_toe"))


@pytest.fixture(scope="module")
def content(player):
    return player_bytes(player)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, empty."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def put(hub, **files):
    """Commits files to the repository; `_` in a name is a dot."""
    repository = hub.repositories.setdefault(NAME, Repository())
    repository.commit({name.replace("_", "."): data for name, data in files.items()})


def assert_refused(capsys, match, *args):
    with pytest.raises(SystemExit) as error:
        cli.main(["pull", *args])
    assert error.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]  # after progress bars
    assert line.startswith("azjax: ")
    assert match in line


def test_a_pushed_player_comes_back_bit_for_bit_and_can_be_pushed(
    hub, folder, player, capsys
):
    players.save_player(folder / "mine", player)
    (folder / "mine" / "card.md").write_text(CARD)
    cli.main(["push", "mine", NAME])
    capsys.readouterr()
    cli.main(["pull", NAME])
    assert capsys.readouterr().out.splitlines() == [
        "./tic: tic_tac_toe",
        "Play against it: azjax play tic_tac_toe --opponent alphazero:./tic",
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["mine", "tic"]
    names = sorted(path.name for path in (folder / "tic").iterdir())
    assert names == ["card.md", FILE]
    assert (folder / "tic" / "card.md").read_text() == CARD
    pulled = players.load("alphazero:./tic?simulations=8", player.game)
    chex.assert_trees_all_equal(pulled.variables, player.variables)
    assert pulled.search == player.search
    assert pulled.network == player.network
    # It can be pushed again.
    cli.main(["push", "tic", "ann/again"])
    first, again = hub.repositories[NAME].files, hub.repositories["ann/again"].files
    assert again[FILE] == first[FILE]
    page = first["README.md"].decode().replace(NAME, "ann/again")
    assert again["README.md"].decode() == page.replace("./tic", "./again")


def test_a_revision_and_a_directory_are_chosen(hub, folder, content):
    put(hub, player_safetensors=content)
    put(hub, player_safetensors=b"damaged")
    cli.main(["pull", NAME, "--revision", sha(1), "--to", "a/b"])
    assert players.load_player(folder / "a" / "b").game.name == "tic_tac_toe"
    assert not (folder / "a" / "b" / "card.md").exists()
    assert [path.name for path in (folder / "a").iterdir()] == ["b"]


class Attack:
    """Writes a file when it is unpickled."""

    def __reduce__(self):
        return open, ("executed", "w")


def with_large_network(content):
    """Returns a player's file whose settings are those of a large network."""
    trunk = {"name": "conv", "channels": 2048, "num_blocks": 2}
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    settings = json.loads(header["__metadata__"]["azjax"])
    text = json.dumps(settings | {"network": {"trunk": trunk}})
    arrays = safetensors.numpy.load(content)
    return safetensors.numpy.save(arrays, metadata={"azjax": text})


def test_a_bad_file_or_page_is_refused_and_nothing_is_written(
    hub, folder, content, capsys
):
    put(hub, player_safetensors=content, README_md=bytes(2**20 + 1))
    assert_refused(capsys, "README.md in ann/tic has 1048577 bytes", NAME)
    assert list(folder.iterdir()) == []
    # tests/players/test_damaged_players.py has more of them.
    for bad, match in (
        (pickle.dumps(Attack()), "damaged"),
        (with_large_network(content), "at most 536870912 are loaded"),
    ):
        put(hub, player_safetensors=bad, README_md=b"# A player")
        assert_refused(capsys, match, NAME)
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"model_pkl": pickle.dumps(Attack()), "README_md": b"# A model"},
        {"config_json": b"{}", "weights_npz": b""},
        {"model_safetensors": b""},
    ],
)
def test_a_repository_without_a_player_is_refused(hub, folder, capsys, files):
    put(hub, **files)
    assert_refused(capsys, f"{NAME} has no {FILE}", NAME)
    assert list(folder.iterdir()) == []
    assert not any("/resolve/" in line for line in hub.requests)


@pytest.mark.parametrize("options", [(), ("--to", "other")])
@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_an_existing_target_is_not_changed(hub, folder, capsys, options, kind):
    target = folder / (options[-1] if options else "tic")
    if kind == "directory":
        target.mkdir()
        (target / "config.json").write_text("mine")
    elif kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to("nowhere")
    before = sorted(folder.rglob("*"))
    message = f"{target.name} exists: give a new directory"
    assert_refused(capsys, message, NAME, *options)
    assert sorted(folder.rglob("*")) == before
    assert hub.requests == []


def test_a_target_made_meanwhile_is_not_changed(hub, folder, content, monkeypatch):
    put(hub, player_safetensors=content)
    save = players.save_player

    def save_player(directory, player):
        (folder / "tic").mkdir()
        (folder / "tic" / "mine").write_text("mine")
        save(directory, player)

    monkeypatch.setattr("azjax.commands.pull.save_player", save_player)
    with pytest.raises(SystemExit):
        cli.main(["pull", NAME])
    assert [path.name for path in folder.iterdir()] == ["tic"]
    assert [path.name for path in (folder / "tic").iterdir()] == ["mine"]


def test_wrong_arguments_are_refused(hub, folder, capsys):
    assert_refused(capsys, "must be USER/NAME", "../../etc")
    assert_refused(capsys, "there is no repository ann/nothing", "ann/nothing")
    assert_refused(capsys, "--to must be", NAME, "--to", "hf://ann/x")
    put(hub)
    assert_refused(capsys, "no revision '../../x'", NAME, "--revision", "../../x")
    assert list(folder.iterdir()) == []
