// The one connection over which the picture comes. It reconnects with jitter, and a hidden tab
// asks for a frame every five seconds only.

import { secret } from './api.js';

export class Live {
  /** @param {{message: (m: any) => void, grid: (g: Grid) => void, state: (connected: boolean) => void}} on */
  constructor(on) {
    this.on = on;
    /** @type {WebSocket|null} */
    this.ws = null;
    /** @type {string[]} */
    this.topics = ['overview', 'plans'];
    this.tries = 0;
    this.timer = 0;
    this.seen = 0;
    /** @type {any} the overview that changes come to */
    this.overview = null;
    this.background = document.hidden;
    document.addEventListener('visibilitychange', () => {
      this.background = document.hidden;
      this.connect();
    });
    // A connection that died without a word is noticed by the beat that does not come.
    setInterval(() => {
      if (!this.ws || performance.now() - this.seen <= (this.background ? 20000 : 6000)) return;
      this.tries++;
      this.on.state(false);
      this.connect();
    }, 2000);
  }

  /** @param {string[]} topics */
  want(topics) {
    if (topics.join() === this.topics.join() && this.ws) return;
    this.topics = topics;
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    const old = this.ws;
    const url = new URL('/api/v1/live', location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.searchParams.set('topics', this.topics.join());
    url.searchParams.set('changes', '1');
    if (this.background) url.searchParams.set('background', '1');
    const ws = secret() ? new WebSocket(url, ['fairway', `session.${secret()}`]) : new WebSocket(url);
    ws.binaryType = 'arraybuffer';
    this.ws = ws;
    this.seen = performance.now();
    ws.onmessage = e => {
      if (ws !== this.ws) return;
      this.seen = performance.now();
      if (this.tries > 0 || ws !== old) this.on.state(true);
      this.tries = 0;
      if (e.data instanceof ArrayBuffer) {
        const g = parseGrid(e.data);
        if (g) this.on.grid(g);
      } else {
        const m = JSON.parse(e.data);
        if (m.changes) m.overview = patched(this.overview, m.changes);
        if (m.overview) this.overview = m.overview;
        this.on.message(m);
      }
    };
    ws.onclose = () => {
      if (ws !== this.ws) return;
      this.ws = null;
      this.on.state(false);
      this.tries++;
      const wait = Math.min(5000, 500 * 2 ** Math.min(this.tries, 5));
      this.timer = window.setTimeout(() => this.connect(), wait * (0.5 + Math.random() / 2));
    };
    if (old) {
      old.onclose = null;
      old.close();
    }
  }
}

/** A value with what changed of it, as webui/hub.go says it. What did not change is shared with the earlier one.
 * @param {any} have @param {any} patch @returns {any} */
export function patched(have, patch) {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch;
  if (Array.isArray(have)) {
    const out = have.slice(),
      items = patch['[]'];
    for (const i in items) out[Number(i)] = patched(out[Number(i)], items[i]);
    return out;
  }
  // Thousands of values a second: no lists of keys, and no list for what is a value itself.
  const out = { ...have };
  for (const k in patch) {
    const p = patch[k];
    if (p === null) delete out[k];
    else out[k] = typeof p === 'object' ? patched(out[k], p) : p;
  }
  return out;
}

/** @typedef {{metric: number, generation: number, time: number, full: number, cells: Uint8Array}} Grid */

/** Reads a binary grid frame (webui/live/grid.go). @param {ArrayBuffer} data @returns {Grid|null} */
export function parseGrid(data) {
  const v = new DataView(data);
  if (data.byteLength < 28 || v.getUint8(0) !== 1 || v.getUint32(24, true) !== data.byteLength - 28) return null;
  return {
    metric: v.getUint8(1),
    generation: v.getUint32(4, true),
    time: Number(v.getBigInt64(8, true)),
    full: v.getFloat64(16, true),
    cells: new Uint8Array(data, 28),
  };
}
