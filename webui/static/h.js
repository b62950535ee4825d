// Elements without markup strings: text is always text.

/** @param {string} tag name, with classes after dots: "td.num" @param {...any} parts first, where there are any,
 * attributes, whose functions become listeners (what is submitted stays on the page); then children, of which null,
 * undefined and false are none @returns {any} the element, whose kind the tag says */
export function h(tag, ...parts) {
  const [name, ...classes] = tag.split('.');
  const el = document.createElement(name);
  if (classes.length) el.className = classes.join(' ');
  const first = parts[0];
  furnish(el, first && typeof first === 'object' && !(first instanceof Node) ? parts.shift() : {}, parts);
  if (classes.includes('scroll') && !el.querySelector('button, a')) el.tabIndex = 0; // who has only keys scrolls it
  return el;
}

const there = v => v !== null && v !== undefined && v !== false;
// No line breaks within an arrow of one letter.
const whole = text => String(text ?? '').replaceAll(' -> ', ' → ');
/** @param {Element} el @param {Record<string, any>} attributes @param {any[]} children */
function furnish(el, attributes, children) {
  for (const [k, v] of Object.entries(attributes)) {
    if (k === 'submit') el.addEventListener(k, e => (e.preventDefault(), v(e)));
    else if (typeof v === 'function') el.addEventListener(k, v);
    else if (there(v)) el.setAttribute(k, v === true && !k.startsWith('aria-') ? '' : String(v));
  }
  el.append(...children.filter(there).map(c => (c instanceof Node ? c : whole(c))));
  return el;
}

/** Changes the text only when it differs, so that a quiet second costs no layout, and where it stands: no element
 * comes or goes, and no selector has to be matched again. @param {Element} el @param {string} text */
export function setText(el, text) {
  const only = el.childNodes.length === 1 && text && el.firstChild instanceof Text ? el.firstChild : el;
  if (el.textContent !== whole(text)) only.textContent = whole(text);
}

/** @param {string} text @param {(e: any) => any} click @param {Record<string, any>} [more] attributes
 * @returns {HTMLButtonElement} */
export const button = (text, click, more) => h('button', { type: 'button', click, ...more }, text);

/** A name and what it is each, for a list of facts. @param {([string, string|Node]|null)[]} lines null: none */
export const pairs = lines => lines.flatMap(line => (line ? [h('dt', line[0]), h('dd', line[1])] : []));

/** A dialog over the page, gone once it is closed. @param {string} label @param {...any} children
 * @returns {HTMLDialogElement} */
export function modal(label, ...children) {
  const d = h('dialog', { 'aria-label': label }, ...children);
  d.addEventListener('close', () => d.remove());
  document.body.append(d);
  d.showModal();
  return d;
}

/** A value of the theme, such as --line. @param {string} name */
export const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An SVG element. @param {string} tag @param {Record<string, any>} [attributes] a title becomes its words at the
 * pointer @param {...(Node|string)} children @returns {any} */
export const s = (tag, { title, ...attributes } = {}, ...children) =>
  furnish(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, [
    title && s('title', {}, title),
    ...children,
  ]);
