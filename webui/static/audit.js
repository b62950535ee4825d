// Who did what. Every act of a person is a line; what the machine did meanwhile is a line a plan, or a minute where it
// is about no plan, behind the count of its steps.
import { h, setText } from './h.js?v=__V__';
import { Table, column, numeric } from './table.js?v=__V__';
import { get } from './api.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';
import { iso, when } from './format.js?v=__V__';
import { listPage } from './lists.js?v=__V__';

/** Whether nobody did it in that moment. @param {any} e */
const byMachine = e => e.actor === 'desk' || e.from === 'policy' || e.from === 'rule';

/** What some entries have in a field, the newest first; of many how many more. @param {any[]} entries
 * @param {string} field @param {number} most */
function distinct(entries, field, most) {
  const each = [...new Set(entries.map(e => e[field]).filter(Boolean))];
  return each.slice(0, most).join(', ') + (each.length > most ? ` +${each.length - most}` : '');
}

/** The lines of some entries, the newest first. A line has the words of its newest step. @param {any[]} entries */
export function folded(entries) {
  /** @type {Map<string, any[]>} */
  const groups = new Map();
  for (const e of entries) {
    const of = e.subject.startsWith('P-') ? e.subject : `${e.actor} ${e.action} ${e.at.slice(0, 16)}`,
      key = byMachine(e) ? of : `#${e.seq}`;
    groups.set(key, [...(groups.get(key) ?? []), e]);
  }
  return [...groups.values()].map(steps => {
    const [e] = steps;
    if (steps.length === 1) return e;
    const plan = e.subject.startsWith('P-'),
      from = `${e.at.slice(0, 16)}:00Z`,
      to = new Date(Date.parse(from) + 60_000).toISOString();
    return {
      ...e,
      actor: distinct(steps, 'actor', 2),
      from: distinct(steps, 'from', 2),
      subject: distinct(steps, 'subject', 1),
      result: plan ? e.result : distinct(steps, 'result', 2),
      reason: steps.find(s => s.reason)?.reason,
      steps: steps.length,
      all: plan ? `/audit?subject=${e.subject}` : `/audit?actor=${encodeURIComponent(e.actor)}&from=${from}&to=${to}`,
    };
  });
}

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function auditPage(app, q) {
  const table = new Table(
    [
      numeric('seq', '#', r => r.seq, String, { wide: true }),
      column('at', 'TIME', r => when(r.at, app.now()), { value: r => Date.parse(r.at) }),
      column('actor', 'WHO', r => r.actor, { wrap: 'phone' }),
      column('from', 'BY', r => r.from ?? '', { wide: true }),
      column('action', 'DID', r => r.action.replaceAll('_', ' '), {
        wrap: 'phone',
        draw: (cell, r) =>
          cell.replaceChildren(
            r.action.replaceAll('_', ' '),
            ...(r.steps ? [', ', h('a', { href: r.all }, `${r.steps}\u00a0steps`)] : []),
          ),
      }),
      column('subject', 'TO', r => r.subject),
      column('result', 'RESULT', r => r.result ?? '', { wrap: true }),
      column('reason', 'REASON', r => r.reason ?? '', { wide: true, wrap: true }),
    ],
    {
      id: r => String(r.seq),
      go: r =>
        /^[PF]-/.test(r.subject) ? `/${r.subject[0] === 'P' ? 'plans' : 'findings'}/${r.subject.split(' ')[0]}` : '',
      sort: 'seq',
      caption: 'who did what',
    },
  );
  const filtered = auditFields.some(([name]) => q.get(name));
  const empty = h(
    'p.empty',
    filtered
      ? 'No entry matches. A name must be whole: press / to change the filter.'
      : 'Nothing was done yet. Every proposal, approval and result is kept here for ever.',
  );
  /** @type {any[]} */
  let entries = [];
  // Whoever asks for one plan's or one person's sees every step.
  const whole = Boolean(q.get('subject') || q.get('actor'));
  const load = async () => {
    const a = new URLSearchParams(q);
    a.delete('at');
    if (app.at()) a.set('to', new Date(app.now()).toISOString());
    entries = await get(`/api/v1/audit?${a}`);
    empty.hidden = entries.length > 0;
    table.update(whole ? entries : folded(entries));
  };
  await load();
  const form = auditForm(app, q);
  return listPage(app, 'audit', table, [form, empty], {
    message(m) {
      if (m.topic === 'plans') load().catch(() => {});
    },
    keys: {
      '/': ['filter', () => form.querySelector('input')?.focus()],
      ...(whole ? {} : { d: ['its steps', () => table.current()?.steps && app.go(table.current().all)] }),
      ...exportKeys(app, 'audit', () => [
        table.every.map(c => c.head),
        ...entries.map(e => table.every.map(c => c.text(e))),
      ]),
    },
    past: load,
    timeless: true,
  });
}

/** name, what it takes @type {[string, string][]} */
const auditFields = [
  ['actor', 'a whole name'],
  ['subject', 'P-000142, fwd113'],
  ['from', '11:42, -2h'],
  ['to', '2026-11-21 11:42'],
];

/** The filter is the address: what is sent opens it. @param {import('./app.js').App} app @param {URLSearchParams} q */
function auditForm(app, q) {
  const inputs = auditFields.map(([name, about]) =>
    h('input', {
      type: 'search',
      name,
      value: momentText(q.get(name) ?? ''),
      placeholder: about,
      'aria-label': `${name}: ${about}`,
    }),
  );
  const status = h('span.dim', { role: 'status' });
  return h(
    'form.field.audit',
    {
      'aria-label': 'filter',
      submit: () => {
        const next = new URLSearchParams();
        for (const i of inputs) {
          const text = i.value.trim(),
            value = i.name === 'from' || i.name === 'to' ? moment(text, app.now()) : text;
          if (value === null)
            return setText(status, `${i.name}: ${text} is not a time such as 11:42, 2026-11-21 11:42 or -2h.`);
          if (value) next.set(i.name, value);
        }
        app.go(`/audit${next.size ? `?${next}` : ''}`);
      },
    },
    ...inputs.flatMap(i => [h('label', i.name, ' ', i)]),
    h('button', { type: 'submit' }, 'filter'),
    status,
  );
}

/** A time of day (the newest past one), a day, both, RFC 3339, or -2h before now; null: none of them.
 * @param {string} text @param {number} now */
function moment(text, now) {
  if (text === '' || /^-(\d+(\.\d+)?(h|m|s|ms))+$/.test(text)) return text;
  let ms = Date.parse(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text);
  if (/^\d?\d:\d\d(:\d\d)?$/.test(text)) {
    ms = Date.parse(
      `${new Date(now).toLocaleDateString('sv')}T` +
        `${text.padStart(text.length === 4 || text.length === 7 ? text.length + 1 : text.length, '0')}`,
    );
    if (ms > now) ms -= 86_400_000;
  }
  return Number.isNaN(ms) ? null : iso(ms);
}

/** A time of the address as it is typed. @param {string} text */
const momentText = text => (/^\d{4}-.*Z$/.test(text) ? new Date(text).toLocaleString('sv') : text);
