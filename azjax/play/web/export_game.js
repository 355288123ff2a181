/** The buttons that copy the link of the game and save its file. */
import { tag } from "./html.js";

export class GameExport {
  #copied = null; // the copied link

  /**
   * @param {(id: string) => HTMLElement} find finds elements of index.html by id
   * @param {{link: string}} [address] of the page, if it has its own
   * @param {() => {name: string, text: string}} makeFile
   */
  constructor(find, address, makeFile) {
    this.address = address;
    this.field = find("link");
    this.message = find("shared");
    find("copy-link").hidden = !address;
    find("copy-link").onclick = () => this.#copy();
    find("save-game").onclick = () => download(makeFile());
  }

  /** Removes the message about a link that is out of date. */
  show() {
    if (this.address?.link === this.#copied) return;
    this.field.hidden = true;
    this.message.textContent = "";
  }

  async #copy() {
    const { link } = this.address;
    this.#copied = link;
    try {
      await navigator.clipboard.writeText(link); // may be missing or forbidden
      this.field.hidden = true;
      this.message.textContent = "Link copied.";
    } catch {
      this.field.value = link;
      this.field.hidden = false;
      this.field.select();
      this.message.textContent = "Copy it from here:";
    }
  }
}

/** Downloads a text as a file. */
function download({ name, text }) {
  const href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
  tag("a", { href, download: name }).click();
}
