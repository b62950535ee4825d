// One forwarder: what it does now, its last five minutes with gaps left open, and its clients.
import { h, pairs, setText } from './h.js?v=__V__';
import { age, clock, counted, findingWords, number, pathTo, ratio } from './format.js?v=__V__';
import { Table, column, rowKeys } from './table.js?v=__V__';
import { canaryWords, clientColumns, lifeWords, storageColumns } from './forwarderparts.js?v=__V__';
import { get, post, queried } from './api.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { isOpen } from './app.js?v=__V__';
import { actButtons, drain, stateFrom } from './findings.js?v=__V__';
import { reasonForm } from './reason.js?v=__V__';
import { FAILED, glyph, standing } from './levels.js?v=__V__';
import { Charts, bySecond } from './charts.js?v=__V__';
import { stepOf, words } from './range.js?v=__V__';
import { metricOf, shownAs } from './metrics.js?v=__V__';
import { needFacts, needOf } from './needs.js?v=__V__';

/** Where marks of a kind are read. @type {Record<string, string>} */
const markPages = { finding: 'findings', note: 'findings', plan: 'plans', job: 'jobs' };

const USUAL = '5m', // of the past that is shown
  LIVE = 300, // seconds that come with the live feed
  MOST = 360, // points of a chart
  LATE = 3, // seconds from where on a number says how old it is
  LATELY = 60, // seconds for which one that does not come each second is shown
  COMPARED = 250_000; // samples of a metric that one question for the peers' band may read

/** @param {import('./app.js').App} app @param {string} id @param {URLSearchParams} q act=drain asks at once
 * @returns {Promise<import('./app.js').Page>} */
export async function forwarderPage(app, id, q) {
  const range = app.range(USUAL),
    { seconds, fixed } = range,
    live = !fixed && seconds <= LIVE,
    step = live ? 1 : stepOf(range, MOST);
  const [detail, charts] = await Promise.all([
    get(address()),
    Charts.ready(
      `No series of ${id} is kept of ${words(range)}. They begin with the first second its agent sends.`,
      app,
    ),
  ]);
  charts.span = seconds;
  charts.step = step;
  let d = detail;
  function address() {
    return `/api/v1/forwarders/${encodeURIComponent(id)}?${app.at()}`;
  }
  const now = () => Math.floor((Date.parse(app.overview?.at ?? '') || app.now()) / 1000);
  /** What is drawn: of the last minutes every second, of longer what the store keeps of each step. */
  async function begin() {
    charts.end = fixed ? Math.floor(range.to / 1000) : now();
    const from = (charts.end - seconds) * 1000,
      to = (charts.end + 1) * 1000;
    const peers = compare(from / 1000, charts.end);
    const marks =
      from < 0
        ? []
        : get(`/api/v1/marks?from=${from}&to=${to}&limit=200`)
            .then(all => all.filter(m => m.node === id || m.forwarders?.includes(id)))
            .catch(() => []);
    if (live) {
      charts.series = {};
      for (const [name, points] of Object.entries(d.series)) charts.series[name] = { mean: bySecond(points) };
    } else {
      const one = async (metric, agg) => {
        const a = await get(
          `/api/v1/series?node=${encodeURIComponent(id)}&metric=${metric}&step=${step}s&agg=${agg}&from=` +
            `${from}&to=${to}`,
        );
        return bySecond(a.series[0]?.points ?? []);
      };
      const names = Object.keys(d.series).filter(n => metricOf[n]);
      charts.series = Object.fromEntries(
        await Promise.all(
          names.map(async n => {
            const kinds = step > 1 ? ['mean', 'min', 'max'] : ['mean'];
            const [mean, min, max] = await Promise.all(kinds.map(k => one(n, k)));
            return [n, { mean, min, max }];
          }),
        ),
      );
    }
    charts.marks = await marks;
    charts.peers = await peers;
  }
  /** The median and the band of the other forwarders, where the question costs the server little.
   * @param {number} from @param {number} to s */
  async function compare(from, to) {
    const others = (app.overview?.forwarders.length ?? 0) - 1;
    /** @type {typeof charts.peers} */
    const out = {};
    if (others < 3 || others * seconds > COMPARED) return out;
    const first = Math.ceil(from / step) * step;
    await Promise.all(
      Object.keys(d.series)
        .filter(n => metricOf[n]?.chart)
        .map(async n => {
          // PromQL's name has the unit at its end.
          const all = `{__name__=~"fairway_${n}(_per_second|_seconds|)",role="forwarder",node!=${JSON.stringify(id)}}`;
          const part = (k, q) => `label_replace(quantile(${q}, ${all}), "part", "${k}", "", "")`;
          const query = `${part('low', 0.1)} or ${part('mid', 0.5)} or ${part('high', 0.9)}`;
          const found = await queried(query, first, to, step).catch(() => []); // the charts stand without it
          for (const s of found) {
            out[n] ??= { low: new Map(), mid: new Map(), high: new Map() };
            for (const [t, v] of s.values) out[n][/** @type {'low'} */ (s.metric.part)].set(t, Number(v));
          }
        }),
    );
    return out;
  }
  await begin();
  const title = h('h1'),
    stats = h('dl.stats'),
    facts = h('dl.facts'),
    about = h('section', title, facts),
    chosen = new Set();
  const clientName = r =>
    (chosen.has(r.id) ? '* ' : '  ') +
    r.id +
    (r.share ? ` ${r.share_assumed ? 'about ' : ''}${ratio(r.share)} % here` : '');
  const clients = new Table([column('client', 'CLIENT', clientName, { value: r => r.id }), ...clientColumns], {
    id: r => r.id,
    sort: '-client',
    caption: `compute nodes on ${id}`,
  });
  const heading = h('h2'),
    what = h('p.dim.marks');
  const noClients = h(
    'p.empty',
    "No compute node is observed on this forwarder. Clients appear when their mounts or the forwarder's list of " +
      'connections report.',
  );
  const unknown = h('p.empty');
  clients.onPick(r => {
    clients.select(r.id);
    toggle();
  });
  const first = new URLSearchParams(location.search).get('client');
  if (first) {
    clients.selected = first;
    chosen.add(first);
  }
  const storage = new Table(storageColumns, {
    id: r => r.target,
    go: r => `/overview?view=flow&of=${encodeURIComponent(r.target)}`,
    fixed: true,
    caption: `storage targets that ${id} asks, the slow ones first`,
  });
  const noStorage = h('p.empty');
  async function reload() {
    d = await get(address());
    drawFacts();
  }
  const why = reasonForm(app, reload);
  const el = h(
    'div',
    about,
    why.form,
    stats,
    what,
    charts.el,
    h('h2', 'Back end'),
    noStorage,
    storage.el,
    heading,
    noClients,
    unknown,
    h('div.clients', clients.el),
  );

  /** @returns {any[]} */
  function openFindings() {
    return (app.overview?.findings ?? []).filter(f => f.node === id && isOpen(f));
  }
  function openFinding() {
    // The one that the state is of: a storm may be confirmed where slowness is suspect.
    const open = openFindings();
    return open.find(f => f.state === d.state) ?? open[0];
  }

  /** What changes what may be done here. */
  const judgedBy = () => `${d.state} ${openFinding()?.state}`;
  /** No second has come for so long that the numbers here are too old. */
  const silent = () => !app.at() && !app.fresh();
  const staleAfter = () => app.overview?.stale_after_seconds ?? Infinity;

  function drawFacts() {
    const finding = openFinding();
    const plan = d.plan,
      med = d.peers_median;
    const look = [...FAILED, 'silent'].includes(d.state) ? 'slow' : d.state === 'suspect' ? 'suspect' : '';
    about.className = `card about named ${look}`;
    setText(
      title,
      `${id}  ${silent() ? 'SILENT' : standing(d.state, d.busy).toUpperCase()}` +
        `${finding ? ` for ${age(app.now() - stateFrom(finding))} (${finding.id})` : ''}`,
    );
    const busy = app.overview?.forwarders.some(r => r.id !== id && (r.state === 'ok' || r.state === 'dedicated'));
    const lonely = app.overview?.forwarders.length === 1;
    const alive = app.overview?.forwarders.some(r => r.id !== id && r.state !== 'silent');
    /** The newest value, and how long ago it came where it does not come each second. */
    const newest = m => {
      const { shown_unit: unit, factor: k } = metricOf[m];
      let [t, v] = [(d.series[m]?.at(-1)?.t ?? NaN) / 1000, d.series[m]?.at(-1)?.v];
      if (v === undefined) {
        const drawn = charts.series[m]?.mean ?? new Map();
        t = Math.max(...drawn.keys());
        v = drawn.get(t);
      }
      const old = now() - t;
      if (d.state === 'silent' || silent() || v === undefined || v === null || !(old <= LATELY)) return '-';
      const text = metricOf[m].unit === 'count' ? v.toFixed(0) : `${number(v * k)} ${unit}`;
      return old > LATE ? `${text} ${Math.round(old)} s ago` : text;
    };
    const came = m => Boolean(d.series[m]?.length || charts.series[m]?.mean.size);
    const peers = m => {
      const k = metricOf[m].factor;
      const v = med[m] ?? null;
      if (silent() || (v === null && (busy || lonely))) return '';
      if (v === null) return alive ? '  (all peers idle)' : '  (no peer has fresh data)';
      return `  (peers' median ${number(v * k)})`;
    };
    /** @type {[string, string|Node][]} */
    const lines = [
      ...needFacts(needOf(app.overview, id)),
      [
        'serves',
        `${counted(d.client_nodes.length, 'compute node')}` +
          `${d.sharing_clients ? ` (${d.sharing_clients} of them through other forwarders, too)` : ''}` +
          `${d.assumed_clients ? ` (${d.assumed_clients} of them assumed by the default mapping)` : ''}` +
          `${d.rack ? `, rack ${d.rack}` : ''}` +
          `${d.peak_bytes_per_sec ? `, peak ${number(d.peak_bytes_per_sec / 1e6)} MB/s` : ''}` +
          `${d.occupancy === null ? '' : `, near peak ${ratio(d.occupancy)} % of the last hour`}`,
      ],
    ];
    const tiles = shownAs('forwarder', 'list')
      .filter(m => came(m.name))
      .map(m => [m.label, newest(m.name), newest(m.name) === '-' ? 'none in the last minute' : peers(m.name)]);
    /** @type {Record<string, string[]>} */
    const never = {};
    for (const m of shownAs('forwarder', 'list'))
      if (!came(m.name) && !m.layers.forwarder?.includes('rare'))
        (never[d.unreported?.[m.name] ?? ''] ??= []).push(m.label);
    if (d.state !== 'silent' && Object.keys(never).length)
      lines.push([
        'not known',
        Object.entries(never)
          .map(([why, labels]) => labels.join(', ') + (why ? ` (${why})` : ''))
          .join(';  '),
      ]);
    for (const m of shownAs('forwarder', 'series')) {
      if (m.chart || m.layers.forwarder?.includes('list') || m.name.startsWith('probe_') || !came(m.name)) continue;
      const busy = m.name === 'threads' && came('threads_busy') ? `${newest('threads_busy')} of ` : '';
      tiles.push([m.label, `${busy}${newest(m.name)}${busy ? ' busy' : ''}`, '']);
    }
    stats.replaceChildren(
      ...tiles.map(([label, value, beside]) => h('div', h('dt', label), h('dd', value, h('span.dim', beside)))),
    );
    if (d.state === 'silent')
      lines.unshift([
        'no data',
        Date.parse(d.last_seen) > 0
          ? `since ${clock(d.last_seen)}. Check fairway-agent on ${id}; values are not shown because they are old.`
          : `never seen. Is fairway-agent running on ${id}?`,
      ]);
    if (d.drained) lines.push(['drained', d.drained]);
    if (d.back_end) lines.push(['back end', d.back_end]);
    if (d.life) lines.push(['state', lifeWords(d.life, !app.at())]);
    for (const f of openFindings())
      lines.push([f.id, `${f.state}, confidence ${f.confidence.toFixed(2)}: ${findingWords(f)}`]);
    if (d.canary && !app.at()) lines.push(['canary', canaryWords(d.canary)]);
    if (plan) lines.push(['plan', h('a', { href: `/plans/${plan}` }, plan)]);
    facts.replaceChildren(...pairs(lines));
    setText(
      heading,
      `Clients (${d.client_nodes.length})` +
        (chosen.size ? `, ${chosen.size} chosen` : ': click or s to choose some') +
        (chosen.size ? ': ' : ', ') +
        'p proposes to move them',
    );
    const targets = d.storage?.rows ?? [];
    setText(noStorage, `Not known: ${d.storage?.unknown || 'nothing reports it'}.`);
    noStorage.hidden = targets.length > 0;
    storage.el.hidden = targets.length === 0;
    storage.update(targets);
    noClients.hidden = d.client_nodes.length > 0;
    setText(unknown, `No bytes or times from them: ${d.clients_unreported}.`);
    unknown.hidden = !d.clients_unreported || !d.client_nodes.length;
    clients.update(d.client_nodes);
  }

  function drawMarks() {
    const points =
      step === 1
        ? 'every second'
        : `a point is the mean of ${step} s, the band reaches from the least to the most second in it`;
    const grey = Object.keys(charts.peers).length ? ' Grey: median of its peers, 10th to 90th percentile.' : '';
    what.replaceChildren(
      `Shown: ${words(range)}, ${points}.${grey}`,
      ...charts.marks.slice(-6).flatMap(m => {
        const href = m.kind in markPages ? pathTo(markPages[m.kind], m.id) : '/findings';
        return [' ', h('span', `${glyph(m)} ${clock(m.at)} `, h('a', { href }, m.id), ` ${m.text}`)];
      }),
      charts.marks.length > 6 ? h('span', `and ${charts.marks.length - 6} earlier marks`) : '',
    );
  }
  function toggle() {
    const r = clients.current();
    if (!r) return;
    if (chosen.has(r.id)) chosen.delete(r.id);
    else chosen.add(r.id);
    clients.selected = r.id;
    drawFacts();
  }
  /** One small write, read and stat through this forwarder; the server keeps the limits. */
  async function canary() {
    if (!app.fresh()) return app.note('Refused: the data on screen is too old to decide by.');
    if (!d.can?.includes('canary'))
      return app.note(`Refused: ${d.why_not?.canary ?? 'a canary goes out now, not in the past'}.`);
    if (!(await app.ask(`Send a canary through ${id}: one small write, read and stat?`, 'C', 'Send'))) return;
    app.note(`A canary is under way through ${id}.`);
    try {
      d = { ...d, canary: await post(`/api/v1/forwarders/${encodeURIComponent(id)}/canary`, { reason: '' }) };
      app.note('The canary came back.');
      drawFacts();
    } catch (err) {
      app.note(`Refused: ${/** @type {Error} */ (err).message}`);
    }
  }
  function propose() {
    const nodes = chosen.size ? `&nodes=${encodeURIComponent([...chosen].join())}` : '';
    app.go(`/propose?from=${encodeURIComponent(id)}${nodes}`);
  }
  const acts = /** @type {Record<string, [string, () => void]>} */ ({
    p: ['propose', propose],
    e: ['drain...', () => drain(app, why, id, d)],
    C: ['canary probe', canary],
  });
  about.append(actButtons(app, acts));
  drawFacts();
  drawMarks();
  requestAnimationFrame(() => {
    charts.draw();
    if (q.get('act') === 'drain') drain(app, why, id, d);
  });
  async function again() {
    await reload();
    await begin();
    drawMarks();
    charts.draw();
  }
  let ticks = 0,
    judged = judgedBy();
  return {
    title: id,
    el,
    range: USUAL,
    topics: [`forwarder:${id}`],
    past: again,
    message(m) {
      if (!m.forwarder) return;
      // the feed has neither the life nor what the person may do
      const { life, can, why_not, reason_letters } = d;
      d = { life, can, why_not, reason_letters, ...m.forwarder };
      drawFacts();
      const state = judgedBy();
      if (state !== judged) {
        judged = state;
        reload().catch(() => {}); // the next minute's asking says it
      }
      // After a silence agents send what they kept meanwhile: read it when it has come.
      if (live && now() - charts.end > staleAfter()) ticks = 60 - 6;
      if (fixed) return;
      if (++ticks % 60 === 0 || (!live && ticks % Math.max(15, step) === 0)) {
        again().catch(e => app.note(e.message));
        return;
      }
      if (!live) return;
      let fresh = false;
      for (const [name, points] of Object.entries(d.series)) {
        fresh ||= !charts.series[name];
        charts.series[name] ??= { mean: new Map() };
        for (const [t, v] of bySecond(points)) charts.series[name].mean.set(t, v);
      }
      charts.end = now();
      if (fresh) charts.draw();
      else charts.move();
    },
    keys: {
      ...acts,
      w: [
        'why',
        () => {
          const f = openFinding();
          if (f) app.go(`/findings/${f.id}`);
          else app.note('No finding is open here: nothing is known to be wrong.');
        },
      ],
      Enter: [
        'job',
        () => {
          const r = clients.shown.find(one => one.id === clients.selected);
          if (r?.job) app.go(pathTo('jobs', r.job));
          else app.note(r ? 'What this node runs is not known.' : 'No client is selected: the arrows choose one.');
        },
      ],
      s: ['choose client', toggle],
      ...rowKeys(step => clients.move(step)),
      ...exportKeys(
        app,
        id,
        () => charts.rows(),
        () => charts.pictures(id),
      ),
    },
    stale: drawFacts,
    close() {
      charts.close();
    },
  };
}
