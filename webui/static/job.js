// One job: what it does now, what was decided for it and by which rules, which way its bytes take,
// whom it meets there, and what it did when it has ended.
import { h, pairs, setText, s } from './h.js?v=__V__';
import { age, clock, counted, mega, millis, missing, number, ratio, some, sum, volume } from './format.js?v=__V__';
import { pathTo } from './format.js?v=__V__';
import { mark, standing } from './levels.js?v=__V__';
import { Table, column, moving, numeric, plain, rowKeys } from './table.js?v=__V__';
import { opener } from './lists.js?v=__V__';
import { get } from './api.js?v=__V__';
import { sharedLines } from './needs.js?v=__V__';
import { flowPicture, flowRows, everyOther } from './flow.js?v=__V__';
import { alongTime, runsPart, waited } from './runs.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { sparkline } from './sparks.js?v=__V__';
import { metricOf, valueOf } from './metrics.js?v=__V__';
import { nodesPart } from './nodes.js?v=__V__';
import { Charts, bySecond } from './charts.js?v=__V__';
import { stepOf, words } from './range.js?v=__V__';

const USUAL = '15m', // of the past that is charted
  MOST = 300; // points of a chart

/** @param {import('./app.js').App} app @param {string} id @param {boolean} [toRuns] show the runs like it first
 * @returns {Promise<import('./app.js').Page>} */
export async function jobPage(app, id, toRuns) {
  const path = encodeURIComponent(id);
  let j = await get(`/api/v1/jobs/${path}`);
  const ended = () => Date.parse(j.end ?? '') > 0;
  /** @type {any} */
  let flow = null;
  const title = h('h1'),
    which = h('p.dim'),
    facts = h('dl.facts'),
    card = h('section.card', { 'aria-label': 'decision' }),
    way = h('div'),
    did = h('div'),
    waits = h('section', { 'aria-label': 'what it waits for' });
  const rowOf = f => app.overview?.forwarders.find(r => r.id === f);
  const forwarders = new Table(
    [
      column('node', 'FORWARDER', r => r.id + (r.row ? mark(r.row) : '')),
      column('state', 'STATE', r => (r.row ? standing(r.row.state, r.row.busy) : missing)),
      numeric('nodes', 'ITS NODES', r => r.nodes, String),
      numeric('its', 'ITS MB/s', r => r.its, mega),
      numeric('all', 'ALL MB/s', r => sum(valueOf(r.row, 'read_bytes'), valueOf(r.row, 'write_bytes')), mega),
      numeric('queue', 'QUEUE', r => valueOf(r.row, 'queue_len'), number, { wide: true }),
      numeric('mdwait', 'MDms', r => valueOf(r.row, 'meta_wait'), millis, { wide: true }),
    ],
    { id: r => r.id, go: r => pathTo('forwarders', r.id), sort: 'nodes', caption: 'forwarders of its nodes' },
  );
  const neighbours = new Table(
    [
      column('job', 'NEIGHBOUR', r => r.job),
      column('on', 'MEETS IT ON', r => some(r.on, 6), { wrap: true, value: r => r.on.length }),
      moving('read', 'READ MB/s', r => r.read),
      moving('write', 'WRITE MB/s', r => r.write),
      numeric('takes', '% OF BYTES THERE', r => r.takes, ratio),
      numeric('relief', '% GONE IF THIS JOB MOVES', r => r.relief, ratio),
    ],
    { id: r => r.job, go: r => pathTo('jobs', r.job), sort: 'write', caption: 'jobs on the same forwarders' },
  );
  const noForwarder = h(
      'p.empty',
      "No forwarder of its nodes is observed. Mounts and forwarders' lists of connections show them.",
    ),
    noNeighbour = h('p.dim', 'No other job moves bytes on its forwarders now.'),
    shared = h('section', { 'aria-label': 'shared targets' });
  const here = h(
    'div',
    h('h2', 'Forwarders'),
    noForwarder,
    forwarders.el,
    h('h2', 'Neighbours'),
    noNeighbour,
    neighbours.el,
    shared,
  );
  const runs = runsPart(id);
  const usual = ended() ? 'around' : USUAL;
  let range = app.range(usual);
  if (!range.seconds) {
    // The run's own time.
    const from = Date.parse(j.start),
      to = Date.parse(j.end);
    range = { ...range, seconds: Math.max(1, Math.ceil((to - from) / 1000)), from, to, fixed: true };
  }
  const charts = await Charts.ready(
    `No series of this job is kept of ${words(range)}: its compute nodes have no agents, or it did not run then.`,
    app,
  );
  charts.span = range.seconds;
  charts.step = stepOf(range, MOST);
  const seriesOf = h('p.dim'),
    series = h('section', { 'aria-label': 'over time' }, h('h2', 'Over time'), seriesOf, charts.el);
  const about = h('section.card.about.named', title, which, facts),
    each = h('section', { 'aria-label': 'its nodes' });
  const el = h('div', about, waits, did, each, series, runs.el, way, here, card);

  /** What its nodes did together in the range. */
  async function chart() {
    const to = range.fixed ? range.to : app.now();
    charts.end = Math.floor(to / 1000);
    const from = (charts.end - range.seconds) * 1000;
    const got = await get(`/api/v1/jobs/${path}/series?from=${from}&to=${to}&step=${charts.step}s`);
    charts.series = {};
    for (const [name, points] of Object.entries(got.series))
      if (metricOf[name]) charts.series[name] = { mean: bySecond(points) };
    if (!got.of_nodes) {
      charts.empty = 'Which nodes it had is in no record, so what they did is not shown by time.';
      return charts.draw();
    }
    setText(
      seriesOf,
      (got.nodes < got.of_nodes
        ? `${got.nodes} of its ${counted(got.of_nodes, 'compute node')} together (spread evenly, sum not scaled)`
        : 'All its compute nodes together') +
        `, ${words(range)}` +
        `${charts.step > 1 ? `, a point is the mean of ${charts.step} s` : ''}. Times are the mean over its requests.`,
    );
    charts.draw();
    if (app.session.role !== 'user') each.replaceChildren(...(await nodesPart(j.nodes, charts, Date.parse(j.start))));
  }

  function draw() {
    const run = ended()
      ? `ended ${clock(j.end)} after ${age(Date.parse(j.end) - Date.parse(j.start))}`
      : `running ${age(app.now() - Date.parse(j.start))}`;
    setText(title, j.answer);
    setText(
      which,
      `job ${id}  ${j.app || missing}  user ${j.user || missing}  ${counted(j.node_count, 'node')}  ${run}`,
    );
    /** @type {[string, Node|string][]} */
    const lines = j.run_time ? [['run time', j.run_time]] : [];
    if (!ended())
      lines.push(
        [
          'now',
          `read ${mega(j.read_bytes_per_sec)}  write ${mega(j.write_bytes_per_sec)} MB/s  metadata ` +
            `${number(j.meta_ops_per_sec)} ops/s`,
        ],
        ['so far', soFar(j)],
      );
    lines.push(['waited', waited(ended() ? j.profile : j.so_far) || missing]);
    if (ended()) lines.push(['served by', (j.served_by ?? []).join(' ') || missing]);
    if (j.plans.length)
      lines.push(['plans', h('span', ...j.plans.flatMap(p => [h('a', { href: `/plans/${p}` }, p), ' ']))]);
    lines.push(
      ['why', h('a', { href: `/jobs/${path}/why` }, 'why its I/O takes as long as it does, from its logs (w)')],
      [
        'shared file',
        h('a', { href: `/jobs/${path}/domains` }, 'how it could be divided among writers, and which hints to set (d)'),
      ],
    );
    facts.replaceChildren(...pairs(lines));
    card.replaceChildren(...decision(j.decision, ended()));
    card.hidden = !card.childElementCount;
    did.replaceChildren(...(ended() ? profile(j) : []));
    waits.replaceChildren(...(ended() || !j.waits ? [] : waitsOf(j.waits)));
    here.hidden = way.hidden = ended();
    drawTables();
  }

  function drawTables() {
    const its = f => {
      const l = flow?.links.find(x => x.job === id && x.forwarder === f && x.by);
      return l ? l.read_bytes_per_sec + l.write_bytes_per_sec : null;
    };
    forwarders.update(Object.entries(j.forwarders).map(([f, nodes]) => ({ id: f, nodes, row: rowOf(f), its: its(f) })));
    noForwarder.hidden = forwarders.rows.length > 0;
    /** @type {Map<string, any>} */
    const others = new Map();
    for (const l of flow?.links ?? []) {
      if (l.job === id || !l.by || l.read_bytes_per_sec + l.write_bytes_per_sec === 0) continue;
      const o = others.get(l.job) ?? { job: l.job, on: [], read: 0, write: 0 };
      o.on.push(l.forwarder);
      o.read += l.read_bytes_per_sec;
      o.write += l.write_bytes_per_sec;
      others.set(l.job, o);
    }
    for (const n of j.neighbours ?? [])
      if (others.has(n.job)) Object.assign(others.get(n.job), { takes: n.takes, relief: n.relief });
    neighbours.update([...others.values()]);
    noNeighbour.hidden = others.size > 0;
    neighbours.el.hidden = others.size === 0;
    shared.replaceChildren(...sharedLines(j.shared));
  }

  async function load() {
    j = await get(`/api/v1/jobs/${path}`);
    // The way of its bytes names the jobs beside it, which a user may not see.
    if (!ended() && app.session.role !== 'user') {
      flow = await get(`/api/v1/flow?job=${path}&limit=2000`);
      way.replaceChildren(h('h2', 'Which way its bytes take'), flowPicture(flow, app, id));
    }
    draw();
  }
  draw();
  let turns = 0;
  await Promise.all([load(), runs.load(), chart().catch(err => app.note(err.message))]);
  requestAnimationFrame(charts.resized); // drawn before the page is shown, so that nothing moves when they come
  const rows = () => {
    const of = l => [l.job, l.forwarder, l.server ?? '', l.read_bytes_per_sec, l.write_bytes_per_sec];
    if (!ended())
      return [
        ['JOB', 'FORWARDER', 'STORAGE', 'READ bytes/s', 'WRITE bytes/s', 'ESTIMATED'],
        ...flowRows(flow).map(l => [...of(l), l.estimated ? 'yes' : 'no']),
      ];
    const phases = j.profile?.phases ?? [];
    return [
      ['AT s', 'SECONDS', 'READ BYTES', 'WRITE BYTES', 'METADATA'],
      ...phases.map(p => [p.at_seconds, p.seconds, p.read_bytes, p.write_bytes, p.meta_ops]),
    ];
  };
  const reload = async () => {
    await load();
    if (++turns % 10 === 0) await runs.load();
    if (!range.fixed && !ended() && turns % 5 === 0) await chart();
  };
  return {
    title: `job ${id}`,
    el,
    range: usual,
    close: () => charts.close(),
    update: everyOther(reload, app),
    focus: toRuns ? () => runs.el.scrollIntoView() : undefined,
    keys: {
      Enter: ['forwarder', opener(app, forwarders)],
      ...rowKeys(step => forwarders.move(step)),
      u: ['runs like it', () => app.go(`/jobs/${path}/runs`)],
      Y: ['copy the answer', () => app.copy(j.answer)],
      w: ['why', () => app.go(`/jobs/${path}/why`)],
      d: ['file domains', () => app.go(`/jobs/${path}/domains`)],
      p: [
        'propose',
        () => {
          const r = forwarders.current();
          if (r) app.go(`/propose?from=${encodeURIComponent(r.id)}&job=${path}`);
          else app.note('No forwarder of this job is observed: there would be no way back.');
        },
      ],
      ...exportKeys(app, `job-${id}`, rows, () => el),
    },
  };
}

/** What a running job has done since it is watched. @param {any} j */
function soFar(j) {
  const p = j.so_far;
  if (!p) return 'not known: none of its nodes has reported yet';
  const late = Date.parse(j.watched_since) - Date.parse(j.start);
  return (
    `${late > 60_000 ? `since ${clock(j.watched_since)} only: ` : ''}read ${volume(p.read_bytes)}, wrote ` +
    `${volume(p.write_bytes)}, ${number(p.meta_ops)} metadata operations; mode ${p.mode || missing}; ` +
    `${counted((p.phases ?? []).length, 'phase')} with I/O`
  );
}

/** What a running job waited for in the last quarter of an hour, by cause. @param {any} w */
function waitsOf(w) {
  const causes = w.causes.filter(c => c.waits.some(v => v >= 0.005));
  const row = c =>
    h(
      'tr',
      { 'data-state': c.now > 0.05 ? 'waits' : '' },
      h('th', { scope: 'row' }, c.cause),
      h('td', sparkline(c.waits, 1)),
      h('td.num', `${ratio(c.now)} % now`),
      h('td.wrap.dim', c.text),
    );
  return [
    h('h2', 'What it waits for, 15 min'),
    causes.length
      ? plain('what the job waited for, by cause', [], causes.map(row))
      : h('p.dim', 'Nothing: its operations take as long as those of the jobs beside it (last 15 min).'),
  ];
}

/** What the policy decided at the job's start, every rule that it tried. @param {any} a @param {boolean} ended */
function decision(a, ended) {
  const head = h('h2', 'Why this mapping');
  if (!a)
    return ended
      ? []
      : [
          head,
          h(
            'p.dim',
            "Not known: no policy was asked for this job since the daemon's start. The batch system asks by " +
              'fairway hook dispatch.',
          ),
        ];
  const d = a.decision;
  const text =
    `${d.action} by policy ` + `${a.policy}${d.remap ? `: ${counted(d.count, 'forwarder')}, ${d.wanted} wanted` : ''}`;
  const out = a.refused ? `not proposed: ${a.refused}` : '';
  const rules = d.reasons.map(r =>
    h(
      'tr',
      h('td', h(`span.check${r.passed ? '' : '.red'}`, r.rule)),
      h('td.num', amount(r.rule, r.value)),
      h('td.num', amount(r.rule, r.threshold)),
      h('td.wrap', r.text),
    ),
  );
  const meets = d.interference.map(n =>
    h(
      'div.check.amber',
      'job ',
      h('a', { href: pathTo('jobs', n.job) }, n.job),
      ` would disturb it: ${n.why.join(', ')}`,
    ),
  );
  const q = a.prediction,
    own = q?.own.predicted
      ? `; its runs did as the ones before ${ratio(q.own.within / q.own.predicted)} % of ` +
        `${counted(q.own.predicted, 'time')}`
      : '';
  return [
    head,
    h(
      'p.strong',
      text,
      a.plan ? '; plan ' : '',
      a.plan ? h('a', { href: `/plans/${a.plan}` }, a.plan) : '',
      a.plan ? ` is ${a.state.replaceAll('_', ' ')}` : '',
    ),
    out ? h('p', out) : '',
    ...(a.given ?? []).map(words => h('p', words)),
    plain('rules in the order tried', ['RULE', '#VALUE', '#LIMIT', 'IN WORDS'], rules),
    ...meets,
    q ? h('p.dim', `from the newest of ${counted(q.depth, 'earlier run')}${own}`) : '',
  ];
}

/** @param {string} rule @param {number} v */
const amount = (rule, v) => (rule === 'volume' ? volume(v) : Number.isInteger(v) ? String(v) : number(v));

/** What a run did that has ended. @param {any} j */
function profile(j) {
  if (j.pending) return [h('p.empty', 'Its profile is being made; this page shows it by itself.')];
  const p = j.profile;
  if (!p) return [h('p.empty', 'Nothing is known of its I/O: no collector saw its nodes.')];
  const long = (Date.parse(j.end) - Date.parse(j.start)) / 1000,
    W = 1000,
    top = Math.max(...(p.phases ?? []).map(x => (x.read_bytes + x.write_bytes) / Math.max(1, x.seconds)), 1);
  const bars = (p.phases ?? []).flatMap(x => {
    const high = (40 * (x.read_bytes + x.write_bytes)) / Math.max(1, x.seconds) / top,
      read = (high * x.read_bytes) / Math.max(1, x.read_bytes + x.write_bytes),
      at = (x.at_seconds / long) * W,
      w = Math.max(1, (x.seconds / long) * W);
    const title =
      `${age(x.seconds * 1000)} from ${age(x.at_seconds * 1000)} on: read ${volume(x.read_bytes)}, wrote ` +
      `${volume(x.write_bytes)}, ${number(x.meta_ops)} metadata operations`;
    return [
      s('rect', { class: 'piece odd', x: at, width: w, y: 44 - read, height: read, title }),
      s('rect', { class: 'piece', x: at, width: w, y: 44 - high, height: Math.max(1, high - read), title }),
    ];
  });
  return [
    h('h2', 'What it did'),
    h(
      'p',
      `read ${volume(p.read_bytes)}, wrote ${volume(p.write_bytes)}, ${number(p.meta_ops)} metadata operations; ` +
        `mode ${p.mode || missing}, ${counted(p.io_nodes, 'node')} did I/O; peak ` +
        `${mega(p.peak_bytes_per_sec)} MB/s; ${ratio(p.coverage)} % of node-seconds reported, by ${p.from}`,
    ),
    bars.length
      ? alongTime(
          `${counted(p.phases.length, 'phase')} of I/O over the run; dark writes, light reads`,
          bars,
          'start',
          age(long * 1000),
        )
      : '',
  ];
}
