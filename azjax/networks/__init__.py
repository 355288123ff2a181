"""Flax networks: trunks, heads, and the network that joins them."""

from azjax.networks.heads import (
    PolicyHead,
    ValueHead,
    expected_value,
    result_probabilities,
    value_loss,
)
from azjax.networks.network import (
    Network,
    NetworkConfig,
    Parts,
    Prediction,
    Variables,
    init_network,
    predict,
    predict_in_training,
)
from azjax.networks.trunks import ConvTrunk, DenseTrunk

__all__ = [
    "ConvTrunk",
    "DenseTrunk",
    "Network",
    "NetworkConfig",
    "Parts",
    "PolicyHead",
    "Prediction",
    "ValueHead",
    "Variables",
    "expected_value",
    "init_network",
    "predict",
    "predict_in_training",
    "result_probabilities",
    "value_loss",
]
