/** What people are told. */

/** Returns the name of one piece, from the name of several. */
export function singular(name) {
  return name
    .replace(/\bmen\b/, "man")
    .replace(/sses\b/, "ss")
    .replace(/([^s])s\b/, "$1");
}
