// Marks and colours: the same tables as the terminal (console/chart/palette.go). Levels come from the server.
import { colour, h } from './h.js?v=__V__';
import { counted } from './format.js?v=__V__';
import { scalesOf } from './metrics.js?v=__V__';

/** Red, green and blue of a colour such as #12356c. @param {string} hex @returns {number[]} */
export const rgbOf = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
/** Ten even steps of cividis, dark to light. */
const cividis = '#00224e #123570 #3b496c #575d6d #707173 #8a8678 #a59c74 #c3b369 #e1cc55 #fee838'.split(' ').map(rgbOf);
/** The same ends on a light page: what does little is as light as the page. */
const onLight = cividis.map((_, i) =>
  cividis[0].map((dark, k) => Math.round([234, 238, 244][k] * (1 - i / 9) + (dark * i) / 9)),
);
/** Ten steps from the page's colour to what stands out most from it. */
export const ramp = () => (colour('--ramp') === 'light' ? onLight : cividis);
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

/** Where a metric stands among those that a grid can show; the first where it has none of that name.
 * @param {{name: string}[]} all @param {string} name */
export const placeOf = (all, name) =>
  Math.max(
    0,
    all.findIndex(m => m.name === name),
  );

/** The sign of a row's level. @param {any} r @param {number} metric */
const signOf = (r, metric) => r.levels?.[metric] ?? '-';

/** The standings that are a level of alarm, the worst first. */
export const FAILED = ['dead', 'hung', 'slow'];

/** The place of a row among the slow: confirmed, then suspect, then by how slow it is. @param {any} r */
export const rank = r =>
  (FAILED.includes(r.state) ? 2e4 : mark(r) === '?!' ? 1e4 : 0) + (r.slow ?? (r.state === 'idle' ? -1 : 0));

/** The level of a row; old numbers have none. @param {any} r @param {number} metric */
export function levelOf(r, metric) {
  if (hidden(r)) return UNKNOWN;
  if (FAILED.includes(r.state)) return SLOW;
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
  const sign = { silent: '?', drained: 'x', suspect: '?!', trial: '?!' }[/** @type {'trial'} */ (r.state)];
  if (sign || FAILED.includes(r.state)) return sign ?? '!';
  if (plan && r.plan === plan) return '>';
  return r.state === 'dedicated' ? 'd' : '';
}

/** Old numbers lie: a silent or drained cell shows none. @param {any} r */
const hidden = r => r.state === 'silent' || r.state === 'drained';

/** The first column; of a suspect the first half of its mark. @param {any} r @param {number} metric */
export const digit = (r, metric) =>
  hidden(r) ? ' ' : r.state === 'suspect' || r.state === 'trial' ? '?' : signOf(r, metric);

/** Draws a name, with N where a person wrote a note about it. @param {HTMLElement} cell @param {string} name
 * @param {any} f the finding */
export function drawNoted(cell, name, f) {
  const key = `${name} ${f?.notes ?? 0} ${f?.note ?? ''}`;
  if (cell.dataset.key === key) return;
  cell.dataset.key = key;
  const title = f?.notes && `${counted(f.notes, 'note')}, the newest by ${f.note}`;
  cell.replaceChildren(name, title ? h('abbr.note', { title }, 'N') : '');
}

/** The letter of what happened at a time. @param {any} m */
export const glyph = m =>
  ({ finding: '!', note: 'N', plan: 'P', exclusion: 'x', job: 'J', connection: 'c' })[/** @type {'plan'} */ (m.kind)] ??
  '?';
