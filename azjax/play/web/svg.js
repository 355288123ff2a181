/** Builds elements of SVG. */

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
