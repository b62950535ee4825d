// Plans: the list, and one plan with its preview, approval and progress.
import { button, h, pairs, setText } from './h.js?v=__V__';
import { age, clock, counted } from './format.js?v=__V__';
import { listPage } from './lists.js?v=__V__';
import { Table, column } from './table.js?v=__V__';
import { get, post } from './api.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { effectMeter } from './effect.js?v=__V__';
import { planMap } from './planmap.js?v=__V__';
import { needOf, victimLines } from './needs.js?v=__V__';
import { reasonField, reasonRule } from './reason.js?v=__V__';

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function plansPage(app, q) {
  const expiry = r => `in ${age(Date.parse(r.expires) - app.now())}`;
  const table = new Table(
    [
      column('id', 'PLAN', r => r.id),
      column('title', 'WHAT', r => r.title, { wrap: true }),
      column('state', 'STATE', r => stateWords(r.state)),
      column('created', 'PROPOSED', r => `${clock(r.created)}  ${age(app.now() - Date.parse(r.created))} ago`, {
        value: r => Date.parse(r.created),
        wrap: 'phone',
      }),
      column('expires', 'EXPIRES', r => (r.state === 'proposed' ? expiry(r) : ''), {
        value: r => Date.parse(r.expires),
      }),
    ],
    { id: r => r.id, go: r => `/plans/${r.id}`, sort: 'created', caption: 'plans', keep: { name: 'plans', q } },
  );
  const empty = h(
    'p.empty',
    'No plan yet. Choose a forwarder on the overview and press p to propose moving its clients; nothing moves ' +
      'before somebody approves.',
  );
  const load = async () => {
    const rows = await get('/api/v1/plans');
    empty.hidden = rows.length > 0;
    table.update(rows);
  };
  const filter = table.filterBox('filter by number, state, words');
  await load();
  return listPage(app, 'plans', table, [filter.el, empty], {
    timeless: true,
    message(m) {
      if (m.topic === 'plans') load().catch(e => app.note(e.message));
    },
    update() {
      table.update(table.rows);
    },
    keys: filter.keys,
  });
}

/** @param {string} state */
const stateWords = state => state.replaceAll('_', ' ');

/** @param {import('./app.js').App} app @param {string} id @param {URLSearchParams} q act=approve asks at once
 * @returns {Promise<import('./app.js').Page>} */
export async function planPage(app, id, q) {
  let p = await get(`/api/v1/plans/${encodeURIComponent(id)}`);
  let all = false,
    busy = false;
  const title = h('h1'),
    meta = h('p.dim'),
    facts = h('dl.facts'),
    checks = h('div'),
    progress = h('p', { role: 'status' }),
    error = h('p.error', { role: 'alert', hidden: true });
  const reason = reasonField('reason', p.suggested_reason, () => reason.blur());
  /** Whether the server permits an action, and why not. @param {string} verb @returns {boolean} */
  const can = verb => p.can.includes(verb);
  const hasReason = reasonRule(app, reason, () => p.reason_letters.approve ?? 0);
  const label = h('label', { for: 'reason' }),
    field = h('div.field', label, reason);
  const cancel = button('Cancel', () => (history.length > 1 ? history.back() : app.go('/plans')));
  // Enter on these does nothing: it never approves.
  const deed = (text, f) => button(text, e => e.detail > 0 && f(), { keydown: e => e.key === ' ' && f() });
  const yes = deed('A approve (shift)', approve),
    no = deed('x reject', () => act('reject')),
    back = deed('B roll back (shift)', rollBack),
    stop = deed('s stop after this batch', () => act('stop', 'stopped by hand')),
    more = deed('c complete: move the rest', () => act('complete'));
  yes.classList.add('primary');
  const actions = h('div.actions', cancel, yes, no, stop, more, back);
  const refused = h('p.dim'),
    picture = h('div');
  /** Whether it limits its job, and moves nobody. */
  const limits = () => p.moves[0]?.limit > 0;
  let map = planMap(app, p),
    mapped = '';
  const el = h(
    'div',
    h('section.card.about.named.plan', title, meta, facts),
    checks,
    progress,
    error,
    field,
    actions,
    refused,
    h('h2', { id: 'map', hidden: limits() }, 'Map, before and after'),
    picture,
  );

  function draw() {
    const n = p.moves.length,
      open = p.state === 'proposed',
      moving = ['approved', 'applying', 'rolling_back', 'applied'].includes(p.state);
    setText(title, `${p.id}  ${p.title}`);
    setText(cancel, open ? 'Cancel' : 'Back');
    setText(
      meta,
      `proposed by ${p.proposer}${p.rule ? ` by rule ${p.rule}` : ''} ${clock(p.created)}   ` +
        `${stateWords(p.state)}` +
        `${open ? `   expires in ${age(Date.parse(p.expires) - app.now())}` : ` since ${clock(p.changed)}`}`,
    );
    const lines = all && !limits() ? p.moves.map(m => `${m.node}  ${m.from || '(not known)'} -> ${m.to}`) : p.lines;
    facts.replaceChildren(
      ...pairs(
        /** @type {any[]} */ ([
          [
            'change',
            h(
              'div',
              h('div', limits() ? p.title : `${counted(n, 'compute node')} change${n === 1 ? 's' : ''} forwarder`),
              h('pre', { class: 'wrap' }, lines.join('\n')),
            ),
          ],
          ...because(),
          ['reason', p.reason || '-'],
          ...(p.expected ? [['expected', p.expected]] : []),
          ...(p.track ? [['moves before', p.track]] : []),
          ...(p.outcome ? [['measured', p.outcome]] : []),
          ...(p.brought ? [['effect', effectMeter(p, can('rollback'))]] : []),
          p.force ? ['force', 'cuts off the old forwarder instead of draining it first'] : null,
          (open || can('rollback')) && ['undo', limits() ? 'B lifts the limit' : `B, ${p.back_to || 'back'}`],
          [
            open ? 'needs' : 'approved',
            open ? needs() : `${(p.approvals ?? []).map(a => `${a.by} (${a.reason})`).join(', ') || 'by nobody'}`,
          ],
          p.ended
            ? [
                ['rejected', 'withdrawn', 'expired'].includes(p.state) ? p.state : 'roll back',
                `by ${p.ended.by} at ${clock(p.ended.at)}: ${p.ended.reason || '-'}`,
              ]
            : null,
        ]),
      ),
    );
    checks.replaceChildren(...(open ? [h('h2', 'Checks'), ...checkLines(p.checks ?? [])] : []));
    drawProgress(n);
    const hash = JSON.stringify([p.preview_hash, p.frozen?.at, n]);
    if (hash !== mapped) {
      mapped = hash;
      map = planMap(app, p);
      picture.replaceChildren(...(limits() ? [] : [map.el]));
    }
    const least = p.reason_letters.approve;
    field.hidden = !p.can.length;
    setText(label, `Reason (kept in the audit${least ? `, ${least} letters or more to approve` : ''}):`);
    no.hidden = !can('reject');
    yes.hidden = !can('approve') && no.hidden; // whoever may reject is shown why not approve
    stop.hidden = !can('stop');
    more.hidden = !can('complete');
    back.hidden = !can('rollback');
    /** @type {HTMLButtonElement} */ (yes).disabled = busy || !can('approve');
    setText(
      refused,
      !app.may() && (open || moving)
        ? "Only operators decide here. Sign in with i, or use fairway on the server's host."
        : open && !can('approve')
          ? `You cannot approve: ${p.why_not.approve}.`
          : '',
    );
    app.keysChanged();
  }

  /** What it is against, and who suffers from that. @returns {[string, HTMLElement][]} */
  function because() {
    const n = needOf(app.overview, id);
    if (!n?.finding) return [];
    /** @type {[string, HTMLElement][]} */
    const lines = [
      [
        p.state === 'proposed' ? 'because' : 'now', // the card has gone on since
        h('span', `${n.sentence} (`, h('a', { href: `/findings/${n.finding}` }, n.finding), ')'),
      ],
    ];
    if (n.victims.length) lines.push(['suffers', h('div', ...victimLines(n.victims, 3))]);
    return lines;
  }

  function needs() {
    const given = (p.approvals ?? []).filter(a => p.preview_hash.startsWith(a.hash));
    const by = given.map(a => a.by).join(', ');
    return (
      counted(p.needs, 'approval') +
      (p.needs > 1 ? ' because the plan is big or a check is amber' : '') +
      (given.length ? ` (${given.length} of ${p.needs}: ${by})` : '') +
      '; never by the proposer'
    );
  }

  /** What came of each move, or of its way back. @returns {any[]} */
  const resultsNow = () => (p.goal ? p.undo : p.results) ?? [];
  const rows = () => [
    ['NODE', 'FROM', 'TO', 'RESULT'],
    ...p.moves.map(m => {
      const r = resultsNow().find(x => x.node === m.node);
      return [m.node, m.from, m.to, r ? (r.verified ? 'verified' : r.ok ? 'ok' : r.error || 'failed') : ''];
    }),
  ];

  /** @param {number} n */
  function drawProgress(n) {
    const results = resultsNow();
    const ok = results.filter(r => r.ok || r.verified).length,
      failed = results.filter(r => !r.ok && !r.verified).length,
      seen = results.filter(r => r.verified).length;
    const retry = results.filter(r => r.tries > 1).length;
    const words = {
      approved: `approved; waits for its turn`,
      applying: `applying ${results.length}/${n}  ok ${ok}  retry ${retry}  failed ${failed}`,
      applied: `sent to ${ok} of ${n}; seen by the collector ${seen} of ${n}`,
      verified: `verified ${seen} of ${n} at ${clock(p.changed)}`,
      partial: `partly applied: ${ok} of ${n}, failed ${failed}`,
      failed: `failed: ${p.error || `${failed} of ${n}`}`,
      rolling_back: `rolling back ${results.length}/${n}  ok ${ok}  failed ${failed}`,
      rolled_back: `rolled back ${seen || ok} of ${n} at ${clock(p.changed)}`,
      rejected: 'rejected: nothing was moved',
      withdrawn: 'withdrawn: nothing was moved; if it is still wanted, propose it again',
      expired: 'expired: nothing was moved; propose it again',
      restored: `taken back by itself at ${clock(p.changed)}`,
    };
    const text = /** @type {Record<string, string>} */ (words)[p.state] ?? '';
    const bad = results
      .filter(r => r.error)
      .slice(0, 5)
      .map(r => h('div.check.amber', `${r.node}: ${r.error}`));
    progress.replaceChildren(
      h('span', { id: 'progress', class: 'strong' }, text),
      ...(['applying', 'rolling_back', 'applied'].includes(p.state)
        ? [' ', h('progress', { max: n, value: results.length, 'aria-label': text })]
        : []),
      ...bad,
    );
  }

  /** @param {string} verb @param {any} body */
  async function say(verb, body) {
    if (busy) return;
    busy = true;
    error.hidden = true;
    draw();
    try {
      p = await post(`/api/v1/plans/${p.id}/${verb}`, body);
      reason.value = '';
    } catch (err) {
      error.hidden = false;
      setText(error, /** @type {Error} */ (err).message);
      // What changed is shown anew, so that the next yes is to what is true now.
      p = await get(`/api/v1/plans/${p.id}`).catch(() => p);
    } finally {
      busy = false;
      draw();
      cancel.focus();
    }
  }
  async function approve() {
    if (yes.hidden) return;
    if (!can('approve')) return app.note(`You cannot approve: ${p.why_not.approve}.`);
    if (!hasReason()) return;
    const shown = p.preview_hash;
    if (
      await app.ask(
        limits()
          ? `${p.id}: ${p.title}.`
          : `${p.id}: ${p.moves.length} compute node${p.moves.length === 1 ? ' changes' : 's change'} forwarder now.`,
        'A',
        'Approve',
      )
    )
      say('approve', { preview_hash: shown, reason: reason.value.trim() });
  }
  /** @param {string} verb @param {string} [usual] reason */
  function act(verb, usual = '') {
    if (can(verb)) say(verb, { reason: reason.value.trim() || usual });
  }
  async function rollBack() {
    // the safe way asks for no reason; one that is given is kept
    if (!can('rollback')) return;
    const what = limits()
      ? 'the limit is lifted'
      : `every node that was moved goes back ${p.back_to || 'to where it came from'}`;
    if (await app.ask(`${p.id}: ${what}.`, 'B', 'Roll back')) act('rollback');
  }
  const load = async () => {
    if (!busy) {
      p = await get(`/api/v1/plans/${encodeURIComponent(id)}`);
      draw();
    }
  };
  let ticks = 0;
  draw();
  return {
    title: id,
    el,
    timeless: true,
    focus: () => {
      cancel.focus({ preventScroll: true });
      if (q.get('act') === 'approve' && p.state === 'proposed' && can('approve')) approve();
    },
    message(m) {
      if (m.topic === 'plans') load().catch(e => app.note(e.message));
    },
    // Checks age while the plan waits, so they are asked for again now and then.
    update() {
      // An effect under measurement grows by the second.
      const often = p.effect?.verdict === 'measuring' ? 2 : p.state === 'proposed' ? 5 : 0;
      if (often && ++ticks % often === 0) load().catch(() => {});
      else draw();
    },
    // Only what works now.
    get keys() {
      /** @type {Record<string, [string, () => void]>} */
      const k = {
        d: [all ? 'fewer changes' : 'all changes', () => ((all = !all), draw())],
        ...exportKeys(app, id, rows, () => map.svg),
      };
      if (!field.hidden) k.w = ['write a reason', () => reason.focus()];
      if (!yes.hidden) k.A = ['approve', approve];
      if (!no.hidden) k.x = ['reject', () => act('reject')];
      if (!stop.hidden) k.s = ['stop after this batch', () => act('stop', 'stopped by hand')];
      if (!more.hidden) k.c = ['complete', () => act('complete')];
      if (!back.hidden) k.B = ['roll back', rollBack];
      return k;
    },
  };
}

/** Every check; many good ones of one kind open on demand. @param {any[]} all */
function checkLines(all) {
  const line = c => h(`div.check.${c.level}`, c.text),
    kind = c => c.name.split(' ')[0],
    kinds = [...new Set(all.map(kind))];
  return kinds.flatMap(k => {
    const good = all.filter(c => kind(c) === k && c.level === 'ok'),
      other = all.filter(c => kind(c) === k && c.level !== 'ok');
    if (good.length <= 3) return [...good, ...other].map(line);
    const head = h('summary.check', `${good[0].text}, and ${good.length - 1} more alike`);
    return [h('details', head, ...good.slice(1).map(line)), ...other.map(line)];
  });
}
