// Marks and colours: the same tables as the terminal (console/chart/palette.go). Levels come from the server.
import { scalesOf } from './metrics.js?v=__V__';

/** Ten even steps of cividis, dark to light. @type {[number, number, number][]} */
const cividis = [
  [0, 34, 78],
  [18, 53, 112],
  [59, 73, 108],
  [87, 93, 109],
  [112, 113, 115],
  [138, 134, 120],
  [165, 156, 116],
  [195, 179, 105],
  [225, 204, 85],
  [254, 232, 56],
];
const NAVY = [0, 34, 78];
/** The same ends on a light page: what does little is as light as the page. @type {number[][]} */
const onLight = cividis.map((_, i) =>
  NAVY.map((dark, k) => Math.round([234, 238, 244][k] * (1 - i / 9) + (dark * i) / 9)),
);
/** Ten steps from the page's colour to what stands out most from it. */
export const ramp = () =>
  getComputedStyle(document.documentElement).getPropertyValue('--ramp').trim() === 'light' ? onLight : cividis;
/** What can be read on a colour. @param {number[]} rgb */
export const inkOn = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b > 110 ? '#000' : '#fff');
export const IDLE = -1,
  UNKNOWN = -2,
  SUSPECT = 10, // what detectors accuse has the colour of its state at any level
  SLOW = 11;

/** What the grid of forwarders can show, in the order of a row's levels. */
export const metrics = [
  { name: 'slow', title: 'slowness', least: 'as fast as its peers', most: '50 times as slow' },
  { name: 'occ', title: 'occupancy', least: 'never near its peak', most: 'all of the last hour' },
  ...scalesOf('forwarder').map(s => ({
    name: s.name,
    title: s.title,
    least: 'next to nothing',
    most: s.peak ? 'its peak' : s.full(undefined),
  })),
];

/** What the compute grid can show: the feed's name and how its full scale is written. */
export const computeMetrics = scalesOf('compute');

/** The sign of a row's level. @param {any} r @param {number} metric */
const signOf = (r, metric) => r.levels?.[metric] ?? '-';

/** The place of a row among the slow: confirmed, then suspect, then by how slow it is. @param {any} r */
export const rank = r =>
  (({ slow: 2e4, suspect: 1e4, trial: 1e4 })[/** @type {'slow'} */ (r.state)] ?? 0) +
  (r.slow ?? (r.state === 'idle' ? -1 : 0));

/** The level of a row. @param {any} r @param {number} metric */
export function levelOf(r, metric) {
  if (r.state === 'slow') return SLOW;
  if (r.state === 'suspect') return SUSPECT;
  const sign = signOf(r, metric);
  return sign === '.' ? IDLE : sign === '-' ? UNKNOWN : Number(sign);
}

/** A standing as lists write it: of one that carries work how much of its peak. @param {string} state
 * @param {number|null|undefined} busy */
export const standing = (state, busy) =>
  state !== 'ok' ? state : busy === null || busy === undefined ? 'busy' : `busy ${(100 * busy).toFixed(0)} %`;

/** The second column of a cell. @param {any} r @param {string} [plan] whose forwarders are marked */
export function mark(r, plan) {
  switch (r.state) {
    case 'silent':
      return '?';
    case 'drained':
      return 'x';
    case 'slow':
      return '!';
    case 'suspect':
    case 'trial':
      return '?!';
  }
  if (plan && r.plan === plan) return '>';
  return r.state === 'dedicated' ? 'd' : '';
}

/** Old numbers lie: a silent or drained cell shows none. @param {any} r */
export const hidden = r => r.state === 'silent' || r.state === 'drained';

/** The first column; of a suspect the first half of its mark. @param {any} r @param {number} metric */
export const digit = (r, metric) =>
  hidden(r) ? ' ' : r.state === 'suspect' || r.state === 'trial' ? '?' : signOf(r, metric);

/** The letter of what happened at a time. @param {any} m */
export const glyph = m =>
  ({ finding: '!', note: 'N', plan: 'P', exclusion: 'x', job: 'J', connection: 'c' })[
    /** @type {'plan'} */ (m.kind)
  ] ?? '?';
