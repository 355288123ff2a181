/** The page as a notebook widget, in a shadow root. */
import { MessageEngine } from "./engine.js";
import { Page } from "./page.js";

const UNUSED = "script, noscript, #failure, .here, .online";

/** The engine in the kernel; a view number distinguishes the views of a widget. */
class ModelEngine extends MessageEngine {
  #model;
  #listener;

  constructor(model, onFailure) {
    const view = crypto.getRandomValues(new Uint32Array(1))[0];
    super((message) => model.send({ ...message, view }), onFailure);
    this.#model = model;
    this.#listener = (message) => {
      if (message.view === view) this.receive(message);
    };
    model.on("msg:custom", this.#listener);
  }

  start(onLoading) {
    onLoading(1);
    return this.ask("start", { game: "", player: "" }); // fixed by the kernel
  }

  close() {
    this.stop();
    this.#model.off("msg:custom", this.#listener);
  }
}

/** Renders the widget; returns its clean-up function, as anywidget requires. */
function render({ model, el }) {
  const container = makeContainer(model.get("_page"));
  const style = document.createElement("style");
  style.textContent = model.get("_style");
  el.attachShadow({ mode: "open" }).append(style, container);
  // Keeps key presses from the notebook's shortcuts.
  el.dataset.lmSuppressShortcuts = "true";
  el.addEventListener("keydown", (event) => event.stopPropagation());
  const fail = ({ message }) => page.showProblem(message);
  const engine = new ModelEngine(model, fail);
  const page = new Page(
    container,
    engine,
    {
      begins: model.get("_begins"),
      reviewed: model.get("_reviewed"),
      onStart: () => page.showProblem(""),
    },
    fail,
  );
  page.showProblem("Waiting for the kernel. If it is not running, run this cell.");
  page.open().catch(fail);
  return () => engine.close();
}

/** Returns the elements of index.html without those that a notebook does not need. */
function makeContainer(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const element of body.querySelectorAll(UNUSED)) element.remove();
  for (const element of body.querySelectorAll(".there")) element.hidden = false;
  const container = document.createElement("div");
  container.className = "page embedded";
  container.append(...document.importNode(body, true).childNodes);
  return container;
}

export default { render };
