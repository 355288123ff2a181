/** The network, run by onnxruntime-web (WebAssembly, one thread). */
import * as ort from "./vendor/ort/ort.wasm.bundle.min.js";

/**
 * @param {Uint8Array} wasm the runtime
 * @param {Uint8Array} model in ONNX format
 * @param {Object} game its rules
 * @returns {Promise<import("./search.js").Evaluate>}
 */
export async function loadNetwork(wasm, model, game) {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = wasm;
  const session = await ort.InferenceSession.create(model, {
    executionProviders: ["wasm"],
  });
  const shape = [1, ...game.observationShape];
  const planes = new Float32Array(shape.reduce((a, b) => a * b));
  const observation = new ort.Tensor("float32", planes, shape);
  return async (state) => {
    game.observe(state, planes);
    const { policy_logits, result } = await session.run({ observation });
    return { logits: policy_logits.data, result: result.data };
  };
}
