/** The page in a notebook's cell, in a shadow root; its questions go to the kernel. */
import { MessageEngine } from "./engine.js";
import { Page } from "./page.js";
import { PictureBoard } from "./picture_board.js";

const ELSEWHERE = "script, noscript, #failure, .here, .online";

/** Asks the kernel, in which several views of a board are told apart. */
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
    return this.ask("start", { game: "", player: "" }); // there is but one of each
  }

  close() {
    this.stop();
    this.#model.off("msg:custom", this.#listener);
  }
}

/** Shows the board; called by anywidget, which wants to know how to take it away. */
function render({ model, el }) {
  const container = makeContainer(model.get("_page"));
  const style = document.createElement("style");
  style.textContent = model.get("_style");
  el.attachShadow({ mode: "open" }).append(style, container);
  // Keys that are pressed here are no commands to the notebook.
  el.dataset.lmSuppressShortcuts = "true";
  el.addEventListener("keydown", (event) => event.stopPropagation());
  const fail = ({ message }) => page.showProblem(message);
  const engine = new ModelEngine(model, fail);
  const page = new Page(
    container,
    engine,
    {
      Board: PictureBoard,
      begins: model.get("_begins"),
      onStart: () => page.showProblem(""),
    },
    fail,
  );
  page.showProblem("Waiting for the kernel. If it does not run, run this cell.");
  page.open().catch(fail);
  return () => engine.close();
}

/** Makes the elements of index.html, as far as they have a place in a notebook. */
function makeContainer(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const element of body.querySelectorAll(ELSEWHERE)) element.remove();
  for (const element of body.querySelectorAll(".there")) element.hidden = false;
  const container = document.createElement("div");
  container.className = "page embedded";
  container.append(...document.importNode(body, true).childNodes);
  return container;
}

export default { render };
