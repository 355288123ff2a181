import pytest
import shared_programs as shared_programs_module
from matplotlib.figure import Figure

from azjax.training import plots


@pytest.fixture(scope="module")
def quick_plots():
    """Writes an empty picture instead of the learning plot."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "draw_learning", lambda rows, title: Figure((1, 1)))
        yield


@pytest.fixture(scope="module")
def shared_programs():
    """Makes runs of a module with equal settings compile once."""
    with shared_programs_module.shared_programs():
        yield
