// Findings: what is wrong, and one finding with its life and the evidence as it was.
import { button, h, setText } from './h.js?v=__V__';
import { age, clock, findingWords, number } from './format.js?v=__V__';
import { sparkline } from './sparks.js?v=__V__';
import { Table, column, numeric, plain } from './table.js?v=__V__';
import { get, post, write } from './api.js?v=__V__';
import { listPage } from './lists.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { AROUND, Incident } from './incident.js?v=__V__';
import { drawNoted } from './levels.js?v=__V__';
import { metricOf, shown } from './metrics.js?v=__V__';
import { needOf, sharedLines, steps, tone } from './needs.js?v=__V__';
import { reasonForm } from './reason.js?v=__V__';
import { isOpen } from './app.js?v=__V__';

const FROZEN = 120; // seconds of evidence that are kept

const state = f =>
  Date.parse(f.silenced_until) > Date.now() && isOpen(f)
    ? `silent until ${clock(f.silenced_until)}`
    : f.state === 'probation'
      ? f.stage === 'canary'
        ? 'canary I/O'
        : 'on trial'
      : f.state;
/** Whether its node is well again, as far as is known. @param {any} f */
const isOver = f => !isOpen(f) || (f.state === 'probation' && f.stage === 'first job');
/** What the age of its state counts from: the first second, or of one that is over the end. @param {any} f */
export const stateFrom = f => Date.parse(isOver(f) ? f.changed : f.since);
const impact = f =>
  (f.impact ?? [])
    .filter(i => i.share >= 0.005)
    .map(i => `${i.job} ${(100 * i.share).toFixed(0)} %`)
    .join(', ') || '-';

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {import('./app.js').Page} */
export function findingsPage(app, q) {
  /** The server's order: what hurts most is the largest number. @type {Map<string, number>} */
  let rank = new Map();
  const table = new Table(
    [
      column('id', 'ID', r => r.id, { draw: (cell, r) => drawNoted(cell, r.id, r) }),
      column('subject', 'SUBJECT', r => (r.node === '*' ? 'back end' : r.node), { wide: true }),
      column('what', 'WHAT', findingWords, { wrap: true }),
      numeric('since', 'FOR', r => (isOver(r) ? Date.parse(r.changed) : app.now()) - Date.parse(r.since), age),
      numeric('conf', 'CONF', r => r.confidence, null, { wide: true, text: r => r.confidence.toFixed(2) }),
      column('impact', 'JOBS THAT WAIT', impact, { wrap: true, value: r => rank.get(r.id) ?? 0 }),
      column('state', 'STATE', state),
      column('owner', 'OWNER', r => r.owner || '-', { wide: true }),
    ],
    { id: r => r.id, go: r => `/findings/${r.id}`, sort: 'impact', caption: 'findings', keep: { name: 'findings', q } },
  );
  const update = rows => {
    rank = new Map(rows.map((r, i) => [r.id, rows.length - i]));
    table.update(rows);
  };
  const filter = table.filterBox('filter by number, forwarder, words, job, state', true);
  const empty = h(
    'p.empty',
    'No finding. Detectors speak when a forwarder is slow for what it is asked to do; they need some minutes of ' +
      'data first.',
  );
  const act = actions(app, () => table.current());
  const page = listPage(app, 'findings', table, [filter.el, empty], {
    past() {},
    update(o) {
      empty.hidden = o.findings.length > 0;
      update(o.findings);
    },
    keys: { ...filter.keys, ...act.keys },
  });
  page.el.append(act.form);
  return page;
}

/** @param {import('./app.js').App} app @param {string} id @returns {Promise<import('./app.js').Page>} */
export async function findingPage(app, id) {
  let v = await read();
  /** The finding, or what it was in the second that is shown. */
  async function read() {
    const all = await get(`/api/v1/findings/${encodeURIComponent(id)}`);
    if (!app.at()) return all;
    const changes = all.changes.filter(c => Date.parse(c.at) < app.now());
    if (!changes.length)
      throw new Error(`${id} was not made yet: it begins at ${clock(all.changes[0].at)}. Press ] for the next mark.`);
    return { ...changes[changes.length - 1].finding, changes };
  }
  const head = h('h1'),
    sentence = h('p.sentence'),
    second = h('p.second.dim'),
    way = h('div'),
    about = h('section.card.about', head, sentence, second, way),
    facts = h('p.dim'),
    shared = h('div'),
    life = h('tbody'),
    evidence = h('tbody'),
    at = h('span');
  const incident = new Incident(app, id),
    act = actions(app, () => v, { done: load, moment: () => incident.moment }),
    acts = actButtons(app, act.keys);
  const around = () => incident.load().catch(err => app.note(err.message));
  const save = standIns => incident.save(standIns).catch(err => app.note(`Nothing was saved: ${err.message}`));
  let ticks = 0;
  async function load() {
    v = await read();
    draw();
    drawLife();
    await around();
  }
  /** What changes from second to second. */
  function draw() {
    setText(head, `${v.id}  ${v.node === '*' ? 'back end' : v.node}  ${state(v)}`);
    const look = { confirmed: 'slow', suspect: 'suspect' }[/** @type {'suspect'} */ (v.state)] ?? '';
    const card = (!app.at() && needOf(app.overview, id)) || v.card;
    about.className = `card about ${['plan', 'well'].includes(tone(card)) ? tone(card) : look}`;
    setText(sentence, card?.sentence ?? findingWords(v));
    setText(
      second,
      [card?.second, card?.cause && card.cause[0].toUpperCase() + card.cause.slice(1)].filter(Boolean).join('. '),
    );
    const key = JSON.stringify(card?.steps);
    if (way.dataset.key !== key) {
      way.dataset.key = key;
      way.replaceChildren(steps(card?.steps));
    }
    shared.replaceChildren(...sharedLines(v.shared && [v.shared]));
    const held = v.held ? `   still in use: ${v.held}` : '';
    setText(facts, `confidence ${v.confidence.toFixed(2)}   since ${clock(v.since)}${held}`);
    for (const b of acts.children) b.hidden = !isOpen(v) && !b.textContent.endsWith('W'); // what is over takes a note
  }
  function drawLife() {
    life.replaceChildren(
      ...v.changes.map(c =>
        h(
          'tr',
          h('td', clock(c.at)),
          h('td', c.noted ? 'note' : state(c.finding)),
          h('td', c.by || 'detectors'),
          h('td.wrap', Date.parse(c.at) - Date.parse(c.noted) > 1000 ? `of ${clock(c.noted)}, ${c.why}` : c.why),
        ),
      ),
    );
    const last = v.changes.findLast(c => c.frozen?.series && Object.keys(c.frozen.series).length);
    const missing = v.changes.at(-1)?.frozen?.missing ?? [];
    const kept = last ? `Evidence as it was at ${clock(last.at)}` : 'No evidence was kept';
    setText(at, missing.length ? `${kept}. The store did not answer in time for ${missing.join(', ')}.` : kept);
    evidence.replaceChildren(
      ...Object.entries(last?.frozen.series ?? {})
        .sort()
        .map(([name, points]) =>
          h(
            'tr',
            h('td', metricOf[name]?.label ?? name),
            h('td', spark(points)),
            h('td.num', amount(name, points.at(-1).v)),
            h('td.num', last.frozen.peers?.[name] === undefined ? '-' : amount(name, last.frozen.peers[name])),
          ),
        ),
    );
  }
  about.append(facts, shared, acts);
  draw();
  drawLife();
  await around();
  return {
    title: id,
    range: AROUND,
    el: h(
      'div',
      about,
      act.form,
      incident.el,
      h(
        'div.buttons',
        button('Save as one file', () => save(false)),
        button('The same without names', () => save(true)),
      ),
      h('h2', 'Life'),
      plain('what happened to it', ['TIME', 'STATE', 'BY', 'WHY'], life),
      h(
        'details',
        h('summary', at),
        plain('its evidence', ['METRIC', 'TWO MINUTES BEFORE', '#THEN', '#PEERS'], evidence),
      ),
    ),
    past: load,
    update(o) {
      if (app.at()) return;
      const f = o.findings.find(x => x.id === id);
      if (!f || Date.parse(f.changed) < Date.parse(v.changed)) return; // what was read is newer
      const moved = f.changed !== v.changed;
      v = { ...v, ...f };
      if (++ticks % 5 === 0 && (isOpen(v) || incident.moves)) around();
      if (moved) load().catch(err => app.note(err.message));
      else if (isOpen(v)) draw();
    },
    keys: {
      Enter: ['forwarder', () => v.node !== '*' && app.go(`/forwarders/${v.node}`)],
      ...act.keys,
      ...exportKeys(app, id, () => {
        const kept = v.changes.findLast(c => c.frozen?.series)?.frozen.series ?? {},
          names = Object.keys(kept).sort(),
          at = new Map();
        for (const n of names) for (const p of kept[n]) at.set(p.t, { ...at.get(p.t), [n]: p.v });
        return [
          ['time', ...names],
          ...[...at]
            .sort((a, b) => a[0] - b[0])
            .map(([t, row]) => [new Date(t).toISOString(), ...names.map(n => row[n])]),
        ];
      }),
    },
  };
}

/** What can be done here, for whoever has no keys at hand. Nothing of it is there for one who may only look.
 * @param {import('./app.js').App} app @param {Record<string, [string, (e: any) => void]>} keys */
export const actButtons = (app, keys) =>
  h(
    'div.buttons',
    { hidden: !app.may() || Boolean(app.at()) },
    ...Object.entries(keys).map(([key, [text, act]]) =>
      h('button', { type: 'button', click: act }, `${text} `, h('kbd', key)),
    ),
  );

/** Why somebody may not act here now; empty when he may. @param {import('./app.js').App} app
 * @param {boolean} [fresh] what is on screen must not be old */
export function refusal(app, fresh) {
  if (!app.may()) return 'Refused: only operators do that. Sign in with i.';
  return fresh && !app.fresh() ? 'Refused: the data on screen is too old to decide by.' : '';
}

/** Drains a forwarder, which excludes it from allocation, or takes it back: why, and then once whether.
 * @param {import('./app.js').App} app @param {import('./reason.js').ReasonForm} form @param {string} node
 * @param {any} o what may be done with it */
export function drain(app, form, node, o) {
  const no = refusal(app, true);
  if (no) return app.note(no);
  const back = o.can.includes('return'),
    path = `/api/v1/exclusions/${encodeURIComponent(node)}`;
  if (!back && !o.can.includes('exclude')) return app.note(`Refused: ${o.why_not.exclude}.`);
  const what = back ? `back into allocation with ${node}` : `drain ${node} for 4 h`;
  form.ask(
    `Why: ${what}`,
    async reason => {
      if (
        !(await app.ask(
          `${what[0].toUpperCase()}${what.slice(1)}? ` +
            `${back ? 'Jobs get it again.' : 'No job gets it, nobody is moved.'}`,
          'A',
          back ? 'Take back' : 'Drain',
        ))
      )
        return null;
      return back
        ? write('DELETE', `${path}?reason=${encodeURIComponent(reason)}`)
        : write('PUT', path, { reason, ttl: '4h' });
    },
    { least: o.reason_letters[back ? 'return' : 'exclude'] },
  );
}

/** What can be done with a finding; a reason is typed in a form that opens below.
 * @param {import('./app.js').App} app @param {() => any} current
 * @param {{done?: () => Promise<void>, moment?: () => number|undefined}} [o] moment: what a note is about */
function actions(app, current, { done, moment } = {}) {
  const form = reasonForm(app, done);
  /** Does something with the chosen finding, if the server permits it. @param {string} verb of the server's; ''
   * where it is not the finding's @param {(f: any) => any} f with the finding and what may be done with it */
  const to = (verb, f) => async () => {
    const one = current(),
      no = refusal(app);
    if (!one) return app.note('No finding is chosen.');
    if (no) return app.note(no);
    try {
      const v = verb ? await get(`/api/v1/findings/${encodeURIComponent(one.id)}`) : one;
      if (verb && !v.can.includes(verb)) return app.note(`Refused: ${v.why_not[verb]}.`);
      await f(v);
    } catch (err) {
      app.note(`Refused: ${/** @type {Error} */ (err).message}`);
    }
  };
  return {
    form: form.form,
    keys: /** @type {Record<string, [string, (e: KeyboardEvent) => void]>} */ ({
      a: [
        'acknowledge',
        to('acknowledge', async f => {
          await post(`/api/v1/findings/${f.id}/ack`, { reason: '' });
          app.note(`${f.id} is yours.`);
          await done?.();
        }),
      ],
      e: [
        'drain...',
        to('', async f => {
          if (f.node === '*') return app.note('The back end cannot be drained.');
          drain(app, form, f.node, await get(`/api/v1/forwarders/${encodeURIComponent(f.node)}?series=0`));
        }),
      ],
      s: [
        'silence for...',
        to('silence', f =>
          form.ask(
            `Silence ${f.id} for how long, and why`,
            text => {
              const [long, ...rest] = text.split(/\s+/);
              return post(`/api/v1/findings/${f.id}/silence`, {
                for: /^\d+d$/.test(long) ? `${24 * parseInt(long, 10)}h` : long,
                reason: rest.join(' '),
              });
            },
            { least: 1, value: '4h ', hint: '30m, 4h, 2d; 0 ends it' },
          ),
        ),
      ],
      W: [
        'note...',
        to('note', f => {
          const at = app.at() ? app.now() - 1000 : moment?.();
          form.ask(
            `Note about ${f.id}${at ? ` at ${clock(at)}` : ''}`,
            text => post(`/api/v1/findings/${f.id}/notes`, { text, ...(at && { at: new Date(at).toISOString() }) }),
            { least: 1 },
          );
        }),
      ],
      x: [
        'not a fault...',
        to('dismiss', f =>
          form.ask(`Why is ${f.id} not a fault`, reason => post(`/api/v1/findings/${f.id}/dismiss`, { reason }), {
            least: f.reason_letters.dismiss,
          }),
        ),
      ],
      p: [
        'propose',
        () => {
          const f = current();
          if (f && f.node !== '*') app.go(`/propose?from=${f.node}`);
        },
      ],
    }),
  };
}

/** @param {string} name @param {number} v */
const amount = (name, v) => {
  const m = metricOf[name];
  return m ? `${shown(m, v)} ${m.shown_unit}`.trim() : number(v);
};

/** The seconds of a frozen series; one without a value leaves a gap. @param {{t: number, v: number}[]} points */
function spark(points) {
  const end = points[points.length - 1].t,
    seconds = Array(FROZEN).fill(null);
  for (const p of points) seconds[FROZEN - 1 - Math.round((end - p.t) / 1000)] = p.v;
  return sparkline(seconds, Math.max(...points.map(p => p.v)));
}
