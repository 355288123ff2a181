/** Elements of HTML and SVG. */

const NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * @param {string} name
 * @param {Object<string, string|number>} attributes
 * @param {...(Node|string)} children
 * @returns {SVGElement}
 */
export function svg(name, attributes, ...children) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes))
    element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Parses an SVG document. */
export function parsedSvg(text) {
  const { documentElement } = new DOMParser().parseFromString(text, "image/svg+xml");
  if (documentElement.localName !== "svg") throw new Error("the picture is no SVG");
  return document.importNode(documentElement, true);
}

/** Parses SVG elements. */
export function svgNodes(text) {
  return [...parsedSvg(`<svg xmlns="${NAMESPACE}">${text}</svg>`).childNodes];
}

/**
 * @param {string} name
 * @param {Object<string, unknown>} properties
 * @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function tag(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}
