/** Moves that are made beside the board: by a button, or typed. */
import { RefusedError } from "./engine.js";
import { percent } from "./move_overlay.js";

/** @typedef {import("./engine.js").Move} Move */

const MOST_BUTTONS = 12; // more moves without a place on the board can only be typed

export class MoveEntry {
  #moves = [];
  #buttons = document.createElement("div");
  #input = document.createElement("input");
  #problem = document.createElement("p");

  /**
   * @param {(action: number) => void} onChoose
   * @param {(text: string) => Promise<number>} read returns the action that was typed
   * @param {() => void} onCancel
   */
  constructor(onChoose, read, onCancel) {
    this.onChoose = onChoose;
    this.read = read;
    this.element = document.createElement("form");
    this.element.className = "entry";
    this.#buttons.className = "buttons";
    this.#problem.setAttribute("role", "alert");
    this.#input.placeholder = "Type a move";
    this.#input.setAttribute("aria-label", "Type a move");
    this.#input.autocomplete = "off";
    this.#input.spellcheck = false;
    this.#input.oninput = () => this.#problem.replaceChildren();
    this.element.onsubmit = (event) => {
      event.preventDefault();
      this.#read();
    };
    this.element.onkeydown = ({ key }) => {
      if (key === "Escape") onCancel();
    };
    this.element.append(this.#input, this.#buttons, this.#problem);
  }

  /**
   * Offers the moves of a position: buttons for those without a place on the board.
   * @param {Move[]} moves
   * @param {boolean} mayChoose
   */
  offer(moves, mayChoose) {
    this.#moves = mayChoose ? moves : [];
    this.#input.disabled = !mayChoose;
    const unplaced = moves.filter(({ cells }) => cells.length === 0);
    const shown = unplaced.length > MOST_BUTTONS ? [] : unplaced;
    this.#show(shown, (text) => text[0].toUpperCase() + text.slice(1));
    this.#problem.replaceChildren();
  }

  /**
   * Asks which of several moves is meant.
   * @param {Move[]} moves
   * @param {string} verb put before each
   */
  choose(moves, verb = "") {
    this.#show(moves, (text) => `${verb} ${text}`.trim());
    for (const button of this.#buttons.children) button.classList.add("primary");
    this.#buttons.firstChild.focus();
  }

  /**
   * Writes on the buttons how much the moves were tried.
   * @param {{share: number, move: Move}[]} estimates
   */
  showShares(estimates) {
    for (const button of this.#buttons.children) {
      const known = estimates.find(({ move }) => move.text === button.dataset.move);
      button.dataset.share = known ? percent(known.share) : "";
    }
  }

  #show(moves, title) {
    this.#buttons.replaceChildren(
      ...moves.map(({ action, text }) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = title(text);
        button.dataset.move = text;
        button.disabled = !this.#moves.length;
        button.onclick = () => this.onChoose(action);
        return button;
      }),
    );
  }

  async #read() {
    const moves = this.#moves;
    const wanted = this.#input.value.trim();
    if (!wanted || !moves.length) return;
    try {
      const action = await this.read(wanted);
      if (moves !== this.#moves) return; // the position has changed meanwhile
      this.#input.value = "";
      this.onChoose(action);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      if (moves === this.#moves) this.#problem.textContent = error.message;
    }
  }
}
