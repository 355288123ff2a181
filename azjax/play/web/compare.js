/** The comparison of the training runs of a game: strength, progress and settings. */
import { fetchJson, poll } from "./download.js";
import { tag } from "./elements.js";

const REFRESH = 20_000; // milliseconds

const element = (id) => document.getElementById(id);
let plotted = ""; // address of the shown plot
let listed = ""; // the shown choice

open().catch((error) => window.showFailure(`The runs did not load: ${error.message}`));

async function open() {
  await refresh();
  element("main").classList.remove("waiting");
  await poll(refresh, () => REFRESH, showProblem);
}

async function refresh() {
  const { search } = location;
  const found = await fetchJson(`compare.json${search}`);
  if (search !== location.search) return; // the choice has changed
  document.title = `${found.title}: runs compared`;
  element("title").textContent = document.title;
  showChoice(found);
  showTable(found);
  showPlot(found.plot === null ? "" : `compare.png?${search.slice(1)}&v=${found.plot}`);
}

function showProblem(text) {
  element("notice").textContent = text;
  element("notice").hidden = text === "";
}

/** Shows a box for each run; at most `most` and at least one can be chosen. */
function showChoice({ runs, most }) {
  const state = JSON.stringify(runs);
  if (state === listed) return;
  const focused = document.activeElement?.value;
  listed = state;
  const count = runs.filter(({ isChosen }) => isChosen).length;
  element("choice").replaceChildren(
    ...runs.map(({ key, isChosen }) => {
      const disabled = isChosen ? count === 1 : count >= most;
      const properties = { type: "checkbox", value: key, checked: isChosen, disabled };
      const box = tag("input", { ...properties, onchange: choose });
      return tag("label", { className: "check" }, box, tag("span", {}, key));
    }),
  );
  boxes().find(({ value }) => value === focused)?.focus();
}

function boxes() {
  return [...element("choice").querySelectorAll("input")];
}

function choose() {
  const url = new URL(location);
  url.searchParams.delete("run");
  for (const { checked, value } of boxes()) {
    if (checked) url.searchParams.append("run", value);
  }
  history.replaceState(null, "", url);
  refresh().then(() => showProblem(""), () => showProblem("The server does not answer."));
}

function showTable({ names, sections }) {
  const cell = (scope, text) => tag("th", { scope }, text);
  const links = names.map((name) =>
    tag("a", { href: `../../runs/${encodeURIComponent(name)}/` }, name),
  );
  const head = tag(
    "thead",
    {},
    tag("tr", {}, tag("td", {}), ...links.map((link) => cell("col", link))),
  );
  const bodies = sections.map(({ heading, rows }) => {
    const title = tag("th", { scope: "rowgroup", colSpan: names.length + 1 }, heading);
    const lines = rows.map(([name, ...texts]) =>
      tag("tr", {}, cell("row", name), ...texts.map((text) => tag("td", {}, text))),
    );
    return tag("tbody", {}, tag("tr", { className: "heading" }, title), ...lines);
  });
  element("compared").replaceChildren(head, ...bodies);
}

/** Replaces the plot when the new one has loaded. */
function showPlot(source) {
  if (source === plotted) return;
  plotted = source;
  element("no-plot").hidden = source !== "";
  if (source === "") {
    element("plot").hidden = true;
    return;
  }
  const newer = new Image();
  newer.onload = () => {
    if (source !== plotted) return;
    Object.assign(newer, { id: "plot", alt: element("plot").alt });
    element("plot").replaceWith(newer);
  };
  newer.src = source;
}
