"""Flax networks: trunks, heads, and the network that joins them."""

from azjax.networks.heads import (
    AuxiliaryHead,
    PolicyHead,
    ValueHead,
    expected_value,
    policy_loss,
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
from azjax.networks.q_network import (
    QNetwork,
    QNetworkConfig,
    QParams,
    action_value,
    every_action_value,
    init_q_network,
)
from azjax.networks.trunks import (
    ConvTrunk,
    ConvTrunkConfig,
    DenseTrunk,
    DenseTrunkConfig,
    TrunkConfig,
    register_trunk,
)

__all__ = [
    "AuxiliaryHead",
    "ConvTrunk",
    "ConvTrunkConfig",
    "DenseTrunk",
    "DenseTrunkConfig",
    "Network",
    "NetworkConfig",
    "Parts",
    "PolicyHead",
    "Prediction",
    "QNetwork",
    "QNetworkConfig",
    "QParams",
    "TrunkConfig",
    "ValueHead",
    "Variables",
    "action_value",
    "every_action_value",
    "expected_value",
    "init_network",
    "init_q_network",
    "policy_loss",
    "predict",
    "predict_in_training",
    "register_trunk",
    "result_probabilities",
    "value_loss",
]
