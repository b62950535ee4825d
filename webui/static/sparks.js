// Small pictures of a forwarder's last minutes: its clients' latency over the band of its peers', on one scale for all.
import { s } from './h.js?v=__V__';
import { get } from './api.js?v=__V__';
import { FAILED } from './levels.js?v=__V__';

const WIDE = 160,
  HIGH = 22,
  LAYER = 180; // steps of the layer that are kept

/** @typedef {(number|null)[]} Steps */

export class Waits {
  constructor() {
    this.step = 5;
    this.end = 0;
    this.count = 60;
    /** @type {Map<string, Steps>} seconds, by forwarder */
    this.took = new Map();
    /** @type {[number, number]} the scale, logarithms of seconds */
    this.scale = [Math.log(1e-4), Math.log(1)];
    /** @type {{low: Steps, mid: Steps, high: Steps}} the quartiles of those that nobody accuses */
    this.band = { low: [], mid: [], high: [] };
    /** @type {any} the layer's steps, for the strip */
    this.trend = null;
    this.version = 0;
  }

  async load() {
    const t = await get('/api/v1/trend');
    this.trend = t;
    this.step = t.step_seconds || 5;
    this.end = Math.max(0, Date.parse(t.end) / 1000); // 0: no second has come yet
    this.took = new Map(
      Object.entries(t.waits).map(([id, w]) => [id, /** @type {any} */ (w).latency_seconds.slice(-this.count)]),
    );
    this.version++;
  }

  /** Takes the newest means, once a step. @param {any} o @returns {boolean} whether a step was added */
  add(o) {
    const at = Date.parse(o.at) / 1000;
    if (!this.trend || !(at - this.end >= this.step)) return false;
    const steps = Math.floor((at - this.end) / this.step),
      gap = Math.min(LAYER, steps);
    for (const r of o.forwarders) {
      const w = this.took.get(r.id) ?? [];
      for (let i = 1; i < gap; i++) w.push(null);
      w.push(r.latency_seconds ?? null);
      this.took.set(r.id, w.slice(-this.count));
    }
    for (let i = 1; i < gap; i++) this.trend.layer.push({});
    this.trend.layer.push(o.now ?? {});
    this.trend.layer = this.trend.layer.slice(-LAYER);
    this.end += steps * this.step;
    this.version++;
    return true;
  }

  /** Computes the peers' band and the scale. @param {any[]} rows */
  compare(rows) {
    const peers = rows
      .filter(r => ![...FAILED, 'suspect', 'drained'].includes(r.state))
      .map(r => this.took.get(r.id) ?? []);
    let least = Infinity,
      most = 0;
    for (const w of this.took.values())
      for (const v of w) if (v) ((least = Math.min(least, v)), (most = Math.max(most, v)));
    if (most > 0) this.scale = [Math.log(least / 1.3), Math.log(Math.max(most, least * 10) * 1.1)];
    const part = (v, q) => v[Math.floor(q * (v.length - 1))];
    this.band = { low: [], mid: [], high: [] };
    for (let i = 0; i < this.count; i++) {
      const back = this.count - i;
      const v = /** @type {number[]} */ (peers.map(w => w[w.length - back]).filter(x => x)).sort((a, b) => a - b);
      this.band.low.push(v.length ? part(v, 0.25) : null);
      this.band.mid.push(v.length ? part(v, 0.5) : null);
      this.band.high.push(v.length ? part(v, 0.75) : null);
    }
  }

  /** @param {number} v */
  y(v) {
    const [lo, hi] = this.scale;
    return HIGH - 2 - ((Math.log(v) - lo) / (hi - lo)) * (HIGH - 4);
  }

  /** Draws one into a cell; only when something is new. @param {HTMLElement} cell @param {any} r */
  draw(cell, r) {
    const key = `${r.id} ${this.version} ${r.state}`;
    if (cell.dataset.key === key) return;
    cell.dataset.key = key;
    const w = this.took.get(r.id) ?? [];
    const offset = this.count - w.length,
      x = i => (i * WIDE) / (this.count - 1);
    const own = path(
      w.map(v => v || null),
      i => x(i + offset),
      v => this.y(v),
    );
    let up = '',
      down = '';
    this.band.high.forEach((v, i) => {
      const low = this.band.low[i];
      if (!v || !low) return;
      up += `${up ? 'L' : 'M'}${x(i).toFixed(1)} ${(this.y(v) - 1).toFixed(1)}`;
      down = `L${x(i).toFixed(1)} ${(this.y(low) + 1).toFixed(1)}${down}`;
    });
    const svg = blank();
    for (const [cls, d] of [
      ['band', up && `${up}${down}Z`],
      ['own', own],
    ]) {
      if (d) svg.append(s('path', { class: cls, d }));
    }
    cell.replaceChildren(svg);
  }
}

/** A picture as wide as its place; the number beside it says the newest. */
const blank = () =>
  s('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', class: 'spark', 'aria-hidden': 'true' });

/** A line of steps from 0 to a top, the newest at the right; a missing one is a gap. @param {Steps} values
 * @param {number} top @param {string} [cls] */
export function sparkline(values, top, cls = 'own') {
  const svg = blank();
  const d = path(
    values,
    i => (i * WIDE) / Math.max(1, values.length - 1),
    v => HIGH - 2 - (Math.min(v, top) / (top || 1)) * (HIGH - 4),
  );
  svg.append(s('path', { class: cls, d: d || 'M0 0' }));
  return svg;
}

/** A line over steps: a missing one is a gap, a lone one a dot. @param {Steps} steps @param {(i: number) => number} x
 * @param {(v: number) => number} y */
function path(steps, x, y) {
  let d = '',
    pen = false;
  steps.forEach((v, i) => {
    if (v !== null && v !== undefined)
      d += `${pen ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}${pen ? '' : 'h.01'}`;
    pen = v !== null && v !== undefined;
  });
  return d;
}
