// Elements without markup strings: text is always text.

/** @param {string} tag name, with classes after dots: "td.num" @param {...any} parts first, where there are any,
 * attributes, whose functions become listeners; then children, of which null, undefined and false are none
 * @returns {any} the element, whose kind the tag says */
export function h(tag, ...parts) {
  const [name, ...classes] = tag.split('.');
  const el = document.createElement(name);
  if (classes.length) el.className = classes.join(' ');
  const first = parts[0],
    attributes = first && typeof first === 'object' && !(first instanceof Node) ? parts.shift() : {};
  for (const [k, v] of Object.entries(attributes)) {
    if (v === null || v === undefined || v === false) continue;
    if (typeof v === 'function') el.addEventListener(k, v);
    else el.setAttribute(k, v === true ? '' : String(v));
  }
  el.append(
    ...parts.filter(c => c !== null && c !== undefined && c !== false).map(c => (c instanceof Node ? c : String(c))),
  );
  return el;
}

/** Changes the text only when it differs, so that a quiet second costs no layout, and where it stands: no element
 * comes or goes, and no selector has to be matched again. @param {Element} el @param {string} text */
export function setText(el, text) {
  const only = el.childNodes.length === 1 && text ? el.firstChild : null;
  if (only instanceof Text) {
    if (only.data !== text) only.data = text;
  } else if (el.textContent !== text) el.textContent = text;
}

const NS = 'http://www.w3.org/2000/svg';

/** An SVG element. @param {string} tag @param {Record<string, any>} [attrs] @param {...(Node|string)} children
 * @returns {any} */
export function s(tag, attrs, ...children) {
  const el = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attrs ?? {})) {
    if (v === null || v === undefined) continue;
    if (typeof v === 'function') el.addEventListener(k, v);
    else el.setAttribute(k, String(v));
  }
  el.append(...children);
  return el;
}
