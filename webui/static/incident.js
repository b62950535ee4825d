// What belongs to a finding beside its life: whom it hurts, the series that accuse beside the peers', and the moves
// with what they brought.
import { h, setText } from './h.js?v=__V__';
import { clock, number } from './format.js?v=__V__';
import { effectMeter } from './effect.js?v=__V__';
import { get, getText } from './api.js?v=__V__';
import { saveFile } from './export.js?v=__V__';
import { helps, victimLines } from './needs.js?v=__V__';
import { fixedRange, words } from './range.js?v=__V__';

const NS = 'http://www.w3.org/2000/svg';
const WIDEST = 900;
const PADDING = 66, // of the page and of the card that the charts are in, both sides
  GAP = 19, // between two charts beside each other
  COLUMN = 448; // the least width of a chart where two are beside each other
let WIDTH = WIDEST; // of what is there: a narrower page has narrower charts, and letters of the same size
const HEIGHT = 120,
  LEFT = 70,
  BOTTOM = 18;
/** The range of a page that shows the time around its finding. */
export const AROUND = 'around';
const MOVING = ['proposed', 'approved', 'applying', 'applied', 'rolling_back'];
const SHOWN = 4; // charts before the others are folded away

/** @param {string} tag @param {Record<string, any>} attrs @param {string} [text] */
function s(tag, attrs, text) {
  const el = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attrs)) el.setAttribute(k, String(v));
  if (text) el.textContent = text;
  return el;
}

/** @param {any} inc @param {any} c one of its charts */
function chart(inc, c) {
  const n = c.node.length,
    from = Date.parse(inc.series.from),
    step = inc.series.step_seconds * 1000;
  const top = Math.max(...c.node, ...c.high, 0) || 1;
  const x = (/** @type {number} */ i) => LEFT + ((WIDTH - LEFT) * i) / Math.max(1, n - 1),
    y = (/** @type {number} */ v) => 4 + (HEIGHT - BOTTOM - 8) * (1 - v / top);
  const ratio = c.says ? `${c.says} its peers (${c.means})` : '';
  const svg = s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${c.label} ${ratio}` });
  const at = (/** @type {string} */ t) => Math.min(n - 1, Math.max(0, (Date.parse(t) - from) / step));
  const a = at(inc.accused.from),
    z = at(inc.accused.to);
  if (z > a)
    svg.append(s('rect', { class: 'accused', x: x(a), y: 4, width: x(z) - x(a), height: HEIGHT - BOTTOM - 4 }));
  /** Stretches that are known. @param {(number|null)[]} row */
  const runs = row => {
    /** @type {[number, number][]} */
    const out = [];
    row.forEach((v, i) => {
      if (v === null) return;
      if (i && row[i - 1] !== null) out[out.length - 1][1] = i;
      else out.push([i, i]);
    });
    return out;
  };
  const points = (/** @type {number[]} */ row, /** @type {[number, number]} */ [i, k]) =>
    row.slice(i, k + 1).map((v, j) => `${x(i + j).toFixed(1)} ${y(v).toFixed(1)}`);
  for (const r of runs(c.low)) {
    const path = [...points(c.high, r), ...points(c.low, r).reverse()];
    svg.append(s('path', { class: 'band', d: `M${path.join('L')}Z` }));
  }
  for (const [name, row] of /** @type {[string, any][]} */ ([
    ['mid', c.mid],
    ['own', c.node],
  ]))
    svg.append(
      s('path', {
        class: name,
        d: runs(row)
          .map(r => `M${points(row, r).join('L')}h.8`)
          .join(''),
      }),
    );
  for (const v of [0, top / 2, top])
    svg.append(s('text', { x: 0, y: Math.max(11, y(v) + 4) }, `${number(v * c.scale)} ${c.unit}`.trim()));
  const last = WIDTH < 600 ? 2 : 4; // times that fit beside each other
  for (let k = 0; k <= last; k++) {
    const i = Math.round((k * (n - 1)) / last);
    const anchor = k === last ? 'end' : k ? 'middle' : 'start';
    svg.append(s('text', { x: x(i), y: HEIGHT - 3, 'text-anchor': anchor }, clock(from + i * step)));
  }
  const picked = s('rect', { class: 'picked', y: 4, height: HEIGHT - BOTTOM - 4, visibility: 'hidden' });
  const line = s('line', { class: 'cursor', y1: 4, y2: HEIGHT - BOTTOM, visibility: 'hidden' }),
    value = h('span.dim');
  svg.append(picked, line);
  const figure = h(
    'figure',
    null,
    h('figcaption', null, c.label, ratio && h('strong', null, ` ${ratio}`), ' ', value),
    /** @type {any} */ (svg),
  );
  const show = (/** @type {number|null} */ i) => {
    line.setAttribute('visibility', i === null ? 'hidden' : 'visible');
    if (i === null) return setText(value, '');
    line.setAttribute('x1', String(x(i)));
    line.setAttribute('x2', String(x(i)));
    const of = (/** @type {number|null} */ v) => number(v === null ? null : v * c.scale);
    const peers = c.mid[i] === null ? 'peers not known' : `peers ${of(c.mid[i])} (${of(c.low[i])} to ${of(c.high[i])})`;
    setText(value, ` ${of(c.node[i])} ${c.unit}, ${peers}  ${clock(from + i * step)}`);
  };
  /** The step under the pointer. @param {PointerEvent} e */
  const under = e => {
    const box = svg.getBoundingClientRect(),
      part = (((e.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT);
    return part < 0 || part > 1 ? null : Math.round(part * (n - 1));
  };
  /** Marks the steps from a to b, or none. @param {number|null} a @param {number} [b] */
  const pick = (a, b = 0) => {
    picked.setAttribute('visibility', a === null ? 'hidden' : 'visible');
    if (a === null) return;
    picked.setAttribute('x', String(x(Math.min(a, b))));
    picked.setAttribute('width', String(Math.abs(x(b) - x(a))));
  };
  /** When a step began. @param {number} i */
  const time = i => from + i * step;
  return { figure, show, under, pick, time, svg };
}

/** One cursor over all charts, and one stretch that is dragged over.
 * @param {import('./app.js').App} app @param {ReturnType<typeof chart>[]} charts */
function shareCursor(app, charts) {
  /** @type {number|null} */
  let begun = null;
  const drop = () => {
    begun = null;
    charts.forEach(one => one.pick(null));
  };
  for (const c of charts) {
    const svg = /** @type {any} */ (c.svg);
    svg.addEventListener('pointerdown', (/** @type {PointerEvent} */ e) => {
      if (e.pointerType !== 'touch') begun = c.under(e); // a finger scrolls the page
    });
    svg.addEventListener('pointermove', (/** @type {PointerEvent} */ e) => {
      const i = c.under(e);
      charts.forEach(one => one.show(i));
      if (begun !== null && i !== null) charts.forEach(one => one.pick(begun, i));
    });
    svg.addEventListener('pointerup', (/** @type {PointerEvent} */ e) => {
      const a = begun,
        b = c.under(e);
      drop();
      if (a === null || b === null || Math.abs(a - b) < 2) return;
      app.setRange(fixedRange(c.time(Math.min(a, b)), c.time(Math.max(a, b))), true);
    });
    svg.addEventListener('dblclick', () => app.zoomOut());
    svg.addEventListener('pointerleave', () => {
      drop();
      charts.forEach(one => one.show(null));
    });
  }
  return charts.map(c => c.figure);
}

export class Incident {
  /** @param {import('./app.js').App} app @param {string} id of the finding */
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.el = h('div.incident');
    this.moves = false; // a move is under way, or its effect is being measured
  }

  async load() {
    const r = this.app.range(AROUND),
      of = (/** @type {number} */ ms) => new Date(ms).toISOString(),
      shown = r.span === AROUND ? '' : `?from=${of(r.from)}&to=${of(r.to)}`;
    const inc = await get(`/api/v1/findings/${encodeURIComponent(this.id)}/incident${shown}`);
    const open = this.el.querySelector('details')?.open ?? false;
    const room = document.getElementById('page')?.clientWidth ?? WIDEST;
    const across = Math.max(1, Math.floor((room - PADDING + GAP) / (COLUMN + GAP)));
    WIDTH = Math.max(280, Math.floor((room - PADDING + GAP) / across) - GAP);
    this.moves = inc.plans.some(
      (/** @type {any} */ p) => MOVING.includes(p.state) || p.effect?.verdict === 'measuring',
    );
    const draw = (/** @type {any[]} */ of) =>
      shareCursor(
        this.app,
        of.map(c => chart(inc, c)),
      );
    const all = inc.series.charts,
      charts = draw(open ? all : all.slice(0, SHOWN));
    const remedy = !inc.plans.length && inc.action?.name !== 'look' && helps(inc);
    const suffers = h(
      'section.card',
      null,
      h('h2', null, 'Who suffers'),
      inc.victims.length
        ? h('div', null, ...victimLines(inc.victims, 8))
        : h('p', null, 'No job is known to wait for it.'),
    );
    const moves = h(
      'section.card',
      null,
      h('h2', null, inc.plans.length ? 'Moves' : 'What helps'),
      remedy,
      ...inc.plans.map((/** @type {any} */ p) =>
        h(
          'div.move',
          null,
          h('a', { href: `/plans/${p.id}` }, `${p.id}  ${p.title}`),
          `  ${p.state.replaceAll('_', ' ')}`,
          p.state === 'proposed' && h('a.button.primary', { href: `/plans/${p.id}` }, 'Look at it, approve'),
          p.effect && effectMeter(p, false),
        ),
      ),
    );
    const evidence = h(
      'section.card',
      null,
      h('h2', null, 'Evidence beside its peers'),
      charts.length
        ? h('p.dim', null, 'Line: this node. Thin line and band: median of its peers, 10th to 90th percentile.')
        : h('p', null, `No series of this node is kept of ${r.span === AROUND ? 'that time' : words(r)}.`),
      h('div.figures', null, ...charts.slice(0, SHOWN)),
      all.length > SHOWN
        ? h(
            'details',
            {
              open,
              // Drawn once somebody looks: with all of them, for the cursor is one.
              toggle: (/** @type {Event} */ e) => {
                const el = /** @type {HTMLDetailsElement} */ (e.target);
                if (el.open && !el.querySelector('figure')) this.load().catch(err => this.app.note(err.message));
              },
            },
            h('summary', null, `${all.length - SHOWN} more`),
            h('div.figures', null, ...charts.slice(SHOWN)),
          )
        : '',
    );
    this.el.replaceChildren(
      h('div.pair', null, suffers, ...(remedy || inc.plans.length ? [moves] : [])),
      evidence,
    );
  }

  /** One file that needs no network. @param {boolean} standIns without a real name */
  async save(standIns) {
    const path = `/api/v1/findings/${encodeURIComponent(this.id)}/incident?format=html`;
    const text = await getText(path + (standIns ? '&stand_ins=true' : ''));
    saveFile(standIns ? `${this.id}-stand-ins.html` : `${this.id}.html`, 'text/html', text);
  }
}
