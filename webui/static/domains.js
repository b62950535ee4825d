// How the file that several processes of a job wrote could be divided among its I/O aggregators: what
// each method costs in locks, which one is advised, and the hints that say so to MPI-IO.
import { h, pairs, s } from './h.js?v=__V__';
import { get } from './api.js?v=__V__';
import { counted, missing, pathTo, volume } from './format.js?v=__V__';
import { Table, column, numeric, plain } from './table.js?v=__V__';
import { hues } from './parallel.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';

const fields = /** @type {const} */ ([
  ['servers', 'servers'],
  ['stripe_size', 'stripe size, bytes'],
  ['aggregators', 'aggregators'],
]);
const shownServers = 64,
  shownStripes = 96;

/** @param {number[]} v */
const total = v => v.reduce((sum, n) => sum + n, 0);

/** @param {import('./app.js').App} app @param {string} id @param {URLSearchParams} q
 * @returns {Promise<import('./app.js').Page>} */
export async function domainsPage(app, id, q) {
  const path = pathTo('jobs', id);
  const asked = new URLSearchParams([...q].filter(([k]) => k === 'file' || fields.some(([name]) => name === k)));
  const v = await get(`/api/v1${path}/domains?${asked}`);
  const inputs = fields.map(([name, text]) =>
    h('input', {
      type: 'number',
      min: 1,
      name,
      'aria-label': text,
      value: asked.get(name) ?? null,
      placeholder: String(v.case?.[name] ?? ''),
    }),
  );
  const to = (file, given) => {
    const a = new URLSearchParams(given.filter(i => i.value).map(i => [i.name, i.value]));
    if (file) a.set('file', String(file));
    app.go(`${path}/domains${a.size ? `?${a}` : ''}`);
  };
  const form = h(
    'form.field',
    { submit: () => to(v.file, inputs) },
    ...inputs.map((i, k) => h('label', `${fields[k][1]} `, i)),
    h('button', { type: 'submit' }, 'compare'),
  );
  const files = fileTable(v),
    methods = methodTable(v),
    servers = serverTable(v),
    picture = v.case ? stripes(v) : null;
  const job = h(
    'p',
    h('a', { href: path }, `job ${id} (enter)`),
    '  ',
    h('a', { href: `${path}/why` }, 'why its I/O takes as long as it does (w)'),
  );
  const el = h(
    'div',
    h('h1', `File domains of job ${id}`),
    job,
    ...(v.files.length ? about(v) : nothing()),
    ...(v.files.length > 1
      ? [
          h('h2', `Shared files, ${v.files.length}${v.left ? ` of ${v.files.length + v.left}` : ''} (m: the next one)`),
          files.el,
        ]
      : []),
    ...(v.files.length ? [h('h2', 'Other numbers (e); nothing is changed anywhere'), form] : []),
    ...(picture
      ? [
          h('h2', 'Methods side by side'),
          methods.el,
          h(
            'p.dim',
            'A conflict: the next stripe of a server has another writer than the one before; a lock for each ' +
              'stripe that a request touches. An estimate: real lock managers grow and merge their locks.',
          ),
          h('h2', `Stripes ${picture.first} to ${picture.first + picture.count - 1} by writer`),
          h('div.scroll', /** @type {any} */ (picture.svg)),
          h('p.dim', 'A letter a writer, in turn; / where the domains of two writers meet inside one stripe.'),
          h('h2', 'Conflicts / locks of each server'),
          servers.el,
          v.case.servers > shownServers
            ? h('p.dim', `the first ${shownServers} of ${v.case.servers} servers; E exports all of them`)
            : '',
          h(
            'p.dim',
            'The same on a command line: fairway filedomain CASE.json with ',
            h('code', JSON.stringify(v.case)),
          ),
        ]
      : []),
  );
  files.onPick(r => to(r.at, []));
  return {
    title: `file domains ${id}`,
    el,
    timeless: true,
    keys: {
      Enter: ['the job', () => app.go(path)],
      b: ['', () => app.go(path)],
      w: ['why', () => app.go(`${path}/why`)],
      m: [
        'next file',
        () =>
          v.files.length > 1 ? to((v.file + 1) % v.files.length, []) : app.note('The job has no other shared file.'),
      ],
      e: ['servers, stripes', () => inputs[0].focus()],
      ...exportKeys(
        app,
        `domains-${id}`,
        () => [
          ['METHOD', 'SERVER', 'CONFLICTS', 'LOCKS'],
          ...v.methods.flatMap(m => m.conflicts.map((n, i) => [m.method, i, n, m.lock_requests[i]])),
        ],
        () => picture?.svg ?? null,
      ),
    },
  };
}

/** Nothing is shared. */
const nothing = () => [
  h(
    'p.empty',
    'No file of this job was written by several processes, as far as its logs and its profile show: nothing to ' +
      'divide. Counters of nodes cannot distinguish one shared file from many: fairway import PATH, on the ' +
      "daemon's host, reads the job's Darshan log.",
  ),
];

/** The chosen file and what is advised. @param {any} v @returns {HTMLElement[]} */
function about(v) {
  const f = v.files[v.file];
  /** @type {[string, string|Node][]} */
  const lines = [
    ['file', f.name || missing],
    ['written', `${volume(f.bytes)} by ${counted(f.procs, 'process')} of ${f.app || missing}, through ${f.through}`],
  ];
  if (v.problem) lines.push(['missing', v.problem]);
  else lines.push(['assumed', v.assumed.join('; ')], ['advice', h('span.strong', v.advice.why)]);
  const facts = h('dl.facts', ...pairs(lines));
  if (v.problem) return [facts, h('p.empty', 'Write the number of servers below and press Enter.')];
  const hints = Object.keys(v.advice.hints)
    .sort()
    .map(k => h('tr', h('td', k), h('td.num', v.advice.hints[k]), h('td.wrap', v.advice.effects[k])));
  return [
    facts,
    v.caveat ? h('p.check.amber', v.caveat) : h('span'),
    h('h2', 'Hints to set (MPI_Info)'),
    plain('advised hints', ['HINT', '#VALUE', 'WHAT IT CHANGES'], hints),
  ];
}

function fileTable(v) {
  const t = new Table(
    [
      column('name', 'FILE', r => r.name || missing, { wrap: true }),
      numeric('bytes', 'WRITTEN', r => r.bytes, volume),
      numeric('procs', 'PROCS', r => r.procs, String),
      column('through', 'THROUGH', r => r.through),
      numeric('servers', 'SERVERS', r => r.servers, String),
      numeric('stripe', 'STRIPE', r => r.stripe_size, String),
    ],
    { id: r => String(r.at), fixed: true, caption: 'files that several processes wrote' },
  );
  t.selected = String(v.file);
  t.update(v.files.map((f, at) => ({ ...f, at })));
  return t;
}

function methodTable(v) {
  const count = (name, head, value, title) => numeric(name, head, value, String, { title });
  const t = new Table(
    [
      column('method', 'METHOD', r => r.method + (r.method === v.advice?.method ? ' *' : '')),
      count('conflicts', 'CONFLICTS', r => total(r.conflicts), 'over all servers'),
      count('worst', 'ON ONE SERVER', r => Math.max(...r.conflicts), 'conflicts of the worst server'),
      count('locks', 'LOCKS', r => total(r.lock_requests), 'over all servers'),
      count('worstlocks', 'ON ONE SERVER', r => Math.max(...r.lock_requests), 'locks of the busiest server'),
      count('requests', 'REQUESTS', r => r.requests, 'byte ranges written'),
      count('writers', 'WRITERS', r => r.aggregators_used, 'aggregators with work'),
    ],
    { id: r => r.method, fixed: true, caption: 'methods of dividing the file; * is advised' },
  );
  t.selected = v.advice?.method ?? '';
  t.update(v.methods);
  return t;
}

function serverTable(v) {
  const t = new Table(
    [
      column('server', 'SERVER', r => String(r)),
      ...v.methods.map(m => column(m.method, m.method, r => `${m.conflicts[r]}/${m.lock_requests[r]}`, { num: true })),
    ],
    { id: r => String(r), fixed: true, caption: 'conflicts and locks of each server' },
  );
  t.update([...Array(Math.min(v.case?.servers ?? 0, shownServers)).keys()]);
  return t;
}

/** The hue that black letters cannot be read on. */
const darkest = '#0072b2';
const W = 1080,
  LEFT = 110,
  ROW = 20;

const centred = { 'text-anchor': 'middle', class: 'on' };

/** Who writes which stripe, around the first place where the even division changes writers. @param {any} v */
function stripes(v) {
  const count = Math.min(v.window.stripes, shownStripes),
    from = Math.max(0, Math.min(v.window.cut - Math.floor(count / 2), v.window.stripes - count)),
    wide = (W - LEFT) / Math.max(count, 24);
  const rows = v.methods.flatMap((m, i) => [
    s(
      'text',
      { x: LEFT - 8, y: i * ROW + 14, 'text-anchor': 'end', class: m.method === v.advice.method ? 'head' : '' },
      m.method,
    ),
    ...m.owners.slice(from, from + count).flatMap((own, k) => {
      const x = LEFT + k * wide,
        fill = hues[own[0] % hues.length];
      return [
        s('rect', {
          x,
          y: i * ROW + 1,
          width: wide - 1,
          height: ROW - 3,
          fill,
          title: `${m.method}: stripe ${v.window.first + from + k} is written by ${own.join(', then ')}`,
        }),
        s(
          'text',
          { ...centred, x: x + (wide - 1) / 2, y: i * ROW + 14, fill: fill === darkest ? '#fff' : null },
          own.length > 1 ? '/' : String.fromCharCode(97 + (own[0] % 26)),
        ),
      ];
    }),
  ]);
  return {
    first: v.window.first + from,
    count,
    svg: s(
      'svg',
      {
        class: 'stripes',
        viewBox: `0 0 ${W} ${v.methods.length * ROW}`,
        role: 'img',
        title: `stripes by writer under ${v.methods.length} methods; what they cost stands in the tables`,
      },
      ...rows,
    ),
  };
}
