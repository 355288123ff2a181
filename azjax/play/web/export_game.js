/** What can be taken away from the page: the game's link, and its file. */
import { tag } from "./html.js";

export class GameExport {
  #copied = null; // the link

  /**
   * @param {(id: string) => HTMLElement} find the elements of index.html
   * @param {{link: string}} [address] holds the game, if there is one
   * @param {() => {name: string, text: string}} makeFile
   */
  constructor(find, address, makeFile) {
    this.address = address;
    this.field = find("link");
    this.told = find("shared");
    find("copy-link").hidden = !address;
    find("copy-link").onclick = () => this.#copy();
    find("save-game").onclick = () => download(makeFile());
  }

  /** Takes away what was said of a link that is not the game's any more. */
  show() {
    if (this.address?.link === this.#copied) return;
    this.field.hidden = true;
    this.told.textContent = "";
  }

  async #copy() {
    const { link } = this.address;
    this.#copied = link;
    try {
      await navigator.clipboard.writeText(link); // which may be missing or refused
      this.field.hidden = true;
      this.told.textContent = "Link copied.";
    } catch {
      this.field.value = link;
      this.field.hidden = false;
      this.field.select();
      this.told.textContent = "Copy it from here:";
    }
  }
}

/** Saves a text as a file of the visitor's. */
function download({ name, text }) {
  const href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
  tag("a", { href, download: name }).click();
}
