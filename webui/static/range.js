// The stretch of time that the pages with a time axis show, and its picker in the header. The address has it: span=1h
// lives on with the present, from=...&to=... stands still.
import { button, colour, h, modal, setText } from './h.js?v=__V__';
import { clock, iso, when } from './format.js?v=__V__';
import { glyph } from './levels.js?v=__V__';

/** @type {[string, string][]} */
export const spans = [
  ['5m', 'last 5 min'],
  ['15m', 'last 15 min'],
  ['1h', 'last hour'],
  ['6h', 'last 6 hours'],
  ['24h', 'last day'],
];
const CUSTOM = 'custom';
/** Seconds that a point of a chart can stand for. */
const steps = [1, 5, 15, 30, 60, 180, 300, 720, 1800, 3600, 4 * 3600];
const LEAST = 10; // seconds; a shorter stretch shows nothing that a second does not

/**
 * @typedef {{span: string, seconds: number, from: number, to: number, fixed: boolean}} Range
 * From and to are ms; a range that is not fixed ends now.
 */

/** What an address asks for; usual is the page's own span. @param {URLSearchParams} q @param {string} usual @param
 * {number} now @returns {Range} */
export function rangeOf(q, usual, now) {
  const from = Date.parse(q.get('from') ?? ''),
    to = Date.parse(q.get('to') ?? '');
  if (from < to) return { span: CUSTOM, seconds: Math.round((to - from) / 1000), from, to, fixed: true };
  const span = seconds(q.get('span') ?? '') ? /** @type {string} */ (q.get('span')) : usual,
    n = seconds(span);
  return { span, seconds: n, from: now - n * 1000, to: now, fixed: false };
}

/** @param {string} span such as 15m; 0 of anything else */
function seconds(span) {
  const m = /^(\d{1,4})([mhd])$/.exec(span);
  return m ? Number(m[1]) * { m: 60, h: 3600, d: 86400 }[/** @type {'m'} */ (m[2])] : 0;
}

/** Seconds of a step, so that a chart has at most so many points. @param {Range} r @param {number} most */
export const stepOf = (r, most) => steps.find(s => r.seconds / s <= most) ?? /** @type {number} */ (steps.at(-1));

/** A range in words, in the reader's zone. @param {Range} r */
export function words(r) {
  if (!r.fixed) return `the ${spans.find(([s]) => s === r.span)?.[1] ?? `last ${r.span}`}`;
  return `${when(r.from, Date.now())} to ${when(r.to, Date.now())}`;
}

/** An address with a range, or with the page's own. @param {URL} url @param {Record<string, string>} range */
export function withRange(url, range) {
  for (const k of ['span', 'from', 'to']) url.searchParams.delete(k);
  for (const [k, v] of Object.entries(range)) url.searchParams.set(k, v);
  return url.pathname + url.search.replaceAll('%3A', ':');
}

/** The query of a fixed range. @param {number} from @param {number} to ms */
export const fixedRange = (from, to) => {
  const mid = (from + to) / 2,
    half = Math.max(to - from, LEAST * 1000) / 2;
  return { from: iso(Math.floor((mid - half) / 1000) * 1000), to: iso(Math.ceil((mid + half) / 1000) * 1000) };
};

/** The range that lies the length of this one by further back (-1) or on (1). @param {Range} r @param {number} by */
export const shifted = (r, by) => fixedRange(r.from + by * r.seconds * 1000, r.to + by * r.seconds * 1000);

/** The picker in the header. */
export class RangePicker {
  /** @param {{set: (range: Record<string, string>) => void, now: () => number}} on */
  constructor(on) {
    this.on = on;
    /** @type {Range|null} */
    this.range = null;
    this.select = h(
      'select',
      { 'aria-label': 'range of time', change: () => this.chosen() },
      ...spans.map(([value, text]) => h('option', { value }, text)),
      h('option', { value: CUSTOM }, 'from - to'),
    );
    /** For pages that show by themselves the time around what they are about. */
    this.around = h('option', { value: 'around' }, 'around it');
    this.text = button('', () => this.ask(), { title: 'change from and to' });
    this.live = button('L live', () => this.on.set({}));
    this.el = h('span', { id: 'range', hidden: true });
  }

  /** @param {Range|null} range null where a page has no time axis @param {string} [usual] the page's own span */
  show(range, usual) {
    this.range = range;
    this.usual = usual;
    this.el.hidden = !range;
    this.el.replaceChildren(...(range ? [this.select, this.text, this.live] : []));
    if (!range) return;
    if (usual === 'around') this.select.prepend(this.around);
    else this.around.remove();
    this.select.value = range.span;
    if (this.select.value !== range.span) this.select.value = CUSTOM;
    setText(this.text, range.fixed ? words(range) : '');
    this.text.hidden = !range.fixed;
    this.live.hidden = !range.fixed;
  }

  chosen() {
    if (this.select.value === CUSTOM) this.ask();
    else this.on.set(this.select.value === 'around' ? {} : { span: this.select.value });
    this.select.blur(); // so that keys are the page's again
  }

  /** Asks for from and to. */
  ask() {
    const r = this.range ?? { from: this.on.now() - 900_000, to: this.on.now() };
    // A field of the reader's zone; sv writes as such a field wants it.
    const local = ms => new Date(ms).toLocaleString('sv').replace(' ', 'T');
    const field = (name, ms) =>
      h('input', { type: 'datetime-local', step: 1, value: local(ms), 'aria-label': name, required: true });
    const from = field('from', r.from),
      to = field('to', r.to),
      error = h('p.error', { role: 'alert' });
    const d = modal(
      'range of time',
      h(
        'form',
        {
          submit: () => {
            const a = Date.parse(from.value),
              b = Date.parse(to.value);
            if (!(a < b)) return setText(error, 'From is not before to.');
            if (a > this.on.now()) return setText(error, 'From is still to come: nothing is known of it.');
            d.close();
            this.on.set(fixedRange(a, Math.min(b, this.on.now())));
          },
        },
        h('p', h('label', 'From ', from), ' ', h('label', 'to ', to)),
        error,
        h(
          'div.actions',
          h('button', { type: 'button', click: () => d.close() }, 'Cancel'),
          h('button', { type: 'submit' }, 'Show'),
        ),
      ),
    );
    d.addEventListener('close', () => this.show(this.range, this.usual));
    from.focus();
  }
}

/** The options of a plot whose cursor is that of all charts of the page, and where dragging chooses a range.
 * @param {import('./app.js').App} app */
export function sharedCursor(app) {
  let over = -Infinity;
  return {
    cursor: {
      y: false,
      sync: { key: 'page' },
      drag: { x: true, y: false, setScale: false },
      bind: { dblclick: () => () => (app.zoomOut(), null) },
    },
    setSelect: u => {
      if (!(u.select.width > 4) || performance.now() - over < 300) return; // the other charts get the same one
      over = performance.now();
      const at = x => u.posToVal(x, 'x') * 1000;
      app.setRange(fixedRange(at(u.select.left), at(u.select.left + u.select.width)), true);
    },
  };
}

/** The axis of a chart, from 0 to the most of it; what only one point in a hundred reaches is cut, for one outlier
 * must not flatten the rest. @type {(u: any, low: number, high: number) => [number, number]} */
export const cutRange = (u, _low, high) => {
  const all = u.data
      .slice(1)
      .flat()
      .filter(v => v > 0)
      .sort((a, b) => a - b),
    usual = all[Math.floor(0.99 * (all.length - 1))] ?? 0;
  return [0, (high > 3 * usual ? usual : high) * 1.15 || 1];
};

/** The times below a plot: one that would be cut at its right edge is left out. @param {any} u
 * @param {number[]} times s @param {number} letters of a label */
const timeLabels = (u, times, letters) =>
  times.map(t => {
    const room = u.width - u.bbox.left / devicePixelRatio - u.valToPos(t, 'x');
    return room < letters * 3.2 ? '' : clock(t * 1000).slice(0, letters);
  });

/** The axes of a plot by time: labels of so many letters, then what is its own of each. @param {number} letters
 * @param {any} x @param {any} y */
export function axesOf(letters, x, y) {
  const axis = {
    stroke: colour('--dim'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
  };
  return [
    { ...axis, values: (u, v) => timeLabels(u, v, letters), ...x },
    { ...axis, ...y },
  ];
}

/** What happened, each a line with its letter; of several close together the first. What became slow has its colour.
 * @param {any} u @param {any[]} marks */
export function drawMarks(u, marks) {
  const { left, top, width, height } = u.bbox,
    g = /** @type {CanvasRenderingContext2D} */ (u.ctx),
    ratio = devicePixelRatio || 1,
    [usual, slow] = [colour('--dim'), colour('--slow')];
  g.save();
  g.font = `bold ${10 * ratio}px system-ui`;
  g.setLineDash([2 * ratio, 4 * ratio]);
  let last = -Infinity;
  for (const m of marks) {
    const x = u.valToPos(Date.parse(m.at) / 1000, 'x', true);
    if (x < left || x > left + width || x - last < 8 * ratio) continue;
    last = x;
    g.strokeStyle = g.fillStyle = /^(suspect|confirmed):/.test(m.text) ? slow : usual;
    g.beginPath();
    g.moveTo(x, top);
    g.lineTo(x, top + height);
    g.stroke();
    g.fillText(glyph(m), Math.min(x + 2 * ratio, left + width - 8 * ratio), top + 9 * ratio);
  }
  g.restore();
}

/** A mark at the top for each point that cutRange has cut. */
export function cutMarks(u) {
  const g = /** @type {CanvasRenderingContext2D} */ (u.ctx),
    ratio = devicePixelRatio || 1;
  u.root.dataset.cut = 0;
  for (const [i, row] of u.data.entries())
    for (const [k, v] of row.entries()) {
      if (!i || !u.series[i].width || !(v > u.scales.y.max)) continue;
      const x = u.valToPos(u.data[0][k], 'x', true);
      g.fillStyle = u.series[i].stroke();
      g.beginPath();
      g.moveTo(x - 4 * ratio, u.bbox.top + 6 * ratio);
      g.lineTo(x, u.bbox.top);
      g.lineTo(x + 4 * ratio, u.bbox.top + 6 * ratio);
      g.fill();
      u.root.dataset.cut++;
    }
}
