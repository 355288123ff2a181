/**
 * PUCT tree search: the search of azjax's `alphazero:RUN?algorithm=alphazero`, without
 * noise, one position at a time.
 *
 * Values are for the player to move at a node; numbers are rounded to 32 bits where
 * Python's are.
 *
 * @typedef {Object} Settings
 * @property {number} c_init exploration at few visits
 * @property {number} c_base visits at which exploration has grown markedly
 * @property {number|null} first_play_reduction an unvisited action is worth the node's
 *     value, less this times the root of the prior of the visited ones; null: a loss
 *
 * @typedef {(state: Object) => Promise<{logits: Float32Array, result: Float32Array}>} Evaluate
 *     what the network says: a logit for each action, legal or not, and the
 *     probabilities of win, draw and loss for the player to move
 */

const MAX_LINE = 16; // moves
const MAX_BRANCHES = 63; // positions below the root that are shown
const MAX_SLICE = 12; // milliseconds between two looks at what else is to do

class Node {
  /** A position in the tree, before its value is known. */
  constructor(state, actions, reward) {
    this.state = state;
    this.actions = actions; // legal ones, the lowest number first; none at the end
    this.prior = null; // of each of them
    this.children = new Array(actions.length).fill(null);
    this.visits = 0; // simulations that ended here or passed
    this.value = 0; // mean of the values backed up
    this.draw = 0; // mean of the probabilities of a draw
    this.reward = reward; // of the move that leads here, for the player who made it
  }

  /** What the node is worth to the player who moved here. */
  get worth() {
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

  /** Forgets the tree. */
  reset() {
    this.#root = null;
  }

  /**
   * Searches the position after some actions from the first one. What the tree knows
   * of it from earlier searches is used; simulations are made in addition.
   * @param {number[]} actions
   * @param {number} simulations
   * @param {(done: number) => Promise<boolean>} mayGoOn called every few milliseconds
   * @returns {Promise<void>} when all is done, or `mayGoOn` said no
   */
  async run(actions, simulations, mayGoOn) {
    await this.#setRoot(actions);
    if (!this.#root.actions.length) throw new Error("the game is over");
    let sliceStart = performance.now();
    for (let done = 0; done < simulations; done++) {
      await this.#simulate();
      if (performance.now() - sliceStart > MAX_SLICE) {
        if (!(await mayGoOn(done + 1))) return;
        sliceStart = performance.now();
      }
    }
  }

  /**
   * Returns what the search saw at the root.
   * @returns {import("./engine.js").Thought}
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
        value: child ? child.worth : null,
      };
    });
    const best = mostVisited(root);
    const child = root.children[best];
    const value = child ? child.worth : root.value;
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

  /** Makes the position after `actions` the root, with its tree if it is known. */
  async #setRoot(actions) {
    const known = this.#rootActions;
    let node = known.every((action, ply) => action === actions[ply])
      ? this.#root
      : null;
    for (const action of actions.slice(known.length)) {
      node = node && node.children[node.actions.indexOf(action)];
    }
    if (!node) {
      const state = actions.reduce(
        (before, action) => this.game.step(before, action),
        this.game.init(),
      );
      node = this.#newNode(state, 0);
      await this.#assess(node);
      node.visits = 1;
    }
    this.#root = node;
    this.#rootActions = [...actions];
  }

  /** Goes down to a new position or to the end of the game, and takes its value up. */
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
        await this.#assess(child);
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

  /** Returns which of a node's moves has the highest score, the first if several have. */
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
      const worth = child ? child.worth : firstPlay;
      const visits = child ? child.visits : 0;
      const score = Math.fround(
        Math.fround((worth + 1) / 2) +
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

  /** Gives a node its prior and value: the network's, or none at the end of a game. */
  async #assess(node) {
    if (node.state.terminated) {
      node.draw = node.reward === 0 ? 1 : 0;
      return;
    }
    const { logits, result } = await this.evaluate(node.state);
    node.prior = softmax(node.actions.map((action) => logits[action]));
    node.value = Math.fround(result[0] - result[2]);
    node.draw = result[1];
  }

  /** Returns the most visited positions, each after the one that it follows. */
  #branches() {
    const shown = [];
    const open = childrenOf(this.#root, -1);
    while (open.length && shown.length < MAX_BRANCHES) {
      const most = Math.max(...open.map(({ child }) => child.visits));
      const next = open.findIndex(({ child }) => child.visits === most);
      const [{ parent, action, prior, child }] = open.splice(next, 1);
      const text = this.game.actionToText(action);
      shown.push({ parent, action, text, prior, visits: child.visits, value: child.worth });
      open.push(...childrenOf(child, shown.length - 1));
    }
    return shown;
  }

  /** Returns the chosen move, then always the most visited one. */
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

/** Returns what follows a node; `parent` is the number by which it is known. */
function childrenOf({ actions, prior, children }, parent) {
  return children.flatMap((child, index) =>
    child ? [{ parent, action: actions[index], prior: prior[index], child }] : [],
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

/** Returns which move has the most visits: the first of them, or the likeliest if none has any. */
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
