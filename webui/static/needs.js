// What needs you: each incident as a card in its stage. Words, stage and action come from the server; keys are ours.
import { h, setText } from './h.js?v=__V__';
import { age, clock, pathTo } from './format.js?v=__V__';
import { get } from './api.js?v=__V__';
import { FAILED } from './levels.js?v=__V__';

/** A stage's tone, and its pill where that has another word. @type {Record<string, [string, string?]>} */
const TONES = {
  suspect: ['suspect'],
  late: ['suspect', 'starved'],
  ...Object.fromEntries([...FAILED, 'unreadable', 'incomplete'].map(s => [s, ['slow']])),
  moving: ['plan'],
  measuring: ['plan', 'moved, measuring'],
  plan: ['plan', 'plan waits'],
  helped: ['well'],
};
const KEYS = /** @type {Record<string, string>} */ ({ approve: 'A', propose: 'p', exclude: 'e', look: 'n', open: 'n' });
const MOST = 6;
/** How often the chart beside the first card is read again, ms. */
const AGAIN = 10_000;
/** From so many findings on each has one line of who suffers, so that all of them are seen at once. */
const MANY = 3;
/** How many of the plans that wait have a line where something is wrong: they have a page of their own. */
const PLANS = 2;

/** The tone of a card. @param {any} c */
export const tone = c => TONES[c?.stage]?.[0] ?? 'off';

/** Its stage in a word. @param {any} c */
export const pill = c => h(`span.pill.${tone(c)}`, TONES[c.stage]?.[1] ?? c.stage);

/** Where what needs a person is read, of another site at its own address; nowhere without one. @param {any} n */
export function needAt(n) {
  if (n.site && !n.url) return undefined;
  const about = { findings: n.finding, plans: n.plan, forwarders: n.node };
  const of = Object.entries(about).find(([, id]) => id);
  return (n.url ?? '') + (of ? pathTo(...of) : '/findings');
}

/** Where an action of a card is taken. @param {any} c @param {any} a */
const actAt = (c, a) =>
  ({
    propose: `/propose?from=${encodeURIComponent(c.node)}`,
    exclude: `${pathTo('forwarders', c.node)}?act=drain`,
    look: needAt(c),
    doctor: c.node ? pathTo('forwarders', c.node) : '/findings',
    approve: `/plans/${a.plan}?act=approve`,
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
        KEYS[a.name] && h('kbd', KEYS[a.name]),
      ),
    );

/** What waits for a person because of a forwarder, finding or plan. @param {any} o @param {string} id */
export const needOf = (o, id) => (o?.needs ?? []).find(n => [n.finding, n.plan, n.node].includes(id));

/** The plan that the first need waits for: `A` opens it, its forwarders are marked. @param {any} o @returns {string} */
export const chosenPlan = o => (o?.needs ?? []).find(n => n.action?.name === 'approve')?.plan ?? '';

/** Who waits, the ones that lose most first. @param {any[]} victims @param {number} most */
export const victimLines = (victims, most) => [
  ...victims
    .slice(0, most)
    .map(v =>
      h(
        'div.victim',
        h('meter', { min: 0, max: 1, value: v.share, 'aria-label': `job ${v.job} waits` }),
        v.job ? h('a.text', { href: pathTo('jobs', v.job) }, v.text) : h('span.text', v.text),
      ),
    ),
  victims.length > most && h('div.dim', `and ${victims.length - most} more`),
];

/** What helps, with its key. @param {any} c */
export const helps = c =>
  c.action?.text &&
  h(
    'p.remedy',
    h('span.arrow', { 'aria-hidden': 'true' }, '→ '),
    c.action.text,
    KEYS[c.action.name] && ' ',
    KEYS[c.action.name] && h('kbd', KEYS[c.action.name]),
  );

/** Who else uses targets that are slow, and which site does not say. @param {any[]|undefined} list */
export const sharedLines = list =>
  (list ?? []).map(t => h('div', h('b', t.text), ...t.lines.map(l => h('div.dim', l))));

/** Who suffers and what helps, as facts of a page about one thing; nothing where nobody waits for a person.
 * @param {any} n */
export function needFacts(n) {
  /** @type {[string, HTMLElement][]} */
  const facts = [];
  if (n?.victims.length) facts.push(['suffers', h('div', ...victimLines(n.victims, 3))]);
  if (n?.action?.text && n.action.name !== 'look') facts.push(['helps', helps(n)]);
  return facts;
}

/** For how long, or for how long it has been over. @param {import('./app.js').App} app @param {any} n */
export function since(app, n) {
  const from = Date.parse(n.since);
  const end = n.stage !== 'cleared' && n.steps?.find(s => s.name === 'well again');
  if (end) return 'lasted ' + age(Date.parse(end.at) - from);
  const word = n.stage === 'cleared' ? 'over for ' : n.plan && !n.finding ? '' : 'for ';
  return from > 0 ? word + age(app.now() - from) : 'never seen';
}

/** The way from suspicion to help, with what comes next. @param {any[]|undefined} all */
export const steps = all =>
  h(
    'ol.steps',
    ...(all ?? []).map(x =>
      h(`li.${x.state || 'todo'}`, h('b', x.name), [x.at && clock(x.at), x.by].filter(Boolean).join(' ')),
    ),
  );

/** What it is about, with its node where the sentence does not name it. @param {any} n */
const idOf = n =>
  [...new Set([n.finding ?? n.plan ?? n.node, !n.sentence?.includes(n.node) && n.node])]
    .filter(v => v && v !== '*')
    .join(' ');

/** What is so in one sentence, how much and why, who pays, what to press. @param {import('./app.js').App} app
 * @param {any} n @param {number} most victims that are named */
const words = (app, n, most) =>
  h(
    'div.words',
    h(
      'div.head',
      pill(n),
      h('a.id', { href: needAt(n) }, idOf(n)),
      h('span.for.dim', since(app, n)),
    ),
    h('a.what', { href: needAt(n) }, n.sentence),
    h('p.second.dim', n.second ?? ''),
    n.cause && h('p.cause.dim', n.cause),
    ...victimLines(n.victims, most),
    n.action?.text && h('p.remedy', h('span.arrow', { 'aria-hidden': 'true' }, '→ '), n.action.text),
    h('div.buttons', ...actions(n)),
  );

export class Needs {
  /** @param {import('./app.js').App} app */
  constructor(app) {
    this.app = app;
    this.story = h('article.need.first.card', { 'aria-label': 'what needs you first' });
    this.list = h('div.needs');
    this.el = h('section.card', { 'aria-label': 'needs you', hidden: true }, h('h2', 'Also'), this.list);
    this.proof = h('div.proof.incident');
    this.key = '';
    this.proved = 0; // when the chart was read
  }

  update(o) {
    const needs = o.needs ?? [],
      wrong = needs.filter(n => n.finding).length;
    let plans = wrong ? PLANS : MOST;
    const shown = needs.filter(n => n.stage !== 'plan' || plans-- > 0).slice(0, MOST);
    const key = JSON.stringify(
      shown.map(n => [n.finding, n.plan, n.stage, n.cause, n.victims.map(v => v.job), n.action, n.others, n.steps]),
    );
    if (!needs.length) return this.calm(o);
    if (key !== this.key) {
      this.key = key;
      this.story.className = `need first card ${tone(shown[0])}`;
      this.story.replaceChildren(words(this.app, shown[0], wrong >= MANY ? 1 : 3), this.proof, steps(shown[0].steps));
      this.list.replaceChildren(...shown.slice(1).map(n => this.row(n)));
      const more = needs.length - shown.length,
        href = o.sites ? null : wrong > MOST ? '/findings' : '/plans';
      if (more) this.list.append(h('p', h('a', { href }, `${more} more`)));
      this.el.hidden = shown.length < 2;
    }
    // Numbers change in place: a button keeps the focus.
    shown.forEach((n, i) => this.say(i ? this.list.children[i - 1] : this.story, n));
    this.prove(shown[0]).catch(() => {}); // the next second tries again
  }

  /** @param {Element} el @param {any} n */
  say(el, n) {
    for (const [at, text] of [
      ['.what', n.sentence],
      ['.for', since(this.app, n)],
      ['.second', n.second ?? ''],
    ]) {
      const to = el.querySelector(at);
      if (to) setText(to, text);
    }
    el.querySelectorAll('.victim .text').forEach((t, k) => setText(t, n.victims[k]?.text ?? ''));
    el.querySelectorAll('.victim meter').forEach((t, k) => t.setAttribute('value', String(n.victims[k]?.share ?? 0)));
  }

  /** The chart that makes the sentence true, beside it. @param {any} n */
  async prove(n) {
    if (!n.finding || n.site || this.app.at() || innerWidth < 1100) return this.proof.replaceChildren();
    if (performance.now() - this.proved < AGAIN && this.proof.dataset.of === n.finding) return;
    this.proved = performance.now();
    this.proof.dataset.of = n.finding;
    const [{ chart }, inc] = await Promise.all([
      import('./chart.js?v=__V__'),
      get(`/api/v1/findings/${encodeURIComponent(n.finding)}/incident`),
    ]);
    if (inc.series.charts.length) this.proof.replaceChildren(chart(inc, inc.series.charts[0], 520, 180, true).figure);
  }

  /** What was compared, when nothing is wrong. @param {any} o */
  calm(o) {
    if (this.key !== 'calm') this.story.replaceChildren(h('p.calm'));
    this.key = 'calm';
    this.story.className = 'need first card';
    this.el.hidden = true;
    setText(this.story.children[0], o.calm ?? '');
  }

  /** A card after the first, as a row. @param {any} n */
  row(n) {
    const a = n.action;
    return h(
      `article.need.brief.${tone(n)}`,
      pill(n),
      h('a.id', { href: needAt(n) }, idOf(n)),
      h('a.what', { href: needAt(n) }),
      victimLines(n.victims, 1)[0],
      h('span.for.dim'),
      a && h('a.button', { href: actAt(n, a), title: a.text }, a.label),
    );
  }
}
