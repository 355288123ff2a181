"""Old names of `azjax.settings`."""

from azjax.settings import ConfigRegistry
from azjax.settings import from_json as record_from_json

__all__ = ["ConfigRegistry", "record_from_json"]
