// A job beside the ended runs like it: where it stands among them, what it waited for, and their list.
import { h, setText, s } from './h.js?v=__V__';
import { age, clock, mega, missing, number, pathTo, ratio, volume } from './format.js?v=__V__';
import { Table, column, numeric } from './table.js?v=__V__';
import { get } from './api.js?v=__V__';

/** Seconds of I/O, with a decimal when they are few. @param {number} v */
export const seconds = v => (v < 10 ? `${number(v)}s` : age(v * 1000));

/** @param {string} id */
export function runsPart(id) {
  const table = new Table(
    [
      column('job', 'RUN', r => r.job),
      column('started', 'STARTED', r => `${r.start.slice(0, 10)} ${clock(r.start).slice(0, 5)}`, {
        value: r => Date.parse(r.start),
      }),
      numeric('read', 'READ', r => r.read_bytes, volume),
      numeric('written', 'WRITTEN', r => r.write_bytes, volume),
      column('mode', 'MODE', r => r.mode || missing, { wide: true }),
      numeric('io', 'I/O TIME', r => r.io_seconds, seconds),
      numeric('bw', 'MB/s', r => r.bytes_per_sec, mega),
      numeric('md', 'MD/s', r => r.meta_ops_per_sec, number, { wide: true }),
      column(
        'waited',
        'WAITED MOST FOR',
        r => (r.waits?.length ? `${r.waits[0].forwarder} ${ratio(r.waits[0].share)}%` : missing),
        { wide: true, value: r => r.waits?.[0]?.share },
      ),
      column('moved', 'MOVED BY', r => (r.remapped === null ? missing : r.remapped ? r.plan : 'no'), { wide: true }),
      column(
        'forwarders',
        'FORWARDERS',
        r => (r.forwarders.length > 1 ? `${r.forwarders.length}: ` : '') + (r.forwarders.join(' ') || missing),
        { wide: true, wrap: true },
      ),
    ],
    { id: r => r.job, go: r => pathTo('jobs', r.job), sort: 'started', caption: 'ended runs like it' },
  );
  const head = h('h2', { id: 'runs' }),
    boxes = h('div'),
    none = h(
      'p.dim',
      'No other ended run of it by this user on as many nodes is in the history with a profile yet. The batch ' +
        "system's hooks report runs; fairway import brings older ones from their logs.",
    );
  const el = h('section', { 'aria-label': 'runs like it' }, head, boxes, none, table.el);
  return {
    el,
    table,
    async load() {
      const v = await get(`/api/v1/jobs/${encodeURIComponent(id)}/runs?limit=200`);
      const n = v.runs.length,
        so = v.this && !(Date.parse(v.this.end ?? '') > 0) ? ' so far' : '';
      setText(head, `This run beside ${v.all > n ? `the newest ${n} of ${v.all}` : n} like it`);
      none.hidden = n > 0;
      table.el.hidden = n === 0;
      table.update(v.runs);
      boxes.replaceChildren(
        ...[
          box('I/O time', v.io_seconds, 'shorter', 'longer', seconds, so),
          v.meta_only
            ? box('metadata operations while in I/O', v.meta_ops_per_sec, 'slower', 'faster', number, ' ops/s')
            : box('bandwidth while in I/O', v.bytes_per_sec, 'slower', 'faster', mega, ' MB/s'),
        ].filter(x => x !== null),
      );
    },
  };
}

/** Least, quartiles and most as a box, and where this run stands. @param {string} name @param {any} of
 * @param {string} less @param {string} more @param {(v: number) => string} text @param {string} unit */
function box(name, of, less, more, text, unit) {
  if (!of) return null;
  const W = 400,
    from = Math.min(of.min, of.this ?? of.min),
    to = Math.max(of.max, of.this ?? of.max);
  const x = v => (to > from ? 4 + ((W - 8) * (v - from)) / (to - from) : W / 2);
  const [how, than] = of.above > of.below ? [less, of.above] : [more, of.below];
  const words =
    of.this === null
      ? `of this run not known in full; median of ${of.runs} like it: ${text(of.median)}`
      : `${text(of.this)}${unit}: ${how} than ${than} of ${of.runs} like it, median ${text(of.median)}`;
  const line = (a, b, y1, y2) => s('line', { x1: x(a), x2: x(b), y1, y2, stroke: 'currentColor' });
  const outline = { fill: 'none', stroke: 'currentColor' };
  const parts = [
    line(of.min, of.max, 10, 10),
    line(of.min, of.min, 6, 14),
    line(of.max, of.max, 6, 14),
    s('rect', { ...outline, x: x(of.q1), width: Math.max(1, x(of.q3) - x(of.q1)), y: 4, height: 12 }),
    line(of.median, of.median, 4, 16),
  ];
  if (of.this !== null) parts.push(s('circle', { cx: x(of.this), cy: 10, r: 4, fill: 'currentColor' }));
  const [least, q1, q2, q3, most] = [of.min, of.q1, of.median, of.q3, of.max].map(text),
    title = `${name}: least ${least}, quartiles ${q1}, ${q2}, ${q3}, most ${most}`;
  const svg = s('svg', { class: 'spread', viewBox: `0 0 ${W} 20`, width: W, height: 20, role: 'img', title }, ...parts);
  return h('p', h('span.dim', `${name} `), svg, ` ${words}`);
}

/** The I/O of a run along its time, with what its ends are. @param {string} title @param {Node[]} pieces in 1000 by
 * 48 @param {string} from @param {string} to */
export const alongTime = (title, pieces, from, to) =>
  h(
    'div.scroll',
    s(
      'svg',
      { class: 'strip', viewBox: '0 0 1000 62', role: 'img', title },
      ...pieces,
      s('text', { x: 0, y: 58 }, from),
      s('text', { x: 1000, y: 58, class: 'end' }, to),
    ),
  );

/** What a run's nodes waited for. @param {any} p its profile */
export function waited(p) {
  if (!p) return '';
  const w = (p.waits ?? []).filter((x, i) => i === 0 || x.share >= 0.005).slice(0, 4);
  if (w.length && w[0].share < 0.005) return "less than 1 % of its nodes' time at every forwarder";
  return w.length
    ? `for ${w.map(x => `${x.forwarder} ${ratio(x.share)} %`).join(', ')} of its nodes' time`
    : 'not known: its nodes did not report how long operations took';
}
