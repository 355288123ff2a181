import builtins
import sys

import onnx
import pytest
import safetensors.numpy

from azjax import cli


def test_a_players_network_is_written(tmp_path, capsys):
    path = tmp_path / "network.onnx"
    cli.main(["export", "pretrained", "--game", "tic_tac_toe", "--onnx", str(path)])
    assert onnx.load(path).graph.input[0].name == "observation"
    assert f"{path.stat().st_size:,} bytes, tic_tac_toe" in capsys.readouterr().out


def test_a_player_is_written_as_a_site(tmp_path, capsys):
    site = tmp_path / "site"
    cli.main(["export", "pretrained", "--game", "tic_tac_toe", "--web", str(site)])
    assert (site / "index.html").exists()
    out = capsys.readouterr().out
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert f"{site}: {size:,} bytes, tic_tac_toe" in out
    assert f"python -m http.server --directory {site}" in out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ["pretrained", "--game", "tic_tac_toe"],
            "give --onnx FILE or --web DIR",
        ),
        (["pretrained", "--onnx", "x.onnx"], "requires a game"),
        (["nowhere", "--onnx", "x.onnx"], "no player in nowhere"),
        (
            ["pretrained", "--game", "tic_tac_toe", "--onnx", "x.txt"],
            "ends with .onnx: x.txt",
        ),
        (["nowhere", "--web", "site"], "no player in nowhere"),
    ],
)
def test_a_wrong_argument_is_refused(args, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as error:
        cli.main(["export", *args])
    assert error.value.code == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_page_of_a_game_without_rules_is_refused_before_anything_is_loaded(
    capsys, tmp_path
):
    """The game is known to another program, and the player has no weights."""
    settings = {"azjax": '{"game": "chomp", "options": {}}'}
    safetensors.numpy.save_file({}, tmp_path / "player.safetensors", settings)
    files = ["--onnx", str(tmp_path / "x.onnx"), "--web", str(tmp_path / "site")]
    with pytest.raises(SystemExit):
        cli.main(["export", str(tmp_path), *files])
    said = capsys.readouterr().err
    assert "connect_four and tic_tac_toe only, not for 'chomp': `azjax serve`" in said
    assert "`python FILE serve`" in said
    assert [path.name for path in tmp_path.iterdir()] == ["player.safetensors"]


def test_a_directory_is_no_onnx_file(capsys, tmp_path):
    path = tmp_path / "x.onnx"
    path.mkdir()
    with pytest.raises(SystemExit):
        cli.main(["export", "pretrained", "--game", "tic_tac_toe", "--onnx", str(path)])
    assert f"not a directory: {path}" in capsys.readouterr().err
    assert not list(path.iterdir())


def test_without_the_library_its_extra_is_named(capsys, monkeypatch):
    real = builtins.__import__

    def without_onnx(name, *args, **kwargs):
        if name == "onnx":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    for module in ("azjax.play.onnx_graph", "azjax.play.web_export"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(builtins, "__import__", without_onnx)
    with pytest.raises(SystemExit):
        cli.main(["export", "pretrained", "--game", "tic_tac_toe", "--onnx", "x.onnx"])
    assert "pip install 'azjax[export]'" in capsys.readouterr().err
