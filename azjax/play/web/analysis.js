/** The analysis panel. */
import { svg } from "./elements.js";
import { percent, signed } from "./texts.js";
import { TreeView } from "./tree_view.js";

const MOST_ROWS = 12;
const SHORTEST = 0.005; // least duration for a speed (seconds)
const CHART = { width: 320, height: 96, margin: 6 };

export class Analysis {
  /**
   * @param {HTMLElement} panel
   * @param {import("./engine.js").Description} description
   * @param {(step: import("./match.js").Step, moves: Object[]) => void} onLook as in
   *     `TreeView`
   */
  constructor(panel, description, onLook) {
    this.find = (id) => panel.querySelector(`#${id}`);
    this.sides = description.sides;
    this.tree = new TreeView(this.find("tree"), this.find("branch"), onLook);
    const { height, width, targets } = description;
    const rows = targets === "columns" ? width : height * width;
    panel.style.setProperty("--rows", Math.min(MOST_ROWS, rows));
  }

  /**
   * Shows the decision in the shown position; for the latest position without one, the
   * previous decision.
   * @param {import("./match.js").Match} match
   */
  show(match) {
    const { steps, ply, you, isLookingBack, shown } = match;
    this.#showChart(match);
    this.#showTree(match);
    if (shown.position.isOver) {
      this.#showEnd(shown.position, you);
      return;
    }
    const index = isLookingBack ? ply : steps.findLastIndex(({ decision }) => decision);
    const { decision, player } = steps[index] ?? shown;
    if (!decision) {
      this.#showNothing();
      return;
    }
    this.#showChances(decision, player, you);
    this.#showMoves(decision);
    this.find("expected").hidden = decision.line.length === 0;
    this.find("line").textContent = decision.line.map(({ text }) => text).join(" ");
    this.#showSpeed(decision);
  }

  #showTree({ shown, ahead, you }) {
    const names = [0, 1].map((side) => this.#name(side, you));
    if (shown.position.isOver) this.tree.clear();
    else this.tree.show(shown, ahead?.moves ?? [], names);
    this.find("branches").hidden = this.tree.isEmpty;
  }

  /** Shows the result of a finished game. */
  #showEnd({ player, rewards }, you) {
    const value = rewards[player];
    const result = [value > 0, value === 0, value < 0].map(Number);
    this.#showChances({ result, value }, player, you);
    this.#showNoMoves();
  }

  #showNothing() {
    for (const part of this.find("chances-bar").children) part.style.flexGrow = 0;
    this.find("chances-text").textContent = "";
    this.#showNoMoves();
  }

  #showNoMoves() {
    this.find("moves").replaceChildren();
    this.find("expected").hidden = true;
    this.find("speed").textContent = "";
  }

  #name(side, you) {
    if (you === null) return this.sides[side];
    return side === you ? "You" : "Computer";
  }

  #showChances({ result, value }, player, you) {
    this.find("chances").hidden = result === null && value === null;
    if (result === null && value === null) return;
    // The user comes first, or player 0.
    const first = you ?? 0;
    const [win, draw, loss] = result ?? [(1 + value) / 2, 0, (1 - value) / 2];
    const shares = player === first ? [win, draw, loss] : [loss, draw, win];
    const names = [this.#name(first, you), "draw", this.#name(1 - first, you)];
    const parts = this.find("chances-bar").children;
    shares.forEach((share, index) => {
      parts[index].style.flexGrow = Math.max(0, share);
    });
    this.find("chances-text").textContent = result
      ? names.map((name, index) => `${name} ${percent(shares[index])}`).join(" · ")
      : `${names[0]} ${signed(shares[0] - shares[2])} (1 is a win)`;
  }

  #showMoves({ action, moves }) {
    const total = moves.reduce((sum, { visits }) => sum + visits, 0);
    this.find("table").classList.toggle("unsearched", total === 0);
    this.find("moves").replaceChildren(
      ...mostConsidered(moves, action).map((move) => {
        const row = document.createElement("tr");
        row.classList.toggle("best", move.action === action);
        const share = total ? move.visits / total : 0;
        const visits = cell(move.visits.toLocaleString("en"), share);
        visits.classList.add("visits");
        row.append(
          heading(move.text),
          cell(percent(move.prior), move.prior),
          visits,
          cell(move.value === null ? "–" : signed(move.value)),
        );
        return row;
      }),
    );
  }

  #showSpeed({ simulations, seconds, visits, isTimedOut }) {
    this.find("speed").hidden = simulations === 0 && visits === 0;
    const parts = [`${simulations} simulations`];
    if (isTimedOut) parts.push("stopped by the time limit");
    // Very short searches have no meaningful speed.
    if (seconds > SHORTEST) {
      parts.push(`${Math.round(simulations / seconds).toLocaleString("en")} a second`);
    }
    const reused = visits - 1 - simulations;
    if (reused > 0) parts.push(`${reused} reused`);
    this.find("speed").textContent = parts.join(", ");
  }

  /**
   * Draws the values of the game for the user, or for player 0, with a mark at the shown
   * position.
   */
  #showChart({ steps, ply: shownPly, you }) {
    const { width, height, margin } = CHART;
    const view = you ?? 0;
    const longest = Math.max(10, steps.length - 1);
    const x = (ply) => margin + (ply / longest) * (width - 2 * margin);
    const y = (value) => height / 2 - value * (height / 2 - margin);
    const points = steps.flatMap(({ player, position, decision }, ply) => {
      if (position?.isOver) return [[x(ply), y(position.rewards[view])]];
      const value = decision?.value ?? null;
      if (value === null) return [];
      return [[x(ply), y(player === view ? value : -value)]];
    });
    const [top, bottom] = [view, 1 - view].map((side) => this.#name(side, you));
    const chart = svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `From 0 to ${steps.length - 1} moves; ${top} above, ${bottom} below`,
      },
      svg("path", { d: `M${margin} ${height / 2}H${width - margin}`, class: "axis" }),
      svg("text", { x: margin, y: 12 }, `${top} ahead`),
      svg("text", { x: margin, y: height - 4 }, `${bottom} ahead`),
    );
    if (points.length) {
      chart.append(svg("path", { d: `M${points.join("L")}`, class: "curve" }));
    }
    if (shownPly < steps.length - 1) {
      chart.append(svg("path", { d: `M${x(shownPly)} 0V${height}`, class: "axis now" }));
    }
    const marked = points.findLast(([place]) => place <= x(shownPly));
    if (marked) chart.append(svg("circle", { cx: marked[0], cy: marked[1], r: 4 }));
    this.find("chart").replaceChildren(chart);
  }
}

/** Returns all moves, or the first ones of the ranking if there are many. */
function mostConsidered(moves, action) {
  if (moves.length <= MOST_ROWS) return moves;
  const isBest = (move) => Number(move.action === action);
  const sorted = [...moves].sort(
    (a, b) => isBest(b) - isBest(a) || b.visits - a.visits || b.prior - a.prior,
  );
  return sorted.slice(0, MOST_ROWS);
}

function heading(text) {
  const element = document.createElement("th");
  element.scope = "row";
  element.textContent = text;
  return element;
}

/** Returns a cell of the table, with a bar behind its number if it is a share. */
function cell(text, share = null) {
  const element = document.createElement("td");
  element.textContent = text;
  if (share !== null) {
    element.className = "share";
    element.style.setProperty("--share", percent(share));
  }
  return element;
}
