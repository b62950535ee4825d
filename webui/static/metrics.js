// The catalogue of metrics, as the server has it.
import { mega, missing, number, sum } from './format.js?v=__V__';

/**
 * @typedef {{name: string, label: string, column?: {name: string, title: string}, help: string, unit: string,
 * shown_unit: string, factor: number, digits: number, full?: number, chart?: string, scale?: string, scale_label?:
 * string,
 * layers: Record<string, string[]>}} Metric
 */
const answer = await fetch('/api/v1/metrics');
if (!answer.ok) throw new Error(`the catalogue of metrics: HTTP ${answer.status}`);

/** In the order in which lists and pages show them. @type {Metric[]} */
export const catalogue = await answer.json();
/** @type {Record<string, Metric>} */
export const metricOf = Object.fromEntries(catalogue.map(m => [m.name, m]));

/** The metrics of each chart. */
export const charted = [
  ...Map.groupBy(
    catalogue.filter(m => m.chart),
    m => m.chart,
  ).values(),
].map(group => group.map(m => m.name));

/** The metrics that a layer shows in a place. @param {string} layer @param {string} place */
export const shownAs = (layer, place) => catalogue.filter(m => m.layers[layer]?.includes(place));

/** A value in its unit on screens. @param {Metric} m @param {number|null|undefined} v */
export const shown = (m, v) =>
  v === null || v === undefined ? missing : m.digits ? number(v * m.factor) : (v * m.factor).toFixed(0);

/** The value of a metric in a forwarder's row. @param {any} r @param {string} name @returns {number|undefined} */
export const valueOf = (r, name) => r?.values?.[name];

/** What a forwarder moves, bytes/s; null where nothing of it is known. @param {any} r @returns {number|null} */
export const moved = r =>
  sum(sum(valueOf(r, 'read_bytes') ?? null, valueOf(r, 'write_bytes') ?? null), valueOf(r, 'routed_bytes') ?? null);

/** The parts of it, in MB/s. @param {any} r */
export const rates = r =>
  valueOf(r, 'routed_bytes') === undefined
    ? `read ${mega(valueOf(r, 'read_bytes'))}  write ${mega(valueOf(r, 'write_bytes'))}`
    : `routed ${mega(valueOf(r, 'routed_bytes'))}`;

/** A column of a metric in a list of forwarders. @param {Metric} m @returns {import('./table.js').Column} */
const columnOf = m => ({
  name: m.column?.name ?? m.name,
  head: m.column?.title ?? m.name,
  title: m.shown_unit ? `${m.label}, ${m.shown_unit}` : m.label,
  num: true,
  rare: true,
  text: r => shown(m, valueOf(r, m.name)),
  value: r => valueOf(r, m.name),
});

/** The columns of a list of forwarders that the catalogue has. */
export const listed = shownAs('forwarder', 'list').map(columnOf);

/** The scales of a layer's heat map: the name in addresses, the label, and how full scale is written.
 * @param {string} layer */
export const scalesOf = layer =>
  [...Map.groupBy(shownAs(layer, 'scale'), m => m.scale ?? '').values()].map(([m]) => ({
    name: m.scale ?? '',
    title: m.scale_label ?? m.label,
    peak: m.unit === 'bytes/s',
    full: v => `${shown(m, v ?? m.full)} ${m.shown_unit}`,
  }));
