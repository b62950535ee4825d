// What needs you: each incident as a card in its stage. Words, stage and action come from the server; keys are ours.
import { h, setText } from './h.js?v=__V__';
import { age } from './format.js?v=__V__';

/** A stage's tone, and its pill where that has another word. @type {Record<string, [string, string?]>} */
const TONES = {
  suspect: ['suspect'],
  late: ['suspect', 'starved'],
  slow: ['slow'],
  hung: ['slow'],
  dead: ['slow'],
  unreadable: ['slow'],
  incomplete: ['slow'],
  moving: ['plan'],
  measuring: ['plan', 'moved, measuring'],
  plan: ['plan', 'plan waits'],
  helped: ['well'],
};
const KEYS = /** @type {Record<string, string>} */ ({
  approve: 'A',
  propose: 'p',
  exclude: 'e',
  look: 'n',
  open: 'n',
});
const MOST = 6;
/** From so many findings on each has one line of who suffers, so that all of them are seen at once. */
const MANY = 3;
/** How many of the plans that wait have a line where something is wrong: they have a page of their own. */
const PLANS = 2;

/** The tone of a card. @param {any} c */
export const tone = c => TONES[c.stage]?.[0] ?? 'off';

/** Its stage in a word. @param {any} c */
export const pill = c => h(`span.pill.${tone(c)}`, null, TONES[c.stage]?.[1] ?? c.stage);

/** Where what needs a person is read. @param {any} n */
export const needAt = n =>
  n.finding
    ? `/findings/${n.finding}`
    : n.plan
      ? `/plans/${n.plan}`
      : n.node
        ? `/forwarders/${encodeURIComponent(n.node)}`
        : '/findings';

/** Where an action of a card is taken. @param {any} c @param {any} a */
const actAt = (c, a) =>
  ({
    propose: `/propose?from=${encodeURIComponent(c.node)}`,
    exclude: `/forwarders/${encodeURIComponent(c.node)}?act=drain`,
    look: needAt(c),
    doctor: c.node ? `/forwarders/${encodeURIComponent(c.node)}` : '/findings',
  })[/** @type {'look'} */ (a.name)] ?? `/plans/${a.plan}`;

/** The buttons of a card, at most one of them filled; of the past none. @param {any} c */
export const actions = c =>
  [c.action, ...(c.others ?? [])]
    .filter(Boolean)
    .map(a =>
      h(
        `a.button${a.filled ? '.primary' : ''}`,
        { href: actAt(c, a), title: a.text },
        a.label,
        KEYS[a.name] && h('kbd', null, KEYS[a.name]),
      ),
    );

/** What waits for a person because of a forwarder, finding or plan. @param {any} o @param {string} id */
export const needOf = (o, id) =>
  (o?.needs ?? []).find((/** @type {any} */ n) => [n.finding, n.plan, n.node].includes(id));

/** The plan that the first need waits for: `A` opens it, its forwarders are marked. @param {any} o @returns {string} */
export const chosenPlan = o =>
  (o?.needs ?? []).find((/** @type {any} */ n) => n.action?.name === 'approve')?.plan ?? '';

/** Who waits, the ones that lose most first. @param {any[]} victims @param {number} most */
export const victimLines = (victims, most) => [
  ...victims
    .slice(0, most)
    .map(v =>
      h(
        'div.victim',
        null,
        h('meter', { min: 0, max: 1, value: v.share, 'aria-label': `job ${v.job} waits` }),
        v.job
          ? h('a.text', { href: `/jobs/${encodeURIComponent(v.job)}` }, v.text)
          : h('span.text', null, v.text),
      ),
    ),
  victims.length > most && h('div.dim', null, `and ${victims.length - most} more`),
];

/** What helps, with its key. @param {any} c */
export const helps = c =>
  c.action?.text &&
  h(
    'p.remedy',
    null,
    h('span.arrow', { 'aria-hidden': 'true' }, '→ '),
    c.action.text,
    KEYS[c.action.name] && ' ',
    KEYS[c.action.name] && h('kbd', null, KEYS[c.action.name]),
  );

/**
 * Who suffers and what helps, as facts of a page about one thing; nothing where nobody waits for a person.
 * @param {any} n
 */
export function needFacts(n) {
  /** @type {[string, HTMLElement][]} */
  const facts = [];
  if (n?.victims.length) facts.push(['suffers', h('div', null, ...victimLines(n.victims, 3))]);
  if (n?.action?.text && n.action.name !== 'look') facts.push(['helps', helps(n)]);
  return facts;
}

/** For how long. @param {import('./app.js').App} app @param {any} n */
export function since(app, n) {
  const from = Date.parse(n.since);
  return from > 0 ? (n.plan && !n.finding ? '' : 'for ') + age(app.now() - from) : 'never seen';
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
    const shown = needs.filter((/** @type {any} */ n) => n.stage !== 'plan' || plans-- > 0).slice(0, MOST);
    const key = JSON.stringify([
      many,
      ...shown.map((/** @type {any} */ n) => [n.finding, n.plan, n.stage, n.victims.length, n.action, n.others]),
    ]);
    if (key !== this.key) {
      this.key = key;
      this.list.replaceChildren(
        ...shown.map((/** @type {any} */ n, /** @type {number} */ i) => this.card(n, i === 0, many)),
      );
      if (needs.length > shown.length)
        this.list.append(
          h('p', null, h('a', { href: wrong > MOST ? '/findings' : '/plans' }, `${needs.length - shown.length} more`)),
        );
    }
    if (!needs.length) return this.calm(o);
    // Numbers change in place: a button keeps the focus.
    shown.forEach((/** @type {any} */ n, /** @type {number} */ i) => {
      const el = this.list.children[i],
        say = (/** @type {string} */ at, /** @type {string} */ text) => {
          const to = el.querySelector(at);
          if (to) setText(to, text);
        };
      say('.what', n.sentence);
      say('.for', since(this.app, n));
      say('.second', n.second ?? '');
      el.querySelectorAll('.victim .text').forEach((t, k) => setText(t, n.victims[k]?.text ?? ''));
      el.querySelectorAll('.victim meter').forEach((t, k) =>
        t.setAttribute('value', String(n.victims[k]?.share ?? 0)),
      );
    });
  }

  /** What was compared, when nothing is wrong. @param {any} o */
  calm(o) {
    if (!this.list.querySelector('p.calm')) this.list.replaceChildren(h('p.calm'));
    setText(this.list.children[0], o.calm ?? '');
  }

  /** @param {any} n @param {boolean} first @param {boolean} many */
  card(n, first, many) {
    const to = needAt(n),
      head = [pill(n), h('a.id', { href: to }, n.finding ?? n.plan ?? n.node ?? ''), h('span.for.dim')];
    if (n.stage === 'plan' && !first)
      // Of several that wait a line each, so that the list of the slow stays in sight.
      return h('article.need.plan.brief', null, head[0], head[1], h('span.what'), head[2]);
    return h(
      `article.need.${tone(n)}${first ? '.first' : ''}`,
      null,
      h('div.head', null, ...head),
      h('a.what', { href: to }),
      h('p.second.dim'),
      ...victimLines(n.victims, first && !many ? 3 : 1),
      h('div.act', null, helps(n), h('div.buttons', null, ...actions(n))),
    );
  }
}
