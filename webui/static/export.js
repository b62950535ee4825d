// What is shown as a file: numbers as CSV, pictures as PNG.
import { h } from './h.js?v=__V__';

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const a = h('a', { download: name, href: URL.createObjectURL(blob) });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

/** A cell as RFC 4180 has it. A text that a spreadsheet would take for a formula is quoted by '. @param {any} v */
function cell(v) {
  if (v === null || v === undefined) return '';
  let text = String(v);
  if (typeof v !== 'number' && /^\s*[=+@-].|^[\t\r\n]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {any[][]} rows the first one is the head */
export const csv = rows => rows.map(r => r.map(cell).join()).join('\n') + '\n';

/** @param {string} name @param {string} type @param {string} text */
export const saveFile = (name, type, text) => download(new Blob([text], { type }), name);

/** @param {string} name without ending @param {any[][]} rows */
export const saveCSV = (name, rows) => download(new Blob([csv(rows)], { type: 'text/csv' }), `${name}.csv`);

/** @param {string} name @param {HTMLCanvasElement} canvas */
const savePNG = (name, canvas) => canvas.toBlob(b => b && download(b, `${name}.png`), 'image/png');

/** A canvas of the page's colour. @param {number} width @param {number} height */
function paper(width, height) {
  const out = h('canvas', { width: Math.round(width), height: Math.round(height) }),
    g = /** @type {CanvasRenderingContext2D} */ (out.getContext('2d'));
  g.fillStyle = getComputedStyle(document.body).backgroundColor;
  g.fillRect(0, 0, out.width, out.height);
  return { out, g };
}

/** Several canvases below each other, each under its title. @param {string} name
 * @param {[string, HTMLCanvasElement][]} parts */
function saveCanvases(name, parts) {
  const ratio = devicePixelRatio || 1,
    head = 22 * ratio,
    css = getComputedStyle(document.body);
  const { out, g } = paper(
    Math.max(...parts.map(([, c]) => c.width)),
    parts.reduce((sum, [, c]) => sum + c.height + head, 0),
  );
  g.fillStyle = css.color;
  g.font = `${13 * ratio}px ${css.fontFamily}`;
  let y = 0;
  for (const [title, c] of parts) {
    g.fillText(title, 4 * ratio, y + 15 * ratio);
    g.drawImage(c, 0, y + head);
    y += c.height + head;
  }
  savePNG(name, out);
}

/** What of an SVG's look comes from the style sheet. */
const looks = (
  'fill fill-opacity stroke stroke-width stroke-opacity stroke-dasharray opacity font-size font-weight font-family ' +
  'text-anchor'
).split(' ');

/** @param {string} name @param {SVGElement} svg */
async function saveSVG(name, svg) {
  const copy = /** @type {SVGElement} */ (svg.cloneNode(true)),
    box = svg.getBoundingClientRect();
  const from = [svg, ...svg.querySelectorAll('*')],
    to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((e, i) => {
    const c = getComputedStyle(e);
    for (const l of looks) to[i].setAttribute(l, c.getPropertyValue(l));
  });
  copy.setAttribute('width', String(box.width));
  copy.setAttribute('height', String(box.height));
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const { out, g } = paper(box.width * 2, box.height * 2);
  g.drawImage(image, 0, 0, out.width, out.height);
  savePNG(name, out);
}

/** The two keys of a page that can be exported. @param {import('./app.js').App} app @param {string} name
 * @param {() => any[][]} rows @param {() => Element|[string, HTMLCanvasElement][]|null} [picture] a canvas, canvases
 * with their titles, or what an SVG is in; without it nothing is saved as PNG
 * @returns {Record<string, [string, () => void]>} */
export function exportKeys(app, name, rows, picture) {
  const save = () => {
    const of = picture?.() ?? [],
      svg = of instanceof SVGElement ? of : of instanceof Element && of.querySelector('svg');
    if (of instanceof HTMLCanvasElement) savePNG(name, of);
    else if (Array.isArray(of) && of.length) saveCanvases(name, of);
    else if (svg) saveSVG(name, svg).catch(err => app.note(`Nothing was saved: ${err.message}`));
    else app.note('This page shows no picture now.');
  };
  return { E: ['export CSV', () => saveCSV(name, rows())], ...(picture && { P: ['PNG', save] }) };
}
