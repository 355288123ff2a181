/**
 * The search's tree: the position on top, below it what may follow, each as wide as it has
 * visits and in the colour of the side that it is good for.
 */
import { percent } from "./estimate.js";
import { tag } from "./html.js";
import { signed } from "./wording.js";

const NARROWEST = 0.015; // share of the visits that is shown
const MOST_ROWS = 9;
const LETTER = 0.03; // share of the width
const HINT =
  "As wide as it was searched, in the colour of who is ahead. Choose a position to see it.";

/** @typedef {import("./engine.js").Branch} Branch */

export class TreeView {
  #buttons = []; // of the root, and then of each branch; null where it is too narrow
  #tree = [];
  #step = null;

  /**
   * @param {HTMLElement} element
   * @param {HTMLElement} about says what is known of the position that is looked at
   * @param {string[]} sides their names
   * @param {(moves: {action: number, text: string}[]) => void} onLook wants to see what
   *     these moves lead to from the position that was thought about
   */
  constructor(element, about, sides, onLook) {
    this.element = element;
    this.about = about;
    this.sides = sides;
    this.onLook = onLook;
  }

  /**
   * Shows what was thought of a step of the game; as long as no tree is known, the one
   * that was shown before.
   * @param {import("./match.js").Step} step
   * @param {{action: number}[]} moves that lead to what is looked at, if any
   */
  show(step, moves) {
    const tree = step.thought?.tree;
    if (tree && tree !== this.#tree) this.#draw(tree, step);
    this.element.classList.toggle("old", step !== this.#step);
    const marked = step === this.#step ? branchAt(this.#tree, moves) : null;
    this.#buttons.forEach((button, index) => {
      button?.setAttribute("aria-pressed", String(marked === index - 1));
    });
    this.about.textContent = marked >= 0 && marked !== null ? this.#told(marked) : HINT;
  }

  get isEmpty() {
    return this.#tree.length === 0;
  }

  /** Shows nothing. */
  clear() {
    this.#draw([], null);
  }

  #draw(tree, step) {
    const focused = this.element.querySelector(":focus");
    const path = this.#pathTo(this.#buttons.indexOf(focused) - 1);
    [this.#tree, this.#step] = [tree, step];
    const places = laidOut(tree);
    const others = tree.map((branch, index) => this.#button(branch, places[index], index));
    const root = this.#place(tag("button", { type: "button", tabIndex: 0 }, "Now"), {
      left: 0,
      width: 1,
      depth: 0,
    });
    root.setAttribute("aria-label", "The position that is thought about");
    root.onclick = () => this.#look(-1);
    root.onkeydown = (event) => this.#walk(event, -1);
    this.#buttons = [root, ...others];
    const shown = tree.length ? this.#buttons.filter(Boolean) : [];
    this.element.replaceChildren(...shown);
    if (focused) this.#focus(branchAt(tree, path) ?? -1);
  }

  #button(branch, place, index) {
    if (place.width < NARROWEST || place.depth >= MOST_ROWS) return null;
    const { text, value } = branch;
    const title = text.length * LETTER > place.width ? "" : text;
    const button = tag("button", { type: "button", tabIndex: -1 }, title);
    const mover = this.#mover(index);
    button.title = this.#told(index);
    button.setAttribute("aria-label", button.title);
    button.dataset.side = value >= 0 ? mover : 1 - mover;
    button.style.setProperty("--good", percent(Math.sqrt(Math.abs(value))));
    button.onclick = () => this.#look(index);
    button.onkeydown = (event) => this.#walk(event, index);
    return this.#place(button, place);
  }

  /** Returns who moves to a branch. */
  #mover(index) {
    return (this.#step.player + this.#pathTo(index).length - 1) % 2;
  }

  /** Returns what is known of a branch. */
  #told(index) {
    const { visits, prior, value } = this.#tree[index];
    const line = this.#pathTo(index).map(({ text }) => text);
    const side = this.sides[this.#mover(index)];
    const many = `${visits.toLocaleString("en")} ${visits === 1 ? "visit" : "visits"}`;
    return `${line.join(" ")}: ${many}, prior ${percent(prior)}, ${signed(value)} for ${side}`;
  }

  #place(button, { left, width, depth }) {
    button.style.setProperty("left", `${100 * left}%`);
    button.style.setProperty("width", `${100 * width}%`);
    button.style.setProperty("--depth", depth);
    return button;
  }

  #look(index) {
    this.#focus(index);
    this.onLook(this.#pathTo(index));
  }

  /** Arrow keys go from position to position. */
  #walk(event, index) {
    const next = this.#next(event.key, index);
    if (next === null) return;
    event.preventDefault();
    if (this.#buttons[next + 1]) this.#look(next);
  }

  /** Returns the branch in some direction, -1 for the root; null for other keys. */
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

  /** Gives the keyboard's focus to a branch, or the nearest before it that is shown. */
  #focus(index) {
    let shown = index;
    while (!this.#buttons[shown + 1]) shown = this.#tree[shown].parent;
    for (const button of this.#buttons) if (button) button.tabIndex = -1;
    this.#buttons[shown + 1].tabIndex = 0;
    this.#buttons[shown + 1].focus({ preventScroll: true });
  }

  /** Returns the moves that lead to a branch. */
  #pathTo(index) {
    if (index < 0) return [];
    const { parent, action, text } = this.#tree[index];
    return [...this.#pathTo(parent), { action, text }];
  }
}

/**
 * Returns what a tree says of the moves in a position.
 * @param {Branch[]} tree
 * @param {{action: number}[]} moves that lead there
 */
export function thoughtAt(tree, moves) {
  const at = branchAt(tree, moves);
  return { moves: tree.filter(({ parent }) => parent === at) };
}

/** Returns where some moves lead to: -1 is the root, null what a tree does not hold. */
function branchAt(tree, moves) {
  return moves.reduce((at, { action }) => {
    const next = tree.findIndex((one) => one.parent === at && one.action === action);
    return next < 0 ? null : next;
  }, -1);
}

/** Returns for each branch where it lies: shares of the width, and its row. */
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
