// The machine in four charts on one time axis with one cursor: bandwidth, metadata, clients' latency, requests waiting.
import { h, setText } from './h.js?v=__V__';
import { clock, number } from './format.js?v=__V__';
import { get } from './api.js?v=__V__';
import { glyph } from './levels.js?v=__V__';
import { uPlotReady } from './charts.js?v=__V__';

const HIGH = 112;

/**
 * @typedef {{title: string, unit: string, lines: {name: string, of: (s: any) => number|null|undefined}[]}} Chart
 * @type {Chart[]}
 */
const charts = [
  {
    title: 'bandwidth',
    unit: 'MB/s',
    lines: [
      { name: 'write', of: s => mega(s.write_bytes_per_sec) },
      { name: 'read', of: s => mega(s.read_bytes_per_sec) },
    ],
  },
  { title: 'metadata', unit: 'ops/s', lines: [{ name: 'operations', of: s => s.meta_ops_per_sec }] },
  {
    title: 'client latency',
    unit: 'ms',
    lines: [
      { name: 'p95', of: s => milli(s.latency_p95_seconds) },
      { name: 'p50', of: s => milli(s.latency_p50_seconds) },
    ],
  },
  { title: 'waiting', unit: 'requests', lines: [{ name: 'requests', of: s => s.waiting }] },
];
const mega = (/** @type {any} */ v) => (v === null || v === undefined ? null : v / 1e6);
const milli = (/** @type {any} */ v) => (v === null || v === undefined ? null : v * 1e3);

export class Strip {
  /** @param {import('./sparks.js').Waits} waits */
  constructor(waits) {
    this.waits = waits;
    this.cards = charts.map(c => {
      const value = h('span.value'),
        box = h('div.plot');
      return { ...c, value, box, el: h('section.card.mini', null, h('h2', null, c.title, value), box) };
    });
    this.el = h('div.strip4', { 'aria-label': 'the machine, last 15 minutes' }, ...this.cards.map(c => c.el));
    /** @type {any[]} */
    this.plots = [];
    /** @type {any[]} */
    this.marks = [];
    this.since = 0;
    this.peak = 0;
    this.resized = () => this.size();
    this.themed = () => this.build();
    addEventListener('resize', this.resized);
    addEventListener('fairway-theme', this.themed);
  }

  /** Loads the library and the marks after the first paint. */
  async open() {
    /** @type {any} */ (this).uPlot = await uPlotReady();
    this.marks = await get('/api/v1/marks?from=-15m').catch(() => []);
    this.build();
  }

  data(/** @type {Chart} */ c) {
    const { trend, step, end } = this.waits,
      n = trend?.layer.length ?? 0;
    return [
      Array.from({ length: n }, (_, i) => end - (n - 1 - i) * step),
      ...c.lines.map(l => (trend?.layer ?? []).map((/** @type {any} */ s) => l.of(s ?? {}) ?? null)),
    ];
  }

  build() {
    const { uPlot } = /** @type {any} */ (this);
    if (!uPlot || !this.el.isConnected) return;
    this.plots.forEach(p => p.destroy());
    const css = getComputedStyle(document.documentElement),
      of = (/** @type {string} */ n) => css.getPropertyValue(n).trim();
    const strokes = [of('--series1'), of('--series2')],
      axis = {
        stroke: of('--dim'),
        grid: { stroke: of('--line'), width: 1 },
        ticks: { show: false },
        font: '11px system-ui',
      };
    this.plots = this.cards.map(
      c =>
        new uPlot(
          {
            width: Math.max(120, c.box.clientWidth),
            height: HIGH,
            legend: { show: false },
            cursor: { y: false, sync: { key: 'strip' }, drag: { x: false, y: false } },
            hooks: {
              setCursor: [(/** @type {any} */ u) => this.say(c, u)],
              drawClear: [(/** @type {any} */ u) => this.shade(u, of('--slow'))],
              draw: [(/** @type {any} */ u) => this.flags(u, of('--dim'))],
            },
            scales: {
              y: {
                range: (/** @type {any} */ _u, /** @type {any} */ _l, /** @type {number} */ hi) => [
                  0,
                  hi > 0 ? hi * 1.15 : 1,
                ],
              },
            },
            axes: [
              {
                ...axis,
                size: 22,
                space: 70,
                values: (/** @type {any} */ _u, /** @type {number[]} */ v) =>
                  v.map(t => clock(t * 1000).slice(0, 5)),
              },
              {
                ...axis,
                size: 42,
                space: 28,
                values: (/** @type {any} */ _u, /** @type {number[]} */ v) => v.map(short),
              },
            ],
            series: [
              {},
              ...c.lines.map((l, i) => ({
                label: l.name,
                stroke: strokes[i],
                fill: `${strokes[i]}2e`,
                width: 1.5,
                dash: i ? [5, 3] : undefined,
                spanGaps: false,
                points: { show: false },
              })),
            ],
          },
          this.data(c),
          c.box,
        ),
    );
    this.cards.forEach((c, i) => this.say(c, this.plots[i]));
  }

  size() {
    this.plots.forEach((p, i) => p.setSize({ width: Math.max(120, this.cards[i].box.clientWidth), height: HIGH }));
  }

  /** The numbers: those under the cursor, else the mean of the last ten seconds. @param {any} c @param {any} u */
  say(c, u) {
    const at = u?.cursor?.idx;
    const now = this.now ?? {};
    const texts = c.lines.map((/** @type {any} */ l, /** @type {number} */ i) => {
      const v = at === null || at === undefined ? l.of(now) : u.data[i + 1][at];
      return `${c.lines.length > 1 ? `${l.name} ` : ''}${v === null || v === undefined ? '-' : short(v)}`;
    });
    const peak = c.title === 'bandwidth' && this.peak ? ` of ${short(this.peak / 1e6)}` : '';
    const when = at === null || at === undefined ? '' : `  ${clock(u.data[0][at] * 1000)}`;
    setText(c.value, `${texts.join('  ')}${peak} ${c.unit}${when}`);
  }

  /** The incident's time. @param {any} u @param {string} colour */
  shade(u, colour) {
    if (!this.since) return;
    const { left, top, width, height } = u.bbox,
      g = u.ctx;
    const x = Math.max(left, u.valToPos(this.since / 1000, 'x', true));
    if (!(x < left + width)) return;
    g.save();
    g.fillStyle = `${colour}22`;
    g.fillRect(x, top, left + width - x, height);
    g.restore();
  }

  /** What happened. @param {any} u @param {string} colour */
  flags(u, colour) {
    const { left, top, width, height } = u.bbox,
      g = u.ctx,
      ratio = devicePixelRatio || 1;
    g.save();
    g.strokeStyle = g.fillStyle = colour;
    g.font = `${10 * ratio}px system-ui`;
    let last = -Infinity;
    for (const m of this.marks) {
      if (m.kind === 'job') continue;
      const x = u.valToPos(Date.parse(m.at) / 1000, 'x', true);
      if (x < left || x > left + width || x - last < 8 * ratio) continue;
      last = x;
      g.beginPath();
      g.moveTo(x, top);
      g.lineTo(x, top + height);
      g.setLineDash([2 * ratio, 4 * ratio]);
      g.stroke();
      g.fillText(glyph(m), Math.min(x + 2 * ratio, left + width - 8 * ratio), top + 9 * ratio);
    }
    g.restore();
  }

  /** @param {any} o @param {boolean} stepped */
  update(o, stepped) {
    this.now = o.now;
    this.peak = o.forwarders.reduce(
      (/** @type {number} */ s, /** @type {any} */ r) => s + (r.peak_bytes_per_sec || 0),
      0,
    );
    const first = o.needs?.find((/** @type {any} */ n) => n.state === 'slow' || n.state === 'silent');
    this.since = first ? Date.parse(first.since) : 0;
    if (stepped) this.plots.forEach((p, i) => p.setData(this.data(this.cards[i])));
    this.cards.forEach((c, i) => this.say(c, this.plots[i]));
  }

  close() {
    this.plots.forEach(p => p.destroy());
    removeEventListener('resize', this.resized);
    removeEventListener('fairway-theme', this.themed);
  }
}

/** A number for an axis. @param {number} v */
export function short(v) {
  const a = Math.abs(v);
  if (a >= 1e6) return `${number(v / 1e6)}M`;
  if (a >= 1e4) return `${(v / 1e3).toFixed(0)}k`;
  if (a >= 1e3) return `${(v / 1e3).toFixed(1)}k`;
  return a === 0 ? '0' : a < 10 ? v.toFixed(1) : v.toFixed(0);
}
