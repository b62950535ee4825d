// Several sites on one page: what needs somebody at any of them, how each is, and what they share. Every link leads to
// the site's own pages.
import { h, setText } from './h.js?v=__V__';
import { age } from './format.js?v=__V__';
import { Needs, needAt, sharedLines, tone } from './needs.js?v=__V__';
import { Table, column, numeric } from './table.js?v=__V__';
import { get } from './api.js?v=__V__';

const EVERY = 2000,
  HIDDEN = 15_000; // ms

/** Asks again and again, and says what comes as live.js does. */
export class Asked {
  /** @param {{message: (m: any) => void, state: (connected: boolean) => void}} on */
  constructor(on) {
    this.on = on;
    this.tries = 0;
    this.timer = 0;
    /** @type {any} */
    this.ws = null; // whether it has begun
  }

  want() {}

  async connect() {
    const mine = (this.ws = {});
    clearTimeout(this.timer);
    const v = await get('/api/v1/sites').catch(() => null);
    if (mine !== this.ws) return;
    this.tries = v ? 0 : this.tries + 1;
    this.on.state(Boolean(v));
    this.timer = window.setTimeout(() => this.connect(), document.hidden ? HIDDEN : EVERY);
    if (v) this.on.message({ now: v.at, overview: frame(v) });
  }
}

/** @param {any} r */
const worst = r => r.worst?.sentence ?? r.why ?? '-';

/** What the console's frame shows of an overview. @param {any} v */
const frame = v => ({
  machine: 'all machines',
  at: v.at,
  late_after_seconds: 5,
  stale_after_seconds: 15,
  forwarders: [],
  findings: [],
  waiting: [],
  needs: v.needs.map(n => ({ ...n, sentence: `${n.site}: ${n.sentence}` })),
  calm: `${v.sentence}.`,
  sites: v,
});

/** @param {import('./app.js').App} app @returns {import('./app.js').Page} */
export function sitesPage(app) {
  const needs = new Needs(app),
    line = h('p.summary'),
    shared = h('section.card', { hidden: true }, h('h2', 'Shared targets'));
  const table = new Table(
    [
      column('site', 'SITE', r => r.site, { draw: (cell, r) => link(cell, r.site, r.url && `${r.url}/`) }),
      column('state', 'STATE', r => r.word),
      numeric('age', 'NEWEST', r => r.age_seconds, s => age(1000 * s), { text: r => since(r) }),
      numeric('findings', 'FINDINGS', r => r.findings, null, { text: r => String(r.findings ?? '-') }),
      column('worst', 'WORST', worst, {
        wrap: true,
        draw: (cell, r) => link(cell, worst(r), needAt({ ...r.worst, site: r.site, url: r.worst && r.url })),
      }),
    ],
    { id: r => r.site, sort: '-site', caption: 'sites' },
  );
  const rows = v =>
    v.sites.map(r => ({ ...r, word: r.state, state: r.worst ? tone(r.worst) : r.why ? 'suspect' : '' }));
  /** How old its newest second is, or since when it is missing. @param {any} r */
  const since = r =>
    r.since
      ? `missing for ${age(app.now() - Date.parse(r.since))}`
      : r.age_seconds >= 0
        ? age(1000 * r.age_seconds)
        : '-';
  return {
    title: 'sites',
    keys: {},
    el: h(
      'div',
      h('h1.sr', 'Sites'),
      line,
      needs.story,
      needs.el,
      h('section.card', h('h2', 'Sites'), table.el),
      shared,
    ),
    update(o) {
      const v = o.sites;
      setText(line, [v.needs.length && v.sentence, v.second].filter(Boolean).join('. '));
      needs.update(o);
      table.update(rows(v));
      shared.hidden = !v.shared.length;
      shared.replaceChildren(
        shared.children[0],
        ...sharedLines(v.shared),
        v.left > 0 && h('p.dim', `${v.left} further ones are not shown.`),
        h('p.dim', 'Targets to which several sites give one name are taken for one.'),
      );
    },
  };
}

/** A text that leads to a site's own page where a browser reaches that. @param {HTMLElement} cell @param {string} text
 * @param {string|undefined} to */
function link(cell, text, to) {
  const key = `${text} ${to}`;
  if (cell.dataset.of === key) return; // a link keeps the focus
  cell.dataset.of = key;
  cell.replaceChildren(to ? h('a', { href: to }, text) : text);
}
