// Levels, marks and colours: the same tables as the terminal (console/level.go, palette.go).
import { sum } from './format.js?v=__V__';

/** Ten even steps of cividis, dark to light. @type {[number, number, number][]} */
export const ramp = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];
/** Steps below this one need white digits. */
export const darkSteps = 5;
export const IDLE = -1, UNKNOWN = -2;

/** @typedef {{name: string, title: string, full: string, share: (r: any) => number|null}} Metric */
/** @type {Metric[]} */
export const metrics = [
  { name: 'occ', title: 'occupancy', full: 'busy all of the last hour', share: (r) => r.occupancy },
  { name: 'bw', title: 'bandwidth', full: 'its peak', share: (r) => part(sum(r.read_bytes_per_sec, r.write_bytes_per_sec), r.peak_bytes_per_sec) },
  { name: 'queue', title: 'queue', full: '64 waiting', share: (r) => part(r.queue_len, 64) },
  { name: 'mdwait', title: 'metadata wait', full: '100 ms', share: (r) => part(r.meta_wait_seconds, 0.1) },
  { name: 'err', title: 'errors', full: '10 a second', share: (r) => part(r.errors_per_sec, 10) },
];

/** What the compute grid can show: the feed's name and how its full scale is written. */
export const computeMetrics = [
  { name: 'bw', title: 'bandwidth', full: (/** @type {number} */ v) => `${(v / 1e6).toFixed(0)} MB/s` },
  { name: 'mdops', title: 'metadata operations', full: (/** @type {number} */ v) => `${v} a second` },
  { name: 'latency', title: 'latency', full: (/** @type {number} */ v) => `${v * 1e3} ms` },
  { name: 'err', title: 'errors', full: (/** @type {number} */ v) => `${v} a second` },
];

/** @param {number|null|undefined} v @param {number} of */
function part(v, of) {
  return v === null || v === undefined || !(of > 0) ? null : v / of;
}

/** @param {number|null|undefined} share */
export function level(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return UNKNOWN;
  return share < 0.01 ? IDLE : Math.min(9, Math.floor(share * 10));
}

/**
 * The shown step stays until the value is 3/4 of a step away from its middle.
 * @param {number|undefined} shown @param {number|null} share
 */
export function nextLevel(shown, share) {
  const want = level(share);
  if (shown === undefined || want === shown || want === UNKNOWN || shown === UNKNOWN || share === null) return want;
  if (shown === IDLE) return share < 0.0125 ? shown : want;
  if (want === IDLE) return share > 0.0075 ? shown : want;
  return Math.abs(Math.min(share, 1) - (shown + 0.5) / 10) < 0.075 ? shown : want;
}

/** The second column of a cell. @param {any} r */
export function mark(r) {
  switch (r.state) {
    case 'stale': return '?';
    case 'excluded': return 'x';
    case 'suspect': return '!';
  }
  if (r.plan) return '>';
  return r.state === 'dedicated' ? 'd' : '';
}

/** The first column; a stale or excluded cell shows none: old numbers lie. @param {any} r @param {number} lev */
export function digit(r, lev) {
  if (r.state === 'stale' || r.state === 'excluded') return ' ';
  return lev >= 0 ? String(lev) : lev === IDLE ? '.' : '-';
}

/** The letter of what happened at a time. @param {any} m */
export const glyph = (m) => ({ finding: '!', plan: 'P', exclusion: 'x', job: 'J' })[/** @type {'plan'} */ (m.kind)] ?? '?';
