// A plan's moves as a map: where its compute nodes are before, where after, and what that makes of
// each forwarder that it touches.
import { h } from './h.js?v=__V__';
import { counted, missing, pathTo, ratio } from './format.js?v=__V__';
import { Bands, largest, largestNames, room, sankey } from './sankey.js?v=__V__';
import { standing } from './levels.js?v=__V__';
import { Table, column, numeric } from './table.js?v=__V__';

const unknown = '(not known)';

/** @param {import('./app.js').App} app @param {any} p the plan
 * @returns {{el: HTMLElement, svg: SVGElement, table: Table}} */
export function planMap(app, p) {
  const moves = p.moves.filter(m => !m.limit),
    leave = new Map(),
    come = new Map();
  for (const m of moves) {
    const from = m.from || unknown;
    if (from === m.to) continue;
    leave.set(from, (leave.get(from) ?? 0) + 1);
    come.set(m.to, (come.get(m.to) ?? 0) + 1);
  }
  const fromName = largest(leave, 16, 'forwarders'),
    toName = largest(come, 24, 'forwarders');
  const bands = new Bands();
  for (const m of moves) {
    const from = fromName(m.from || unknown);
    if (m.from !== m.to) bands.add({ col: 0, from, to: toName(m.to), key: from, value: 1 });
  }
  const frozen = p.frozen?.forwarders ?? {};
  const rows = [...new Set([...leave.keys(), ...come.keys()])].map(id => {
    const f = frozen[id],
      row = app.overview?.forwarders.find(r => r.id === id);
    return {
      id,
      state: f ? standing(f.state, f.busy) : row && standing(row.state, row.busy),
      before: f?.clients,
      after: f ? f.clients - (leave.get(id) ?? 0) + (come.get(id) ?? 0) : undefined,
      change: (come.get(id) ?? 0) - (leave.get(id) ?? 0),
      occupancy: f?.load?.occupancy,
    };
  });
  const named = new Map(rows.map(r => [r.id, r]));
  const say = (col, id, n) => {
    const r = named.get(id),
      clients = col ? r?.after : r?.before;
    return (
      `${id}  ${col ? '+' : '-'}${n}` +
      `${clients === undefined || room().narrow ? '' : ` ${col ? '=' : 'of'} ${counted(clients, 'client')}`}`
    );
  };
  const svg = sankey(bands.all, ['before', 'after'], largestNames(leave, fromName), {
    label: `${counted(p.moves.length, 'compute node')} before and after; the numbers stand in the table below`,
    say,
    amount: n => counted(n, 'node'),
    left: 260,
    right: 260,
    go: (_, id) => {
      if (named.has(id) && id !== unknown) app.go(pathTo('forwarders', id));
    },
  });
  const table = new Table(
    [
      column('node', 'FORWARDER', r => r.id),
      column('state', 'STATE', r => r.state ?? missing),
      numeric('occ', 'OCC %', r => r.occupancy, ratio, { wide: true }),
      numeric('before', 'CLIENTS BEFORE', r => r.before, String),
      numeric('after', 'AFTER', r => r.after, String),
      numeric('change', 'CHANGE', r => r.change, null, { text: r => (r.change > 0 ? '+' : '') + r.change }),
    ],
    {
      id: r => r.id,
      go: r => (r.id === unknown ? '' : pathTo('forwarders', r.id)),
      sort: '-change',
      caption: 'forwarders that the plan touches',
    },
  );
  table.limit = 40;
  table.update(rows);
  return {
    el: h(
      'div',
      bands.all.length
        ? h('div.scroll', /** @type {any} */ (svg))
        : h('p.dim', 'Every node stays on the forwarder that it uses.'),
      table.el,
    ),
    svg,
    table,
  };
}
