// The effect meter of a plan: what its moves were measured to bring, before beside after.
import { h } from './h.js?v=__V__';
import { mega, millis } from './format.js?v=__V__';

/**
 * Two bars on one scale.
 * @param {string} what @param {{before: number, after: number}} change @param {(v: number) => string} write
 */
function bars(what, change, write) {
  const max = Math.max(change.before, change.after) || 1;
  const bar = (/** @type {'before' | 'after'} */ side) =>
    h(
      'span.side',
      null,
      h('span.dim', null, side),
      h('meter', { min: 0, max, value: change[side], 'aria-label': `${what} ${side}` }),
      write(change[side]),
    );
  return h('div', null, h('span.what', null, what), bar('before'), bar('after'));
}

/** @param {any} p a plan's view @param {boolean} mayRollBack */
export function effectMeter(p, mayRollBack) {
  const e = p.effect;
  const vain = ['no_effect', 'worse'].includes(e.verdict) && mayRollBack;
  return h(
    'div.effect',
    null,
    h('div', null, p.brought + (vain ? ': B takes it back' : '')),
    e.latency && bars(`${e.class} latency`, e.latency, v => `${millis(v)} ms`),
    e.rate && bars(e.job ? `job ${e.job}` : 'its nodes', e.rate, v => `${mega(v)} MB/s`),
  );
}
