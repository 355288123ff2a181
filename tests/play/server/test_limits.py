import dataclasses

import pytest

from azjax.play.server import Limits


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Limits)])
def test_limits_must_be_positive(name):
    with pytest.raises(ValueError, match=f"^{name} must be a finite number > 0: 0$"):
        Limits(**{name: 0})
