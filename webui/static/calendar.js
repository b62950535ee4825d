// How often forwarders were near their peak: one cell a forwarder and hour (or day), and the
// minimum, average and maximum over forwarders of each column (Beacon's Figure 3).
import { h } from './h.js?v=__V__';
import { clock, counted, iso, ratio } from './format.js?v=__V__';
import { ramp } from './levels.js?v=__V__';
import { rampCanvas, withTip } from './grid.js?v=__V__';
import { Table, column, rowKeys } from './table.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { opener } from './lists.js?v=__V__';
import { get } from './api.js?v=__V__';

/** @type {Record<string, [string, string, string]>} span -> from, bucket, words */
const spans = {
  hour: ['-1h', '1m', 'the last hour, by minute'],
  day: ['-24h', '1h', 'the last day, by hour'],
  month: ['-720h', '24h', 'the last 30 days, by day'],
};

const heads = ['MIN %', 'AVG %', 'MAX %', 'IMBALANCE %'];

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function calendarPage(app, q) {
  const span = q.get('span') ?? 'hour',
    [from, bucket, words] = spans[span] ?? spans.hour;
  const a = await get(`/api/v1/occupancy?from=${from}&bucket=${bucket}`);
  const first = Math.floor(a.from_ms / a.bucket_ms) * a.bucket_ms,
    cols = Math.max(1, Math.ceil((a.to_ms - first) / a.bucket_ms));
  const cw = Math.max(4, Math.min(28, Math.floor(1000 / cols))),
    ch = Math.max(2, Math.min(18, Math.floor(520 / Math.max(1, a.nodes.length))));
  const canvas = h('canvas', {
    width: cols,
    height: Math.max(1, a.nodes.length),
    role: 'img',
    'aria-label': `occupancy of ${counted(a.nodes.length, 'forwarder')} over ${words}`,
  });
  canvas.style.cssText = `width:${cols * cw}px;height:${a.nodes.length * ch}px;image-rendering:pixelated`;
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')),
    scale = h('span');
  /** In the colours of the theme. */
  function paint() {
    const colours = ramp();
    a.nodes.forEach((n, y) =>
      n.buckets.forEach(b => {
        const x = Math.floor((b.t - first) / a.bucket_ms),
          share = b.occupied / b.seconds;
        if (x < 0 || x >= cols) return;
        g.fillStyle = `rgb(${colours[Math.min(9, Math.floor(share * 10))].join()})`;
        g.fillRect(x, y, 1, 1);
      }),
    );
    scale.replaceChildren(rampCanvas());
  }
  paint();
  addEventListener('fairway-theme', paint);
  /** @type {[Date, number[]][]} */
  const rows = a.layer.map(l => [new Date(l.t), [l.min, l.mean, l.max, l.imbalance]]);
  const label = t => (span === 'month' ? t.toISOString().slice(0, 10) : clock(t).slice(0, 5));
  const table = () => [
    ['FROM', ...heads, ...a.nodes.map(n => `${n.node} %`)],
    ...rows.map(([t, m]) => [
      t.toISOString(),
      ...m.map(ratio),
      ...a.nodes.map(n => {
        const b = n.buckets.find(x => x.t === t.getTime());
        return b ? ratio(b.occupied / b.seconds) : '';
      }),
    ]),
  ];
  const over = new Table(
    [
      column('from', 'FROM', ([t]) => label(t)),
      ...heads.map((head, i) => column(head, head, ([, m]) => ratio(m[i]), { num: true })),
    ],
    {
      id: ([t]) => label(t),
      go: ([t]) => past(t),
      fixed: true,
      caption: 'least, mean and most over all forwarders, the newest first',
    },
  );
  const past = t => `/overview?at=${iso(t)}`;
  over.cursor = true;
  over.update(rows.slice(-31).reverse());
  const axis = h('div.axis', { 'aria-hidden': true });
  axis.style.cssText = `width:${cols * cw}px;max-width:100%`;
  for (let i = 0; i <= 4; i++) {
    const at = h('span', label(new Date(first + a.bucket_ms * Math.round((cols * i) / 4))));
    at.style.cssText = i === 4 ? 'right:0' : `left:${(100 * i) / 4}%`;
    axis.append(at);
  }
  const grid = withTip(canvas, e => {
    const box = canvas.getBoundingClientRect(),
      n = a.nodes[Math.floor(((e.clientY - box.top) / box.height) * a.nodes.length)],
      t = first + Math.floor(((e.clientX - box.left) / box.width) * cols) * a.bucket_ms;
    const b = n?.buckets.find(x => x.t === t);
    return n
      ? `${n.node} ${label(new Date(t))}  ${b ? `${ratio(b.occupied / b.seconds)} % of ${b.seconds} s` : 'no data'}`
      : '';
  });
  const el = h(
    'div',
    h('h1', `Occupancy over ${words}`),
    h(
      'p.dim',
      `share of seconds in which a forwarder moved ${ratio(a.threshold)} % of its peak or more; one row a ` +
        `forwarder, in the order of the overview`,
    ),
    a.no_peak.length
      ? h(
          'p.empty',
          `Not counted because their peak is not known: ${counted(a.no_peak.length, 'forwarder')}. Set ` +
            `peak_bytes_per_sec in fairwayd.toml.`,
        )
      : null,
    rows.length
      ? h(
          'div',
          grid,
          axis,
          h('div.legend', h('span', '0 to 100 % '), scale, h('span', 'blank: no data')),
          h('h2', 'Over all forwarders'),
          over.el,
        )
      : h('p.empty', 'No second is stored in this range yet. The calendar fills as data arrives.'),
  );
  const order = Object.keys(spans);
  return {
    title: 'occupancy',
    el,
    timeless: true,
    close: () => removeEventListener('fairway-theme', paint),
    keys: {
      Enter: ['replay', opener(app, over)],
      ...rowKeys(step => over.move(step)),
      m: ['hour, day, month', () => app.go(`/occupancy?span=${order[(order.indexOf(span) + 1) % order.length]}`)],
      r: ['read again', () => app.go(location.pathname + location.search)],
      ...exportKeys(app, 'occupancy', table, scaled),
    },
  };
  /** One cell as many pixels as on screen. */
  function scaled() {
    const out = h('canvas', { width: cols * cw, height: Math.max(1, a.nodes.length * ch) }),
      p = /** @type {CanvasRenderingContext2D} */ (out.getContext('2d'));
    p.imageSmoothingEnabled = false;
    p.drawImage(canvas, 0, 0, out.width, out.height);
    return out;
  }
}
