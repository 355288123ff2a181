/** Marks over a position. */
import { percent } from "./move_overlay.js";
import { svg } from "./svg.js";

const CELL = 64; // reference size of a cell
const LABEL_AT = 0.7; // place of the label, as a share of the arrow

/** Draws a ring around the piece in a cell. */
export function drawnRing([cx, cy], cell) {
  return svg("circle", { cx, cy, r: 0.42 * cell, class: "ring" });
}

/** Draws a dot in an empty cell. */
export function drawnDot([cx, cy], cell) {
  return svg("circle", { cx, cy, r: 0.13 * cell, class: "dot" });
}

/** Draws a cross through a cell over the whole board. */
export function drawnAim([x, y], { left, top, width, height }) {
  return svg("path", { d: `M${left} ${y}h${width}M${x} ${top}v${height}`, class: "aim" });
}

/**
 * Draws an arrow for a move; its width shows the share of visits.
 * @param {number[]} from center of the start
 * @param {number[]} to center of the end
 * @param {import("./move_overlay.js").Estimate} estimate
 * @param {number} cell size of a cell
 */
export function drawnArrow([x, y], [toX, toY], { share }, cell) {
  const scale = cell / CELL;
  const length = Math.hypot(toX - x, toY - y) || 1;
  const [right, down] = [(toX - x) / length, (toY - y) / length];
  const width = scale * (4 + 12 * share);
  const head = scale * 12 + width;
  const [neckX, neckY] = [toX - head * right, toY - head * down];
  const [sideX, sideY] = [(head / 2) * down, (-head / 2) * right];
  const left = [neckX + sideX, neckY + sideY];
  const d = `M${toX} ${toY}L${left}L${neckX - sideX} ${neckY - sideY}z`;
  return svg(
    "g",
    { class: "arrow" },
    svg("path", { d: `M${x} ${y}L${neckX} ${neckY}`, "stroke-width": width }),
    svg("path", { d, class: "head" }),
  );
}

/** Draws the label of an arrow; see `drawnArrow`. */
export function drawnArrowLabel([x, y], [toX, toY], { share, prior }, cell) {
  const place = [x + LABEL_AT * (toX - x), y + LABEL_AT * (toY - y)];
  const width = Math.max(4, 36 * prior);
  return svg(
    "g",
    { transform: `translate(${place}) scale(${cell / CELL})`, class: "estimate" },
    svg("circle", { r: 17, class: "share" }),
    svg("text", { y: 3 }, percent(share)),
    svg("rect", { x: -width / 2, y: 8, width, height: 4, rx: 2 }),
  );
}
