/** HTML elements. */

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
