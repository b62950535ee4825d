// The grid of all compute nodes.
import { h, setText } from './h.js?v=__V__';
import { counted } from './format.js?v=__V__';
import { IDLE, UNKNOWN, computeMetrics, placeOf } from './levels.js?v=__V__';
import { GridView, rampCanvas } from './grid.js?v=__V__';
import { cellKeys } from './overview.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { get } from './api.js?v=__V__';
import { parseGrid } from './live.js?v=__V__';

/** All compute nodes, a few pixels each. @param {import('./app.js').App} app @param {URLSearchParams} q */
export function computePage(app, q) {
  const k = placeOf(computeMetrics, q.get('metric') ?? 'bw');
  const metric = computeMetrics[k];
  /** @type {string[]} */
  let names = [];
  let generation = -1;
  /** @type {any} */
  let frame = null;
  let cursor = 0;
  const line = h('p.summary', 'Waiting for the first frame of the compute nodes.'),
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
  const el = h('div', h('h1.sr', 'Compute nodes'), line, grid.el, legend, where);
  const textOf = i => {
    const c = frame?.cells[i];
    return c === undefined || c === 255 ? 'no fresh value' : c === 10 ? 'idle' : `level ${c}`;
  };
  function draw() {
    if (!frame) return;
    const cells = frame.cells,
      levels = Int8Array.from(cells, c => (c < 10 ? c : c === 10 ? IDLE : UNKNOWN));
    grid.layout(cells.length, Math.max(320, el.clientWidth || 1200), Math.max(240, innerHeight - 260), true);
    grid.draw({ levels }, cursor);
    grid.canvas.dataset.redrawMs = grid.took.toFixed(2);
    grid.canvas.dataset.cells = String(cells.length);
  }
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let asking;
  async function openNode() {
    const n = names[cursor];
    if (!n) return;
    const node = await get(`/api/v1/nodes/${encodeURIComponent(n)}`);
    const [most] = [...(node.shares ?? [])].sort((a, b) => b.part - a.part),
      at = most?.forwarder ?? node.forwarder;
    if (at) app.go(`/forwarders/${at}?client=${encodeURIComponent(n)}`);
    else app.note(`${n}: its forwarder is not known`);
  }
  function report() {
    const n = names[cursor],
      text = `${n ?? ''}  ${textOf(cursor)}  (enter opens its forwarder)`;
    setText(where, text);
    clearTimeout(asking);
    if (n) asking = setTimeout(() => showWay(n, text), 300);
  }
  /** How the node's seconds come, once the cursor rests on it. @param {string} n @param {string} text */
  async function showWay(n, text) {
    const { way } = await get(`/api/v1/nodes/${encodeURIComponent(n)}`).catch(() => ({}));
    if (!way || names[cursor] !== n) return;
    setText(where, `${text}  ${way.late_seconds.toFixed(1)} s late`);
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
      const g = parseGrid(await get(`/api/v1/grid?metric=${metric.name}&${app.at()}`));
      if (g) await page.grid(g);
    },
    async grid(g) {
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
          `${counted(g.cells.length, 'compute node')}: ${busy} busy ${g.cells.length - busy - unknown} idle ` +
            `${unknown} without a fresh value`,
        ),
        h('span', `colour: ${metric.title}${app.hint('m')}`),
      );
      if (!legend.childElementCount)
        legend.append(
          h('span', 'blank idle'),
          h('span', `0-9 tenths of ${metric.full(g.full)} `),
          rampCanvas(),
          h('span', 'grey: no fresh value'),
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
        app,
        'compute',
        () => [
          ['NODE', metric.title.toUpperCase()],
          ...[...(frame?.cells ?? [])].map((c, i) => [names[i] ?? '', c < 10 ? c : c === 10 ? 'idle' : '']),
        ],
        () => grid.canvas,
      ),
      ...cellKeys(move, () => grid.cols),
    },
    close() {
      removeEventListener('resize', resized);
      removeEventListener('fairway-theme', resized);
    },
  };
  if (app.at()) page.past().catch(e => setText(line, e.message));
  return /** @type {any} */ (page);
}
