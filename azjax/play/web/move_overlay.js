/** Visits and priors of moves, drawn on the board. */
import { svg } from "./svg.js";

const SMALLEST = 0.01; // least share that is drawn
const CELL = 64; // reference size of a cell

/**
 * @typedef {Object} Estimate
 * @property {number} action
 * @property {number} share of the visits; without a search, the prior
 * @property {number} prior
 */

/**
 * @param {{moves: Object[], visits: number}|null} decision as in `engine.js`
 * @returns {Estimate[]} of the moves to draw
 */
export function estimates(decision) {
  if (!decision) return [];
  const total = Math.max(0, decision.visits - 1); // without the root's own evaluation
  return decision.moves
    .map(({ action, prior, visits }) => {
      return { action, prior, share: total ? visits / total : prior };
    })
    .filter(({ share, prior }) => share > SMALLEST || prior > SMALLEST);
}

/**
 * Draws an estimate at the center of a cell.
 * @param {number[]} center
 * @param {Estimate} estimate
 * @param {number} cell size of a cell
 */
export function drawnEstimate([x, y], { share, prior }, cell = CELL) {
  const transform = `translate(${x} ${y}) scale(${cell / CELL})`;
  const drawn = svg("g", { transform, class: "estimate" });
  if (share > SMALLEST) {
    drawn.append(
      svg("circle", { r: 13 + 12 * Math.sqrt(share), class: "share" }),
      svg("text", { y: 4 }, percent(share)),
    );
  }
  if (prior > SMALLEST) {
    const width = Math.max(4, 36 * prior);
    drawn.append(svg("rect", { x: -width / 2, y: 13, width, height: 4, rx: 2 }));
  }
  return drawn;
}

/** Returns a share as a percentage. */
export function percent(share) {
  return `${Math.round(100 * share)}%`;
}
