// A job's nodes, each beside the others: how long their requests took, by time.
import { h, s } from './h.js?v=__V__';
import { counted, millis, times } from './format.js?v=__V__';
import { get } from './api.js?v=__V__';
import { bySecond } from './charts.js?v=__V__';
import { plain } from './table.js?v=__V__';
import { metricOf } from './metrics.js?v=__V__';

const ASKED = 96, // nodes, spread evenly over the job's
  SHOWN = 16, // the slowest of them
  CELLS = 60,
  LATE = 1.5, // times what the others take
  MOST = 50; // times, the darkest

const mid = values => values.sort((a, b) => a - b)[values.length >> 1];

/** The rows of a section; none where fewer than three nodes say how long requests take. @param {string[]} nodes @param
 * {import('./charts.js').Charts} charts of the job, which have the range @param {number} start of the job, ms */
export async function nodesPart(nodes, charts, start) {
  const many = name => charts.series[name]?.mean.size ?? 0,
    name = Object.keys(charts.series)
      .filter(n => n.startsWith('client_'))
      .reduce((best, n) => (many(n) > many(best) ? n : best), '');
  if (!name || nodes.length < 3) return [];
  const asked = nodes.filter((_, i) => nodes.length <= ASKED || i % Math.ceil(nodes.length / ASKED) === 0),
    step = Math.max(1, Math.ceil(Math.min(charts.span, charts.end - start / 1000) / CELLS)),
    end = Math.floor(charts.end / step) * step,
    from = Math.max(end - CELLS * step, Math.ceil(start / 1000 / step) * step),
    got = await get(
      `/api/v1/series?metric=${name}&node=${encodeURIComponent(asked.join())}&step=${step}s` +
        `&from=${from * 1000}&to=${end * 1000}`,
    );
  const rows = got.series.map(one => ({ node: one.node, took: bySecond(one.points), cells: [], factor: 0 }));
  for (let t = from; t < end; t += step) {
    const usual = mid(rows.flatMap(r => r.took.get(t) ?? []));
    for (const r of rows) r.cells.push(r.took.get(t) && usual ? r.took.get(t) / usual : null);
  }
  for (const r of rows) r.factor = mid(r.cells.slice(-CELLS / 4).filter(v => v)) ?? mid(r.cells.filter(v => v)) ?? 0;
  const slowest = rows.filter(r => r.factor).sort((a, b) => b.factor - a.factor);
  if (slowest.length < 3) return [];
  const opacity = v => (v > LATE ? Math.min(1, 0.35 + 0.65 * (Math.log(v / LATE) / Math.log(MOST / LATE))) : 0.25),
    cell = (v, i) =>
      v && s('rect', { x: i * 8, width: 7.5, height: 14, class: v > LATE ? 'late' : '', 'fill-opacity': opacity(v) }),
    shown = slowest.slice(0, SHOWN),
    viewBox = `0 0 ${shown[0].cells.length * 8} 14`,
    some = asked.length < nodes.length ? `${asked.length} looked at, spread over ` : '',
    picture = { class: 'cells', viewBox, preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  const row = r =>
    h(
      'tr',
      h('th', { scope: 'row' }, r.node),
      h('td', s('svg', picture, ...r.cells.map(cell).filter(Boolean))),
      h('td.num', millis([...r.took.values()].filter(v => v).at(-1))),
      h('td.num', times(r.factor)),
    );
  return [
    h('h2', 'Its nodes, each beside the others'),
    h(
      'p.dim',
      `${metricOf[name].label}; ${counted(step, 'second')} a cell, red from ${LATE} times their median. ` +
        `The ${shown.length} slowest of ${some}its ${counted(nodes.length, 'node')}.`,
    ),
    plain('how long its nodes waited', ['NODE', 'OVER TIME', '#NEWEST ms', '#BESIDE OTHERS'], shown.map(row)),
  ];
}
