/** How much a move was tried, and what the network thought of it, drawn on the board. */
import { svg } from "./svg.js";

const SMALLEST = 0.01; // share of a move that is drawn
const CELL = 64; // what the measures below are made for

/**
 * @typedef {Object} Estimate
 * @property {number} action
 * @property {number} share of the search, or of the network where nothing was searched
 * @property {number} prior of the network
 */

/**
 * @param {{moves: Object[], visits: number}|null} thought as in `engine.js`
 * @returns {Estimate[]} of the moves that are worth drawing
 */
export function estimates(thought) {
  if (!thought) return [];
  const total = Math.max(0, thought.visits - 1); // one was for the position itself
  return thought.moves
    .map(({ action, prior, visits }) => {
      return { action, prior, share: total ? visits / total : prior };
    })
    .filter(({ share, prior }) => share > SMALLEST || prior > SMALLEST);
}

/**
 * Draws an estimate at the centre of a cell.
 * @param {number[]} centre
 * @param {Estimate} estimate
 * @param {number} cell the size of the board's cells
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

/** Returns a share as people read it. */
export function percent(share) {
  return `${Math.round(100 * share)}%`;
}
