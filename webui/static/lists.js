// The list of jobs, and what all plain lists share.
import { h } from './h.js?v=__V__';
import { age, mega, missing, pathTo, ratio, when } from './format.js?v=__V__';
import { sparkline } from './sparks.js?v=__V__';
import { Table, column, numeric, rowKeys, sortKeys } from './table.js?v=__V__';
import { get } from './api.js?v=__V__';
import { exportKeys } from './export.js?v=__V__';

/** What opens the row that keys act on. @param {import('./app.js').App} app @param {Table} table */
export const opener = (app, table) => () => {
  const r = table.current(),
    to = r && table.o.go?.(r);
  if (to) app.go(to);
};

/** A page that is a list. @param {import('./app.js').App} app @param {string} title @param {Table} table
 * @param {Node[]} above what stands over it @param {Partial<import('./app.js').Page> & {heading?: string, picture?: ()
 * => any}} more picture: what is saved as one @returns {import('./app.js').Page} */
export function listPage(app, title, table, above, { heading, picture, keys, ...more } = {}) {
  table.cursor = true;
  return {
    title,
    el: h('div', h('h1', heading ?? title[0].toUpperCase() + title.slice(1)), ...above, table.el),
    ...more,
    keys: {
      Enter: ['open', opener(app, table)],
      ...rowKeys(step => table.move(step)),
      ...sortKeys(table),
      ...exportKeys(app, title, () => table.all(), picture),
      ...keys,
    },
  };
}

/** What a running job does now, or an ended one did in the whole. @param {any} r */
const now = r => r.now ?? r.whole ?? {};

/** @param {import('./app.js').App} app @param {URLSearchParams} q */
export async function jobsPage(app, q) {
  const over = r => Date.parse(r.end ?? '') > 0;
  const ran = r => (over(r) ? Date.parse(r.end) : app.now()) - Date.parse(r.start);
  const table = new Table(
    [
      column('id', 'JOB', r => r.id),
      column('app', 'APP', r => r.app || '-'),
      column('user', 'USER', r => r.user || '-'),
      numeric('nodes', 'NODES', r => r.node_count, String, { wide: true }),
      numeric('moved', 'MB/s', r => now(r).moved_bytes_per_sec, mega, {
        title: 'read and written, mean of the last 10 s; of an ended one of its run',
      }),
      // Those that run come first, those that waited the most above.
      numeric('wait', 'WAIT %', r => (now(r).wait >= 0.01 ? now(r).wait : 0) - (over(r) ? 1 : 0), null, {
        title:
          'of the time of its nodes behind the forwarder where they wait the most, last minute; ' +
          'of an ended one of its run',
        text: r => ratio(now(r).wait),
      }),
      column('for', 'FOR', r => now(r).slow ?? now(r).cause ?? '', { wrap: 'phone' }),
      numeric('forwarders', 'FORWARDERS', r => now(r).forwarders, null, {
        wide: true,
        text: r => String(now(r).forwarders || missing),
      }),
      column('minutes', 'MB/s, 5 min', () => '', {
        wide: true,
        draw: (cell, r) => {
          const steps = now(r).moved ?? [];
          cell.replaceChildren(steps.length ? sparkline(steps, Math.max(1, ...steps)) : missing);
        },
        value: r => now(r).moved_bytes_per_sec,
      }),
      numeric('ran', 'RAN', ran, age, { wide: true }),
      numeric('started', 'STARTED', r => Date.parse(r.start), null, {
        wide: true,
        text: r => when(r.start, app.now()),
      }),
      numeric('ended', 'ENDED', r => (over(r) ? Date.parse(r.end) : 1e15 + r.node_count), null, {
        wide: true,
        text: r => (over(r) ? when(r.end, app.now()) : 'running'),
      }), // those that run first, the largest above
    ],
    {
      id: r => r.id,
      go: r => pathTo('jobs', r.id),
      sort: 'wait',
      keep: { name: 'jobs', q },
      tie: r => (over(r) ? Date.parse(r.end) / 1e13 : 1 + r.node_count),
      caption: 'jobs that run, and those that ended last',
    },
  );
  const empty = h(
    'p.empty',
    'No job is known. Jobs come from the batch system: set it up in fairwayd.toml, or call fairway hook from its ' +
      "prolog. Mounts that report job ids show them on the forwarder's page already.",
  );
  const load = async () => {
    const rows = await get('/api/v1/jobs?state=all');
    for (const r of rows) r.state = r.now?.waiting ? 'waits' : '';
    empty.hidden = rows.length > 0;
    table.update(rows);
  };
  const filter = table.filterBox('filter by user, application, job, cause');
  await load();
  let ticks = 0;
  return listPage(app, 'jobs', table, [filter.el, empty], {
    update() {
      if (++ticks % 5) table.update(table.rows);
      else load().catch(e => app.note(e.message));
    },
    keys: filter.keys,
  });
}
