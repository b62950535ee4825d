// What belongs to a finding beside its life: whom it hurts, the series that accuse beside the peers', and the moves
// with what they brought.
import { h } from './h.js?v=__V__';
import { chart } from './chart.js?v=__V__';
import { effectMeter } from './effect.js?v=__V__';
import { get } from './api.js?v=__V__';
import { saveFile } from './export.js?v=__V__';
import { helps, victimLines } from './needs.js?v=__V__';
import { fixedRange, words } from './range.js?v=__V__';

const PADDING = 66, // of the page and of the card that the charts are in, both sides
  GAP = 19, // between two charts beside each other
  COLUMN = 448, // the least width of a chart where two are beside each other
  WIDEST = 900;
/** The range of a page that shows the time around its finding. */
export const AROUND = 'around';
const MOVING = ['proposed', 'approved', 'applying', 'applied', 'rolling_back'];
const SHOWN = 4; // charts before the others are folded away

/** One cursor over all charts, and one stretch that is dragged over. @param {import('./app.js').App} app
 * @param {ReturnType<typeof chart>[]} charts @param {(ms?: number) => void} over hears the time under the pointer */
function shareCursor(app, charts, over) {
  /** @type {number|null} */
  let begun = null;
  const drop = () => {
    begun = null;
    charts.forEach(one => one.pick(null));
  };
  for (const c of charts) {
    const svg = /** @type {any} */ (c.svg);
    svg.addEventListener('pointerdown', e => {
      if (e.pointerType !== 'touch') begun = c.under(e); // a finger scrolls the page
    });
    svg.addEventListener('pointermove', e => {
      const i = c.under(e);
      charts.forEach(one => one.show(i));
      over(i === null ? undefined : c.time(i));
      if (begun !== null && i !== null) charts.forEach(one => one.pick(begun, i));
    });
    svg.addEventListener('pointerup', e => {
      const a = begun,
        b = c.under(e);
      drop();
      if (a === null || b === null || Math.abs(a - b) < 2) return;
      app.setRange(fixedRange(c.time(Math.min(a, b)), c.time(Math.max(a, b))), true);
    });
    svg.addEventListener('dblclick', () => app.zoomOut());
    svg.addEventListener('pointerleave', () => {
      drop();
      over();
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
    /** Of the charts, under the pointer, ms. @type {number|undefined} */
    this.moment = undefined;
    this.moves = false; // a move is under way, or its effect is being measured
  }

  async load() {
    const r = this.app.range(AROUND),
      of = ms => new Date(ms).toISOString(),
      shown = r.span === AROUND ? '' : `?from=${of(r.from)}&to=${of(r.to)}`;
    const inc = await get(`/api/v1/findings/${encodeURIComponent(this.id)}/incident${shown}`);
    const open = this.el.querySelector('details')?.open ?? false;
    const room = document.getElementById('page')?.clientWidth ?? WIDEST;
    const across = Math.max(1, Math.floor((room - PADDING + GAP) / (COLUMN + GAP)));
    const width = Math.max(280, Math.floor((room - PADDING + GAP) / across) - GAP);
    this.moves = inc.plans.some(p => MOVING.includes(p.state) || p.effect?.verdict === 'measuring');
    const draw = of =>
      shareCursor(
        this.app,
        of.map(c => chart(inc, c, width)),
        ms => (this.moment = ms),
      );
    const all = inc.series.charts,
      charts = draw(open ? all : all.slice(0, SHOWN));
    const remedy = !inc.plans.length && inc.action?.name !== 'look' && helps(inc);
    const suffers = h(
      'section.card',
      h('h2', 'Who suffers'),
      inc.victims.length ? h('div', ...victimLines(inc.victims, 8)) : h('p', 'No job is known to wait for it.'),
    );
    const moves = h(
      'section.card',
      h('h2', inc.plans.length ? 'Moves' : 'What helps'),
      remedy,
      ...inc.plans.map(p =>
        h(
          'div.move',
          h('a', { href: `/plans/${p.id}` }, `${p.id}  ${p.title}`),
          `  ${p.state.replaceAll('_', ' ')}`,
          p.state === 'proposed' && h('a.button.primary', { href: `/plans/${p.id}` }, 'Look at it, approve'),
          p.effect && effectMeter(p, false),
        ),
      ),
    );
    const evidence = h(
      'section.card',
      h('h2', 'Evidence beside its peers'),
      charts.length
        ? h('p.dim', 'Line: this node. Thin line and band: median of its peers, 10th to 90th percentile.')
        : h('p', `No series of this node is kept of ${r.span === AROUND ? 'that time' : words(r)}.`),
      h('div.figures', ...charts.slice(0, SHOWN)),
      all.length > SHOWN
        ? h(
            'details',
            {
              open,
              // Drawn once somebody looks: with all of them, for the cursor is one.
              toggle: e => {
                const el = /** @type {HTMLDetailsElement} */ (e.target);
                if (el.open && !el.querySelector('figure')) this.load().catch(err => this.app.note(err.message));
              },
            },
            h('summary', `${all.length - SHOWN} more`),
            h('div.figures', ...charts.slice(SHOWN)),
          )
        : '',
    );
    this.el.replaceChildren(h('div.pair', suffers, ...(remedy || inc.plans.length ? [moves] : [])), evidence);
  }

  /** One file that needs no network. @param {boolean} standIns without a real name */
  async save(standIns) {
    const path = `/api/v1/findings/${encodeURIComponent(this.id)}/incident?format=html`;
    const text = await get(path + (standIns ? '&stand_ins=true' : ''));
    saveFile(standIns ? `${this.id}-stand-ins.html` : `${this.id}.html`, 'text/html', text);
  }
}
