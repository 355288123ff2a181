/**
 * The search tree: the root on top, children below their parents. The width of a node shows
 * its visits, the color the side that is ahead.
 */
import { tag } from "./elements.js";
import { percent, signed } from "./texts.js";

const NARROWEST = 0.015; // shown share of the visits
const MOST_ROWS = 9;
const LETTER = 0.03; // width of a letter relative to the panel
const WIDEST = 4; // largest width relative to the panel
const SLACK = 1.3; // width of the first move relative to its text
const HINT = "Width: visits. Color: who is ahead. Select a move to see its position.";

/** @typedef {import("./engine.js").Branch} Branch */

export class TreeView {
  #tree = [];
  #keys = []; // of the branches: their actions from the root
  #step = null; // of the game, the root of the tree
  #isOld = false; // whether another step is shown, which has no tree yet
  #buttons = new Map(); // by key; "" is the root

  /**
   * @param {HTMLElement} element
   * @param {HTMLElement} about shows the statistics of the selected branch
   * @param {(step: import("./match.js").Step,
   *     moves: {action: number, text: string}[]) => void} onLook called to show the
   *     position after these moves from a step of the game
   */
  constructor(element, about, onLook) {
    this.element = element;
    this.about = about;
    this.onLook = onLook;
    this.inner = tag("div", {});
    element.replaceChildren(this.inner);
  }

  /**
   * Shows the tree of a step; until it has one, the previous tree.
   * @param {import("./match.js").Step} step
   * @param {{action: number}[]} moves that lead to the selected branch; may be empty
   * @param {string[]} names of the sides
   */
  show(step, moves, names) {
    this.names = names;
    if (step.tree && step.tree !== this.#tree) this.#draw(step.tree, step);
    this.#isOld = step.tree !== this.#tree;
    this.element.classList.toggle("old", this.#isOld);
    const key = keyOf(moves);
    for (const [other, button] of this.#buttons) {
      button.setAttribute("aria-pressed", String(!this.#isOld && other === key));
    }
    const marked = this.#isOld ? -1 : this.#keys.indexOf(key);
    this.about.textContent =
      marked < 0 ? HINT : `${this.#tree[marked].text}: ${this.#statistics(marked)}`;
  }

  /** Removes the tree. */
  clear() {
    this.#draw([], null);
  }

  get isEmpty() {
    return this.#tree.length === 0;
  }

  /** Draws a tree; keeps existing buttons, which may be pressed or focused. */
  #draw(tree, step) {
    [this.#tree, this.#step] = [tree, step];
    this.#keys = tree.map((_, index) => keyOf(this.#pathTo(index)));
    const places = laidOut(tree);
    const scale = scaleFor(tree, places);
    this.inner.style.setProperty("width", percent(scale));
    const drawn = new Map([["", this.#root()]]);
    tree.forEach((branch, index) => {
      const place = places[index];
      if (place.width * scale < NARROWEST || place.depth >= MOST_ROWS) return;
      const button = this.#button(this.#keys[index]);
      const isWide = branch.text.length * LETTER <= place.width * scale;
      this.#fill(button, index, isWide ? branch.text : "");
      put(button, place);
      drawn.set(this.#keys[index], button);
    });
    this.#replace(drawn);
    if (![...drawn.values()].some(({ tabIndex }) => tabIndex === 0)) this.#makeReachable("");
  }

  #replace(drawn) {
    const isHeld = this.element.matches(":active, :focus-within");
    const rest = [...drawn].filter(([key]) => !(isHeld && this.#buttons.has(key)));
    for (const [key, button] of this.#buttons) if (!drawn.has(key)) button.remove();
    this.inner.append(...rest.map(([, button]) => button));
    this.#buttons = drawn;
  }

  #root() {
    const button = this.#button("");
    button.textContent = "Now";
    button.className = "root";
    button.setAttribute("aria-label", "The searched position");
    return put(button, { left: 0, width: 1, depth: 0 });
  }

  #button(key) {
    const known = this.#buttons.get(key);
    if (known) return known;
    const button = tag("button", { type: "button", tabIndex: -1 });
    button.onclick = () => this.#look(key);
    button.onkeydown = (event) => this.#moveFocus(event, key);
    return button;
  }

  #fill(button, index, text) {
    const { value } = this.#tree[index];
    const mover = this.#tree[index].player;
    const line = this.#pathTo(index).map((move) => move.text);
    button.textContent = text;
    button.title = `${line.join(" ")}: ${this.#statistics(index)}`;
    button.setAttribute("aria-label", button.title);
    button.dataset.side = value >= 0 ? mover : 1 - mover;
    button.style.setProperty("--good", percent(0.5 * Math.sqrt(Math.abs(value))));
  }

  /** Returns the visits, prior and value of a branch. */
  #statistics(index) {
    const { visits, player, isOutcome, prior, value } = this.#tree[index];
    const chance = `${isOutcome ? "probability" : "prior"} ${percent(prior)}`;
    const many = `${visits.toLocaleString("en")} ${visits === 1 ? "visit" : "visits"}`;
    return `${many}, ${chance}; ${this.names[player]} ${signed(value)}`;
  }

  #look(key) {
    this.#makeReachable(key);
    this.#buttons.get(key).focus({ preventScroll: true });
    if (!this.#isOld) this.onLook(this.#step, this.#pathTo(this.#keys.indexOf(key)));
  }

  #makeReachable(key) {
    for (const [other, button] of this.#buttons) button.tabIndex = other === key ? 0 : -1;
  }

  /** Moves the focus by arrow keys. */
  #moveFocus(event, key) {
    const next = this.#next(event.key, this.#keys.indexOf(key));
    if (next === null) return;
    event.preventDefault();
    const nextKey = next < 0 ? "" : this.#keys[next];
    if (!this.#buttons.has(nextKey)) return;
    this.#look(nextKey);
    this.#buttons.get(nextKey).scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Returns the branch in the direction of a key, -1 for the root; null for other keys. */
  #next(key, index) {
    const parentOf = (one) => (one < 0 ? null : this.#tree[one].parent);
    const siblings = this.#childrenOf(parentOf(index));
    switch (key) {
      case "ArrowUp":
        return parentOf(index) ?? -1;
      case "ArrowDown":
        return this.#childrenOf(index)[0] ?? index;
      case "ArrowLeft":
        return siblings[siblings.indexOf(index) - 1] ?? index;
      case "ArrowRight":
        return siblings[siblings.indexOf(index) + 1] ?? index;
      default:
        return null;
    }
  }

  #childrenOf(parent) {
    return this.#tree.flatMap((branch, index) => (branch.parent === parent ? [index] : []));
  }

  /** Returns the moves that lead to a branch. */
  #pathTo(index) {
    if (index < 0) return [];
    const { parent, action, text } = this.#tree[index];
    return [...this.#pathTo(parent), { action, text }];
  }
}

/**
 * Returns the statistics of a position in a tree.
 * @param {Branch[]} tree
 * @param {{action: number}[]} moves that lead there
 * @returns {{moves: Branch[], visits: number}} its children and its visits
 */
export function decisionAt(tree, moves) {
  const at = moves.reduce((parent, { action }) => {
    const next = tree.findIndex((one) => one.parent === parent && one.action === action);
    return next < 0 ? null : next;
  }, -1);
  return {
    moves: tree.filter(({ parent }) => parent === at),
    visits: tree[at]?.visits ?? 0,
  };
}

function keyOf(moves) {
  return moves.map(({ action }) => action).join(" ");
}

function put(button, { left, width, depth }) {
  button.style.setProperty("left", `${100 * left}%`);
  button.style.setProperty("width", `${100 * width}%`);
  button.style.setProperty("--depth", depth);
  return button;
}

/** Returns the place of each branch: shares of the width, and its row. */
function laidOut(tree) {
  const first = tree.filter(({ parent }) => parent < 0);
  const root = { left: 0, width: 1, depth: 0, used: 0 };
  root.visits = first.reduce((sum, { visits }) => sum + visits, 0);
  const places = [];
  for (const { parent, visits } of tree) {
    const above = places[parent] ?? root;
    const width = (above.width * visits) / above.visits;
    places.push({
      left: above.left + above.used,
      width,
      depth: above.depth + 1,
      used: 0,
      visits,
    });
    above.used += width;
  }
  return places;
}

/** Returns the width of a tree relative to the panel, so that the first move's text
 *  fits. */
function scaleFor(tree, places) {
  if (!tree.length) return 1;
  const needed = (SLACK * tree[0].text.length * LETTER) / places[0].width;
  return Math.min(WIDEST, Math.max(1, needed));
}
