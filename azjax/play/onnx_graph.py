"""Export of a trained network to ONNX; needs the library onnx.

The graph is built node by node. It computes in float32 and accepts any batch size.
"""

from pathlib import Path

import numpy as np
from flax import nnx

from azjax.files import replace_file
from azjax.networks.heads import (
    BoardPolicyHead,
    BoardValueHead,
    Head,
    PolicyHead,
    ValueHead,
)
from azjax.networks.line_planes import DIRECTIONS, NUM_PLANES
from azjax.networks.network import AlphaZeroNetwork
from azjax.networks.trunks import ConvTrunk, DenseTrunk
from azjax.players import TrainedPlayer

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "this needs the library onnx: pip install 'azjax[export]'", name="onnx"
    ) from error

OPSET = 17
# The newest file format that runtimes for this opset can read.
IR_VERSION = 8
TO_CHANNELS_FIRST = (0, 3, 1, 2)
TO_CHANNELS_LAST = (0, 2, 3, 1)


def export_onnx(trained: TrainedPlayer, path: Path) -> None:
    """Writes a player's network to an ONNX file.

    Input: `observation`, `[batch, H, W, C]` float32. Outputs: `policy_logits`,
    `[batch, A]` float32, without a mask of illegal moves, and `result`, `[batch, 3]`
    float32, the probabilities of win, draw and loss for the player to move.

    Raises:
        ValueError: the network has custom modules.
    """
    replace_file(path, to_onnx(trained).SerializeToString())


def to_onnx(trained: TrainedPlayer) -> onnx.ModelProto:
    """Returns a player's network as an ONNX model; see `export_onnx`."""
    model = nnx.merge(trained.network.eval_def, *trained.variables)
    game = trained.game
    if not isinstance(model, AlphaZeroNetwork):
        raise ValueError(f"only an AlphaZeroNetwork can be exported: {type(model)}")
    writer, observation = _Writer(), "observation"
    if model.line_length:
        observation = _write_line_planes(writer, observation, model.line_length)
    features = _write_trunk(writer, observation, model.trunk)
    logits = _write_head(writer, features, model.policy_head)
    writer.add("Identity", logits, output="policy_logits")
    value_logits = _write_head(writer, features, model.value_head)
    # The probabilities of win, draw and loss; see `result_probabilities`.
    if trained.config.value_head == "wdl":
        writer.add("Softmax", value_logits, axis=1, output="result")
    else:
        win = writer.add("Sigmoid", value_logits)
        loss = writer.add("Sub", writer.constant(1.0), win)
        draw = writer.add("Sub", win, win)
        writer.add("Concat", win, draw, loss, axis=1, output="result")
    graph = helper.make_graph(
        writer.nodes,
        "azjax",
        [_tensor("observation", game.observation_shape)],
        [_tensor("policy_logits", (game.num_actions,)), _tensor("result", (3,))],
        writer.constants,
    )
    exported = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="azjax",
    )
    helper.set_model_props(exported, {"game": repr(game)})
    onnx.checker.check_model(exported, full_check=True)
    return exported


def _tensor(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])


class _Writer:
    """Collects nodes and constants; tensors are identified by name."""

    def __init__(self):
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(
        self, op: str, *inputs: str, output: str | None = None, **attributes
    ) -> str:
        """Adds a node; returns the name of its output."""
        name = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def split(self, x: str, number: int, *, axis: int) -> list[str]:
        """Adds a node that divides a tensor into equal parts; returns their names."""
        names = [f"split_{len(self.nodes)}_{part}" for part in range(number)]
        self.nodes.append(helper.make_node("Split", [x], names, axis=axis))
        return names

    def constant(self, value) -> str:
        """Adds an array, as float32 unless it has integers; returns its name."""
        array = np.asarray(value)
        if not np.issubdtype(array.dtype, np.integer):
            array = array.astype(np.float32)
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name


def _write_line_planes(writer: _Writer, observation: str, length: int) -> str:
    """Returns the observation `[B, H, W, C]` with its line planes.

    A convolution has a filter for each place in a line of each direction: it counts the
    stones on the line's other places.
    """
    size, middle = 2 * length - 1, length - 1
    filters = np.zeros((len(DIRECTIONS), length, size, size))
    for direction, (down, right) in enumerate(DIRECTIONS):
        for place in range(length):
            for other in set(range(length)) - {place}:
                row = middle + (other - place) * down
                column = middle + (other - place) * right
                filters[direction, place, row, column] = 1
    kernel = np.tile(filters.reshape(-1, 1, size, size), (NUM_PLANES, 1, 1, 1))
    first, end, channels = (writer.constant([n]) for n in (0, NUM_PLANES, 1))
    x = writer.add("Transpose", observation, perm=TO_CHANNELS_FIRST)
    stones = writer.add("Slice", x, first, end, channels)
    counts = writer.add(
        "Conv",
        stones,
        writer.constant(kernel),
        writer.constant(np.full(len(kernel), 2.0 - length)),
        group=NUM_PLANES,
        pads=[middle] * 4,
    )
    # 1 where all of the other places have stones, 0 elsewhere.
    complete = writer.add("Relu", counts)
    planes = [
        writer.add("ReduceMax", part, axes=[1], keepdims=1)
        for part in writer.split(complete, NUM_PLANES, axis=1)
    ]
    occupied = writer.add("ReduceSum", stones, channels, keepdims=1)
    empty = writer.add("Relu", writer.add("Sub", writer.constant(1.0), occupied))
    lines = writer.add("Mul", writer.add("Concat", *planes, axis=1), empty)
    lines = writer.add("Transpose", lines, perm=TO_CHANNELS_LAST)
    return writer.add("Concat", observation, lines, axis=3)


def _write_trunk(writer: _Writer, observation: str, trunk: nnx.Module) -> str:
    """Returns features `[B, C, H, W]` of a `ConvTrunk`, `[B, F]` of a `DenseTrunk`."""
    # Not subclasses: they may compute something else.
    if type(trunk) is ConvTrunk:
        x = writer.add("Transpose", observation, perm=TO_CHANNELS_FIRST)
        x = _write_conv(writer, x, trunk.stem)
        for block in trunk.blocks:
            scaled = writer.add("Mul", x, writer.constant(block.scale))
            y = _write_conv(writer, writer.add("Relu", scaled), block.conv1)
            y = writer.add("Relu", y)
            if block.pooled is not None:
                y = _add_pooled(writer, y, _write_pool(writer, y), block.pooled)
            x = writer.add("Add", x, _write_conv(writer, y, block.conv2))
        return writer.add("Relu", x)
    if type(trunk) is DenseTrunk:
        x = writer.add("Transpose", observation, perm=TO_CHANNELS_FIRST)
        x = writer.add("Relu", _write_conv(writer, x, trunk.stem))
        x = writer.add("Transpose", x, perm=TO_CHANNELS_LAST)
        x = writer.add("Relu", _write_linear(writer, x, trunk.mix))
        x = writer.add("Flatten", x)
        if trunk.input_skip:
            x = writer.add("Concat", x, writer.add("Flatten", observation), axis=1)
        x = _write_linear(writer, x, trunk.project)
        for block in trunk.blocks:
            scale, bias = _numbers(block.norm.scale), _numbers(block.norm.bias)
            y = writer.add(
                "LayerNormalization",
                *(x, writer.constant(scale), writer.constant(bias)),
                epsilon=block.norm.epsilon,
            )
            y = writer.add("Relu", _write_linear(writer, y, block.dense1))
            x = writer.add("Add", x, _write_linear(writer, y, block.dense2))
        return writer.add("Relu", x)
    raise ValueError(_unknown("trunk", trunk))


def _write_pool(writer: _Writer, x: str) -> str:
    """Writes mean and maximum over the board, `[B, C, H, W]` to `[B, 2 * C]`."""
    mean, highest = (writer.add(f"Global{kind}Pool", x) for kind in ("Average", "Max"))
    return writer.add("Flatten", writer.add("Concat", mean, highest, axis=1))


def _add_pooled(writer: _Writer, x: str, pooled: str, linear: nnx.Linear) -> str:
    """Adds a layer of the pooled features to every cell of `[B, C, H, W]`."""
    bias = _write_linear(writer, pooled, linear)
    return writer.add("Add", x, writer.add("Unsqueeze", bias, writer.constant([2, 3])))


def _write_head(writer: _Writer, features: str, head: nnx.Module) -> str:
    """Returns the logits of a policy or value head."""
    if type(head) in (PolicyHead, ValueHead):
        assert isinstance(head, Head)
        if head.conv is not None:
            x = writer.add("Relu", _write_conv(writer, features, head.conv))
            features = writer.add("Transpose", x, perm=TO_CHANNELS_LAST)
        return _write_linear(writer, writer.add("Flatten", features), head.linear)
    if type(head) is BoardPolicyHead:
        x = _write_conv(writer, features, head.conv)
        pooled = _write_pool(writer, writer.add("Relu", x))
        x = writer.add("Relu", _add_pooled(writer, x, pooled, head.pooled))
        planes = _write_conv(writer, x, head.planes)
        planes = writer.add("Transpose", planes, perm=TO_CHANNELS_LAST)
        logits = writer.add("Flatten", planes)
        if head.others is None:
            return logits
        others = _write_linear(writer, pooled, head.others)
        return writer.add("Concat", logits, others, axis=1)
    if type(head) is BoardValueHead:
        x = writer.add("Relu", _write_conv(writer, features, head.conv))
        hidden = _write_linear(writer, _write_pool(writer, x), head.hidden)
        return _write_linear(writer, writer.add("Relu", hidden), head.linear)
    raise ValueError(_unknown("head", head))


def _write_conv(writer: _Writer, x: str, conv: nnx.Conv) -> str:
    """Writes a convolution of `[B, C, H, W]` with a kernel `[H, W, in, out]`."""
    kernel = _numbers(conv.kernel).transpose(3, 2, 0, 1)
    return writer.add(
        "Conv",
        x,
        writer.constant(kernel),
        writer.constant(_numbers(conv.bias)),
        auto_pad="VALID" if conv.padding == "VALID" else "SAME_UPPER",
    )


def _write_linear(writer: _Writer, x: str, linear: nnx.Linear) -> str:
    product = writer.add("MatMul", x, writer.constant(_numbers(linear.kernel)))
    return writer.add("Add", product, writer.constant(_numbers(linear.bias)))


def _numbers(variable: nnx.Variable | None) -> np.ndarray:
    """Returns the array of a variable that must not be None."""
    if variable is None:
        raise ValueError("a layer without a bias or scale cannot be exported")
    return np.asarray(variable[...])


def _unknown(part: str, module: nnx.Module) -> str:
    return (
        f"the {part} {type(module).__name__} cannot be exported: only the trunks and "
        "heads of azjax are known"
    )
