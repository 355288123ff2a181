/**
 * PUCT tree search without noise, as `alphazero:RUN?algorithm=alphazero` in Python, for
 * one position at a time.
 *
 * Values are for the player to move at a node; numbers are rounded to float32 as in
 * Python.
 *
 * @typedef {Object} Settings
 * @property {number} c_init exploration at few visits
 * @property {number} c_base scale of visits at which exploration grows
 * @property {number|null} first_play_reduction the value of an unvisited action is the
 *     node's, minus this times the square root of the visited prior; null: -1 (a loss)
 *
 * @typedef {(state: Object) => Promise<{logits: Float32Array, result: Float32Array}>} Evaluate
 *     the network: a logit for each action, legal or not, and the probabilities of win,
 *     draw and loss for the player to move
 */
import * as ort from "./vendor/ort/ort.wasm.bundle.min.js";

const MAX_LINE = 16; // moves
const MAX_BRANCHES = 63; // nodes below the root in a decision
const MAX_SLICE = 12; // between two calls of `onSlice` (milliseconds)

class Node {
  /** A node that is not evaluated yet. */
  constructor(state, actions, reward) {
    this.state = state;
    this.actions = actions; // legal, ascending; empty at the end of the game
    this.prior = null; // of each action
    this.children = new Array(actions.length).fill(null);
    this.visits = 0; // simulations through this node
    this.value = 0; // mean of the backed-up values
    this.draw = 0; // mean of the probabilities of a draw
    this.reward = reward; // of the player who moved here
  }

  /** Q of the action that leads here, for the player who made it. */
  get actionValue() {
    return this.reward - this.value;
  }
}

export class Search {
  #root = null;
  #rootActions = [];

  /**
   * @param {Object} game its rules
   * @param {Evaluate} evaluate
   * @param {Settings} settings
   */
  constructor(game, evaluate, settings) {
    this.game = game;
    this.evaluate = evaluate;
    this.settings = settings;
  }

  /** Drops the tree. */
  reset() {
    this.#root = null;
  }

  /**
   * Searches the position after some actions; reuses the tree of earlier searches.
   * @param {number[]} actions
   * @param {number} simulations to add
   * @param {(done: number) => Promise<boolean>} onSlice called every few milliseconds;
   *     returns whether to continue
   */
  async run(actions, simulations, onSlice) {
    await this.#setRoot(actions);
    if (!this.#root.actions.length) throw new Error("the game is over");
    let sliceStart = performance.now();
    for (let done = 0; done < simulations; done++) {
      await this.#simulate();
      if (performance.now() - sliceStart > MAX_SLICE) {
        if (!(await onSlice(done + 1))) return;
        sliceStart = performance.now();
      }
    }
  }

  /**
   * Returns the result of the search at the root.
   * @returns {import("./engine.js").Decision}
   */
  summary() {
    const root = this.#root;
    const moves = root.actions.map((action, index) => {
      const child = root.children[index];
      return {
        action,
        text: this.game.actionToText(action),
        prior: root.prior[index],
        visits: child ? child.visits : 0,
        value: child ? child.actionValue : null,
      };
    });
    const best = mostVisited(root);
    const child = root.children[best];
    const value = child ? child.actionValue : root.value;
    const draw = child ? child.draw : root.draw;
    return {
      action: root.actions[best],
      moves,
      visits: root.visits,
      value,
      result: [(1 - draw + value) / 2, draw, (1 - draw - value) / 2],
      line: this.#line(),
      tree: this.#branches(),
    };
  }

  /** Sets the root to the position after `actions`; keeps its subtree. */
  async #setRoot(actions) {
    const before = this.#rootActions;
    let node = before.every((action, ply) => action === actions[ply])
      ? this.#root
      : null;
    for (const action of actions.slice(before.length)) {
      node = node && node.children[node.actions.indexOf(action)];
    }
    if (!node) {
      const state = actions.reduce(
        (state, action) => this.game.step(state, action),
        this.game.init(),
      );
      node = this.#newNode(state, 0);
      await this.#evaluateNode(node);
      node.visits = 1;
    }
    this.#root = node;
    this.#rootActions = [...actions];
  }

  /** Selects a leaf, expands and evaluates it, and backs up its value. */
  async #simulate() {
    const path = [this.#root];
    let node = this.#root;
    while (node.actions.length) {
      const index = this.#select(node);
      let child = node.children[index];
      const isNew = child === null;
      if (isNew) {
        const state = this.game.step(node.state, node.actions[index]);
        child = this.#newNode(state, this.game.rewards(state)[node.state.player]);
        await this.#evaluateNode(child);
        node.children[index] = child;
      }
      path.push(child);
      node = child;
      if (isNew) break;
    }
    node.visits++;
    for (let depth = path.length - 1, value = node.value; depth > 0; depth--) {
      const parent = path[depth - 1];
      value = Math.fround(path[depth].reward - value);
      parent.value = mean(parent.value, parent.visits, value);
      parent.draw = mean(parent.draw, parent.visits, node.draw);
      parent.visits++;
    }
  }

  /** Returns the index of the action with the highest PUCT score, the first of equals. */
  #select(node) {
    const { c_init, c_base, first_play_reduction } = this.settings;
    const rate = c_init + Math.log((node.visits + c_base + 1) / c_base);
    const exploration = Math.fround(Math.sqrt(node.visits) * rate);
    const firstPlay =
      first_play_reduction === null
        ? -1
        : node.value - first_play_reduction * Math.sqrt(visitedPrior(node));
    let best = 0;
    let highest = -Infinity;
    for (let index = 0; index < node.actions.length; index++) {
      const child = node.children[index];
      const actionValue = child ? child.actionValue : firstPlay;
      const visits = child ? child.visits : 0;
      const score = Math.fround(
        Math.fround((actionValue + 1) / 2) +
          Math.fround((exploration * node.prior[index]) / (visits + 1)),
      );
      if (score > highest) {
        highest = score;
        best = index;
      }
    }
    return best;
  }

  #newNode(state, reward) {
    return new Node(
      state,
      state.terminated ? [] : this.game.legalActions(state),
      reward,
    );
  }

  /** Sets a node's prior and value by the network, or by the result of the game. */
  async #evaluateNode(node) {
    if (node.state.terminated) {
      node.draw = node.reward === 0 ? 1 : 0;
      return;
    }
    const { logits, result } = await this.evaluate(node.state);
    node.prior = softmax(node.actions.map((action) => logits[action]));
    node.value = Math.fround(result[0] - result[2]);
    node.draw = result[1];
  }

  /** Returns the most visited nodes, parents before children. */
  #branches() {
    const shown = [];
    const open = childrenOf(this.#root, -1);
    while (open.length && shown.length < MAX_BRANCHES) {
      const most = Math.max(...open.map(({ child }) => child.visits));
      const next = open.findIndex(({ child }) => child.visits === most);
      const [{ child, ...branch }] = open.splice(next, 1);
      const text = this.game.actionToText(branch.action);
      shown.push({ ...branch, text, visits: child.visits, value: child.actionValue });
      open.push(...childrenOf(child, shown.length - 1));
    }
    return shown;
  }

  /** Returns the principal variation: the most visited actions. */
  #line() {
    const line = [];
    let node = this.#root;
    while (node && node.visits > 1 && node.actions.length && line.length < MAX_LINE) {
      const index = mostVisited(node);
      line.push({
        action: node.actions[index],
        text: this.game.actionToText(node.actions[index]),
      });
      node = node.children[index];
    }
    return line;
  }
}

/** Returns the children of a node; `parent` is its index in the list of branches. */
function childrenOf({ actions, prior, children, state: { player } }, parent) {
  return children.flatMap((child, index) =>
    child ? [{ parent, player, action: actions[index], prior: prior[index], child }] : [],
  );
}

function mean(value, visits, next) {
  return Math.fround((value * visits + next) / (visits + 1));
}

function visitedPrior(node) {
  return node.prior.reduce(
    (sum, prior, index) => (node.children[index] ? sum + prior : sum),
    0,
  );
}

/** Returns the index of the most visited action, the highest prior without visits. */
function mostVisited(node) {
  const visits = node.children.map((child) => (child ? child.visits : 0));
  const most = Math.max(...visits);
  return most > 0 ? visits.indexOf(most) : node.prior.indexOf(Math.max(...node.prior));
}

function softmax(logits) {
  const highest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - highest));
  const sum = weights.reduce((a, b) => a + b, 0);
  return Float32Array.from(weights, (weight) => weight / sum);
}

/**
 * Returns the network, run by onnxruntime-web (WebAssembly, one thread).
 * @param {Uint8Array} wasm the runtime
 * @param {Uint8Array} model in ONNX format
 * @param {Object} game its rules
 * @returns {Promise<Evaluate>}
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
