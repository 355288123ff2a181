"""Makes many updates on 4 CPU devices for `test_lanes.py`; prints the policy loss."""

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import first_network
from azjax.training import (
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    make_algorithm,
    train_iteration,
)

CONFIG = TrainConfig(
    game="connect_four",
    iterations=10,
    network=NetworkConfig(DenseTrunkConfig(width=64)),
    self_play=SelfPlayConfig(num_games=64, moves_per_chunk=8, num_simulations=(2,)),
    replay=ReplayConfig(capacity=2**13, min_window=4096, min_positions=256),
    learner=LearnerConfig(batch_size=64, replay_ratio=20.0),
)


def main() -> None:
    """Makes two iterations with 160 updates each."""
    game = games.make(CONFIG.game)
    network, variables = first_network(0, game, CONFIG.network)
    algorithm = make_algorithm(CONFIG, game, network)
    state, metrics = algorithm.init(variables), {}
    while "policy_loss" not in metrics:
        state, metrics = train_iteration(algorithm, CONFIG, state, 0.0)
    _, metrics = train_iteration(algorithm, CONFIG, state, 0.0)
    print(float(metrics["policy_loss"]))


if __name__ == "__main__":
    main()
