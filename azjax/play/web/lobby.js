/** What a server offers: games with their players, and training runs. */
import { fetchJson } from "./download.js";
import { poll, stateText } from "./polling.js";
import { tag } from "./html.js";
import { playerText } from "./text_output.js";

const REFRESH = 10_000; // milliseconds

const element = (id) => document.getElementById(id);
const shown = new Map(); // what each list shows: elements by what they were made of

open().catch((error) => window.showFailure(`Nothing to show: ${error.message}`));

async function open() {
  await refresh();
  element("main").classList.remove("waiting");
  showProblem("");
  await poll(refresh, () => REFRESH, showProblem);
}

async function refresh() {
  const { games, runs } = await fetchJson("lobby.json");
  showList(element("games"), games, gameTile);
  showList(element("runs"), runs, runRow);
  element("runs-section").hidden = runs.length === 0;
}

/** Shows things in a list; what is shown already and has not changed stays untouched. */
function showList(list, things, make) {
  const before = shown.get(list) ?? new Map();
  const now = new Map();
  for (const thing of things) {
    const key = JSON.stringify(thing);
    now.set(key, before.get(key) ?? make(thing));
  }
  shown.set(list, now);
  const focused = list.contains(document.activeElement) && document.activeElement.href;
  for (const [key, old] of before) if (!now.has(key)) old.remove();
  [...now.values()].forEach((item, place) => {
    const there = list.children[place] ?? null;
    if (there !== item) list.insertBefore(item, there);
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
  const picture = tag("img", { src: `${address}picture.svg`, alt: "" });
  const against = players.map((player) => {
    const href = `${address}?player=${encodeURIComponent(player.name)}`;
    return tag("li", {}, tag("a", { href }, playerText(player)));
  });
  return tag(
    "li",
    { className: "card" },
    tag("a", { href: address, className: "game" }, picture, tag("strong", {}, title)),
    tag("ul", { ariaLabel: `Players of ${title}` }, ...against),
  );
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
