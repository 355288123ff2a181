import json
import tracemalloc

import pytest
from starlette.testclient import TestClient
from training.saved_runs import evaluation_row, save_run

from azjax.play.server import PlayerRegistry, ServerLimits, make_catalog
from azjax.play.server.app import make_app
from azjax.play.server.comparing import (
    MAX_RUNS,
    RATE_BYTES,
    Comparisons,
)
from azjax.play.server.memory import Cache
from azjax.play.server.runs import find_runs
from azjax.training.analysis.comparison import MAX_RATES
from azjax.training.run.metrics import METRICS_FILE

URL = "http://localhost:8000"
ROWS = [evaluation_row(number, mistakes=0.5 / number) for number in (1, 2)]
PNG = b"\x89PNG"


@pytest.fixture
def directory(tmp_path):
    """Two runs of tic-tac-toe that differ in the seed, and one of another game."""
    for seed in range(2):
        save_run(tmp_path / f"run{seed}", ROWS, seed=seed)
    save_run(tmp_path / "other", ROWS, game="hex:3")
    return tmp_path


def runs_in(directory, game="tic_tac_toe"):
    found = find_runs(directory).values()
    return [run for run in found if repr(run.game) == game]


def rows_of(described):
    return {row[0]: row[1:] for part in described["sections"] for row in part["rows"]}


def client_of(directory):
    registry = PlayerRegistry(
        make_catalog(["tic_tac_toe"], (), directory), ServerLimits()
    )
    return TestClient(make_app(registry, names=["localhost"]), base_url=URL)


@pytest.fixture
def comparisons():
    return Comparisons(Cache(2**30))


@pytest.fixture
def client(directory):
    with client_of(directory) as client:
        yield client


def test_the_tables_are_those_of_the_command(directory, comparisons):
    described = comparisons.describe(runs_in(directory))
    assert described["names"] == ["run0", "run1"]
    headings = [part["heading"] for part in described["sections"]]
    assert headings == ["settings that differ", "training", "last evaluation"]
    rows = rows_of(described)
    assert rows["seed"] == ["0", "1"]
    assert rows["positions"] == ["2,000", "2,000"]
    assert rows["mistakes, network alone"] == ["25.0% (20.0 to 30.0)"] * 2
    json.dumps(described, allow_nan=False)


def test_the_picture_changes_with_the_metrics(directory, comparisons):
    runs = runs_in(directory)
    before, version = comparisons.draw(runs), comparisons.describe(runs)["plot"]
    assert before is not None
    assert before.startswith(PNG)
    assert comparisons.draw(runs) is before
    with (directory / "run0" / METRICS_FILE).open("a") as file:
        file.write(json.dumps(evaluation_row(3, mistakes=0.1)) + "\n")
    assert comparisons.describe(runs)["plot"] != version
    assert comparisons.draw(runs) != before


def test_runs_that_cannot_be_read_are_left_out(directory, comparisons, caplog):
    runs = runs_in(directory)
    (directory / "run1" / "config.json").write_text('{"format": 99}')
    assert comparisons.describe(runs)["names"] == ["run0"]
    assert "the run 'run1' is not compared" in caplog.text
    metrics = directory / "run0" / METRICS_FILE
    metrics.rename(directory / "secret")
    metrics.symlink_to(directory / "secret")
    assert comparisons.describe(runs) == {"names": [], "sections": [], "plot": None}
    assert comparisons.draw(runs) is None


def test_a_run_without_metrics_is_compared(directory, comparisons):
    (directory / "run0" / METRICS_FILE).unlink()
    assert rows_of(comparisons.describe(runs_in(directory)))["training time"][0] == "-"


def test_a_picture_with_too_many_panels_is_not_drawn(directory, comparisons):
    scores = {f"player{number}": 0.5 for number in range(100)}
    with (directory / "run0" / METRICS_FILE).open("a") as file:
        file.write(json.dumps(evaluation_row(3, **scores)) + "\n")
    assert comparisons.describe(runs_in(directory))["plot"] is None
    assert comparisons.draw(runs_in(directory)) is None


def test_long_metrics_take_bounded_memory(directory):
    """The memory of a row while it is read, and of 10,000 rates, not of the file."""
    scores = {f"player{number}": 0.5 for number in range(30)}
    line = json.dumps(evaluation_row(3, **scores)) + "\n"
    text = (2_000_000 // len(line)) * line + "[" * 2_000_000 + "\n"
    path = directory / "run0" / METRICS_FILE
    path.write_text(text + json.dumps(ROWS[1]) + "\n")
    cache = Cache(2**30)
    comparisons = Comparisons(cache)
    tracemalloc.start()
    described = comparisons.describe(runs_in(directory))
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows_of(described)["mistakes, network alone"] == ["25.0% (20.0 to 30.0)"] * 2
    entry, _ = cache.entries()
    assert size < entry.bytes < 2 * MAX_RATES * RATE_BYTES
    assert peak < 4 * size


def test_comparisons_are_evicted_from_a_full_cache(directory):
    cache = Cache(70_000)
    comparisons = Comparisons(cache)
    for runs in (runs_in(directory), runs_in(directory)[::-1]):
        assert len(comparisons.describe(runs)["names"]) == 2
        assert len(cache.entries()) == 2
    assert comparisons.draw(runs_in(directory)) is not None
    assert len(cache.entries()) < 3


def test_the_lobby_offers_games_with_several_runs(client):
    assert client.get("/lobby.json").json()["comparisons"] == [
        {"key": "tic_tac_toe", "title": "Tic Tac Toe", "runs": 2}
    ]
    assert client.get("/compare/tic_tac_toe").url.path == "/compare/tic_tac_toe/"
    assert "compare.js" in client.get("/compare/tic_tac_toe/").text
    assert client.get("/compare/tic_tac_toe/compare.js").status_code == 200
    for other in ("hex:3", "chess", "..%2Ftic_tac_toe"):
        assert client.get(f"/compare/{other}/").status_code == 404


def test_the_compared_runs_are_chosen_by_the_address(client):
    there = "/compare/tic_tac_toe/compare"
    described = client.get(f"{there}.json").json()
    assert described["title"] == "Tic Tac Toe"
    assert [run["isChosen"] for run in described["runs"]] == [True, True]
    assert client.get(f"{there}.png").content.startswith(PNG)
    one = client.get(f"{there}.json?run=run1&run=../other").json()
    assert one["names"] == ["run1"]
    assert [run["isChosen"] for run in one["runs"]] == [False, True]
    none = client.get(f"{there}.json?run=nothing").json()
    assert (none["names"], none["plot"]) == ([], None)
    assert client.get(f"{there}.png?run=nothing").status_code == 404


def test_the_number_of_compared_runs_is_limited(directory):
    for number in range(2, MAX_RUNS + 3):
        save_run(directory / f"run{number}", ROWS[:1], seed=number)
    with client_of(directory) as client:
        described = client.get("/compare/tic_tac_toe/compare.json").json()
    assert described["most"] == len(described["names"]) == MAX_RUNS
    assert str(directory) not in json.dumps(described)
