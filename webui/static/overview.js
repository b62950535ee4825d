// The overview: every forwarder as a cell, the hottest ones, and what needs a person; or one
// table; or the grid of all compute nodes.
import { h, setText } from './h.js?v=__V__';
import { counted, mega, millis, number, ratio, sum, times } from './format.js?v=__V__';
import { isOpen } from './app.js?v=__V__';
import { FAILED, digit, drawNoted, levelOf, mark, metrics, placeOf, rank, standing } from './levels.js?v=__V__';
import { GridView, rampCanvas } from './grid.js?v=__V__';
import { Table, addressWith, column, numeric, plain, rowKeys, sortKeys } from './table.js?v=__V__';
import { Needs, chosenPlan } from './needs.js?v=__V__';
import { Strip } from './strip.js?v=__V__';
import { Waits } from './sparks.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { listed, moved, rates } from './metrics.js?v=__V__';

/** @type {import('./table.js').Column[]} */
export const columns = [
  column('node', 'NODE', r => r.id + mark(r)),
  column('state', 'STATE', r => standing(r.state, r.busy)),
  numeric('occ', 'OCC', r => r.occupancy, ratio, { title: 'share of the last hour near peak, %' }),
  ...listed,
  numeric('clients', 'CLIENTS', r => r.clients, String),
  column('job', 'TOP JOB', topJob, { value: r => r.top_job }),
  column('rack', 'RACK', r => r.rack || '-'),
];
/** Cells' signs, each with what it means. */
const signs =
  '. idle, ! slow, ?! suspect, x drained, d dedicated, > plan waits, ? silent, - not known, N note by a person';
const hottest = ['node', 'slow', 'latency', 'ms', 'moved', 'queue', 'occ', 'waits', 'job'];

/** @param {any} r */
function topJob(r) {
  const share = r.top_job_share ?? null;
  return r.top_job ? r.top_job + (share === null ? '' : ` (${ratio(share)}%)`) : '-';
}

/** How many times as long as its peers, as both faces write it (console/chart Times). @param {any} r */
function slower(r) {
  if (r.slow === null || r.slow === undefined) return r.state === 'idle' ? 'idle' : '-';
  return r.slow < 1.5 ? '1x' : times(r.slow);
}
/** @type {import('./table.js').Column[]} */
const slowness = [
  numeric('slow', 'SLOW 10s', r => rank(r), null, {
    title:
      'how many times as long operations took as on its peers in the last 10 s; confirmed first. ' +
      "A finding's sentence is of more seconds",
    text: slower,
  }),
  numeric('ms', 'ms', r => r.latency_seconds, millis, { title: 'time that an operation took its clients, last 10 s' }),
  numeric('moved', 'MB/s', moved, mega),
];

/** The one line above the grid; the terminal says the same. @param {any} o */
export function summary(o) {
  const n = s => o.forwarders.filter(r => r.state === s).length;
  const parts = [
    ['busy', n('ok') + n('dedicated')],
    ['idle', n('idle')],
    ...[...FAILED, 'suspect', 'trial', 'drained', 'silent', 'unknown'].map(s => [s, n(s)]),
  ]
    .filter(([w, k]) => k || w === 'busy')
    .map(([w, k]) => `${k} ${w}`);
  let bytes = null,
    peak = 0;
  for (const r of o.forwarders) {
    bytes = sum(bytes, moved(r));
    peak += r.peak_bytes_per_sec || 0;
  }
  const [unit, scale] = Math.max(bytes ?? 0, peak) < 1e10 ? ['MB/s', 1e6] : ['GB/s', 1e9]; // as the terminal chooses
  const now = bytes === null ? '-' : number(bytes / scale);
  return [
    `${counted(o.forwarders.length, 'forwarder')}: ${parts.join(' ')}`,
    o.jobs === undefined || o.jobs === null ? '' : counted(o.jobs, 'job'),
    `${now}${peak ? ` of ${number(peak / scale)}` : ''} ${unit}`,
  ].filter(Boolean);
}

/** @param {import('./app.js').App} app @param {URLSearchParams} q
 * @returns {import('./app.js').Page|Promise<import('./app.js').Page>} */
export function overviewPage(app, q) {
  const view = q.get('view') ?? '';
  if (view === 'compute') return import('./compute.js?v=__V__').then(m => m.computePage(app, q));
  if (view === 'flow') return import('./flow.js?v=__V__').then(m => m.flowPage(app, q));
  if (view === 'matrix') return import('./flow.js?v=__V__').then(m => m.matrixPage(app, q));
  return forwardersPage(app, q, view === 'table');
}

/** The keys that move in a grid. @param {(by: number) => void} move @param {() => number} cols
 * @returns {Record<string, [string, () => void]>} */
export function cellKeys(move, cols) {
  const left = () => move(-1),
    right = () => move(1);
  return {
    ...rowKeys(step => move(step * cols())),
    ArrowLeft: ['', left],
    h: ['', left],
    ArrowRight: ['', right],
    l: ['', right],
  };
}

/** @param {import('./app.js').App} app @param {URLSearchParams} q @param {boolean} asTable
 * @returns {import('./app.js').Page} */
function forwardersPage(app, q, asTable) {
  let m = placeOf(metrics, q.get('metric') ?? 'slow');
  let cursor = q.get('sel') ?? '';
  /** @type {any} */
  let o = null;
  const line = h('p.summary', { id: 'summary' }),
    legend = h('div.legend');
  const empty = h(
    'p.empty',
    'Waiting for the first second from the server. If none comes, look whether fairwayd runs: fairway doctor says ' +
      'what to fix.',
  );
  const reader = h('div.sr', { 'aria-live': 'polite' });
  const grid = new GridView({
    label: 'forwarders, one cell each; the selected one is in the table below',
    pick: i => select(o.forwarders[i].id),
    open: i => app.go(`/forwarders/${o.forwarders[i].id}`),
    tip: i => {
      const r = o.forwarders[i];
      return `${r.id}  ${standing(r.state, r.busy)}  ${rates(r)} MB/s`;
    },
  });
  const waits = new Waits(),
    needs = new Needs(app),
    strip = new Strip(waits, app);
  /** Jobs that wait, by forwarder, as the needs have them. @type {Map<string, string>} */
  let waiting = new Map();
  /** Findings that a person wrote about, by node. @type {Map<string, any>} */
  let noted = new Map();
  const [node, ...further] = columns,
    name = { ...node, draw: (cell, r) => drawNoted(cell, node.text(r), noted.get(r.id)) };
  /** @type {import('./table.js').Column[]} */
  const all = [
    name,
    ...further,
    ...slowness,
    column('latency', "LATENCY, 5 min, peers' band", () => '', {
      fill: true,
      draw: (cell, r) => waits.draw(cell, r),
      value: r => r.latency_seconds,
    }),
    column('waits', 'JOBS THAT WAIT', r => waiting.get(r.id) ?? ''),
  ];
  /** @type {import('./table.js').Column[]} */
  const front = hottest.map(n => ({
    .../** @type {import('./table.js').Column} */ (all.find(c => c.name === n)),
    wide: ['moved', 'queue', 'occ', 'job', 'ms'].includes(n),
    wrap: n === 'waits' ? 'phone' : undefined,
  }));
  const table = new Table(asTable ? [name, ...slowness, ...further] : front, {
    id: r => r.id,
    go: r => `/forwarders/${r.id}`,
    sort: asTable ? '-node' : 'slow',
    tie: r => moved(r) ?? 0,
    keep: { name: asTable ? 'forwarders' : 'overview', q },
    caption: asTable ? 'forwarders' : 'the hottest forwarders',
  });
  if (!asTable) table.limit = 20;
  const filter = table.filterBox('filter by name, state, job, rack', true);
  const el = asTable
    ? h('div', h('h1.sr', 'All forwarders'), line, empty, filter.el, table.el, reader)
    : h(
        'div',
        h('h1.sr', 'Overview'),
        line,
        empty,
        needs.story,
        strip.el,
        h(
          'div.cols',
          h(
            'div',
            needs.el,
            h('section.card.slowest', { 'aria-label': 'hottest' }, h('h2', 'Slowest first'), filter.el, table.el),
          ),
          h('section.card', { 'aria-label': 'map' }, h('h2', 'Forwarders'), grid.el, legend),
        ),
        reader,
      );

  function remember() {
    app.go(addressWith({ metric: metrics[m].name === 'slow' ? '' : metrics[m].name, sel: cursor }), true);
  }

  /** @param {string} id */
  function select(id) {
    cursor = id;
    table.select(id);
    remember();
    draw();
    const r = o.forwarders.find(x => x.id === id);
    if (r)
      reader.replaceChildren(
        plain(
          `selected forwarder ${id}`,
          columns.map(c => c.head),
          [h('tr', ...columns.map(c => h('td', c.text(r))))],
        ),
      );
  }

  function drawLine() {
    const texts = [...summary(o), ...(asTable ? [] : [`colour: ${metrics[m].title}${app.hint('m')}`])];
    while (line.children.length > texts.length) line.lastChild?.remove();
    texts.forEach((text, i) => setText(line.children[i] ?? line.appendChild(h('span')), text));
  }

  /** @param {number} [width] */
  function draw(width = el.clientWidth) {
    if (!o || asTable) return;
    grid.layout(o.forwarders.length, Math.max(280, grid.el.clientWidth || width / 2), 0, false);
    grid.draw(
      {
        levels: Int8Array.from(o.forwarders, r => levelOf(r, m)),
        digits: o.forwarders.map(r => digit(r, m)),
        marks: o.forwarders.map(r => mark(r, chosenPlan(o)).slice(-1)),
      },
      o.forwarders.findIndex(r => r.id === here()),
    );
    grid.canvas.dataset.redrawMs = grid.took.toFixed(2);
  }

  /** The jobs that wait, beside the forwarder that they wait for. */
  function nameWaiting() {
    waiting = new Map();
    for (const n of o.needs ?? [])
      if (n.node && n.victims.length)
        waiting.set(
          n.node,
          n.victims
            .filter(v => v.share >= 0.005)
            .map((v, i, all) =>
              i < 2 ? `${v.app || v.job} ${(100 * v.share).toFixed(0)} %` : `${all.length - 2} more`,
            )
            .slice(0, 3)
            .join(', '),
        );
  }

  /** @param {number} step */
  function move(step) {
    if (!o?.forwarders.length) return;
    if (asTable) return select(table.move(step > 0 ? 1 : -1)?.id ?? '');
    const at = o.forwarders.findIndex(r => r.id === here()) + step;
    if (at >= 0 && at < o.forwarders.length) select(o.forwarders[at].id);
  }
  let opened = false;
  /** The past of the charts comes after the first paint. */
  function open() {
    opened = true;
    if (app.at()) return void (strip.el.hidden = true);
    requestAnimationFrame(() =>
      setTimeout(async () => {
        try {
          await waits.load();
          waits.compare(o.forwarders);
          table.update(o.forwarders);
          await strip.open();
          strip.update(o, true);
        } catch {
          opened = false; // the server is away: the next picture that comes tries again
        }
      }),
    );
  }
  /** What keys act on: as in the terminal the first of the list until another is chosen. */
  const here = () => cursor || table.current()?.id;
  const resized = () => draw(),
    themed = () => (drawLegend(), draw());
  addEventListener('resize', resized);
  addEventListener('fairway-theme', themed);
  return {
    title: 'overview',
    el,
    range: asTable ? undefined : '15m',
    update(next) {
      o = next;
      const width = el.clientWidth; // before anything changes, so that nothing has to be laid out for it
      drawLine();
      empty.hidden = o.forwarders.length > 0;
      setText(
        empty,
        "No forwarder has reported yet. Start fairway-agent on the forwarding nodes with this server's address and " +
          'a token, or list them as [[node]] in fairwayd.toml.',
      );
      table.selected = cursor;
      const stepped = !asTable && waits.add(o);
      if (stepped) waits.compare(o.forwarders);
      if (!asTable) nameWaiting();
      noted = new Map(o.findings.filter(f => f.notes && isOpen(f)).map(f => [f.node, f]));
      table.update(o.forwarders);
      if (asTable) return;
      draw(width);
      needs.update(o);
      strip.update(o, stepped);
      if (!opened) open();
      if (!legend.childElementCount) drawLegend();
    },
    keys: {
      Enter: ['open', () => here() && app.go(`/forwarders/${here()}`)],
      A: [
        'plan that waits',
        () => {
          const plan = chosenPlan(o);
          if (plan) app.go(`/plans/${plan}?act=approve`);
          else app.note('No plan waits for you.');
        },
      ],
      p: ['propose', () => here() && app.go(`/propose?from=${here()}`)],
      m: [
        'metric',
        () => {
          m = (m + 1) % metrics.length;
          remember();
          drawLegend();
          if (o) drawLine();
          draw();
        },
      ],
      ...filter.keys,
      Escape: ['', () => (table.filter ? filter.keys.Escape[1]() : app.zoomOut())],
      g: [asTable ? 'grid' : 'table', () => app.go(asTable ? '/overview' : '/overview?view=table')],
      c: ['compute nodes', () => app.go('/overview?view=compute')],
      ...sortKeys(table),
      f: ['flow', () => app.go('/overview?view=flow')],
      ...exportKeys(
        app,
        'forwarders',
        () => (asTable ? table.all() : gridRows()),
        asTable ? undefined : () => grid.canvas,
      ),
      ...cellKeys(move, () => (asTable ? 1 : grid.cols)),
    },
    past() {},
    close() {
      strip.close();
      removeEventListener('resize', resized);
      removeEventListener('fairway-theme', themed);
    },
  };
  /** The grid as numbers: every forwarder with its level as shown and what the table says of it. */
  function gridRows() {
    return [
      [...columns.map(c => c.head), metrics[m].title.toUpperCase(), 'MARK'],
      ...o.forwarders.map(r => [r.id, ...columns.slice(1).map(c => c.text(r)), digit(r, m), mark(r, chosenPlan(o))]),
    ];
  }
  function drawLegend() {
    legend.replaceChildren(
      h('div.scale', `0: ${metrics[m].least}`, rampCanvas(), `9: ${metrics[m].most}`),
      ...signs.split(', ').map(text => {
        const [sign, ...means] = text.split(' ');
        return h('span.sign', h(`b.${means[0]}`, sign), means.join(' '));
      }),
    );
  }
}
