// The overview: every forwarder as a cell, the hottest ones, and what needs a person; or one
// table; or the grid of all compute nodes.
import { h, setText } from './h.js?v=__V__';
import { age, clock, counted, kindWords, number, ratio, sum } from './format.js?v=__V__';
import { IDLE, UNKNOWN, computeMetrics, digit, levelOf, mark, metrics, standing } from './levels.js?v=__V__';
import { GridView, rampCanvas } from './grid.js?v=__V__';
import { Table, rowKeys } from './table.js?v=__V__';
import { exportKeys, savePNG } from './export.js?v=__V__';
import { get, getBytes } from './api.js?v=__V__';
import { calls } from './app.js?v=__V__';
import { parseGrid } from './live.js?v=__V__';
import { listed, moved, rates } from './metrics.js?v=__V__';

/** @type {import('./table.js').Column[]} */
export const columns = [
  { name: 'node', head: 'NODE', text: r => r.id + mark(r) },
  { name: 'state', head: 'STATE', text: r => standing(r.state, r.busy) },
  {
    name: 'occ',
    head: 'OCC',
    title: 'share of the last hour near peak, %',
    num: true,
    text: r => ratio(r.occupancy),
    value: r => r.occupancy,
  },
  ...listed,
  { name: 'clients', head: 'CLIENTS', num: true, text: r => String(r.clients), value: r => r.clients },
  {
    name: 'job',
    head: 'TOP JOB',
    text: r =>
      r.top_job
        ? r.top_job + (r.top_job_share === undefined || r.top_job_share === null ? '' : ` (${ratio(r.top_job_share)}%)`)
        : '-',
    value: r => r.top_job,
  },
  { name: 'rack', head: 'RACK', text: r => r.rack || '-' },
];
const hottest = ['node', 'occ', 'read', 'write', 'queue', 'mdwait', 'job'];

/** The one line above the grid; the terminal says the same. @param {any} o */
export function summary(o) {
  const n = (/** @type {string} */ s) => o.forwarders.filter((/** @type {any} */ r) => r.state === s).length;
  const parts = [
    ['busy', n('ok') + n('dedicated')],
    ['idle', n('idle')],
    ['suspect', n('suspect')],
    ['excluded', n('excluded')],
    ['stale', n('stale')],
    ['unknown', n('unknown')],
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

/**
 * @param {import('./app.js').App} app
 * @param {URLSearchParams} q
 * @returns {import('./app.js').Page|Promise<import('./app.js').Page>}
 */
export function overviewPage(app, q) {
  const view = q.get('view') ?? '';
  if (view === 'compute') return computePage(app, q);
  if (view === 'flow') return import('./flow.js?v=__V__').then(m => m.flowPage(app));
  if (view === 'matrix') return import('./flow.js?v=__V__').then(m => m.matrixPage(app, q));
  return forwardersPage(app, q, view === 'table');
}

/**
 * The keys that move in a grid.
 * @param {(by: number) => void} move
 * @param {() => number} cols
 * @returns {Record<string, [string, () => void]>}
 */
function cellKeys(move, cols) {
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

/**
 * @param {import('./app.js').App} app
 * @param {URLSearchParams} q
 * @param {boolean} asTable
 * @returns {import('./app.js').Page}
 */
function forwardersPage(app, q, asTable) {
  let m = Math.max(
    0,
    metrics.findIndex(x => x.name === (q.get('metric') ?? 'occ')),
  );
  let cursor = q.get('sel') ?? '';
  /** @type {any} */
  let o = null;
  const line = h('p.summary', { id: 'summary' }),
    legend = h('div.legend');
  const empty = h(
    'p.empty',
    null,
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
  const table = new Table(asTable ? columns : columns.filter(c => hottest.includes(c.name)), {
    id: r => r.id,
    go: r => `/forwarders/${r.id}`,
    sort: q.get('sort')?.replace(/^-/, '') || (asTable ? 'node' : 'occ'),
    reverse: (q.get('sort') ?? '').startsWith('-') || (asTable && !q.get('sort')),
    tie: r => moved(r) ?? 0,
    sorted: remember,
    caption: asTable ? 'forwarders' : 'the hottest forwarders',
  });
  table.filter = q.get('filter') ?? '';
  if (!asTable) table.limit = 20;
  const needs = h('tbody');
  const filter = /** @type {HTMLInputElement} */ (
    h('input', {
      type: 'search',
      'aria-label': 'filter the list',
      placeholder: 'filter by name, state, job, rack',
      value: table.filter,
      hidden: !table.filter,
      input: () => {
        table.filter = filter.value;
        table.update(o.forwarders);
        remember();
      },
    })
  );
  const el = asTable
    ? h('div', null, line, empty, filter, table.el, reader)
    : h(
        'div',
        null,
        line,
        empty,
        grid.el,
        legend,
        h(
          'div.cols',
          null,
          h('section', { 'aria-label': 'hottest' }, h('h2', null, 'Hottest, MB/s and ms'), filter, table.el),
          h(
            'section',
            { 'aria-label': 'needs you' },
            h('h2', null, 'Needs you'),
            h('div.scroll', null, h('table', null, needs)),
          ),
        ),
        reader,
      );

  function remember() {
    const a = new URLSearchParams();
    if (asTable) a.set('view', 'table');
    if (metrics[m].name !== 'occ') a.set('metric', metrics[m].name);
    const sort = (table.reverse ? '-' : '') + table.sort;
    if (sort !== (asTable ? '-node' : 'occ')) a.set('sort', sort);
    if (table.filter) a.set('filter', table.filter);
    if (cursor) a.set('sel', cursor);
    app.go(`/overview${a.size ? `?${a}` : ''}`, true);
  }

  /** @param {string} id */
  function select(id) {
    cursor = id;
    table.select(id);
    remember();
    draw();
    const r = o.forwarders.find((/** @type {any} */ x) => x.id === id);
    if (r)
      reader.replaceChildren(
        h(
          'table',
          null,
          h('caption', null, `selected forwarder ${id}`),
          h('tr', null, ...columns.map(c => h('th', { scope: 'col' }, c.head))),
          h('tr', null, ...columns.map(c => h('td', null, c.text(r)))),
        ),
      );
  }

  function drawLine() {
    const texts = [...summary(o), ...(asTable ? [] : [`colour: ${metrics[m].title} (m)`])];
    while (line.children.length > texts.length) line.lastChild?.remove();
    texts.forEach((text, i) => setText(line.children[i] ?? line.appendChild(h('span')), text));
  }

  /** @param {number} [width] */
  function draw(width = el.clientWidth) {
    if (!o || asTable) return;
    grid.layout(o.forwarders.length, Math.max(320, width || 1200), 0, false);
    const levels = Int8Array.from(o.forwarders, (/** @type {any} */ r) =>
      r.state === 'stale' || r.state === 'excluded' ? UNKNOWN : levelOf(r, m),
    );
    grid.draw(
      { levels, digits: o.forwarders.map((/** @type {any} */ r) => digit(r, m)), marks: o.forwarders.map(mark) },
      o.forwarders.findIndex((/** @type {any} */ r) => r.id === (cursor || o.forwarders[0]?.id)),
    );
    grid.canvas.dataset.redrawMs = grid.took.toFixed(2);
  }

  function drawNeeds() {
    const rows = [
      ...o.findings
        .filter((/** @type {any} */ f) => calls(f, app.now()))
        .map((/** @type {any} */ f) => [
          f.id,
          f.node,
          f.sentence || kindWords(f.kind),
          `conf ${f.confidence.toFixed(2)}`,
          age(app.now() - Date.parse(f.since)),
          f.state,
          `/findings/${f.id}`,
        ]),
      ...o.waiting.map((/** @type {any} */ p) => [
        p.id,
        '',
        p.title,
        '',
        age(app.now() - Date.parse(p.created)),
        'waits',
        `/plans/${p.id}`,
      ]),
    ];
    const stale = o.forwarders.filter((/** @type {any} */ r) => r.state === 'stale');
    if (stale.length)
      rows.push([
        `${stale.length} stale`,
        '',
        stale
          .slice(0, 6)
          .map((/** @type {any} */ r) => r.id)
          .join(' ') + (stale.length > 6 ? ' ...' : ''),
        '',
        '',
        Date.parse(stale[0].last_seen) > 0 ? `since ${clock(stale[0].last_seen)}` : 'never seen',
        `/forwarders/${stale[0].id}`,
      ]);
    if (!rows.length)
      return needs.replaceChildren(
        h('tr', null, h('td.dim.wrap', null, 'Nothing: no open finding, no plan waiting, no forwarder stale.')),
      );
    if (!needs.querySelector('a')) needs.replaceChildren();
    while (needs.children.length > 2 * rows.length) needs.lastChild?.remove();
    // Rows are changed in place: a link keeps the focus.
    rows.forEach(([id, node, what, conf, since, state, to], i) => {
      if (needs.children.length <= 2 * i)
        needs.append(
          h('tr', null, h('td', null, h('a')), h('td'), h('td'), h('td.num'), h('td')),
          h('tr', null, h('td.wrap', { colspan: 5 })),
        );
      const [head, text] = /** @type {HTMLElement[]} */ ([needs.children[2 * i], needs.children[2 * i + 1]]),
        link = /** @type {HTMLElement} */ (head.querySelector('a'));
      if (link.getAttribute('href') !== to) link.setAttribute('href', (head.dataset.go = text.dataset.go = to));
      setText(link, id);
      [node, conf, since, state].forEach((t, k) => setText(head.children[k + 1], t));
      setText(text.children[0], what);
    });
  }

  /** @param {number} step */
  function move(step) {
    if (!o?.forwarders.length) return;
    if (asTable) return select(table.move(step > 0 ? 1 : -1)?.id ?? '');
    const at = o.forwarders.findIndex((/** @type {any} */ r) => r.id === (cursor || o.forwarders[0].id)) + step;
    if (at >= 0 && at < o.forwarders.length) select(o.forwarders[at].id);
  }
  const here = () => cursor || (asTable ? table.current()?.id : o?.forwarders[0]?.id);
  const resized = () => draw();
  addEventListener('resize', resized);
  addEventListener('fairway-theme', resized);
  return {
    title: 'overview',
    el,
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
      table.update(o.forwarders);
      if (asTable) return;
      draw(width);
      drawNeeds();
      if (!legend.childElementCount) drawLegend();
    },
    keys: {
      Enter: ['open', () => here() && app.go(`/forwarders/${here()}`)],
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
      '/': [
        'filter',
        () => {
          filter.hidden = false;
          filter.focus();
        },
      ],
      g: [asTable ? 'grid' : 'table', () => app.go(asTable ? '/overview' : '/overview?view=table')],
      c: ['compute nodes', () => app.go('/overview?view=compute')],
      '<': ['', () => table.stepSort(-1)],
      '>': ['sort', () => table.stepSort(1)],
      r: ['reverse', () => table.sortBy(table.sort)],
      f: ['flow', () => app.go('/overview?view=flow')],
      ...exportKeys(
        'forwarders',
        () => (asTable ? table.all() : gridRows()),
        asTable ? undefined : () => savePNG('forwarders', grid.canvas),
      ),
      ...cellKeys(move, () => (asTable ? 1 : grid.cols)),
    },
    past() {},
    close() {
      removeEventListener('resize', resized);
      removeEventListener('fairway-theme', resized);
    },
  };
  /** The grid as numbers: every forwarder with its level as shown and what the table says of it. */
  function gridRows() {
    return [
      [...columns.map(c => c.head), metrics[m].title.toUpperCase(), 'MARK'],
      ...o.forwarders.map((/** @type {any} */ r) => [
        r.id,
        ...columns.slice(1).map(c => c.text(r)),
        digit(r, m),
        mark(r),
      ]),
    ];
  }
  function drawLegend() {
    legend.replaceChildren(
      h('span', null, '. idle'),
      h('span', null, '0-9 tenths of ', metrics[m].full, ' '),
      rampCanvas(),
      ...['! suspect', 'x excluded', 'd dedicated', '> plan waiting', '? stale', '- not known'].map(t =>
        h('span', null, t),
      ),
    );
  }
}

/** All compute nodes, a few pixels each. @param {import('./app.js').App} app @param {URLSearchParams} q */
function computePage(app, q) {
  const k = Math.max(
    0,
    computeMetrics.findIndex(x => x.name === (q.get('metric') ?? 'bw')),
  );
  const metric = computeMetrics[k];
  /** @type {string[]} */
  let names = [];
  let generation = -1;
  /** @type {any} */
  let frame = null;
  let cursor = 0;
  const line = h('p.summary', null, 'Waiting for the first frame of the compute nodes.'),
    legend = h('div.legend');
  const where = h('p', { 'aria-live': 'polite' });
  const grid = new GridView({
    label: 'compute nodes, one cell each',
    pick: i => {
      cursor = i;
      draw();
      report();
    },
    open: openNode,
    tip: i => `${names[i] ?? `cell ${i}`}  ${textOf(i)}`,
  });
  const el = h('div', null, line, grid.el, legend, where);
  const textOf = (/** @type {number} */ i) => {
    const c = frame?.cells[i];
    return c === undefined || c === 255 ? 'no fresh value' : c === 10 ? 'idle' : `level ${c}`;
  };
  function draw() {
    if (!frame) return;
    const cells = frame.cells,
      levels = Int8Array.from(cells, (/** @type {number} */ c) => (c < 10 ? c : c === 10 ? IDLE : UNKNOWN));
    grid.layout(cells.length, Math.max(320, el.clientWidth || 1200), Math.max(240, innerHeight - 260), true);
    grid.draw({ levels }, cursor);
    grid.canvas.dataset.redrawMs = grid.took.toFixed(2);
    grid.canvas.dataset.cells = String(cells.length);
  }
  async function openNode() {
    const n = names[cursor];
    if (!n) return;
    const node = await get(`/api/v1/nodes/${encodeURIComponent(n)}`);
    if (node.forwarder) app.go(`/forwarders/${node.forwarder}?client=${encodeURIComponent(n)}`);
    else app.note(`${n}: its forwarder is not known`);
  }
  function report() {
    setText(where, `${names[cursor] ?? ''}  ${textOf(cursor)}  (enter opens its forwarder)`);
  }
  /** @param {number} by */
  const move = by => {
    cursor = Math.max(0, Math.min((frame?.cells.length ?? 1) - 1, cursor + by));
    draw();
    report();
  };
  const resized = () => draw();
  addEventListener('resize', resized);
  addEventListener('fairway-theme', resized);
  const page = {
    title: 'compute nodes',
    el,
    topics: [`grid:${metric.name}`],
    async past() {
      const g = parseGrid(await getBytes(`/api/v1/grid?metric=${metric.name}&${app.at()}`));
      if (g) await page.grid(g);
    },
    async grid(/** @type {any} */ g) {
      if (g.metric !== k) return;
      frame = g;
      draw();
      let busy = 0,
        unknown = 0;
      for (const c of g.cells) {
        if (c < 10) busy++;
        if (c === 255) unknown++;
      }
      line.replaceChildren(
        h(
          'span',
          null,
          `${counted(g.cells.length, 'compute node')}: ${busy} busy ${g.cells.length - busy - unknown} idle ` +
            `${unknown} without a fresh value`,
        ),
        h('span', null, `colour: ${metric.title} (m)`),
      );
      if (!legend.childElementCount)
        legend.append(
          h('span', null, 'blank idle'),
          h('span', null, `0-9 tenths of ${metric.full(g.full)} `),
          rampCanvas(),
          h('span', null, 'grey: no fresh value'),
        );
      if (generation !== g.generation) {
        generation = g.generation;
        names = await get('/api/v1/nodes?role=compute&names=1');
        report();
      }
    },
    keys: {
      Enter: ['open forwarder', openNode],
      m: [
        'metric',
        () => app.go(`/overview?view=compute&metric=${computeMetrics[(k + 1) % computeMetrics.length].name}`),
      ],
      g: ['forwarders', () => app.go('/overview')],
      ...exportKeys(
        'compute',
        () => [
          ['NODE', metric.title.toUpperCase()],
          ...[...(frame?.cells ?? [])].map((/** @type {number} */ c, /** @type {number} */ i) => [
            names[i] ?? '',
            c < 10 ? c : c === 10 ? 'idle' : '',
          ]),
        ],
        () => savePNG('compute', grid.canvas),
      ),
      ...cellKeys(move, () => grid.cols),
    },
    close() {
      removeEventListener('resize', resized);
      removeEventListener('fairway-theme', resized);
    },
  };
  if (app.at()) page.past().catch((/** @type {Error} */ e) => setText(line, e.message));
  return /** @type {any} */ (page);
}
