// Creates and updates elements. Text is always set as text, so a name from the configuration cannot become markup.

const SVG = "http://www.w3.org/2000/svg";
const OF_SVG = new Set(["svg", "path", "line", "g", "title"]);

/** An element: `h("td", { class: "right" }, "5")`. Functions among the properties become listeners. */
export function h(tag, properties, ...children) {
  const element = OF_SVG.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (typeof value === "function") {
      element[name] = value;
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Makes the children of `target` those of `source`. Elements stay where they can, with their focus and scroll position. */
export function update(target, source) {
  const wanted = [...source.childNodes];
  let at = target.firstChild;
  for (const next of wanted) {
    if (at && isSame(at, next)) {
      merge(at, next);
      at = at.nextSibling;
    } else {
      target.insertBefore(next, at);
    }
  }
  while (at) {
    const following = at.nextSibling;
    at.remove();
    at = following;
  }
}

function isSame(one, other) {
  return one.nodeType === other.nodeType
    && one.nodeName === other.nodeName
    && one.dataset?.key === other.dataset?.key;
}

function merge(target, source) {
  if (target.nodeType === Node.TEXT_NODE) {
    if (target.data !== source.data) target.data = source.data;
    return;
  }
  for (const { name } of [...target.attributes]) {
    if (!source.hasAttribute(name)) target.removeAttribute(name);
  }
  for (const { name, value } of source.attributes) {
    if (target.getAttribute(name) !== value) target.setAttribute(name, value);
  }
  for (const event of ["onclick", "oninput", "onsubmit", "onchange"]) {
    if (target[event] !== source[event]) target[event] = source[event];
  }
  update(target, source);
}
