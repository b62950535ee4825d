// Which way the bytes of jobs take, and how much jobs stand in each other's way; both of now.
import { h, setText, s } from './h.js?v=__V__';
import { counted, missing, number, pathTo, ratio, some } from './format.js?v=__V__';
import { get } from './api.js?v=__V__';
import { inkOn, ramp } from './levels.js?v=__V__';
import { Bands, largest, largestNames, sankey } from './sankey.js?v=__V__';
import { listPage } from './lists.js?v=__V__';
import { Table, column, moving, numeric } from './table.js?v=__V__';

const bytes = l => l.read_bytes_per_sec + l.write_bytes_per_sec;

/** @param {any[]} links @param {(l: any) => string} of @returns {Map<string, number>} */
function totals(links, of) {
  const out = new Map();
  for (const l of links) out.set(of(l), (out.get(of(l)) ?? 0) + bytes(l));
  return out;
}

/** The flow as a picture, with what is missing of it. @param {any} f @param {import('./app.js').App} app
 * @param {string} [job] the one that it is about */
export function flowPicture(f, app, job) {
  const links = f.links.filter(l => bytes(l) > 0);
  if (!links.length || (job && !links.some(l => l.job === job)))
    return h(
      'p.empty',
      job
        ? `Job ${job} moves no bytes this second. The picture begins with its next read or write.`
        : "No job moves bytes this second, or jobs are not known: mounts report them when the job's number is in " +
            'their environment, forwarders and Lustre servers by their own counters.',
    );
  const byJob = totals(links, l => l.job),
    jobName = job ? j => (j === job ? j : counted(byJob.size - 1, 'neighbour')) : largest(byJob, 12, 'jobs');
  const onForwarders = totals(links, l => l.forwarder),
    fwdName = largest(onForwarders, 20, 'forwarders'),
    atServers = totals(f.storage, l => l.server),
    serverName = largest(atServers, 20, 'servers');
  const bands = new Bands();
  const add = (col, from, to, l) =>
    bands.add({ col, from, to, key: jobName(l.job), value: bytes(l), estimated: Boolean(l.estimated) });
  for (const l of links) add(0, jobName(l.job), fwdName(l.forwarder), l);
  for (const l of f.storage) if (l.forwarder) add(1, fwdName(l.forwarder), serverName(l.server), l);
  const heads = ['job, MB/s', 'forwarder', ...(f.storage.length ? ['storage server'] : [])];
  const svg = sankey(bands.all, heads, largestNames(byJob, jobName), {
    label: `bytes of ${counted(byJob.size, 'job')} over forwarders; the same numbers stand in the table below`,
    go: (c, id) =>
      c === 0 && byJob.has(id)
        ? app.go(pathTo('jobs', id))
        : c === 1 && !id.includes(' ')
          ? app.go(`/forwarders/${id}`)
          : undefined,
  });
  const lines = [
    f.storage_unknown && `The flow stops at the forwarder: ${f.storage_unknown}.`,
    bands.all.some(b => b.estimated) &&
      'Dashed and ~ are estimated: what a job moves at a server is measured, and split over its forwarders as its ' +
        'bytes are there.',
    f.left && `Left out: ${counted(f.left, 'smaller link')}.`,
  ].filter(Boolean);
  return h('div', h('div.scroll', /** @type {any} */ (svg)), ...lines.map(t => h('p.dim', t)));
}

/** The same numbers as a table. */
export function flowTable() {
  return new Table(
    [
      column('job', 'JOB', r => r.job),
      column('forwarder', 'FORWARDER', r => r.forwarder || missing),
      column('server', 'STORAGE', r => r.server ?? missing),
      moving('read', 'READ MB/s', r => r.read_bytes_per_sec),
      moving('write', 'WRITE MB/s', r => r.write_bytes_per_sec),
      moving('all', 'ALL MB/s', bytes),
      numeric('meta', 'MD/S', r => r.meta_ops_per_sec, number, { rare: true }),
      column('by', 'COUNTED BY', r => r.by || (r.server ? 'server' : missing)),
    ],
    {
      id: r => `${r.job} ${r.forwarder} ${r.server ?? ''}`,
      go: r => (!r.kind || r.kind === 'job' ? pathTo('jobs', r.job) : '/overview?view=flow'),
      sort: 'all',
      caption: 'what jobs move over forwarders',
    },
  );
}

export const flowRows = f => [...f.links.filter(l => bytes(l) > 0), ...f.storage];

/** Reads again every other second, never twice at a time. @param {() => Promise<void>} load
 * @param {import('./app.js').App} app */
export function everyOther(load, app) {
  let busy = false,
    ticks = 0;
  return () => {
    if (busy || ++ticks % 2) return;
    busy = true;
    const done = () => (busy = false);
    load().then(done, e => (app.note(e.message), done()));
  };
}

/** The flow, or who works at one server or target. @param {import('./app.js').App} app @param {URLSearchParams} q
 * @returns {Promise<import('./app.js').Page>} */
export async function flowPage(app, q) {
  const table = flowTable(),
    of = q.get('of'),
    picture = h('div');
  table.limit = 40;
  const load = async () => {
    if (of) {
      const u = (await get(`/api/v1/nodes/${encodeURIComponent(of)}`)).uses ?? { rows: [], unknown: 'Nobody counts.' };
      const note = (u.note ?? '').replaceAll('\n', '; ');
      setText(picture, `${ratio(u.attributed)} % attributed. ${u.unknown ?? ''} ${note}`);
      return table.update(u.rows.map(r => ({ ...r, job: r.who, server: of, by: r.why || r.kind })));
    }
    const f = await get('/api/v1/flow?limit=2000');
    picture.replaceChildren(flowPicture(f, app));
    table.update(flowRows(f));
  };
  await load();
  return listPage(app, 'flow', table, [picture], {
    heading: of ? `Who works at ${of}, now` : 'Flow of jobs over forwarders to storage, now',
    picture: () => picture,
    update: everyOther(load, app),
    keys: { f: ['interference', () => app.go('/overview?view=matrix')], g: ['grid', () => app.go('/overview')] },
  });
}

const CELL = 20,
  SIDE = 84;

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function matrixPage(app, q) {
  const share = q.get('metric') === 'share',
    picture = h('div'),
    line = h('p.dim');
  const value = c => (share ? c.share : c.pressure);
  const table = new Table(
    [
      column('job', 'JOB', r => r.job),
      column('by', 'MEETS', r => r.by),
      numeric('pressure', 'PRESSURE %', r => r.pressure, ratio, {
        title: 'bytes of the other as a part of the peak of the forwarders that the job uses',
      }),
      numeric('share', 'SHARE %', r => r.share, ratio, {
        title: 'part of the other in the bytes of the forwarders that the job uses',
      }),
      column('on', 'ON', r => some(r.forwarders, 6), { wrap: true, value: r => r.forwarders.length }),
      column('finding', 'FINDING', r => r.finding ?? ''),
    ],
    {
      id: r => `${r.job} ${r.by}`,
      go: r => (r.finding ? pathTo('findings', r.finding) : pathTo('jobs', r.job)),
      sort: share ? 'share' : 'pressure',
      caption: 'pairs of jobs on the same forwarders',
    },
  );
  table.limit = 30;
  const alone = h('p.dim', { hidden: true }, 'No two jobs use the same forwarder in this second.');
  const load = async () => {
    const m = await get('/api/v1/interference');
    table.update(m.cells.filter(c => c.job !== c.by));
    alone.hidden = !m.jobs.length || table.rows.length > 0;
    setText(
      line,
      [
        m.jobs.length
          ? 'A row is a job, a column one that it meets on its forwarders; digits are tenths, . is below a ' +
            "hundredth. ! a finding blames the column's job there."
          : '',
        m.left ? `Left out: ${counted(m.left, 'job')} with fewer bytes.` : '',
        m.no_peak.length
          ? `Counted in no pressure because their peak is not known: ${counted(m.no_peak.length, 'forwarder')}. ` +
            `Set peak_bytes_per_sec in fairwayd.toml.`
          : '',
      ]
        .filter(Boolean)
        .join(' '),
    );
    picture.replaceChildren(
      m.jobs.length
        ? h('div.scroll', /** @type {any} */ (matrix(m, value)))
        : h('p.empty', "No job moves bytes this second, so none stands in another's way. The matrix fills by itself."),
    );
  };
  await load();
  const name = share ? 'share of the bytes' : 'pressure: bytes as a part of the peak';
  return listPage(app, 'interference', table, [line, picture, h('h2', 'Pairs'), alone], {
    heading: `Interference of jobs, ${name}, now`,
    picture: () => picture,
    update: everyOther(load, app),
    keys: {
      m: ['share, pressure', () => app.go(`/overview?view=matrix${share ? '' : '&metric=share'}`)],
      f: ['flow', () => app.go('/overview?view=flow')],
      g: ['grid', () => app.go('/overview')],
    },
  });
}

/** @param {any} m @param {(c: any) => number|null} value */
function matrix(m, value) {
  const at = new Map(m.jobs.map((j, i) => [j, i])),
    n = m.jobs.length,
    colours = ramp();
  const cells = m.cells.map(c => {
    const i = at.get(c.job),
      k = at.get(c.by),
      v = value(c),
      lev = v === null || v === undefined || v < 0.01 ? -1 : Math.min(9, Math.floor(v * 10)),
      x = SIDE + k * CELL,
      y = SIDE + i * CELL;
    const digit = lev >= 0 ? String(lev) : v === null || v === undefined ? '-' : '.';
    return s(
      'g',
      {},
      s('rect', {
        x,
        y,
        width: CELL - 1,
        height: CELL - 1,
        fill: lev >= 0 ? `rgb(${colours[lev].join()})` : 'none',
        class: i === k ? 'self' : 'pair',
        title:
          `${c.job} meets ${c.by} on ${c.forwarders.slice(0, 8).join(' ')}: pressure ${ratio(c.pressure)} %, share ` +
          `${ratio(c.share)} %${c.finding ? `, ${c.finding}` : ''}`,
      }),
      s(
        'text',
        {
          x: x + CELL / 2 - 0.5,
          y: y + CELL / 2 + 4,
          'text-anchor': 'middle',
          ...(lev >= 0 ? { fill: inkOn(colours[lev]), class: 'on' } : {}),
        },
        c.finding ? `${digit}!` : digit,
      ),
    );
  });
  return s(
    'svg',
    { class: 'matrix', width: SIDE + n * CELL + 20, height: SIDE + n * CELL + 4, role: 'img' },
    s('title', {}, `interference of ${counted(n, 'job')}; the pairs stand in the table below`),
    ...m.jobs.flatMap((j, i) => [
      s('text', { x: SIDE - 6, y: SIDE + i * CELL + 14, 'text-anchor': 'end' }, j),
      s('text', { transform: `translate(${SIDE + i * CELL + 14} ${SIDE - 6}) rotate(-60)` }, j),
    ]),
    ...cells,
  );
}
