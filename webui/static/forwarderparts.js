// What a forwarder's page lists and says in words: its clients, its back end, its canary, and its life.
import { age, clock, counted, millis, missing, number } from './format.js?v=__V__';
import { column, moving, numeric } from './table.js?v=__V__';

const moved = [
  moving('read', 'READ MB/s', r => r.read_bytes_per_sec),
  moving('write', 'WRITE MB/s', r => r.write_bytes_per_sec),
];

/** @type {import('./table.js').Column[]} */
export const clientColumns = [
  column('job', 'JOB', r => r.job || '-'),
  numeric('latency', 'LATENCY ms', r => r.latency_seconds, millis),
  ...moved,
  numeric('mdops', 'MD/S', r => r.meta_ops_per_sec, number, { wide: true }),
  numeric('late', 'LATE s', r => r.way?.late_seconds, null, {
    rare: true,
    title: 'how long after its end its newest second came',
    text: r => r.way?.late_seconds?.toFixed(1) ?? missing,
  }),
];

/** What one forwarder asks of each storage target. @type {import('./table.js').Column[]} */
export const storageColumns = [
  column('target', 'BACK END', r => r.target),
  numeric('latency', 'LATENCY ms', r => r.latency_seconds, millis),
  numeric('peers', 'PEERS ms', r => r.peers_latency_seconds, millis),
  numeric('requests', 'REQUESTS/S', r => r.requests_per_sec, number),
  ...moved,
  column('most', 'MOST BY', r => r.most?.who ?? '', { rare: true, value: r => r.most?.who }),
];

/** What a canary found, beside the median of the other forwarders'. @param {any} c */
export function canaryWords(c) {
  const one = name => {
    const p = c.peers[`${name}_seconds`];
    return (
      `${name} ${millis(c.took[`${name}_seconds`])} ` +
      `ms${p === null || p === undefined ? '' : ` (peers ${millis(p)})`}`
    );
  };
  const rest = c.error
    ? `FAILED: ${c.error}`
    : c.peers_of
      ? `peers: ${counted(c.peers_of, 'forwarder')}`
      : 'no other forwarder was probed yet';
  return [`${clock(c.at)}${c.by ? ` by ${c.by}` : ''}`, one('read'), one('write'), one('stat'), rest].join(',  ');
}

/** The steps of a forwarder's open finding, what that waits for, and the earlier ones. @param {any} l
 * @param {boolean} live */
export function lifeWords(l, live) {
  const steps = live
    ? [
        'healthy',
        ...l.steps.map(s => `${s.state} ${clock(s.at)}`),
        ...(l.next ? [`(${l.next}${l.next_from ? ` ${clock(l.next_from)}` : ''})`] : []),
      ]
    : [];
  const f = l.last;
  const earlier = f
    ? `${l.earlier} earlier: ${f.id} ${l.last_words} ${f.since.slice(0, 10)}, ` +
      `${age(Date.parse(f.changed) - Date.parse(f.since))}`
    : 'no earlier finding';
  return [steps.join(' -> '), earlier].filter(Boolean).join(';  ');
}
