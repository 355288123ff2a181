/** The lobby: games with their players, and training runs. */
import { fetchJson, poll } from "./download.js";
import { tag } from "./elements.js";
import { ratingText, stateText } from "./texts.js";

const REFRESH = 10_000; // milliseconds

const element = (id) => document.getElementById(id);
const shown = new Map(); // by list: its elements, by the JSON they show

open().catch((error) => window.showFailure(`The games did not load: ${error.message}`));

async function open() {
  await refresh();
  element("main").classList.remove("waiting");
  showProblem("");
  await poll(refresh, () => REFRESH, showProblem);
}

async function refresh() {
  const { games, runs, comparisons } = await fetchJson("lobby.json");
  showList(element("games"), games, gameTile);
  showList(element("runs"), runs, runRow);
  showList(element("comparisons"), comparisons, comparisonRow);
  element("comparisons").hidden = comparisons.length === 0;
  element("runs-section").hidden = runs.length === 0;
}

/** Shows values in a list; keeps the elements of unchanged values. */
function showList(list, values, make) {
  const before = shown.get(list) ?? new Map();
  const now = new Map();
  for (const value of values) {
    const key = JSON.stringify(value);
    now.set(key, before.get(key) ?? make(value));
  }
  shown.set(list, now);
  const focused = list.contains(document.activeElement) && document.activeElement.href;
  for (const [key, old] of before) if (!now.has(key)) old.remove();
  [...now.values()].forEach((item, place) => {
    const current = list.children[place] ?? null;
    if (current !== item) list.insertBefore(item, current);
  });
  if (focused && !list.contains(document.activeElement)) {
    [...list.querySelectorAll("a")].find(({ href }) => href === focused)?.focus();
  }
}

function showProblem(text) {
  element("status").textContent = text;
  element("status").hidden = text === "";
}

function gameTile({ key, title, players }) {
  const address = `play/${encodeURIComponent(key)}/`;
  const picture = tag("img", { src: `${address}picture.svg`, alt: title });
  const [recommended, ...others] = players.map((player) => ({
    text: player.title,
    href: `${address}?player=${encodeURIComponent(player.name)}`,
    strength: tag("span", { className: "later" }, strengthText(player, players)),
  }));
  const { text, href, strength } = recommended;
  const rows = others.map((one) =>
    tag("li", {}, tag("a", { href: one.href }, one.text), one.strength),
  );
  return tag(
    "li",
    { className: "card" },
    tag("a", { href, className: "game" }, picture),
    tag(
      "div",
      {},
      tag("strong", {}, title),
      tag("a", { href, className: "button primary" }, `Play ${text}`),
      strength,
      tag(
        "details",
        { hidden: rows.length === 0 },
        tag("summary", {}, `${rows.length} other opponents`),
        tag("ul", { ariaLabel: `Other opponents in ${title}` }, ...rows),
      ),
    ),
  );
}

/** Returns the strength of a player: what it computes, and its place among the rated ones. */
function strengthText(player, players) {
  const { about, rating } = player;
  if (rating === null) return about;
  const rated = players.map(({ rating }) => rating).filter((one) => one !== null);
  const place = rated.filter((one) => one > rating).length + 1;
  const text = `${ratingText(rating)}, place ${place} of ${rated.length}`;
  return about ? `${text}; ${about}` : text;
}

function runRow({ key, title, state, share }) {
  const address = `runs/${encodeURIComponent(key)}/`;
  return tag(
    "li",
    {},
    tag("a", { href: address }, title),
    tag("span", { className: state }, stateText({ state, share })),
  );
}

function comparisonRow({ key, title, runs }) {
  const href = `compare/${encodeURIComponent(key)}/`;
  return tag("li", {}, tag("a", { href }, `Compare the ${runs} runs of ${title}`));
}
