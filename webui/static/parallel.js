// Parallel coordinates: one line a row across axes side by side, and a range on any axis that keeps
// only the lines through it (IOMiner's Figures 11 and 12).

import { counted } from './format.js?v=__V__';
import { s } from './h.js?v=__V__';

/** Colours that people with colour blindness distinguish (Okabe and Ito); the last is for all the rest. */
export const hues = ['#e69f00', '#56b4e9', '#009e73', '#d55e00', '#cc79a7', '#0072b2', '#8b95a5'];

const W = 1000,
  H = 300,
  TOP = 34,
  LOST = 22,
  PAD = 60;

/**
 * @typedef {{name: string, head: string, value: (r: any) => number|null, text: (v: number) => string, log?: boolean,
 * max?: number}} Axis
 */
export class Parallel {
  /** @param {Axis[]} axes @param {{id: (r: any) => string, group: (r: any) => string, kept: (rows: any[]) => void,
   * picked: (id: string) => void}} o */
  constructor(axes, o) {
    this.axes = axes;
    this.o = o;
    /** @type {any[]} */
    this.rows = [];
    /** @type {Map<number, [number, number]>} axis -> range of y */
    this.ranges = new Map();
    /** @type {Map<string, SVGElement>} */
    this.lines = new Map();
    /** @type {[number, number][]} least and most of each axis */
    this.scale = [];
    /** @type {string[]} the largest first */
    this.groups = [];
    this.svg = s('svg', { viewBox: `0 0 ${W} ${TOP + H + LOST + 20}`, class: 'parallel', role: 'img' });
  }

  /** @param {number} i */
  x(i) {
    return PAD + (i * (W - 2 * PAD)) / Math.max(1, this.axes.length - 1);
  }

  /** Height of a value; an unknown value lies below the axis. @param {number} i @param {number|null} v */
  y(i, v) {
    if (v === null) return TOP + H + LOST;
    const [lo, hi] = this.scale[i],
      a = this.axes[i],
      f = a.log ? Math.log10 : z => z;
    if (a.log && v <= 0) return TOP + H;
    return TOP + H - (hi > lo ? (f(v) - f(lo)) / (f(hi) - f(lo)) : 0.5) * H;
  }

  /** @param {any[]} rows */
  update(rows) {
    this.rows = rows;
    this.scale = this.axes.map(a => {
      const known = rows
        .map(a.value)
        .filter(v => v !== null && (!a.log || v > 0))
        .map(Number);
      return known.length ? [a.log ? Math.min(...known) : 0, a.max ?? Math.max(...known)] : [0, 1];
    });
    /** @type {Map<string, number>} */
    const sizes = new Map();
    for (const r of rows) sizes.set(this.o.group(r), (sizes.get(this.o.group(r)) ?? 0) + 1);
    this.groups = [...sizes].sort((a, b) => b[1] - a[1]).map(([g]) => g);
    this.ranges.clear();
    this.draw();
    this.keep();
  }

  /** @param {string} group */
  hue(group) {
    return hues[Math.min(hues.length - 1, this.groups.indexOf(group))];
  }

  draw() {
    this.lines.clear();
    const lines = this.rows.map(r => {
      const d = this.axes.map((a, i) => `${this.x(i).toFixed(1)},${this.y(i, a.value(r)).toFixed(1)}`).join('L');
      const line = s(
        'path',
        { d: `M${d}`, stroke: this.hue(this.o.group(r)), class: 'line', click: () => this.o.picked(this.o.id(r)) },
        s('title', {}, `${this.o.group(r)} ${this.o.id(r)}`),
      );
      this.lines.set(this.o.id(r), line);
      return line;
    });
    const axes = this.axes.map((a, i) => {
      const x = this.x(i),
        [lo, hi] = this.scale[i];
      const range = s('rect', { class: 'range', x: x - 9, width: 18, y: 0, height: 0 });
      const hit = s('rect', { class: 'hit', x: x - 14, width: 28, y: TOP - 4, height: H + 8 + LOST });
      this.brush(i, hit, range);
      return s(
        'g',
        {},
        s('line', { class: 'axis', x1: x, x2: x, y1: TOP, y2: TOP + H }),
        s('text', { x, y: 12, class: 'head' }, a.head),
        s('text', { x, y: 27 }, a.text(hi)),
        s('text', { x, y: TOP + H + 14 }, a.text(lo)),
        s('text', { x, y: TOP + H + LOST + 14 }, '-'),
        range,
        hit,
      );
    });
    this.svg.replaceChildren(
      s(
        'title',
        {},
        `${counted(this.rows.length, 'job')} over ${this.axes.map(a => a.head).join(', ')}; the same numbers stand ` +
          `in the table below`,
      ),
      ...lines,
      ...axes,
    );
  }

  /** @param {number} i @param {SVGElement} hit @param {SVGElement} shown */
  brush(i, hit, shown) {
    const at = e => {
      const b = this.svg.getBoundingClientRect();
      return ((e.clientY - b.top) * (TOP + H + LOST + 20)) / b.height;
    };
    let from = 0;
    const set = to => {
      const lo = Math.min(from, to),
        hi = Math.max(from, to);
      if (hi - lo < 3) this.ranges.delete(i);
      else this.ranges.set(i, [lo, hi]);
      shown.setAttribute('y', String(lo));
      shown.setAttribute('height', String(hi - lo < 3 ? 0 : hi - lo));
      this.keep();
    };
    hit.addEventListener('pointerdown', e => {
      from = at(/** @type {PointerEvent} */ (e));
      hit.setPointerCapture(/** @type {PointerEvent} */ (e).pointerId);
      set(from);
    });
    hit.addEventListener('pointermove', e => {
      if (hit.hasPointerCapture(/** @type {PointerEvent} */ (e).pointerId)) set(at(/** @type {PointerEvent} */ (e)));
    });
  }

  /** Takes all ranges back. */
  clear() {
    this.ranges.clear();
    this.draw();
    this.keep();
  }

  /** Shows which rows pass every range. */
  keep() {
    const kept = this.rows.filter(r =>
      [...this.ranges].every(([i, [lo, hi]]) => {
        const y = this.y(i, this.axes[i].value(r));
        return y >= lo && y <= hi;
      }),
    );
    const ids = new Set(kept.map(this.o.id));
    for (const [id, line] of this.lines) line.classList.toggle('off', !ids.has(id));
    this.o.kept(kept);
  }

  /** @param {string} id */
  mark(id) {
    for (const [k, line] of this.lines) line.classList.toggle('on', k === id);
    const line = this.lines.get(id);
    if (line) line.parentNode?.insertBefore(line, this.svg.querySelector('g'));
  }
}
