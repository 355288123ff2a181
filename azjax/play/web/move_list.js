/** The moves of the game, and buttons to look through them. */
import { tag } from "./html.js";
import { outcomeText } from "./text_output.js";

const MOST_AHEAD = 4; // moves that are named, the last ones

export class MoveList {
  #moves = []; // that are listed
  #buttons = []; // one for each of them
  #ply = 0;

  /**
   * @param {(id: string) => HTMLElement} find the elements of index.html
   * @param {(ply: number) => void} onLook wants to see the position after so many moves
   * @param {(steps: number) => void} onStep wants to see the next one, or the one before
   */
  constructor(find, onLook, onStep) {
    this.list = find("played");
    this.onLook = onLook;
    this.back = [find("first"), find("previous")];
    this.forth = [find("next"), find("last")];
    find("first").onclick = () => onLook(0);
    find("previous").onclick = () => onStep(-1);
    find("next").onclick = () => onStep(1);
    find("last").onclick = () => onLook(this.#moves.length);
  }

  /**
   * Shows the moves; those that are listed already stay.
   * @param {import("./engine.js").Move[]} moves
   * @param {number} ply after how many of them the position is shown
   * @param {boolean} isAhead whether one that may follow is shown instead
   */
  show(moves, ply, isAhead) {
    const isFirst = ply === 0 && !isAhead;
    const isLast = ply === moves.length && !isAhead;
    for (const one of this.back) one.setAttribute("aria-disabled", String(isFirst));
    for (const one of this.forth) one.setAttribute("aria-disabled", String(isLast));
    const isSame = ply === this.#ply && moves.length === this.#moves.length;
    const known = this.#moves.findIndex((move, index) => move !== moves[index]);
    if (isSame && known < 0) return;
    const isFocused = this.list.matches(":focus-within");
    this.#cut(known < 0 ? this.#moves.length : known);
    moves.slice(this.#buttons.length).forEach((move) => this.#append(move));
    this.#moves = moves;
    this.#mark(ply);
    if (isFocused) this.#buttons[Math.max(0, ply - 1)]?.focus({ preventScroll: true });
  }

  #cut(length) {
    for (const button of this.#buttons.splice(length)) {
      const item = button.parentElement;
      button.remove();
      if (!item.children.length) item.remove();
    }
  }

  #append({ text }) {
    const ply = this.#buttons.length + 1;
    if (ply % 2) this.list.append(tag("li", {}));
    const button = tag("button", { type: "button", tabIndex: -1 }, text);
    button.setAttribute("aria-label", `Move ${ply}: ${text}`);
    button.onclick = () => this.onLook(ply);
    this.list.lastElementChild.append(button);
    this.#buttons.push(button);
  }

  #mark(ply) {
    const before = this.#buttons[Math.max(0, this.#ply - 1)];
    before?.removeAttribute("aria-current");
    if (before) before.tabIndex = -1;
    this.#ply = ply;
    const button = this.#buttons[ply - 1];
    button?.setAttribute("aria-current", "true");
    const reached = this.#buttons[Math.max(0, ply - 1)]; // by the Tab key
    if (reached) reached.tabIndex = 0;
    this.#reveal(button);
  }

  /** Scrolls the list, and nothing but the list, to a move. */
  #reveal(button) {
    const { clientWidth, clientHeight } = this.list;
    if (!button) this.list.scrollTo(0, 0);
    else {
      this.list.scrollTo(
        button.offsetLeft - (clientWidth - button.offsetWidth) / 2,
        button.offsetTop - (clientHeight - button.offsetHeight) / 2,
      );
    }
  }
}

/**
 * Says which other position is shown than the game's, and how to go on.
 * @param {import("./match.js").Match} match
 * @param {string[]} sides what the players are called
 * @returns {string}
 */
export function lookingText(match, sides) {
  const { steps, ply, position, you, isPaused, isComputersTurn, ahead } = match;
  const what = ply ? steps[ply].move.text : "the beginning";
  const text = ahead ? whatIf(ahead) : `Move ${ply} of ${steps.length - 1}: ${what}.`;
  if (ahead?.position.isOver) return `${text} ${outcomeText(ahead.position, you, sides)}`;
  if (position.isOver || isComputersTurn) return text;
  return isPaused ? `${text} Paused.` : `${text} » to play on.`;
}

function whatIf({ moves }) {
  const texts = moves.slice(-MOST_AHEAD).map(({ text }) => text);
  return `What if ${moves.length > MOST_AHEAD ? "… " : ""}${texts.join(" ")}?`;
}
