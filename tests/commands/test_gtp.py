import pytest

from azjax import cli


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["go:5", "--player", "human"], "needs no terminal: 'human'"),
        (["go:5", "--player", "random", "--seed", "-1"], "--seed must be from 0"),
        (["go:1", "--player", "random"], "from 2 to 19: 1"),
    ],
)
def test_a_wrong_argument_is_refused(args, says, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["gtp", *args])
    assert error.value.code == 2
    output = capsys.readouterr()
    assert says in output.err
    assert not output.out
