// What needs you: each as a card with what is wrong, who suffers, and what to do.
import { h, setText } from './h.js?v=__V__';
import { age } from './format.js?v=__V__';

const words = /** @type {Record<string, string>} */ ({
  slow: 'Slow',
  suspect: 'Suspect',
  silent: 'Silent',
  neighbour: 'Neighbour',
  'back end': 'Back end',
  plan: 'Plan waits',
});
const MOST = 6;
/** From so many findings on each has one line of who suffers, so that all of them are seen at once. */
const MANY = 3;
/** How many of the plans that wait have a line where something is wrong: they have a page of their own. */
const PLANS = 2;

/** Where what needs a person is read. @param {any} n */
export const needAt = n =>
  n.finding ? `/findings/${n.finding}` : n.plan ? `/plans/${n.plan}` : `/forwarders/${encodeURIComponent(n.node)}`;

/** What helps, with its keys. @param {any} r @returns {(string|HTMLElement)[]} */
export const remedyWords = r => [
  r.text,
  ...(r.key ? [' ', h('kbd', null, r.key)] : []),
  ...(r.else ? [', or ', ...remedyWords(r.else)] : []),
];

/** What waits for a person because of a forwarder, finding or plan. @param {any} o @param {string} id */
export const needOf = (o, id) =>
  (o?.needs ?? []).find((/** @type {any} */ n) => [n.finding, n.plan, n.node].includes(id));

/** The plan that the first need waits for: `A` opens it, its forwarders are marked. @param {any} o @returns {string} */
export const chosenPlan = o => (o?.needs ?? []).find((/** @type {any} */ n) => n.plan)?.plan ?? '';

/** Who waits, the ones that lose most first. @param {any[]} victims @param {number} most */
export const victimLines = (victims, most) => [
  ...victims
    .slice(0, most)
    .map(v =>
      h(
        'div.victim',
        null,
        h('meter', { min: 0, max: 1, value: v.share, 'aria-label': `job ${v.job} waits` }),
        h('a.text', { href: `/jobs/${encodeURIComponent(v.job)}` }, v.text),
      ),
    ),
  victims.length > most && h('div.dim', null, `and ${victims.length - most} more`),
];

/**
 * Who suffers and what helps, as facts of a page about one thing; nothing where nobody waits for a person.
 * @param {any} n
 */
export function needFacts(n) {
  /** @type {[string, HTMLElement][]} */
  const facts = [];
  if (n?.victims.length) facts.push(['suffers', h('div', null, ...victimLines(n.victims, 3))]);
  if (n?.remedy && n.remedy.action !== 'look') facts.push(['helps', h('span', null, ...remedyWords(n.remedy))]);
  return facts;
}

export class Needs {
  /** @param {import('./app.js').App} app */
  constructor(app) {
    this.app = app;
    this.list = h('div.needs');
    this.el = h('section.card', { 'aria-label': 'needs you' }, h('h2', null, 'Needs you'), this.list);
    this.key = '';
  }

  /** @param {any} o */
  update(o) {
    const needs = o.needs ?? [],
      wrong = needs.filter((/** @type {any} */ n) => n.finding).length,
      many = wrong >= MANY;
    let plans = wrong ? PLANS : MOST;
    const shown = needs.filter((/** @type {any} */ n) => n.state !== 'plan' || plans-- > 0).slice(0, MOST);
    const key = JSON.stringify([
      many,
      ...shown.map((/** @type {any} */ n) => [n.finding, n.plan, n.state, n.victims.length, n.remedy?.text]),
    ]);
    if (key !== this.key) {
      this.key = key;
      this.list.replaceChildren(
        ...shown.map((/** @type {any} */ n, /** @type {number} */ i) => this.card(n, i === 0, many)),
      );
      if (needs.length > shown.length)
        this.list.append(
          h(
            'p',
            null,
            h('a', { href: wrong > MOST ? '/findings' : '/plans' }, `${needs.length - shown.length} more`),
          ),
        );
    }
    if (!needs.length) return this.calm(o);
    // Numbers change in place: a button keeps the focus.
    shown.forEach((/** @type {any} */ n, /** @type {number} */ i) => {
      const el = this.list.children[i];
      setText(/** @type {Element} */ (el.querySelector('.what')), n.what);
      setText(/** @type {Element} */ (el.querySelector('.for')), this.since(n));
      el.querySelectorAll('.victim .text').forEach((t, k) => setText(t, n.victims[k]?.text ?? ''));
      el.querySelectorAll('.victim meter').forEach((t, k) =>
        t.setAttribute('value', String(n.victims[k]?.share ?? 0)),
      );
    });
  }

  /** @param {any} n */
  since(n) {
    const times = n.times > 1 ? `${n.times} times in ` : n.plan && !n.finding ? 'waits ' : 'for ';
    return Date.parse(n.since) > 0 ? times + age(this.app.now() - Date.parse(n.since)) : 'never seen';
  }

  /** What was compared, when nothing is wrong. @param {any} o */
  calm(o) {
    if (!this.list.querySelector('p.calm')) this.list.replaceChildren(h('p.calm'));
    setText(this.list.children[0], o.calm ?? '');
  }

  /** @param {any} n @param {boolean} first @param {boolean} many */
  card(n, first, many) {
    const to = needAt(n);
    if (n.state === 'plan' && !first)
      // Of several that wait a line each, so that the list of the slow stays in sight.
      return h(
        'article.need.plan.brief',
        null,
        h('span.badge', null, words[n.state]),
        h('a.id', { href: to }, n.plan),
        h('span.what'),
        h('span.for.dim'),
      );
    const buttons = [];
    if (n.remedy?.plan)
      buttons.push(
        h(
          'a.button.primary',
          { href: `/plans/${n.remedy.plan}` },
          this.app.at() ? 'Look at the plan' : 'Look at the plan, approve',
        ),
      );
    else if (n.remedy?.action === 'propose' && n.node)
      buttons.push(
        h('a.button.primary', { href: `/propose?from=${encodeURIComponent(n.node)}` }, 'Propose a move'),
      );
    if (n.finding) buttons.push(h('a.button', { href: to }, 'Evidence'));
    if (n.state === 'slow' && n.node)
      buttons.push(h('a.button', { href: `/forwarders/${encodeURIComponent(n.node)}` }, n.node));
    return h(
      `article.need.${n.state.replace(' ', '-')}${first ? '.first' : ''}`,
      null,
      h(
        'div.head',
        null,
        h('span.badge', null, words[n.state] ?? n.state),
        h('a.id', { href: to }, n.finding ?? n.plan ?? n.node),
        h('span.for.dim'),
      ),
      h('a.what', { href: to }),
      ...victimLines(n.victims, first && !many ? 3 : 1),
      h(
        'div.act',
        null,
        n.remedy
          ? h(
              'p.remedy',
              null,
              h('span.arrow', { 'aria-hidden': 'true' }, '→ '),
              ...remedyWords(n.remedy),
            )
          : null,
        h('div.buttons', null, ...buttons),
      ),
    );
  }
}
