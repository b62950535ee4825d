// The plain lists: jobs, audit.
import { h } from './h.js?v=__V__';
import { age, clock } from './format.js?v=__V__';
import { Table } from './table.js?v=__V__';
import { get } from './api.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';

/** @param {string} title @param {Table} table @param {HTMLElement} empty @param {(o: any) => void} [update] @param {(m: any) => void} [message] @returns {import('./app.js').Page} */
export function listPage(title, table, empty, update, message) {
  /** @type {[string, () => void]} */
  const up = ['', () => table.move(-1)], down = ['', () => table.move(1)];
  const open = () => { const r = table.current(), to = r && table.o.go?.(r); if (to) import('./app.js?v=__V__').then(({ app }) => app.go(to)); };
  return { title, update, message, el: h('div', null, h('h1', null, title[0].toUpperCase() + title.slice(1)), empty, table.el),
    keys: { Enter: ['open', open], ArrowUp: up, k: up, ArrowDown: down, j: down, '<': ['', () => table.stepSort(-1)], '>': ['sort', () => table.stepSort(1)], r: ['reverse', () => table.sortBy(table.sort)], ...exportKeys(title, () => table.all()) } };
}

/** @param {any} app */
export async function jobsPage(app) {
  const table = new Table([
    { name: 'id', head: 'JOB', text: (r) => r.id }, { name: 'app', head: 'APP', text: (r) => r.app || '-' }, { name: 'user', head: 'USER', text: (r) => r.user || '-' },
    { name: 'nodes', head: 'NODES', num: true, text: (r) => String((r.nodes ?? []).length), value: (r) => (r.nodes ?? []).length }, { name: 'run', head: 'RUNNING', num: true, text: (r) => age(app.now() - Date.parse(r.start)), value: (r) => -Date.parse(r.start) },
  ], { id: (r) => r.id, go: (r) => `/jobs/${r.id}`, sort: 'nodes', caption: 'running jobs' });
  const rows = await get('/api/v1/jobs');
  table.update(rows);
  const empty = h('p.empty', { hidden: rows.length > 0 }, 'No running job is known. Jobs come from the batch system: set it up in fairwayd.toml, or call fairway hook from its prolog. Mounts that report job ids show them on the forwarder\'s page already.');
  return listPage('jobs', table, empty);
}

/** @param {any} app @param {URLSearchParams} q */
export async function auditPage(app, q) {
  const table = new Table([
    { name: 'seq', head: '#', num: true, text: (r) => String(r.seq), value: (r) => r.seq }, { name: 'at', head: 'TIME', text: (r) => `${r.at.slice(0, 10)} ${clock(r.at)}`, value: (r) => Date.parse(r.at) },
    { name: 'actor', head: 'WHO', text: (r) => r.actor }, { name: 'from', head: 'BY', text: (r) => r.from ?? '' }, { name: 'action', head: 'DID', text: (r) => r.action.replaceAll('_', ' ') }, { name: 'subject', head: 'TO', text: (r) => r.subject },
    { name: 'result', head: 'RESULT', text: (r) => r.result ?? '' }, { name: 'reason', head: 'REASON', text: (r) => r.reason ?? '', wrap: true },
  ], { id: (r) => String(r.seq), go: (r) => (r.subject.startsWith('P-') ? `/plans/${r.subject}` : r.subject.startsWith('F-') ? `/findings/${r.subject}` : ''), sort: 'seq', caption: 'who did what' });
  const empty = h('p.empty', null, 'Nothing was done yet. Every proposal, approval and result is kept here for ever.');
  const load = async () => { const a = new URLSearchParams(q); a.delete('at'); if (app.at()) a.set('to', new Date(app.now()).toISOString()); const rows = await get(`/api/v1/audit?${a}`); empty.hidden = rows.length > 0; table.update(rows); };
  await load();
  return { ...listPage('audit', table, empty, undefined, (m) => { if (m.topic === 'plans') load().catch(() => {}); }), past: load };
}
