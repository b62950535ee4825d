// The catalogue of metrics, as the server has it.
import { missing, number } from './format.js?v=__V__';

/**
 * @typedef {{name: string, label: string, head?: string, help: string, shown_unit: string, factor: number, digits:
 * number, full?: number, chart?: string, scale?: string, layers: Record<string, string[]>}} Metric
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
