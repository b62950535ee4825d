// What if: the share of every running job under a sharing policy, and the pattern that staggers
// periodic applications, as a Gantt chart above the bandwidth they use together.
import { h, s } from './h.js?v=__V__';
import { get } from './api.js?v=__V__';
import { hues } from './parallel.js?v=__V__';
import { counted, number, pathTo, ratio } from './format.js?v=__V__';
import { Table, column, numeric, plain } from './table.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';

const policies = ['size-fair', 'job-fair', 'user-fair', 'user-size-fair', 'group-user-size-fair'];
/** Set 3 of the paper's Table 4 (Aupy et al., Periodic I/O scheduling for super-computers). */
const example = {
  procs: 640,
  b: 0.01,
  B: 3,
  kprime: 2,
  eps: 0.01,
  apps: [
    ...[1, 2, 3, 4, 5, 6].map(i => ({ name: `Turbulence2-${i}`, w: 76.8, vol: 235.8, beta: 64 })),
    ...[1, 2].map(i => ({ name: `AstroPhysics-${i}`, w: 15360, vol: 423.4, beta: 128 })),
  ],
};

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function whatIfPage(app, q) {
  const policy = q.get('policy') ?? policies[0],
    forwarder = q.get('forwarder') ?? '';
  const where = forwarder ? `&forwarder=${encodeURIComponent(forwarder)}` : '';
  const shares = await get(`/api/v1/shares?policy=${encodeURIComponent(policy)}${where}`);
  const set = h('textarea', { rows: 8, spellcheck: 'false', 'aria-label': 'processors, bandwidths and applications' });
  set.value = q.get('set') ?? lines(example);
  const chart = h('div.pattern'),
    isExample = h('p.strong', 'An example, not this machine: change it, or take the running jobs.');
  const draw = async () => {
    isExample.hidden = set.value !== lines(example);
    chart.replaceChildren(h('p.dim', 'looking for a pattern'));
    try {
      chart.replaceChildren(...pattern(await get(`/api/v1/periodic?set=${encodeURIComponent(set.value)}`)));
    } catch (err) {
      chart.replaceChildren(h('p.error', { role: 'alert' }, /** @type {Error} */ (err).message));
    }
  };
  const found = h('div.dim');
  const ofRunning = async () => {
    const v = await get('/api/v1/windows');
    const row = j =>
      `${j.job}, ${j.app} of ${j.user} on ${counted(j.nodes, 'node')}: ` +
      (j.cycle
        ? `every ${number(j.cycle.period_seconds)} s, by ${j.cycle.from}, confidence ${ratio(j.cycle.confidence)}`
        : 'not known to be periodic') +
      (j.window ? `; ${j.window.words}` : '');
    const list = h(
      'details',
      { open: v.jobs.length <= 6 },
      h('summary', `${counted(v.jobs.length, 'running job')}, ${v.in_force ? 'in force' : 'no windows are given'}`),
      h('ul', ...v.jobs.map(j => h('li', row(j)))),
    );
    found.replaceChildren(list, v.problem ? h('p.error', { role: 'alert' }, v.problem) : '');
    if (v.pattern) {
      set.value = lines(v.set);
      isExample.hidden = true;
      chart.replaceChildren(...pattern({ ...v.pattern, set: v.set, unplanned: v.unplanned }));
    }
  };
  const to = step =>
    app.go(
      `/whatif?policy=` +
        `${policies[(Math.max(0, policies.indexOf(policy)) + step + policies.length) % policies.length]}${where}`,
    );
  const el = h(
    'div',
    h('h1', `Shares under ${shares.policy}${forwarder ? ` on ${forwarder}` : ''}`),
    ...(shares.in_force?.says ?? []).map((t, i) => h(i === 1 && !shares.in_force.reachable ? 'p.error' : 'p.dim', t)),
    bars(shares.jobs, shares.in_force),
    h('h1', 'Staggered I/O'),
    h('p.dim', 'times in seconds, volumes in GB, bandwidths in GB/s; nothing is changed anywhere'),
    isExample,
    set,
    h('p', h('button', { click: draw }, 'draw'), ' ', h('button', { click: ofRunning }, 'running jobs')),
    found,
    chart,
  );
  const table = () => [
    ['JOB', 'USER', 'GROUP', weight(shares.jobs).toUpperCase(), 'SHARE %', ...parts(shares.in_force).map(([t]) => t)],
    ...shares.jobs.map(j => {
      const more = parts(shares.in_force).map(([, of]) => of(j));
      return [j.job, j.user, j.group, j[weight(shares.jobs)], (j.share * 100).toFixed(1), ...more];
    }),
  ];
  await draw();
  return {
    title: 'what if',
    el,
    timeless: true,
    keys: {
      m: ['next policy', () => to(1)],
      M: ['', () => to(-1)],
      e: ['edit set', () => set.focus()],
      r: ['draw again', draw],
      ...exportKeys(app, 'pattern', table, () => chart),
      ...exportKeys(app, 'shares', table),
    },
  };
}

/** What the policy goes by. @param {any[]} jobs */
const weight = jobs => (jobs[0]?.priority ? 'priority' : 'nodes');
/** A set as JSON, an application a line. @param {any} set */
const lines = set => JSON.stringify(set).replace('"apps":[', '"apps":[\n  ').replaceAll('},{', '},\n  {');

/** What queues share by now, as columns: heading, a job's value in percent, and what it means.
 * @param {any} force @returns {[string, (j: any) => string, string][]} */
const parts = force => {
  if (!force) return [];
  const of = new Map(force.jobs.map(g => [g.job, g]));
  const value = name => j => (of.has(j.job) ? (of.get(j.job)[name] * 100).toFixed(1) : '-');
  return [
    ['GLOBAL %', value('share'), 'of what all queues do, by the policy in force'],
    ['REACH %', value('reachable'), 'as far as the forwarders that the job uses allow'],
    ['GETS %', value('got'), 'of what all queues did in the last intervals'],
  ];
};

/** One bar a job, at most forty. @param {any[]} jobs @param {any} force */
function bars(jobs, force) {
  if (!jobs.length) return h('p.empty', 'No job runs here now.');
  const most = jobs[0].share,
    shown = jobs.slice(0, 40);
  const users = [...new Set(jobs.map(j => j.user))];
  const bar = j =>
    s(
      'svg',
      { class: 'bar', viewBox: '0 0 320 12', preserveAspectRatio: 'none', 'aria-hidden': true },
      s('rect', {
        class: 'share',
        width: Math.max(1, (320 * j.share) / most),
        height: 12,
        fill: hues[users.indexOf(j.user) % hues.length],
      }),
    );
  const table = new Table(
    [
      column('job', 'JOB', j => j.job, {
        draw: (cell, j) => cell.replaceChildren(h('a', { href: pathTo('jobs', j.job) }, j.job)),
      }),
      column('user', 'USER', j => j.user),
      column('group', 'GROUP', j => j.group || '-'),
      numeric('weight', weight(jobs).toUpperCase(), j => j[weight(jobs)], String),
      column('share', 'SHARE %', j => (j.share * 100).toFixed(1), { num: true }),
      ...parts(force).map(([head, of, title]) => column(head, head, of, { num: true, title })),
      column('bar', '', () => '', { draw: (cell, j) => cell.replaceChildren(bar(j)) }),
    ],
    { id: j => j.job, fixed: true, caption: 'shares of the running jobs' },
  );
  table.table.className = 'shares';
  table.update(shown);
  return h(
    'div',
    table.el,
    jobs.length > shown.length
      ? h('p.dim', `and ${counted(jobs.length - shown.length, 'job')} with smaller shares`)
      : null,
  );
}

const W = 1000,
  row = 18,
  gap = 24,
  tall = 120,
  LETTER = 6.7; // of the picture's text

/** @param {any} v @returns {HTMLElement[]} */
function pattern(v) {
  // A name keeps what distinguishes it from the others: its beginning and its end.
  const short = t => (t.length > 36 ? `${t.slice(0, 20)}..${t.slice(-14)}` : t);
  const left = 16 + LETTER * Math.max(14, ...v.apps.map(a => short(a.name).length));
  const x = t => left + ((W - left) * t) / v.T;
  const rows = v.apps.flatMap((a, i) => {
    const app = v.set.apps[i],
      most = Math.min(app.beta * v.set.b, v.set.B),
      y = i * row,
      hue = hues[i % hues.length];
    return [
      s('text', { x: left - 6, y: y + row - 5, 'text-anchor': 'end' }, short(a.name), s('title', {}, a.name)),
      ...a.instances.flatMap(n =>
        spans(n.init_w, app.w, v.T).map(([from, to]) =>
          s('rect', { class: 'work', x: x(from), y: y + row / 2 - 1, width: x(to) - x(from), height: 2, fill: hue }),
        ),
      ),
      ...a.instances.flatMap(n =>
        n.io.map(([from, to, bw]) =>
          s('rect', {
            class: 'io',
            x: x(from),
            y: y + (row - 2) * (1 - bw / most),
            width: Math.max(0.5, x(to) - x(from)),
            height: ((row - 2) * bw) / most,
            fill: hue,
            title: `${a.name}: ${bw.toFixed(3)} GB/s from ${from.toFixed(1)} to ${to.toFixed(1)} s`,
          }),
        ),
      ),
    ];
  });
  const top = v.apps.length * row + gap,
    y = bw => top + tall * (1 - bw / v.set.B);
  let used = '',
    bw = 0;
  for (const [t, change] of changes(v)) {
    used += `${used ? 'L' : 'M'}${x(t).toFixed(1)} ${y(bw).toFixed(1)}`;
    bw += change;
    used += `L${x(t).toFixed(1)} ${y(bw).toFixed(1)}`;
  }
  const svg = s(
    'svg',
    {
      class: 'gantt',
      viewBox: `0 0 ${W} ${top + tall + 20}`,
      role: 'img',
      'aria-label': `I/O of ${counted(v.apps.length, 'application')} over ${v.T.toFixed(0)} seconds`,
    },
    ...rows,
    s('line', { class: 'cap', x1: left, x2: W, y1: y(v.set.B), y2: y(v.set.B) }),
    s('text', { x: left - 6, y: y(v.set.B) + 4, 'text-anchor': 'end' }, `B = ${v.set.B} GB/s`),
    s('path', { class: 'used', d: used }),
    s('text', { x: left, y: top + tall + 16 }, '0 s'),
    s('text', { x: W, y: top + tall + 16, 'text-anchor': 'end' }, `${v.T.toFixed(0)} s`),
  );
  const line = (name, u) =>
    h('tr', h('td.wrap', name), h('td.num', ratio(u.sys_efficiency)), h('td.num', number(u.dilation)));
  return [
    h('div.scroll', /** @type {any} */ (svg)),
    plain(
      'the pattern beside none',
      ['', '#SYSEFFICIENCY %', '#DILATION'],
      [line('with the pattern', v), line('bandwidth shared fairly, no plan', v.unplanned)],
    ),
    h(
      'p.dim',
      `no schedule computes more than ${ratio(v.knapsack_bound)} % of the machine here, and ` +
        `${ratio(v.upper_bound)} % if bandwidth had no end`,
    ),
  ];
}

/** A computation in the pattern, in one or two parts. @param {number} from @param {number} length @param {number} T
 * @returns {number[][]} */
function spans(from, length, T) {
  const to = from + length;
  const parts = [[from, Math.min(to, T)]];
  if (to > T) parts.push([0, to - T]);
  return parts;
}

/** When the bandwidth in use changes, and by how much, in order; one ends where the next begins. @param {any} v
 * @returns {[number, number][]} */
function changes(v) {
  const at = new Map([0, v.T].map(t => [t, 0])),
    add = (t, bw) => at.set(t, (at.get(t) ?? 0) + bw);
  for (const a of v.apps)
    for (const n of a.instances)
      for (const [from, to, bw] of n.io) {
        add(from, bw);
        add(to, -bw);
      }
  return [...at].sort((a, b) => a[0] - b[0]);
}
