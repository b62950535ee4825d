// The effect meter of a plan: what its moves were measured to bring, before beside after.
import { h } from './h.js?v=__V__';
import { mega, millis } from './format.js?v=__V__';

/** Bars on one scale; one that is not known is left out. @param {string} what
 * @param {Record<string, number|undefined>} sides @param {(v: number) => string} write */
function bars(what, sides, write) {
  const known = Object.entries(sides).filter(([, v]) => v !== undefined);
  const max = Math.max(...known.map(([, v]) => Number(v))) || 1;
  const bar = (side, value) => {
    const meter = h('meter', { min: 0, max, value, 'aria-label': `${what} ${side}` });
    return h(`span.side.${side}`, h('span.dim', side), meter, write(value));
  };
  return h('div', h('span.what', what), ...known.map(([side, v]) => bar(side, Number(v))));
}

/** @param {any} p a plan's view @param {boolean} mayRollBack */
export function effectMeter(p, mayRollBack) {
  const e = p.effect;
  const vain = ['no_effect', 'worse'].includes(e.verdict) && mayRollBack;
  return h(
    `div.effect.${e.verdict}`,
    h('div', p.brought + (vain ? ': B takes it back' : '')),
    e.latency &&
      bars(
        `${e.class} latency`,
        { ...e.latency, expected: e.expected ? e.latency.before / e.expected : undefined },
        v => `${millis(v)} ms`,
      ),
    e.rate && bars(e.job ? `job ${e.job}` : 'its nodes', { ...e.rate }, v => `${mega(v)} MB/s`),
  );
}
