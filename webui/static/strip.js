// The machine in four charts on one time axis with one cursor: bandwidth, metadata, clients' latency, requests waiting.
// The last quarter of an hour comes with the live feed, another range of time from the store.
import { colour, h, setText } from './h.js?v=__V__';
import { clock, number } from './format.js?v=__V__';
import { get, queried } from './api.js?v=__V__';
import { uPlotReady } from './charts.js?v=__V__';
import { axesOf, cutMarks, cutRange, drawMarks, sharedCursor, stepOf, words } from './range.js?v=__V__';

/**
 * @typedef {{name: string, of: (s: any, scale: number) => number|null|undefined}} Line
 * @typedef {{title: string, units: string, lines: Line[], trend?: boolean}} Chart trend: on a phone it is first
 * @type {Chart[]}
 */
const charts = [
  {
    title: 'bandwidth',
    units: '', // by the layer's peak
    lines: [
      { name: 'write', of: (s, scale) => over(s.write_bytes_per_sec, scale) },
      { name: 'read', of: (s, scale) => over(s.read_bytes_per_sec, scale) },
      { name: 'routed', of: (s, scale) => over(s.routed_bytes_per_sec, scale) },
    ],
  },
  { title: 'metadata', units: 'ops/s', lines: [{ name: 'operations', of: s => s.meta_ops_per_sec }] },
  {
    title: 'client latency',
    units: 'ms',
    trend: true,
    lines: [
      { name: 'p95', of: s => milli(s.latency_p95_seconds) },
      { name: 'p50', of: s => milli(s.latency_p50_seconds) },
    ],
  },
  { title: 'waiting', units: 'requests', lines: [{ name: 'requests', of: s => s.waiting }] },
];
const over = (v, scale) => (v === null || v === undefined ? null : v / scale);
/** @param {(number|null)[]} line */
const mean = line => {
  const known = /** @type {number[]} */ (line.filter(v => v !== null));
  return known.length ? known.reduce((a, b) => a + b) / known.length : null;
};
const milli = v => over(v, 1e-3);

/** As large as the style sheet lets a chart be. @param {HTMLElement} box */
const sizeOf = box => ({ width: Math.max(120, box.clientWidth), height: box.clientHeight });

const USUAL = '15m',
  LIVE = 900, // seconds that the live feed covers
  MOST = 120; // points of a chart

/** The layer's steps over a range as the store has them, like those of the live feed; a chart without an answer has
 * why. @param {import('./range.js').Range} r @param {string[]} nodes */
async function layerOver(r, nodes) {
  const step = stepOf(r, MOST),
    first = Math.ceil(r.from / 1000 / step) * step,
    last = Math.floor(r.to / 1000 / step) * step;
  /** @type {any[]} */
  const layer = [];
  /** @type {Record<string, string>} */
  const failed = {};
  for (let t = first; t <= last; t += step) layer.push({});
  const at = t => layer[Math.round((t - first) / step)];
  const tried = (title, read) => read.catch(err => (failed[title] = err.message));
  const sum = async (metric, into) => {
    const a = await get(
      `/api/v1/series?metric=${metric}&node=${encodeURIComponent(nodes.join())}&step=${step}s` +
        `&from=${first * 1000}&to=${(last + step) * 1000}`,
    );
    for (const s of a.series)
      for (const p of s.points) {
        const to = p.v === null || p.v === undefined ? undefined : at(p.t / 1000);
        if (to) to[into] = (to[into] ?? 0) + p.v;
      }
  };
  const clients = '{__name__=~"fairway_client_(read|write)_seconds",role="compute"}',
    part = q => `label_replace(quantile(0.${q}, ${clients}), "q", "p${q}", "", "")`;
  const latency = async () => {
    for (const s of await queried(`${part(50)} or ${part(95)}`, first, last, step))
      for (const [t, v] of s.values) {
        const to = at(t);
        if (to) to[`latency_${s.metric.q}_seconds`] = Number(v);
      }
  };
  if (nodes.length)
    await Promise.all([
      tried('bandwidth', sum('write_bytes', 'write_bytes_per_sec')),
      tried('bandwidth', sum('read_bytes', 'read_bytes_per_sec')),
      tried('bandwidth', sum('routed_bytes', 'routed_bytes_per_sec')),
      tried('metadata', sum('meta_ops', 'meta_ops_per_sec')),
      tried('waiting', sum('queue_len', 'waiting')),
      tried('client latency', latency()),
    ]);
  return { layer, step, end: last, failed };
}

export class Strip {
  /** @param {import('./sparks.js').Waits} waits @param {import('./app.js').App} app */
  constructor(waits, app) {
    this.waits = waits;
    this.app = app;
    this.range = app.range(USUAL);
    /** What the store has of the range; null while it comes with the live feed. @type {any} */
    this.past = null;
    this.reads = this.range.fixed || this.range.seconds > LIVE;
    this.readAt = -Infinity;
    /** @type {string[]} */
    this.nodes = [];
    this.cards = charts.map(c => {
      const parts = c.lines.map((_, i) => h(`span.line${i + 1}`)),
        unit = h('span.unit'),
        box = h('div.plot');
      const el = h(
        `section.card.mini${c.trend ? '.trend' : ''}`,
        h('h2', `${c.title} `, unit),
        h('p.value', ...parts),
        box,
      );
      return { ...c, parts, unit, box, el };
    });
    this.el = h('div.strip4', { 'aria-label': `the machine, ${words(this.range)}` }, ...this.cards.map(c => c.el));
    /** @type {any[]} */
    this.plots = [];
    /** @type {any[]} */
    this.marks = [];
    this.peak = 0;
    this.resized = new ResizeObserver(() => this.size());
    this.cards.forEach(c => this.resized.observe(c.box));
    this.themed = () => this.build();
    addEventListener('fairway-theme', this.themed);
  }

  /** As the line above the charts and the terminal choose. */
  bytes() {
    return this.peak < 1e10 ? { unit: 'MB/s', scale: 1e6 } : { unit: 'GB/s', scale: 1e9 };
  }

  /** Loads the library and the marks after the first paint. */
  async open() {
    /** @type {any} */ (this).uPlot = await uPlotReady();
    const { from, to, fixed } = this.range;
    this.marks = await get(`/api/v1/marks?from=${Math.floor(from)}${fixed ? `&to=${to}` : ''}&limit=1000`).catch(
      () => [],
    );
    if (this.reads) await this.read();
    this.build();
  }

  /** What the store has of the range. */
  async read() {
    this.readAt = performance.now();
    this.range = this.app.range(USUAL);
    this.past = await layerOver(this.range, this.nodes);
  }

  data(c) {
    const { step, end, layer: all = [] } = this.past ?? { ...this.waits, layer: this.waits.trend?.layer },
      layer = this.past ? all : all.slice(-Math.round(this.range.seconds / step)),
      n = layer.length;
    return [
      Array.from({ length: n }, (_, i) => end - (n - 1 - i) * step),
      ...c.lines.map(l => layer.map(s => l.of(s ?? {}, this.bytes().scale) ?? null)),
    ];
  }

  /** Why a chart has nothing to draw; empty where it has. @param {Chart} c @param {any[][]} data */
  why(c, data) {
    if (data.slice(1).some(line => line.some(v => v !== null))) return '';
    const failed = this.past?.failed[c.title];
    return failed
      ? `Of ${words(this.range)} this could not be read: ${failed}`
      : `No ${c.title} is known of ${words(this.range)}.`;
  }

  build() {
    const { uPlot } = /** @type {any} */ (this);
    if (!uPlot || !this.el.isConnected) return;
    this.plots.forEach(p => p?.destroy());
    const strokes = ['--series1', '--series2', '--dim'].map(colour);
    const shared = sharedCursor(this.app),
      notJobs = this.marks.filter(m => m.kind !== 'job');
    this.plots = this.cards.map(c => {
      const data = this.data(c),
        why = this.why(c, data);
      c.box.replaceChildren(...(why ? [h('p.empty', why)] : []));
      if (why) return null;
      return new uPlot(
        {
          ...sizeOf(c.box),
          padding: [6, 6, 0, 0],
          legend: { show: false },
          cursor: shared.cursor,
          hooks: {
            setCursor: [u => this.say(c, u)],
            setSelect: [shared.setSelect],
            draw: [u => drawMarks(u, notJobs), cutMarks],
          },
          scales: {
            x: { range: (_u, lo, hi) => (this.past ? [this.range.from / 1000, this.range.to / 1000] : [lo, hi]) },
            y: { range: cutRange },
          },
          axes: axesOf(5, { size: 22, space: 70 }, { size: 38, space: 18, values: (_u, v) => v.map(short) }),
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
        data,
        c.box,
      );
    });
    this.cards.forEach((c, i) => this.say(c, this.plots[i]));
  }

  size() {
    this.plots.forEach((p, i) => p?.setSize(sizeOf(this.cards[i].box)));
  }

  /** The numbers: those under the cursor, else the mean of the last ten seconds. @param {any} c @param {any} u */
  say(c, u) {
    const at = u?.cursor?.idx ?? null;
    const now = this.now ?? {};
    const values = c.lines.map((l, i) =>
      at !== null ? u.data[i + 1][at] : this.range.fixed ? mean(u?.data[i + 1] ?? []) : l.of(now, this.bytes().scale),
    );
    const known = values.map(v => v !== null && v !== undefined),
      last = known.lastIndexOf(true);
    const texts = c.lines.map((l, i) => {
      if (!known[i]) return last < 0 && i === 0 ? '-' : '';
      return `${c.lines.length > 1 ? `${l.name} ` : ''}${short(values[i])}${i === last ? '' : ' '}`;
    });
    const peak =
      c.title === 'bandwidth' && this.peak && !this.range.fixed ? ` of ${short(this.peak / this.bytes().scale)}` : '';
    const when = at !== null ? `  ${clock(u.data[0][at] * 1000)}` : this.range.fixed ? ', mean' : '';
    texts.forEach((text, i) => setText(c.parts[i], text));
    setText(c.unit, `${c.title === 'bandwidth' ? this.bytes().unit : c.units}${peak}${when}`);
  }

  /** @param {any} o @param {boolean} stepped */
  update(o, stepped) {
    this.now = o.now;
    this.peak = o.forwarders.reduce((s, r) => s + (r.peak_bytes_per_sec || 0), 0);
    this.nodes = o.forwarders.map(r => r.id);
    if (this.reads) this.again();
    else if (stepped) this.move();
    this.cards.forEach((c, i) => this.say(c, this.plots[i]));
  }

  /** New points; a chart that had none may have some now. */
  move() {
    const all = this.cards.map(c => this.data(c));
    if (this.plots.some((p, i) => !p === !this.why(this.cards[i], all[i]))) return this.build();
    this.plots.forEach((p, i) => p?.setData(all[i]));
  }

  /** Reads a range again, once a step: one that lives on, and a fixed one of which something did not come. */
  async again() {
    const whole = this.range.fixed && !Object.keys(this.past?.failed ?? {}).length;
    if (whole || performance.now() - this.readAt < 1000 * Math.max(10, this.past?.step ?? 10)) return;
    await this.read();
    if (this.plots.length) this.move();
  }

  close() {
    this.plots.forEach(p => p?.destroy());
    this.resized.disconnect();
    removeEventListener('fairway-theme', this.themed);
  }
}

/** A number for an axis. @param {number} v */
export function short(v) {
  const a = Math.abs(v);
  if (a >= 1e6) return `${number(v / 1e6)}M`;
  if (a >= 1e4) return `${(v / 1e3).toFixed(0)}k`;
  if (a >= 1e3) return `${(v / 1e3).toFixed(1)}k`;
  if (a < 1) return String(Number(v.toPrecision(2))); // an axis of small values has no two labels alike
  return a < 10 ? v.toFixed(1) : v.toFixed(0);
}
