// What the I/O-log archive says: jobs of low bandwidth with their factors, and why one job's I/O took
// as long as it did.
import { h, s } from './h.js?v=__V__';
import { get } from './api.js?v=__V__';
import { counted, number, ratio, volume as size } from './format.js?v=__V__';
import { listPage, opener } from './lists.js?v=__V__';
import { Table, column, numeric, rowKeys } from './table.js?v=__V__';
import { alongTime } from './runs.js?v=__V__';
import { Parallel, hues } from './parallel.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';

/** @param {{columns: string[], rows: any[][]}} res */
const objects = res => res.rows.map(row => Object.fromEntries(res.columns.map((c, i) => [c, row[i]])));

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function logsPage(app, q) {
  const op = q.get('op') === 'read' ? 'read' : 'write',
    all = q.get('all') === '1';
  const limits = all ? '&max_bytes_per_sec=1e18&min_procs=0&min_bytes_per_proc=0' : '';
  const rows = objects(await get(`/api/v1/archive/low-bandwidth?op=${op}${limits}`)).map((r, i) => ({
    ...r,
    key: String(i),
  }));
  const axis = (name, head, text, more) => ({ name, head, value: r => r[name], text, ...more });
  const share = (name, head) => axis(name, head, v => `${ratio(v)} %`, { max: 1 });
  const amount = (name, head, text = number) => axis(name, head, text, { log: true });
  const table = new Table(
    [
      column('job', 'JOB', r => r.job_id),
      column('app', 'APP', r => r.app),
      numeric('procs', 'PROCS', r => r.procs, String),
      numeric('bw', 'PER SECOND', r => -r.bytes_per_sec, null, { text: r => size(r.bytes_per_sec) }),
      numeric('bytes', 'BYTES', r => r.bytes, size),
      ...[
        ['small', 'SMALL %'],
        ['nonconsec', 'NONCONSEC %'],
        ['collective', 'COLL %'],
        ['longest_share', 'ONE FILE %'],
      ].map(([name, head]) => numeric(name, head, r => r[name] ?? -1, null, { text: r => ratio(r[name]) })),
      numeric('osts', 'OSTS', r => r.osts ?? -1, null, { text: r => number(r.osts) }),
      numeric('contention', 'PROCS/OST', r => r.procs_per_ost ?? -1, null, { text: r => number(r.procs_per_ost) }),
    ],
    { id: r => r.key, go: r => `/jobs/${encodeURIComponent(r.job_id)}/why`, sort: 'bw', caption: 'jobs' },
  );
  table.limit = 200;
  const plot = new Parallel(
    [
      amount('bytes_per_sec', 'per second', size),
      share('small', 'small'),
      share('nonconsec', 'nonconsec'),
      share('collective', 'collective'),
      amount('osts', 'OSTs'),
      amount('procs_per_ost', 'procs/OST'),
      share('longest_share', 'one file'),
      amount('node_count', 'nodes'),
    ].filter(a => rows.some(r => a.value(r) !== null)),
    {
      id: r => r.key,
      group: r => r.app,
      kept: kept => {
        table.update(kept);
        shown.textContent = `${kept.length} of ${counted(rows.length, 'job')}`;
      },
      picked: id => {
        table.selected = id;
        plot.mark(id);
        table.update(table.rows);
      },
    },
  );
  const shown = h('span');
  plot.update(rows);
  const legend = plot.groups.slice(0, hues.length - 1).map(g => h('span', mark(plot.hue(g)), ` ${g}`));
  if (plot.groups.length >= hues.length)
    legend.push(h('span', mark(hues[hues.length - 1]), ` ${plot.groups.length - hues.length + 1} more`));
  const where = all
    ? 'all jobs in the archive'
    : 'jobs of more than 1,000 processes and 10 MB each, below 1 GB/s on their critical path';
  const above = [
    h('p.dim', `${where}; drag along an axis to keep a range`),
    rows.length
      ? h('div', h('div.scroll', plot.svg), h('div.legend', shown, ...legend))
      : h(
          'p.empty',
          "No such job. Logs come into the archive by fairway import PATH on the daemon's host; press a for all jobs.",
        ),
  ];
  const move = step => {
    table.move(step);
    const r = table.current();
    if (r) plot.mark(r.key);
  };
  const to = (o, a) => app.go(`/logs?op=${o}${a ? '&all=1' : ''}`);
  return listPage(app, 'logs', table, above, {
    heading: `Low ${op} bandwidth`,
    picture: () => (rows.length ? plot.svg : null),
    timeless: true,
    keys: {
      Enter: ['why', opener(app, table)],
      ...rowKeys(move),
      w: ['reads, writes', () => to(op === 'read' ? 'write' : 'read', all)],
      a: ['all jobs, slow jobs', () => to(op, !all)],
      x: ['clear ranges', () => plot.clear()],
    },
  });
}

/** @param {string} colour */
const mark = colour =>
  s('svg', { width: 14, height: 10, 'aria-hidden': true }, s('rect', { width: 14, height: 10, fill: colour }));

/** @param {import('./app.js').App} app @param {string} id @returns {Promise<import('./app.js').Page>} */
export async function whyPage(app, id) {
  const v = await get(`/api/v1/jobs/${encodeURIComponent(id)}/rootcause?empty`);
  const job = `/jobs/${encodeURIComponent(id)}`,
    title = h('h1', `Why job ${id}'s I/O took as long as it did`);
  /** @type {import('./app.js').Page} */
  const page = {
    title: `why ${id}`,
    timeless: true,
    el: h('div', title),
    keys: {
      Enter: ['the job', () => app.go(job)],
      d: ['file domains', () => app.go(`${job}/domains`)],
      l: ['all logs', () => app.go('/logs')],
    },
  };
  if (!v.logs.length) {
    title.after(
      h(
        'p.empty',
        'No log of this job is in the archive, so what its I/O waited for is not known. ',
        h('code', 'fairway import PATH'),
        " on the daemon's host takes its Darshan logs in; enter opens the job.",
      ),
    );
    return page;
  }
  const parts = v.logs.flatMap(l => [
    h('h2', `${l.app}  ${counted(l.procs, 'process')}  ${l.start.slice(0, 19)}Z`),
    l.main ? h('p', h('strong', 'main cause: '), l.main.text) : null,
    .../** @type {const} */ (['read', 'write']).map(op => (l[op] ? direction(op, l[op]) : h('p.dim', `no ${op}s`))),
  ]);
  const back = v.forwarders?.length
    ? [h('p', 'forwarders: ', ...v.forwarders.flatMap(f => [h('a', { href: `/forwarders/${f}` }, f), ' ']))]
    : [];
  title.after(...back, ...parts.filter(Boolean));
  const rows = () => [
    ['LOG', 'OPERATION', 'FILE', 'FROM s', 'TO s', 'EXCLUSIVE s'],
    ...v.logs.flatMap(l =>
      ['read', 'write'].flatMap(op =>
        (l[op]?.critical ?? []).map(c => [l.app, op, c.name, c.start, c.end, c.exclusive]),
      ),
    ),
  ];
  Object.assign(
    page.keys,
    exportKeys(app, `why-${id}`, rows, () => page.el),
  );
  return page;
}

/** @param {string} op @param {any} a */
function direction(op, a) {
  const first = a.critical[0],
    table = new Table(
      [
        column('name', 'CRITICAL FILE', r => r.name),
        numeric('start', 'FROM s', r => r.start, number),
        numeric('exclusive', 'EXCLUSIVE s', r => r.exclusive, number),
        numeric('share', 'OF I/O TIME %', r => r.exclusive, null, { text: r => ratio(r.exclusive / a.io_time) }),
      ],
      { id: r => String(r.file), sort: 'exclusive', caption: `critical files of ${op}s` },
    );
  table.limit = 20;
  table.update(a.critical);
  const more = a.critical_files > 20 ? h('p.dim', `the longest 20 of ${a.critical_files} critical files`) : null;
  return h(
    'section',
    h('h2', `${op}s: ${size(a.bytes)} in ${number(a.io_time)} s of I/O, ${size(a.bandwidth)}/s`),
    first ? strip(a) : null,
    h('ul.verdict', ...a.reasons.map(r => h(r.cause ? 'li.cause' : 'li', r.text, advice(r)))),
    table.el,
    more,
  );
}

/** What helps against a cause; null where nothing is known. @param {any} r */
function advice(r) {
  if (!r.remedy) return null;
  const gain = r.gain_seconds ? ` (saves at most ${number(r.gain_seconds)} s)` : '';
  return h('p.dim', `Try ${r.remedy}${gain}.`);
}

/** The critical path: a block for each critical file's piece, blank where nothing was read or written.
 * @param {any} a */
function strip(a) {
  const W = 1000,
    from = a.critical[0].start,
    last = Math.max(...a.critical.map(c => c.end)),
    scale = W / Math.max(1e-9, last - from);
  const blocks = a.critical.map((c, i) =>
    s('rect', {
      x: (c.start - from) * scale,
      width: Math.max(0.5, c.exclusive * scale),
      y: 4,
      height: 40,
      class: i % 2 ? 'piece odd' : 'piece',
      title: `${c.name}: ${number(c.exclusive)} s from ${number(c.start)} s`,
    }),
  );
  const title =
    `critical path of ${counted(a.critical.length, 'file')} from ${number(from)} to ${number(last)} s; the files ` +
    'stand in the table below';
  return alongTime(title, blocks, `${number(from)} s`, `${number(last)} s`);
}
