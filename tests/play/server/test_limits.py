import dataclasses

import pytest

from azjax.play.server import Limits


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Limits)])
def test_every_limit_must_leave_something(name):
    with pytest.raises(ValueError, match=f"^{name} must be a finite number > 0: 0$"):
        Limits(**{name: 0})
