import pytest
from matplotlib.figure import Figure

from azjax.training import plots


@pytest.fixture(scope="module")
def quick_plots():
    """Writes an empty picture where a run draws how it learns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "draw_learning", lambda rows, title: Figure((1, 1)))
        yield
