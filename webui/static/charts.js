// Series of one node: a chart for each group of metrics, gaps left open, a band from minimum to maximum
// where a point stands for more than a second, and marks for what happened to the node.
import { colour, h } from './h.js?v=__V__';
import { clock, number } from './format.js?v=__V__';
import { charted, metricOf } from './metrics.js?v=__V__';
import { axesOf, cutMarks, cutRange, drawMarks, sharedCursor } from './range.js?v=__V__';

const HIGH = 150;

/** The width that a box has for a chart; one that is not shown yet has none. @param {HTMLElement} box */
const inside = box => {
  const s = getComputedStyle(box);
  return Math.max(200, box.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight) || 0);
};

/** Loads uPlot once; it is needed on this page alone. @returns {Promise<any>} */
export function uPlotReady() {
  const w = /** @type {any} */ (window);
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    // Under LANG=C the browser names one that Intl refuses, and uPlot would not load.
    Object.defineProperty(navigator, 'language', { value: 'en' });
  }
  w.fairwayPlot ??= new Promise((ok, bad) => {
    document.head.append(h('link', { rel: 'stylesheet', href: '/static/uplot/uPlot.min.css?v=__V__' }));
    document.head.append(
      h('script', {
        src: '/static/uplot/uPlot.iife.min.js?v=__V__',
        load: () => ok(w.uPlot),
        error: () => bad(new Error('the plot library could not be loaded')),
      }),
    );
  });
  return w.fairwayPlot;
}

/**
 * @typedef {{mean: Map<number, number|null>, min?: Map<number, number|null>, max?: Map<number, number|null>}} Line by
 * second
 */

/** Points as values by second. @param {any} points with t in ms @returns {Map<number, number|null>} */
export const bySecond = points => new Map(points.map(p => [Math.floor(p.t / 1000), p.v]));

/** A value between two gaps: no line leads to it. @param {any} u @param {number} series */
const alone = (u, series) => {
  const v = u.data[series],
    none = x => x === null || x === undefined;
  return v.flatMap((y, i) => (!none(y) && none(v[i - 1]) && none(v[i + 1]) ? [i] : []));
};

export class Charts {
  /** @param {any} uPlot @param {string} empty what to say without any series @param {import('./app.js').App} app */
  constructor(uPlot, empty, app) {
    this.uPlot = uPlot;
    this.empty = empty;
    this.app = app;
    /** @type {Record<string, {low: Map<number, number>, mid: Map<number, number>, high: Map<number, number>}>} */
    this.peers = {};
    this.el = h('div.charts');
    /** @type {{plot: any, names: string[]}[]} */
    this.drawn = [];
    /** @type {Record<string, Line>} */
    this.series = {};
    /** @type {any[]} */
    this.marks = [];
    this.end = 0;
    this.span = 300;
    this.step = 1;
    this.resized = () =>
      this.drawn.forEach(p => p.plot.setSize({ width: inside(p.plot.root.parentElement), height: HIGH }));
    this.themed = () => this.draw();
    addEventListener('resize', this.resized);
    addEventListener('fairway-theme', this.themed);
  }

  static async ready(empty, app) {
    return new Charts(await uPlotReady(), empty, app);
  }

  /** The steps of the range, s. */
  times() {
    const n = Math.floor(this.span / this.step),
      last = Math.floor(this.end / this.step) * this.step;
    return Array.from({ length: n }, (_, i) => last - (n - 1 - i) * this.step);
  }

  /** Every step of the range; one that is missing is null, which the plot leaves open. @param {string[]} names */
  data(names) {
    const xs = this.times();
    const line = (n, points) =>
      xs.map(t => {
        const v = points?.get(t);
        return v === undefined || v === null ? null : v * metricOf[n].factor;
      });
    const column = (n, k) => line(n, this.series[n]?.[k]);
    return [
      xs,
      ...names.map(n => column(n, 'mean')),
      ...(this.step > 1 ? names.flatMap(n => [column(n, 'max'), column(n, 'min')]) : []),
      ...this.compared(names).flatMap(n => [
        line(n, this.peers[n].high),
        line(n, this.peers[n].low),
        line(n, this.peers[n].mid),
      ]),
    ];
  }

  /** Those of which the peers' band is known. @param {string[]} names */
  compared(names) {
    return names.filter(n => this.peers[n]);
  }

  /** Draws anew; for other metrics, another range or other colours. */
  draw() {
    this.drawn.forEach(p => p.plot.destroy());
    this.drawn = [];
    this.el.replaceChildren();
    const [dim, ...strokes] = ['--dim', '--series1', '--series2', '--series3', '--series4'].map(colour),
      unseen = { width: 0, stroke: 'transparent', class: 'edge', spanGaps: false, points: { show: false } };
    for (const group of charted) {
      const names = group.filter(n => this.series[n]?.mean.size);
      if (!names.length) continue;
      const box = h(
        'div.chart',
        h(
          'h2',
          `${names.map(n => metricOf[n].label).join(', ')}` +
            `${metricOf[names[0]].shown_unit ? `, ${metricOf[names[0]].shown_unit}` : ''}`,
        ),
      );
      this.el.append(box);
      const edges =
        this.step > 1 ? names.flatMap(n => [`most ${metricOf[n].label}`, `least ${metricOf[n].label}`]) : [];
      const compared = this.compared(names),
        firstPeer = 1 + names.length + edges.length;
      const value = (u, v, i, k) => {
        const most = names.length + 2 * i - 1; // the place of its edges
        const own =
          edges.length && k !== null && v !== null
            ? `${number(v)} (${number(u.data[most + 1][k])} to ${number(u.data[most][k])})`
            : number(v);
        const p = compared.indexOf(names[i - 1]);
        if (k === null || v === null || p < 0) return own;
        const [high, low, mid] = [0, 1, 2].map(j => u.data[firstPeer + 3 * p + j][k]);
        const unit = metricOf[names[i - 1]].shown_unit;
        return `${own} ${unit}, peers ${number(mid)} (${number(low)} to ${number(high)})`;
      };
      const shared = sharedCursor(this.app);
      const plot = new this.uPlot(
        {
          width: inside(box),
          height: HIGH,
          padding: [8, 8, 0, 0],
          cursor: shared.cursor,
          legend: { live: true },
          hooks: { draw: [u => drawMarks(u, this.marks), cutMarks], setSelect: [shared.setSelect] },
          scales: { y: { range: cutRange } },
          axes: axesOf(8, { space: 66, size: 26 }, { size: 46 }),
          series: [
            { label: 'time', value: (_u, v) => (v === null ? '-' : clock(v * 1000)) },
            ...names.map((n, i) => ({
              label: metricOf[n].label,
              stroke: strokes[i % strokes.length],
              width: 1.5,
              dash: [[], [6, 3], [2, 2], [8, 2, 2, 2]][i % 4],
              spanGaps: false,
              points: { show: true, size: 4, filter: alone },
              value,
            })),
            ...edges.map(label => ({ ...unseen, label })),
            ...compared.flatMap(n =>
              ['high', 'low', 'mid'].map(k => ({
                ...unseen,
                label: `peers ${k} ${metricOf[n].label}`,
                ...(k === 'mid' && { stroke: dim, width: 1 }),
              })),
            ),
          ],
          bands: [
            ...(edges.length
              ? names.map((_, i) => ({
                  series: [names.length + 1 + 2 * i, names.length + 2 + 2 * i],
                  fill: `${strokes[i % strokes.length]}33`,
                }))
              : []),
            ...compared.map((_, p) => ({ series: [firstPeer + 3 * p, firstPeer + 1 + 3 * p], fill: `${dim}2e` })),
          ],
        },
        this.data(names),
        box,
      );
      this.drawn.push({ plot, names });
    }
    if (!this.drawn.length) this.el.append(h('p.empty', this.empty));
  }

  /** New points of the same metrics and range. */
  move() {
    this.drawn.forEach(p => p.plot.setData(this.data(p.names)));
  }

  /** As [title, canvas] for a file. @param {string} name @returns {[string, HTMLCanvasElement][]} */
  pictures(name) {
    return this.drawn.map(p => [`${name}: ${p.names.map(n => metricOf[n].label).join(', ')}`, p.plot.ctx.canvas]);
  }

  /** As rows for a file: every step of the range with what is known. */
  rows() {
    const names = Object.keys(this.series).filter(n => this.series[n].mean.size),
      kinds = /** @type {('mean'|'min'|'max')[]} */ (this.step > 1 ? ['mean', 'min', 'max'] : ['mean']);
    const out = [['time', ...names.flatMap(n => kinds.map(k => (k === 'mean' ? n : `${n}_${k}`)))]];
    for (const t of this.times()) {
      const row = names.flatMap(n => kinds.map(k => this.series[n][k]?.get(t) ?? undefined));
      if (row.some(v => v !== undefined)) out.push([new Date(t * 1000).toISOString(), .../** @type {any[]} */ (row)]);
    }
    return out;
  }

  close() {
    this.drawn.forEach(p => p.plot.destroy());
    this.drawn = [];
    removeEventListener('resize', this.resized);
    removeEventListener('fairway-theme', this.themed);
  }
}
