/** What people are told. */

/** Returns a value with its sign. */
export function signed(value) {
  const size = Math.abs(value).toFixed(2);
  return `${value < 0 && Number(size) > 0 ? "−" : "+"}${size}`;
}

/** Returns the name of one piece, from the name of several. */
export function singular(name) {
  return name
    .replace(/\bmen\b/, "man")
    .replace(/sses\b/, "ss")
    .replace(/([^s])s\b/, "$1");
}
