// The list of jobs, and what all plain lists share.
import { h, setText } from './h.js?v=__V__';
import { age, clock, mega, ratio } from './format.js?v=__V__';
import { sparkline } from './sparks.js?v=__V__';
import { Table, rowKeys } from './table.js?v=__V__';
import { get } from './api.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';

/**
 * @param {string} title
 * @param {Table} table
 * @param {HTMLElement} empty
 * @param {(o: any) => void} [update]
 * @param {(m: any) => void} [message]
 * @returns {import('./app.js').Page}
 */
export function listPage(title, table, empty, update, message) {
  table.cursor = true;
  const open = () => {
    const r = table.current(),
      to = r && table.o.go?.(r);
    if (to) import('./app.js?v=__V__').then(({ app }) => app.go(to));
  };
  return {
    title,
    update,
    message,
    el: h('div', null, h('h1', null, title[0].toUpperCase() + title.slice(1)), empty, table.el),
    keys: {
      Enter: ['open', open],
      ...rowKeys(step => table.move(step)),
      '<': ['', () => table.stepSort(-1)],
      '>': ['sort', () => table.stepSort(1)],
      r: ['reverse', () => table.sortBy(table.sort)],
      ...exportKeys(title, () => table.all()),
    },
  };
}

/** What a running job does now; nothing of another. @param {any} r */
const now = r => r.now ?? {};

/** @param {import('./app.js').App} app @param {URLSearchParams} q */
export async function jobsPage(app, q) {
  const over = (/** @type {any} */ r) => Date.parse(r.end ?? '') > 0;
  const ran = (/** @type {any} */ r) => (over(r) ? Date.parse(r.end) : app.now()) - Date.parse(r.start);
  const table = new Table(
    [
      { name: 'id', head: 'JOB', text: r => r.id },
      { name: 'app', head: 'APP', text: r => r.app || '-' },
      { name: 'user', head: 'USER', text: r => r.user || '-' },
      {
        name: 'nodes',
        head: 'NODES',
        wide: true,
        num: true,
        text: r => String(r.node_count),
        value: r => r.node_count,
      },
      {
        name: 'moved',
        head: 'MB/s',
        title: 'read and written, mean of the last 10 s',
        num: true,
        text: r => (over(r) ? '' : mega(now(r).moved_bytes_per_sec)),
        value: r => now(r).moved_bytes_per_sec,
      },
      {
        name: 'wait',
        head: 'WAIT %',
        title: 'of the time of its nodes behind the forwarder where they wait the most, last minute',
        num: true,
        text: r => (over(r) ? '' : ratio(now(r).wait)),
        value: r => (now(r).wait >= 0.01 ? now(r).wait : over(r) ? undefined : 0),
      },
      { name: 'for', head: 'FOR', text: r => now(r).cause ?? '', wrap: 'phone' },
      {
        name: 'forwarders',
        head: 'FORWARDERS',
        wide: true,
        num: true,
        text: r => (over(r) || !r.now ? '' : String(r.now.forwarders)),
        value: r => now(r).forwarders,
      },
      {
        name: 'minutes',
        head: 'MB/s, 5 min',
        wide: true,
        text: () => '',
        value: r => now(r).moved_bytes_per_sec,
        draw: (cell, r) => {
          const steps = now(r).moved ?? [];
          cell.replaceChildren(...(over(r) || !steps.length ? [] : [sparkline(steps, Math.max(1, ...steps))]));
        },
      },
      { name: 'ran', head: 'RAN', wide: true, num: true, text: r => age(ran(r)), value: ran },
      {
        name: 'started',
        head: 'STARTED',
        wide: true,
        num: true,
        text: r => when(r.start, app.now()),
        value: r => Date.parse(r.start),
      },
      {
        name: 'ended',
        head: 'ENDED',
        wide: true,
        num: true,
        text: r => (over(r) ? when(r.end, app.now()) : 'running'),
        value: r => (over(r) ? Date.parse(r.end) : 1e15 + r.node_count),
      }, // those that run first, the largest above
    ],
    {
      id: r => r.id,
      go: r => `/jobs/${encodeURIComponent(r.id)}`,
      sort: 'wait',
      tie: r => (over(r) ? Date.parse(r.end) / 1e13 : 1 + r.node_count),
      caption: 'jobs that run, and those that ended last',
    },
  );
  table.filter = q.get('filter') ?? '';
  const empty = h(
    'p.empty',
    null,
    'No job is known. Jobs come from the batch system: set it up in fairwayd.toml, or call fairway hook from its ' +
      "prolog. Mounts that report job ids show them on the forwarder's page already.",
  );
  const load = async () => {
    const rows = await get('/api/v1/jobs?state=all');
    for (const r of rows) r.state = r.now?.waiting ? 'waits' : '';
    empty.hidden = rows.length > 0;
    table.update(rows);
  };
  const filter = listFilter(table, 'filter by user, application, job, cause', text =>
    app.go(`/jobs${text ? `?filter=${encodeURIComponent(text)}` : ''}`, true),
  );
  await load();
  let ticks = 0;
  const page = listPage('jobs', table, empty, () => {
    if (++ticks % 5) table.update(table.rows);
    else load().catch(e => app.note(e.message));
  });
  page.el.insertBefore(filter.el, empty);
  return { ...page, keys: { ...page.keys, ...filter.keys } };
}

/**
 * A filter of a list: / opens it, and Escape clears it.
 * @param {Table} table @param {string} about @param {(text: string) => void} changed
 */
export function listFilter(table, about, changed) {
  const set = (/** @type {string} */ text) => {
    table.filter = text;
    table.update(table.rows);
    box.hidden = false;
    shown.hidden = !text;
    setText(shown, `${table.passed.length} of ${table.rows.length} shown`);
    changed(text);
  };
  const shown = h('span.dim', { role: 'status', hidden: !table.filter });
  const box = /** @type {HTMLInputElement} */ (
    h('input', {
      type: 'search',
      'aria-label': about,
      placeholder: about,
      value: table.filter,
      input: () => set(box.value),
      keydown: (/** @type {KeyboardEvent} */ e) => {
        if (e.key === 'Escape' || e.key === 'Enter') box.blur();
        if (e.key === 'Escape') set((box.value = ''));
      },
    })
  );
  return {
    el: h('div.filter', null, box, shown),
    /** @type {Record<string, [string, () => void]>} */
    keys: {
      '/': ['filter', () => box.focus()],
      Escape: [
        '',
        () => {
          if (table.filter) set((box.value = ''));
        },
      ],
    },
  };
}

/** With its day where that is another one. @param {string} t @param {number} now */
export const when = (t, now) =>
  (new Date(t).toDateString() === new Date(now).toDateString() ? '' : `${new Date(t).toLocaleDateString('sv')} `) +
  clock(t);
