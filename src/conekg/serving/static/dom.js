// DOM elements made without markup strings: a name from the graph can never become code.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes, listeners (`onclick`, ...) and children. */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, made in the same way. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Fire an event that bubbles up to the page's controller. */
export function announce(element, name, detail) {
  element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
}

/** Whether a key belongs to an input method that composes a word; Safari only sends the code 229. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** A function that calls `run` after `delay` milliseconds without another call. */
export function debounce(run, delay) {
  let timer = 0;
  const debounced = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), delay);
  };
  debounced.cancel = () => clearTimeout(timer);
  return debounced;
}
