// One forwarder: what it does now, its last five minutes with gaps left open, and its clients.
import { h, setText } from './h.js?v=__V__';
import { age, clock, mega, metricInfo, millis, number, ratio } from './format.js?v=__V__';
import { Table } from './table.js?v=__V__';
import { get } from './api.js?v=__V__';
import { exportKeys, saveCanvases } from './export.js?v=__V__';
import { isOpen } from './app.js?v=__V__';

const SPAN = 300; // seconds
/** The charts, each one or more metrics of the same unit. */
const charts = [['read_bytes', 'write_bytes'], ['queue_len', 'meta_queue_len', 'threads_busy'], ['meta_ops'], ['read_wait', 'write_wait', 'meta_wait', 'server_time'], ['read_exec', 'write_exec', 'meta_exec'], ['client_read', 'client_write', 'client_meta'], ['errors', 'retransmits'], ['disk_read_bytes', 'disk_write_bytes'], ['link_rx_bytes', 'link_tx_bytes'], ['disk_busy_ratio', 'psi_io_some', 'psi_io_full', 'cache_hit_ratio']];

/** @type {import('./table.js').Column[]} */
const clientColumns = [
  { name: 'client', head: 'CLIENT', text: (r) => r.id },
  { name: 'job', head: 'JOB', text: (r) => r.job || '-' },
  { name: 'read', head: 'READ MB/s', num: true, text: (r) => mega(r.read_bytes_per_sec), value: (r) => r.read_bytes_per_sec },
  { name: 'write', head: 'WRITE MB/s', num: true, text: (r) => mega(r.write_bytes_per_sec), value: (r) => r.write_bytes_per_sec },
  { name: 'mdops', head: 'MD/S', num: true, text: (r) => number(r.meta_ops_per_sec), value: (r) => r.meta_ops_per_sec },
  { name: 'latency', head: 'LATENCY ms', num: true, text: (r) => millis(r.latency_seconds), value: (r) => r.latency_seconds },
];

/** Loads uPlot once; it is needed on this page alone. @returns {Promise<any>} */
function uPlotReady() {
  const w = /** @type {any} */ (window);
  w.fairwayPlot ??= new Promise((ok, bad) => {
    document.head.append(h('link', { rel: 'stylesheet', href: '/static/uplot/uPlot.min.css?v=__V__' }));
    const s = h('script', { src: '/static/uplot/uPlot.iife.min.js?v=__V__', load: () => ok(w.uPlot), error: () => bad(new Error('the plot library could not be loaded')) });
    document.head.append(s);
  });
  return w.fairwayPlot;
}

/** @param {any} app @param {string} id @returns {Promise<import('./app.js').Page>} */
export async function forwarderPage(app, id) {
  const [detail, uPlot] = await Promise.all([get(address()), uPlotReady()]);
  /** @type {Record<string, Map<number, number>>} metric -> second -> value */
  let series = {};
  let d = detail;
  function address() { return `/api/v1/forwarders/${encodeURIComponent(id)}?${app.at()}`; }
  function begin() {
    series = {};
    for (const [name, points] of Object.entries(d.series)) series[name] = new Map(/** @type {any[]} */ (points).map((p) => [Math.floor(p.t / 1000), p.v]));
  }
  begin();
  const title = h('h1'), facts = h('dl.facts'), plots = h('div.charts'), chosen = new Set();
  const clients = new Table(clientColumns, { id: (r) => r.id, sort: 'client', reverse: true, caption: `compute nodes on ${id}` });
  const heading = h('h2');
  const noClients = h('p.empty', null, 'No compute node is observed on this forwarder. Clients appear when their mounts or the forwarder\'s list of connections report.');
  clients.table.addEventListener('click', (e) => {
    const i = [...clients.body.children].indexOf(/** @type {any} */ (/** @type {HTMLElement} */ (e.target).closest('tr')));
    if (i >= 0) { clients.select(clients.shown[i].id); toggle(); }
  });
  const first = new URLSearchParams(location.search).get('client');
  if (first) { clients.selected = first; chosen.add(first); }
  const el = h('div', null, title, facts, plots, heading, noClients, h('div.clients', null, clients.el));
  /** @type {{plot: any, names: string[]}[]} */
  let drawn = [];

  function drawFacts() {
    const finding = app.overview?.findings.find((/** @type {any} */ f) => f.node === id && isOpen(f));
    const plan = d.plan, med = d.peers_median;
    setText(title, `${id}  ${d.state.toUpperCase()}${finding ? ` for ${age(app.now() - Date.parse(finding.since))} (${finding.id})` : ''}`);
    const now = (/** @type {string} */ m) => { const [, unit, k] = metricInfo[m]; const v = d.series[m]?.at(-1)?.v; return d.state === 'stale' || v === undefined ? '-' : `${number(v * k)} ${unit}`; };
    const peers = (/** @type {string} */ m) => { const [, , k] = metricInfo[m]; const v = med[m]; return v === null || v === undefined ? '' : `  (peers' median ${number(v * k)})`; };
    /** @type {[string, string|Node][]} */
    const lines = [
      ['serves', `${d.client_nodes.length} compute nodes${d.rack ? `, rack ${d.rack}` : ''}${d.peak_bytes_per_sec ? `, peak ${number(d.peak_bytes_per_sec / 1e6)} MB/s` : ''}${d.occupancy === null ? '' : `, near peak ${ratio(d.occupancy)} % of the last hour`}`],
      ['read', now('read_bytes') + peers('read_bytes')], ['write', now('write_bytes') + peers('write_bytes')],
      ['queue', now('queue_len') + peers('queue_len')], ['metadata', `${now('meta_ops')}, wait ${now('meta_wait')}${peers('meta_wait')}`],
    ];
    if (d.series.threads) lines.push(['threads', `${now('threads_busy')} of ${now('threads')} busy`.replaceAll('  ', ' ')]);
    if (d.state === 'stale') lines.unshift(['no data', Date.parse(d.last_seen) > 0 ? `since ${clock(d.last_seen)}. Check fairway-agent on ${id}; values are not shown because they are old.` : `never heard of. Is fairway-agent running on ${id}?`]);
    if (finding) lines.push(['evidence', finding.sentence]);
    if (plan) lines.push(['plan', h('a', { href: `/plans/${plan}` }, plan)]);
    facts.replaceChildren(...lines.flatMap(([k, v]) => [h('dt', null, k), h('dd', null, v)]));
    setText(heading, `Clients (${d.client_nodes.length})${chosen.size ? `, ${chosen.size} chosen: p proposes to move them` : ': click or s to choose some, p proposes to move them'}`);
    noClients.hidden = d.client_nodes.length > 0;
    clients.update(d.client_nodes.map((/** @type {any} */ r) => (chosen.has(r.id) ? { ...r, id: r.id } : r)));
    clients.shown.forEach((r, i) => setText(/** @type {any} */ (clients.body.children[i]).children[0], (chosen.has(r.id) ? '* ' : '  ') + r.id));
  }

  /** Five minutes of seconds; a missing second is null, which the plot leaves open. @param {string[]} names */
  function data(names) {
    const end = Math.floor((Date.parse(app.overview?.at ?? '') || app.now()) / 1000), xs = [], ys = names.map(() => /** @type {(number|null)[]} */ ([]));
    for (let s = end - SPAN + 1; s <= end; s++) {
      xs.push(s);
      names.forEach((n, i) => { const v = series[n]?.get(s); ys[i].push(v === undefined ? null : v * metricInfo[n][2]); });
    }
    return [xs, ...ys];
  }

  function drawPlots() {
    drawn.forEach((p) => p.plot.destroy());
    drawn = [];
    plots.replaceChildren();
    const css = getComputedStyle(document.documentElement), fg = css.getPropertyValue('--fg').trim(), dim = css.getPropertyValue('--dim').trim(), line = css.getPropertyValue('--line').trim();
    for (const group of charts) {
      const names = group.filter((n) => series[n]?.size);
      if (!names.length) continue;
      const box = h('div.chart', null, h('h2', null, `${names.map((n) => metricInfo[n][0]).join(', ')}${metricInfo[names[0]][1] ? `, ${metricInfo[names[0]][1]}` : ''}`));
      plots.append(box);
      const axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '11px ui-monospace, monospace' };
      const plot = new uPlot({
        width: Math.max(240, box.clientWidth), height: 150, cursor: { y: false }, legend: { live: true },
        scales: { y: { range: (/** @type {any} */ _u, /** @type {number} */ _lo, /** @type {number} */ hi) => [0, hi > 0 ? hi * 1.1 : 1] } },
        axes: [{ ...axis, values: (/** @type {any} */ _u, /** @type {number[]} */ v) => v.map((s) => clock(s * 1000).slice(0, 8)), space: 80 }, { ...axis, size: 56 }],
        series: [{ label: 'time', value: (/** @type {any} */ _u, /** @type {number} */ v) => (v === null ? '-' : clock(v * 1000)) },
          ...names.map((n, i) => ({ label: metricInfo[n][0], stroke: [fg, css.getPropertyValue('--focus').trim(), css.getPropertyValue('--warn').trim(), dim][i], width: 1.5, dash: [[], [6, 3], [2, 2], [8, 2, 2, 2]][i], spanGaps: false, points: { show: false }, value: (/** @type {any} */ _u, /** @type {number} */ v) => number(v) }))],
      }, data(names), box);
      drawn.push({ plot, names });
    }
    if (!drawn.length) plots.append(h('p.empty', null, `No series of ${id} in the last five minutes. They begin with the first second its agent sends.`));
  }

  function toggle() {
    const r = clients.current();
    if (!r) return;
    if (chosen.has(r.id)) chosen.delete(r.id); else chosen.add(r.id);
    clients.selected = r.id;
    drawFacts();
  }
  const resized = () => drawn.forEach((p) => p.plot.setSize({ width: Math.max(240, p.plot.root.parentElement.clientWidth), height: 150 }));
  const themed = () => drawPlots();
  addEventListener('resize', resized);
  addEventListener('fairway-theme', themed);
  drawFacts();
  requestAnimationFrame(drawPlots);
  /** @type {[string, () => void]} */
  const up = ['', () => clients.move(-1)], down = ['', () => clients.move(1)];
  return {
    title: id, el, topics: [`forwarder:${id}`],
    async past() {
      d = await get(address());
      begin();
      drawFacts();
      drawPlots();
    },
    message(m) {
      if (!m.forwarder) return;
      d = m.forwarder;
      let fresh = false;
      for (const [name, points] of Object.entries(d.series)) {
        fresh ||= !series[name];
        series[name] ??= new Map();
        for (const p of /** @type {any[]} */ (points)) series[name].set(Math.floor(p.t / 1000), p.v);
        if (series[name].size > 2 * SPAN) for (const k of [...series[name].keys()].slice(0, SPAN)) series[name].delete(k);
      }
      drawFacts();
      if (fresh) drawPlots();
      else drawn.forEach((p) => p.plot.setData(data(p.names)));
    },
    keys: {
      p: ['propose', () => app.go(`/propose?from=${encodeURIComponent(id)}${chosen.size ? `&nodes=${encodeURIComponent([...chosen].join())}` : ''}`)],
      s: ['choose client', toggle], ArrowUp: up, k: up, ArrowDown: down, j: down,
      ...exportKeys(id, rows, () => drawn.length && saveCanvases(id, drawn.map((p) => [`${id}: ${p.names.map((n) => metricInfo[n][0]).join(', ')}`, p.plot.ctx.canvas]))),
    },
    close() { drawn.forEach((p) => p.plot.destroy()); removeEventListener('resize', resized); removeEventListener('fairway-theme', themed); },
  };
  function rows() {
    const names = Object.keys(series), seconds = [...new Set(names.flatMap((n) => [...series[n].keys()]))].sort((a, b) => a - b);
    return [['time', ...names], ...seconds.map((s) => [new Date(s * 1000).toISOString(), ...names.map((n) => series[n].get(s))])];
  }
}
