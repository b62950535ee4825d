// Flows between columns: each band as wide as what moves in it.
import { s } from './h.js?v=__V__';
import { mega } from './format.js?v=__V__';
import { hues } from './parallel.js?v=__V__';

/**
 * @typedef {{from: string, to: string, col: number, value: number, estimated?: boolean, key: string}} Band
 * from and to name boxes of the columns col and col + 1; key chooses the colour.
 */
const BOX = 14,
  GAP = 6,
  WIDE = 1100,
  PHONE = 600;

/** How wide a picture is: on a phone as wide as the page, with short labels, else what is scaled to it. */
export function room() {
  const there = document.getElementById('page')?.clientWidth || WIDE;
  return { W: there < PHONE ? there : WIDE, narrow: there < PHONE };
}

/** Bands that are added up: one for each pair of boxes and colour. */
export class Bands {
  constructor() {
    /** @type {Map<string, Band>} */
    this.by = new Map();
  }

  /** @param {Band} b */
  add(b) {
    const id = [b.col, b.from, b.to, b.key].join('\n'),
      had = this.by.get(id);
    this.by.set(id, had ? { ...had, value: had.value + b.value, estimated: had.estimated || b.estimated } : b);
  }

  get all() {
    return [...this.by.values()];
  }
}

/** The names of the largest, those that have a colour of their own. @param {Map<string, number>} totals
 * @param {(id: string) => string} name */
export const largestNames = (totals, name) =>
  [...new Set([...totals].sort((a, b) => b[1] - a[1]).map(([id]) => name(id)))].slice(0, hues.length - 1);

/** Keeps the largest and adds up the rest. @param {Map<string, number>} totals @param {number} most
 * @param {string} what @returns {(id: string) => string} */
export function largest(totals, most, what) {
  const sorted = [...totals].sort((a, b) => b[1] - a[1]),
    kept = new Set(sorted.slice(0, most).map(([id]) => id));
  const rest = totals.size - kept.size;
  return id => (kept.has(id) ? id : `${rest} other ${what}`);
}

/** @param {Band[]} bands @param {string[]} heads of the columns @param {string[]} keys in the order of colours
 * @param {{label: string, go?: (col: number, id: string) => void, say?: (col: number, id: string, v: number) => string,
 * amount?: (v: number) => string, left?: number, right?: number}} o say is a box's label, amount what a value is
 * called; without them values are bytes/s. */
export function sankey(bands, heads, keys, o) {
  const { W, narrow } = room(),
    left = narrow ? 92 : (o.left ?? 150),
    side = narrow ? 92 : (o.right ?? 190),
    amount = o.amount ?? (v => `${mega(v)} MB/s`),
    say = o.say ?? ((_, id, v) => `${id}  ${mega(v)}`);
  /** @type {Map<string, {in: number, out: number, y: number, from: number, to: number}>[]} */
  const cols = heads.map(() => new Map());
  const box = (c, id) => {
    let b = cols[c].get(id);
    if (!b) cols[c].set(id, (b = { in: 0, out: 0, y: 0, from: 0, to: 0 }));
    return b;
  };
  for (const b of bands) {
    box(b.col, b.from).out += b.value;
    box(b.col + 1, b.to).in += b.value;
  }
  const size = b => Math.max(b.in, b.out);
  const rows = Math.max(1, ...cols.map(c => c.size)),
    H = Math.max(110, rows * 22);
  const total = Math.max(1e-9, ...cols.map(c => [...c.values()].reduce((sum, b) => sum + size(b), 0)));
  const scale = (H - GAP * rows) / total,
    pitch = 15; // a label's height
  const x = c => left + (c * (W - left - side - BOX)) / Math.max(1, heads.length - 1);
  const boxes = cols.flatMap((col, c) => {
    const used = [...col.values()].reduce((sum, b) => sum + size(b) * scale, 0),
      gap = Math.max(GAP, (H - used) / Math.max(1, col.size - 1) / 2);
    let y = 24;
    return [
      s('text', { x: x(c) + BOX / 2, y: 12, class: 'head', 'text-anchor': 'middle' }, heads[c]),
      ...[...col]
        .sort((a, b) => size(b[1]) - size(a[1]))
        .flatMap(([id, b]) => {
          b.y = b.from = b.to = y;
          const hgt = Math.max(1, size(b) * scale);
          y += Math.max(hgt + gap, pitch);
          const right = c === 0 ? { x: x(c) - 6, 'text-anchor': 'end' } : { x: x(c) + BOX + 6 };
          return [
            s('rect', {
              class: 'box',
              x: x(c),
              y: b.y,
              width: BOX,
              height: hgt,
              click: () => o.go?.(c, id),
              title: `${id}: ${amount(size(b))}`,
            }),
            s('text', { ...right, y: b.y + hgt / 2 + 4, class: 'name' }, say(c, id, size(b))),
          ];
        }),
    ];
  });
  const order = b =>
    /** @type {any} */ (cols[b.col].get(b.from)).y * 1e4 + /** @type {any} */ (cols[b.col + 1].get(b.to)).y;
  const paths = [...bands]
    .sort((a, b) => order(a) - order(b))
    .map(b => {
      const f = box(b.col, b.from),
        t = box(b.col + 1, b.to),
        w = Math.max(0.5, b.value * scale),
        x1 = x(b.col) + BOX,
        x2 = x(b.col + 1),
        mid = (x1 + x2) / 2;
      const y1 = f.from + w / 2,
        y2 = t.to + w / 2;
      f.from += w;
      t.to += w;
      return s('path', {
        class: b.estimated ? 'band estimated' : 'band',
        d: `M${x1} ${y1.toFixed(1)}C${mid} ${y1.toFixed(1)} ${mid} ${y2.toFixed(1)} ${x2} ${y2.toFixed(1)}`,
        stroke: hues[Math.min(hues.length - 1, Math.max(0, keys.includes(b.key) ? keys.indexOf(b.key) : hues.length))],
        'stroke-width': w.toFixed(1),
        title: `${b.key}: ${b.from} to ${b.to}, ${b.estimated ? '~' : ''}${amount(b.value)}`,
      });
    });
  const tall = Math.max(H + 40, ...cols.flatMap(c => [...c.values()].map(b => b.y + size(b) * scale + 20)));
  return s(
    'svg',
    { class: narrow ? 'sankey narrow' : 'sankey', viewBox: `0 0 ${W} ${Math.ceil(tall)}`, role: 'img' },
    s('title', {}, o.label),
    ...paths,
    ...boxes,
  );
}
