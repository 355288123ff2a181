import sys

import onnx
import pytest
import safetensors.numpy
from commands.refusal import assert_refused, refusal

from azjax import cli

EXPORT = ("export", "pretrained", "--game", "tic_tac_toe")


def test_a_players_network_is_written(tmp_path, capsys):
    path = tmp_path / "network.onnx"
    cli.main([*EXPORT, "--onnx", str(path)])
    assert onnx.load(path).graph.input[0].name == "observation"
    assert f"{path.stat().st_size:,} bytes, tic_tac_toe" in capsys.readouterr().out


def test_a_player_is_written_as_a_site(tmp_path, capsys):
    site = tmp_path / "site"
    cli.main([*EXPORT, "--web", str(site)])
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
    assert_refused(capsys, says, "export", *args)
    assert not list(tmp_path.iterdir())


def test_a_page_of_a_game_without_rules_is_refused_before_anything_is_loaded(
    capsys, tmp_path
):
    """The game is known to another program, and the player has no weights."""
    settings = {"azjax": '{"game": "chomp", "options": {}}'}
    safetensors.numpy.save_file({}, tmp_path / "player.safetensors", settings)
    files = ["--onnx", tmp_path / "x.onnx", "--web", tmp_path / "site"]
    said, _ = refusal(capsys, "export", tmp_path, *files)
    assert "connect_four and tic_tac_toe only, not for 'chomp': `azjax serve`" in said
    assert "`python FILE serve`" in said
    assert [path.name for path in tmp_path.iterdir()] == ["player.safetensors"]


def test_a_directory_is_no_onnx_file(capsys, tmp_path):
    path = tmp_path / "x.onnx"
    path.mkdir()
    assert_refused(capsys, f"not a directory: {path}", *EXPORT, "--onnx", path)
    assert not list(path.iterdir())


def test_without_the_library_its_extra_is_named(capsys, monkeypatch):
    for module in ("azjax.play.onnx_graph", "azjax.play.web_export"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert_refused(capsys, "pip install 'azjax[export]'", *EXPORT, "--onnx", "x.onnx")
