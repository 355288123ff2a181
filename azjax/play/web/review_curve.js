/** The curve of a review: the values of a game, with its mistakes. */
import { svg } from "./svg.js";
import { tag } from "./html.js";

const HIGHEST = 1.1; // value at the upper edge

/**
 * Draws the values for the user, or for player 0.
 * @param {HTMLElement} element
 * @param {import("./match.js").Match} match
 * @param {import("./review.js").ReviewedMove[]} moves in order
 * @param {string[]} sides names of the players' pieces
 */
export function drawCurve(element, { steps, ply, you }, moves, sides) {
  const last = steps.length - 1;
  const view = you ?? 0;
  const height = (value) => (view === 0 ? -value : value); // down is positive
  const points = moves.map(({ ply, after }) => [ply, height(after)]);
  if (moves[0]) points.unshift([0, height(moves[0].before)]);
  const exact = moves.map(
    ({ ply, exactAfter }) => `H${ply - 0.5}V${height(exactAfter)}`,
  );
  const line = points.join("L");
  const drawn = svg(
    "svg",
    {
      viewBox: `0 ${-HIGHEST} ${last} ${2 * HIGHEST}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Value over ${last} moves; ${sides[view]} above, ${sides[1 - view]} below`,
    },
    svg("path", { d: `M0 0H${last}`, class: "axis" }),
  );
  if (points.length) {
    drawn.append(
      svg("path", { d: `M${points[0][0]} 0L${line}L${points.at(-1)[0]} 0z`, class: "area" }),
      svg("path", { d: `M${line}`, class: "curve" }),
    );
  }
  const isSolved = moves.length > 0 && moves[0].exactBefore !== null;
  if (isSolved) {
    const d = `M0 ${height(moves[0].exactBefore)}${exact.join("")}H${points.at(-1)[0]}`;
    drawn.append(svg("path", { d, class: "exact" }));
  }
  const at = (element, place, value) => {
    element.style.setProperty("left", `${(100 * place) / last}%`);
    element.style.setProperty("top", `${(50 * (value + HIGHEST)) / HIGHEST}%`);
    return element;
  };
  const dots = moves
    .filter(({ mark }) => mark)
    .map(({ ply, mark, after }) => {
      const dot = tag("i", { className: "dot-mark" });
      Object.assign(dot.dataset, { ply, mark });
      return at(dot, ply, height(after));
    });
  const now = at(tag("i", { className: "now" }), ply, -HIGHEST);
  element.replaceChildren(
    drawn,
    tag("span", { className: "above" }, `${sides[view]} ahead`),
    tag("span", { className: "below" }, `${sides[1 - view]} ahead`),
    ...(isSolved ? [tag("span", { className: "legend" }, "dashed: solver")] : []),
    now,
    ...dots,
  );
}
