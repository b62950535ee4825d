// Proposing a plan by hand: which clients of a forwarder go where, and why.
import { h, setText } from './h.js?v=__V__';
import { counted, mega, ratio, some } from './format.js?v=__V__';
import { Table, column, numeric, rowKeys } from './table.js?v=__V__';
import { get, post } from './api.js?v=__V__';
import { standing } from './levels.js?v=__V__';
import { moved } from './metrics.js?v=__V__';
import { reasonField, reasonRule } from './reason.js?v=__V__';
import { needOf } from './needs.js?v=__V__';

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function proposePage(app, q) {
  const from = q.get('from') ?? '';
  const d = await get(`/api/v1/forwarders/${encodeURIComponent(from)}?series=0`);
  const job = q.get('job');
  const wanted = job
    ? ((await get(`/api/v1/jobs/${encodeURIComponent(job)}`)).nodes ?? [])
    : (q.get('nodes') ?? '').split(',').filter(Boolean);
  const nodes = d.client_nodes.map(c => c.id).filter(n => !wanted.length || wanted.includes(n));
  const need = needOf(app.overview, from),
    plan = need?.action?.name === 'approve' ? need.plan : '';
  const targets = new Table(
    [
      column('node', 'TO', r => r.id),
      column('state', 'STATE', r => standing(r.state, r.busy)),
      numeric('occ', 'OCC %', r => r.occupancy, ratio),
      numeric('bw', 'MB/s', r => moved(r) ?? 0, null, { text: r => mega(moved(r)) }),
      numeric('clients', 'CLIENTS', r => r.clients, String),
      column('why', 'WHY', r => r.why, { value: r => r.place, wrap: true }),
    ],
    { id: r => r.id, sort: '-why', caption: 'forwarders to move to, the best first' },
  );
  /** @type {Map<string, {why: string, place: number}>} */
  let place = new Map(),
    asked = false;
  const rank = list => {
    place = new Map(list.map((t, i) => [t.forwarder, { why: t.why, place: i }]));
  };
  rank(d.targets ?? []);
  const reason = reasonField('why', need?.finding && `${need.finding}: ${need.sentence}`, () => {
    if (!send.disabled) propose();
  });
  const hasReason = reasonRule(app, reason, () => app.session.reason_letters);
  const force = h('input', { type: 'checkbox', id: 'force' });
  const send = h('button', { type: 'button', click: propose }, 'Propose');
  const error = h('p.error', { role: 'alert', hidden: true }),
    chosen = h('p');
  const el = h(
    'div',
    h('h1', `Propose: move ${counted(nodes.length, 'client')} of ${from}`),
    h('p.dim', nodes.length ? some(nodes, 8) : `No client of ${from} to move. Choose clients on the forwarder's page.`),
    plan && h('p.strong', h('a', { href: `/plans/${plan}` }, plan), ` waits already: ${need.action.text}.`),
    h('div.clients', targets.el),
    chosen,
    h(
      'div.field',
      h('label', { for: 'why' }, `Reason (kept in the audit, ${app.session.reason_letters} letters or more):`),
      reason,
    ),
    h('div.field', h('label', force, ' force: cut a dead forwarder off instead of draining it')),
    error,
    h('div.actions', h('button', { type: 'button', click: () => history.back() }, 'Cancel'), send),
    h(
      'p.dim',
      app.may()
        ? 'Nothing moves before somebody else approves the plan.'
        : 'You may look, not propose: only operators do. Sign in with i.',
    ),
  );
  targets.onPick(r => {
    targets.select(r.id);
    draw();
  });
  function draw() {
    setText(
      chosen,
      targets.selected ? `${some(nodes, 8)}  ${from} -> ${targets.selected}` : 'No healthy forwarder is left to go to.',
    );
    send.disabled = !app.may() || !nodes.length || !targets.selected;
  }
  async function propose() {
    error.hidden = true;
    if (!hasReason()) return;
    send.disabled = true;
    try {
      const p = await post('/api/v1/plans', {
        nodes,
        to: targets.selected,
        reason: reason.value.trim(),
        force: force.checked,
      });
      app.go(`/plans/${p.id}`);
    } catch (err) {
      error.hidden = false;
      setText(error, /** @type {Error} */ (err).message);
      draw();
    }
  }
  /** @param {number} by */
  const move = by => {
    targets.move(by);
    draw();
  };
  draw();
  return {
    title: 'propose',
    el,
    update(o) {
      // A server that has just begun knows of no place yet; rows that are there do not change under a key.
      if (!place.size && !asked && app.may()) {
        asked = true;
        get(`/api/v1/forwarders/${encodeURIComponent(from)}?series=0`)
          .then(f => rank(f.targets ?? []))
          .catch(() => {})
          .finally(() => (asked = false));
      }
      targets.update(o.forwarders.filter(r => place.has(r.id)).map(r => ({ ...r, ...place.get(r.id) })));
      targets.selected ||= targets.current()?.id ?? '';
      targets.mark();
      draw();
    },
    keys: {
      ...rowKeys(move, 'choose'),
      Enter: ['write the reason', () => reason.focus()],
      f: ['force', () => force.click()],
    },
  };
}
