// Elements without markup strings: text is always text.

/**
 * @param {string} tag name, with classes after dots: "td.num"
 * @param {Record<string, any>|null} [attrs] attributes; functions become listeners
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, attrs, ...children) {
  const [name, ...classes] = tag.split('.');
  const el = document.createElement(name);
  if (classes.length) el.className = classes.join(' ');
  for (const [k, v] of Object.entries(attrs ?? {})) {
    if (v === null || v === undefined || v === false) continue;
    if (typeof v === 'function') el.addEventListener(k, v);
    else el.setAttribute(k, v === true ? '' : String(v));
  }
  el.append(
    ...children.filter(c => c !== null && c !== undefined && c !== false).map(c => (c instanceof Node ? c : String(c))),
  );
  return el;
}

/**
 * Changes the text only when it differs, so that a quiet second costs no layout, and where it stands: no element comes
 * or goes, and no selector has to be matched again.
 * @param {Element} el
 * @param {string} text
 */
export function setText(el, text) {
  const only = el.childNodes.length === 1 && text ? el.firstChild : null;
  if (only instanceof Text) {
    if (only.data !== text) only.data = text;
  } else if (el.textContent !== text) el.textContent = text;
}
