// The console's frame: address, header, keys and the one state that all pages show. Pages are
// functions of the address; each gives its element, its keys, and what it does with a new picture.
import { button, h, modal, setText } from './h.js?v=__V__';
import { age, clock, counted, iso, zone } from './format.js?v=__V__';
import { Live } from './live.js?v=__V__';
import * as api from './api.js?v=__V__';
import { overviewPage } from './overview.js?v=__V__';
import { needAt } from './needs.js?v=__V__';
import { FAILED } from './levels.js?v=__V__';
import { RangePicker, rangeOf, shifted, spans, withRange } from './range.js?v=__V__';

/**
 * @typedef {{el: HTMLElement, topics?: string[], update?: (o: any) => void, grid?: (g: any) => void, message?: (m: any)
 * => void,
 *   keys: Record<string, [string, (e: KeyboardEvent) => void]>, close?: () => void, title: string, focus?: () => void,
 *   past?: () => void|Promise<void>, timeless?: boolean, stale?: () => void, range?: string}} Page
 * Its stale() takes old numbers away when no data come any more. One with a time axis has the range of time that it
 * shows where the address names none.
 * A page that has past can show another second than now: app.overview is of that second, app.at() says
 * which, and past() reads again what the page reads itself. A timeless one does not grow old when no
 * data come.
 */

/** @typedef {typeof app} App */

/** What every page may use. */
export const app = {
  /** What is shown: the newest second, or a past one. @returns {any} */
  get overview() {
    return replay ? replay.shown : newest;
  },
  /** The query that asks for the second that is shown: empty, or at=... */
  at: () => (replay ? `at=${new Date(replay.at).toISOString()}` : ''),
  session: { name: '', role: '', via: '' },
  now: () => (replay ? replay.at + 1000 : serverNow()),
  go,
  /** What the charts cover; usual is the page's own span. @param {string} usual */
  range: usual => {
    const q = new URLSearchParams(location.search);
    if (replay) (q.delete('from'), q.delete('to'));
    return rangeOf(q, usual, app.now());
  },
  setRange,
  zoomOut,
  note,
  unnote,
  ask: confirmOnce,
  copy,
  keysChanged: () => drawKeys(),
  paused: false,
  /** How long ago the shown second ended, ms; NaN before the first one. */
  age: () => Math.max(0, app.now() - Date.parse(app.overview?.at ?? '') - 1000),
  /** Whether what is shown is young enough to decide by. */
  fresh: () => app.age() <= app.overview?.stale_after_seconds * 1000,
  may: () => app.session.role === 'operator' || app.session.role === 'admin',
  /** A key behind what it does; nothing where there are no keys. @param {string} key */
  hint: key => (kiosk ? '' : ` (${key})`),
};

/** Nobody has hands here: no keys, nothing to press. */
const kiosk = new URLSearchParams(location.search).has('kiosk');
document.documentElement.toggleAttribute('data-kiosk', kiosk);

/** The server's clock less ours, ms. */
let clockAhead = 0;
let connected = false;
let denied = false; // a kiosk that may see nothing
const serverNow = () => Date.now() + clockAhead;
/** @type {any} the newest overview */
let newest = null;
/** @type {import('./replay.js').Replay|null} null while the present is shown */
let replay = null;
/** @type {Page|null} */
let page = null;
const el = id => /** @type {HTMLElement} */ (document.getElementById(id));

/** The one page of a server that has no machine of its own. */
const only = document.documentElement.dataset.only;
const onePage = only ? await import('./sites.js?v=__V__') : null;

const live = new (onePage?.Asked ?? Live)({
  message(m) {
    if (m.now) clockAhead = Date.parse(m.now) - Date.now();
    if (m.overview) {
      newest = m.overview;
      document.documentElement.dataset.sent = m.now;
      document.documentElement.dataset.frames = String(Number(document.documentElement.dataset.frames ?? 0) + 1);
      if (!app.paused && !replay) page?.update?.(m.overview);
      reveal();
    }
    if (replay) return drawBar();
    if (!app.paused || m.topic === 'plans') page?.message?.(m);
    drawBar();
  },
  grid(g) {
    if (!app.paused && !replay) page?.grid?.(g);
  },
  state(up) {
    connected = up;
    drawBar();
  },
});

/** Until when the first page waits for what it asked for, and how long all of it must have been there, ms. */
const OPENING = 1500,
  STILL = 100;
const opened = () => {
  document.documentElement.classList.remove('opening');
  sessionStorage.removeItem('fairway.retries'); // of first.js
};
/** Shows the first page once all that it asked for is there: nothing that is shown moves as more comes. */
let reveal = () => {
  reveal = () => {};
  let since = performance.now();
  const look = setInterval(() => {
    const now = performance.now();
    if (!api.settled()) since = now;
    if (now - since < STILL && now < OPENING) return;
    clearInterval(look);
    opened();
  }, 20);
};
setTimeout(() => reveal(), OPENING); // what never comes is not waited for
for (const kind of ['keydown', 'pointerdown']) addEventListener(kind, opened, { once: true, capture: true });

/** Lazily loaded pages by the first word of the address. @type {Record<string, (rest: string, q: URLSearchParams) =>
 * Promise<Page>|Page>} */
const pages = {
  overview: (_, q) => overviewPage(app, q),
  forwarders: async (id, q) => (await import('./forwarder.js?v=__V__')).forwarderPage(app, id, q),
  propose: async (_, q) => (await import('./propose.js?v=__V__')).proposePage(app, q),
  plans: async (id, q) => {
    const m = await import('./plans.js?v=__V__');
    return id ? m.planPage(app, id, q) : m.plansPage(app, q);
  },
  audit: async (_, q) => (await import('./audit.js?v=__V__')).auditPage(app, q),
  findings: async (id, q) => {
    const m = await import('./findings.js?v=__V__');
    return id ? m.findingPage(app, id) : m.findingsPage(app, q);
  },
  jobs: async (id, q) =>
    id.endsWith('/domains')
      ? (await import('./domains.js?v=__V__')).domainsPage(app, id.slice(0, -8), q)
      : id.endsWith('/why')
        ? (await import('./logs.js?v=__V__')).whyPage(app, id.slice(0, -4))
        : id.endsWith('/runs')
          ? (await import('./job.js?v=__V__')).jobPage(app, id.slice(0, -5), true)
          : id
            ? (await import('./job.js?v=__V__')).jobPage(app, id)
            : (await import('./lists.js?v=__V__')).jobsPage(app, q),
  logs: async (_, q) => (await import('./logs.js?v=__V__')).logsPage(app, q),
  whatif: async (_, q) => (await import('./whatif.js?v=__V__')).whatIfPage(app, q),
  report: async (_, q) => (await import('./report.js?v=__V__')).reportPage(app, q),
  occupancy: async (_, q) => (await import('./calendar.js?v=__V__')).calendarPage(app, q),
};

let turn = 0;
/** Keys that were pressed while a page was on its way: they are meant for it. @type {KeyboardEvent[]|null} */
let held = null;
async function show() {
  const mine = ++turn;
  held ??= [];
  const q = new URLSearchParams(location.search);
  let path = location.pathname.replace(/^\/+|\/+$/g, '') || only || 'overview';
  if (path === 'history')
    ((path = 'overview'), q.set('at', q.get('at') ?? '-1m'), history.replaceState(null, '', `/overview?${q}`));
  const opening = `Opening /${path}: the server has not answered yet.`;
  const slow = setTimeout(() => {
    if (mine === turn) note(opening);
  }, 700);
  if (!live.ws) live.connect(); // the bar says how it is while the page still loads
  await setMoment(q, mine);
  if (mine !== turn) return clearTimeout(slow);
  const [name, ...rest] = path.split('/');
  // not what every object has
  const make = onePage ? name === only && (() => onePage.sitesPage(app)) : Object.hasOwn(pages, name) && pages[name];
  /** @type {Page} */
  let next;
  try {
    next = make ? await make(decodeURIComponent(rest.join('/')), q) : lostPage(path);
    if (replay && make && !next.past) (next.close?.(), (next = presentPage(next.title)));
  } catch (err) {
    next = brokenPage(/** @type {Error} */ (err));
    if (mine === turn) held = []; // they were for what did not come
  }
  clearTimeout(slow);
  if (mine !== turn) {
    next.close?.();
    return;
  }
  unnote(opening);
  page?.close?.();
  page = next;
  picker.show(replay || !next.range ? null : app.range(next.range), next.range);
  document.title = `${next.title} - fairway`;
  el('page').replaceChildren(next.el);
  live.want(['overview', 'plans', ...(replay ? [] : (next.topics ?? []))]);
  if (app.overview) next.update?.(app.overview);
  if (next.focus) next.focus();
  else el('page').focus({ preventScroll: true });
  drawBar();
  drawKeys();
  const typed = held ?? [];
  held = null;
  for (const e of typed) keysNow()[e.key]?.[1](e);
}

/** Goes to the second that the address names, or to the present. @param {URLSearchParams} q @param {number} mine */
async function setMoment(q, mine) {
  const at = q.get('at') ?? 'live';
  if (at === 'live') return endReplay();
  if (!replay) {
    const { Replay } = await import('./replay.js?v=__V__');
    if (mine !== turn) return; // another address was opened meanwhile, and brings its own
    replay = new Replay({
      note,
      now: serverNow,
      leave: toLive,
      drawn: () => drawBar(),
      show: async o => {
        page?.update?.(o);
        await page?.past?.();
      },
    });
    el('bar').append(replay.el);
  }
  if (Date.parse(at) !== replay.at) await replay.begin(q);
}

function endReplay() {
  replay?.end();
  replay = null;
}

/** Leaves the past. */
function toLive() {
  endReplay();
  const url = new URL(location.href);
  url.searchParams.delete('at');
  url.searchParams.delete('speed');
  history.pushState(null, '', url.pathname + url.search);
  show();
}

async function toPast() {
  if (!newest || !(Date.parse(newest.at) > 0)) return note('No past yet: nothing has been reported.');
  go(`${location.pathname}${location.search ? `${location.search}&` : '?'}at=${iso(Date.parse(newest.at) - 60000)}`);
}

/** A page of some words. @param {string} title @param {string} heading @param {(Node|false)[]} words
 * @param {Partial<Page>} [more] @returns {Page} */
const wordsPage = (title, heading, words, more) => ({
  title,
  keys: {},
  el: h('div', h('h1', heading), ...words),
  ...more,
});

/** What of the console is about now alone. @param {string} title */
function presentPage(title) {
  const words =
    'This page is about now and is not kept for the past. Press L for live; the overview (1), findings (3), ' +
    "the audit (5) and each forwarder's page can be replayed.";
  return wordsPage(title, title, [h('p.empty', words)], { past() {} });
}

/** The pages whose charts follow the range of the page before. */
const timed = /^\/(overview|(forwarders|findings|jobs)\/)/;

/** @param {string} address @param {boolean} [replace] */
function go(address, replace) {
  if (replay && !/[?&]at=/.test(address)) address = replay.stamp(address);
  if (!replay && page?.range && timed.test(address) && !/[?&](span|from|to)=/.test(address)) {
    const q = new URLSearchParams(location.search);
    const kept = ['span', 'from', 'to'].flatMap(k => (q.get(k) ? [[k, /** @type {string} */ (q.get(k))]] : []));
    if (kept.length) address = withRange(new URL(address, location.href), Object.fromEntries(kept));
  }
  if (replace) history.replaceState(history.state, '', address);
  else {
    history.pushState(null, '', address);
    show();
  }
}

/** Shows another range of time on all charts of the page. @param {Record<string, string>} range none: the page's own
 * @param {boolean} [zoomed] what was shown before comes back */
function setRange(range, zoomed = false) {
  history.pushState({ zoomed }, '', withRange(new URL(location.href), range));
  show();
}

const fixed = () => Boolean(page?.range && app.range(page.range).fixed);

/** Back to what was shown before the stretch was chosen. */
function zoomOut() {
  if (history.state?.zoomed) history.back();
  else if (fixed()) setRange({});
}

/** One length of the range back (-1) or on (1). @param {number} by */
function shift(by) {
  const r = app.range(page?.range ?? ''),
    to = r.to + by * r.seconds * 1000;
  if (!r.seconds) return note('Choose a range first: drag over a chart, or take one above.');
  if (!r.fixed && by > 0) return note('This is live.');
  if (by > 0 && to > app.now()) return setRange({});
  setRange(shifted(r, by));
}

function longer() {
  const all = spans.map(([s]) => s);
  setRange({ span: all[(all.indexOf(app.range(page?.range ?? '').span) + 1) % all.length] });
}

/** The newest mark of the last day, as the replay shows it. */
async function toMark() {
  const now = app.now();
  for (const span of ['1h', '24h']) {
    const marks = await api.get(`/api/v1/marks?from=-${span}&limit=1000`).catch(() => []);
    const m = marks.findLast(x => x.kind !== 'job' && Date.parse(x.at) < now - 3000);
    if (!m) continue;
    note(`${m.id} ${m.text}`);
    const url = new URL(location.href);
    withRange(url, {});
    url.searchParams.set('at', iso(m.at));
    return go(url.pathname + url.search.replaceAll('%3A', ':'));
  }
  note('Nothing is marked in the last day. H replays the last minute.');
}

/** @param {string} path */
function lostPage(path) {
  const to = name => h('a', { href: `/${name}` }, name);
  return wordsPage('not found', 'No such page', [
    h(
      'p.empty',
      `/${path} is not an address of this console. See the `,
      to('overview'),
      ' or the ',
      to('plans'),
      ', or press : and type a name.',
    ),
  ]);
}

/** @param {Error} err */
function brokenPage(err) {
  // A server that is away comes back; what it refused it would refuse again.
  const away = err instanceof api.Refused && err.status === 0,
    again = away ? setTimeout(show, 3000) : 0;
  return wordsPage(
    'error',
    'This page could not be shown',
    [
      h('p.error', { role: 'alert' }, err.message),
      !kiosk && h('p.empty', 'Press r to try again, or 1 for the overview.'),
    ],
    { keys: { r: ['try again', show] }, close: () => clearTimeout(again) },
  );
}

// The header: what, how old, who.
const bar = {
  kind: '',
  /** @type {any} the overview whose health is shown */
  of: undefined,
  health: h('a.health', { href: '/overview', hidden: true }),
  state: h('span'),
  sites: h('span'),
  who: h('span.right'),
  nav: h('nav', { 'aria-label': 'Pages' }),
};
/** Address and name; the place is its key. */
const places = /** @type {const} */ ([
  ['overview', 'overview'],
  ['jobs', 'jobs'],
  ['findings', 'findings'],
  ['plans', 'plans'],
  ['audit', 'audit'],
  ['occupancy', 'calendar'],
  ['logs', 'logs'],
  ['whatif', 'what if'],
]);
const navLinks = places.map(([to, text], i) => h('a', { href: `/${to}` }, `${i + 1} ${text}`));
if (!only) bar.nav.append(...navLinks, h('a', { href: '/report' }, 'report'));
navLinks[3].title = 'in brackets: plans that wait for a person';
const picker = new RangePicker({ set: setRange, now: serverNow });

function drawBar() {
  const o = app.overview,
    here = location.pathname.split('/')[1] || 'overview';
  for (const a of bar.nav.children) {
    const on = a.getAttribute('href') === `/${here}`;
    if (a.hasAttribute('aria-current') === on) continue;
    on ? a.setAttribute('aria-current', 'page') : a.removeAttribute('aria-current');
    // On a phone the bar is wider than the screen.
    if (on) bar.nav.scrollLeft = /** @type {HTMLElement} */ (a).offsetLeft - bar.nav.clientWidth / 2;
  }
  const s = stateOf(o);
  document.documentElement.toggleAttribute('data-past', Boolean(replay));
  if (bar.state.className !== s.kind) bar.state.className = s.kind;
  setText(bar.state, s.text);
  if (bar.of !== o || s.kind !== bar.kind) drawHealth(o, s.kind === 'nodata');
  bar.of = o;
  const who = app.session.name
    ? `${app.session.name} (${app.session.role})`
    : app.session.role
      ? 'not signed in (viewer)'
      : 'not signed in';
  setText(bar.who, who);
  if (s.kind === 'nodata' && bar.kind !== 'nodata') page?.stale?.();
  bar.kind = s.kind;
  if (s.kind !== 'past') el('page').classList.toggle('old', s.kind === 'nodata' && !page?.timeless);
  const lost =
    s.kind === 'nodata' &&
    (connected
      ? 'Connected, and no agent reports: fairway doctor says what to fix.'
      : 'The server does not answer: look whether fairwayd runs on its host. This page comes back by itself.');
  const banner = [
    lost,
    o?.simulated && 'SIMULATED machine: no number here was measured.',
    o?.notice,
    app.paused && 'PAUSED: press space or L for live.',
    document.hidden && 'Hidden tab: a frame every 5 s.',
  ]
    .filter(Boolean)
    .join('  ');
  setText(el('banner'), banner);
  el('banner').classList.toggle('on', banner !== '');
  // Of a simulated machine there is nothing to do.
  el('banner').classList.toggle('calm', banner.startsWith('SIMULATED') && banner.endsWith('measured.'));
}

/** The layer's health, and what is open. @param {any} o @param {boolean} old */
function drawHealth(o, old) {
  const [word, look] = healthOf(o, old);
  if (bar.health.className !== `health ${look}`) bar.health.className = `health ${look}`;
  setText(bar.health, word);
  bar.health.hidden = !word;
  setText(navLinks[2], `3 findings${o ? ` (${o.findings.filter(isOpen).length})` : ''}`);
  setText(navLinks[3], `4 plans${o ? ` (${o.waiting.length})` : ''}`);
}

/** What is shown, and how old it is. @param {any} o */
const stateOf = o =>
  replay ? { kind: 'past', text: `${newest?.machine ?? ''}  REPLAY ${clock(replay.at)}` } : ageOf(o);

/** Between two seconds only the age of what is shown changes, until it is late. */
function growOld() {
  const s = stateOf(app.overview);
  if (s.kind === bar.kind) setText(bar.state, s.text);
  else drawBar();
}

/** The machines of the site: choosing one opens the same list there. Nothing of it is shown here. */
function drawSites() {
  const sites = /** @type {{name: string, addr: string}[]} */ (app.session.sites ?? []),
    here = sites.find(s => s.addr === location.origin);
  if (only) return bar.nav.replaceChildren(...sites.map(s => h('a', { href: `${s.addr}/` }, s.name)));
  if (sites.length < (here ? 2 : 1)) return bar.sites.replaceChildren();
  const options = sites.map(s => h('option', { value: s.addr, selected: s === here }, s.name));
  if (!here) options.unshift(h('option', { value: '', selected: true }, app.session.machine));
  const choice = h('select', { 'aria-label': 'machine' }, ...options);
  choice.addEventListener('change', () => {
    if (choice.value) location.assign(`${choice.value}/${location.pathname.split('/')[1] ?? ''}`);
  });
  bar.sites.replaceChildren(choice);
}

/** The layer's health in the terminal's words, and its look. @param {any} o @param {boolean} old
 * @returns {[string, string]} */
function healthOf(o, old) {
  if (!o?.forwarders.length) return ['', ''];
  if (old || o.late_seconds) return ['not known', ''];
  const n = s => o.forwarders.filter(r => (r.state === 'trial' ? 'suspect' : r.state) === s).length;
  const all = [...FAILED, 'suspect', 'silent'].filter(n);
  const words = all.map((s, i) => `${i ? n(s) : counted(n(s), 'forwarder')} ${s}`);
  const storage = o.findings.filter(f => f.kind === 'target_slow' && f.state === 'confirmed').length;
  if (storage) words.push(`${counted(storage, 'back end')} slow`);
  const worst = all[0] ?? 'suspect';
  return words.length ? [words.join(', '), FAILED.includes(worst) ? 'slow' : worst] : ['healthy', 'well'];
}

export const isOpen = f => !['returned', 'dismissed'].includes(f.state);

/** How old the shown second is, in words. @param {any} o @returns {{kind: string, text: string}} */
function ageOf(o) {
  const lost = connected ? '' : '  disconnected, trying again';
  if (!o)
    return {
      kind: 'late',
      text: connected ? 'connected' : live.tries > 1 ? 'no connection, trying again' : 'connecting',
    };
  const at = Date.parse(o.at);
  if (!(at > 0)) return { kind: 'late', text: `${o.machine}  no second of data yet${lost}` };
  const end = at + 1000,
    ms = Math.max(0, app.now() - end);
  const name = o.machine ? `${o.machine}  ` : '';
  if (ms > o.stale_after_seconds * 1000) return { kind: 'nodata', text: `${name}NO DATA since ${clock(end)}${lost}` };
  const word = app.paused ? 'PAUSED' : 'LIVE';
  if (ms > o.late_after_seconds * 1000)
    return { kind: 'late', text: `${name}${word} ${clock(at)} ${zone}  late ${age(ms)}${lost}` };
  const old = `age ${(ms / 1000).toFixed(1)}s${lost}`;
  return { kind: connected ? '' : 'late', text: `${name}${word} ${clock(at)} ${zone}  ${old}` };
}

// Keys: the page's first, then everybody's. A lower-case key never changes the machine.
/** @type {Record<string, [string, (e: KeyboardEvent) => void]>} */
const everywhere = {
  ...Object.fromEntries(places.map(([to, text], i) => [i + 1, [text, () => go(`/${to}`)]])),
  ':': ['go to', () => dialog('go')],
  n: ['next that needs you', nextNeed],
  ' ': ['pause', () => pause(!app.paused)],
  L: ['live', () => (fixed() ? setRange({}) : pause(false))],
  H: ['replay', toPast],
  '[': ['replay from the mark before', toMark],
  ']': ['', () => note('This is live: [ goes to the mark before.')],
  y: ['copy address', () => copy(location.href)],
  '@': ['request log', () => dialog('log')],
  '?': ['help: all keys', () => dialog('help')],
  t: ['theme', theme],
  Backspace: ['back', () => history.back()],
  q: ['back', () => go('/overview')],
  i: ['sign in or out', () => dialog('session')],
  Z: ['undo what you did last', undo],
};

for (const k of only ? '12345678:nLH[]qZ' : '') delete everywhere[k];

addEventListener('keydown', e => {
  const t = /** @type {HTMLElement} */ (e.target);
  if (kiosk || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  // What is typed while a dialog is on its way is meant for it, not for the page.
  if (opening) {
    if (e.key.length === 1) typed += e.key;
    return e.preventDefault();
  }
  if (t.matches('input, textarea, select')) {
    if (e.key === 'Escape') t.blur();
    return;
  }
  // A focused button keeps Enter and space for itself.
  if (t.matches('button, a[href], summary') && (e.key === 'Enter' || e.key === ' ')) return;
  if (held && !(e.key in everywhere)) {
    if (e.key.length === 1) held.push(e);
    return e.preventDefault();
  }
  const hit = keysNow()[e.key];
  if (!hit) return;
  e.preventDefault();
  hit[1](e);
});

/** The keys of a page with a time axis. @type {Record<string, [string, () => void]>} */
const rangeKeys = {
  z: ['longer, shorter', longer],
  '{': ['earlier', () => shift(-1)],
  '}': ['later', () => shift(1)],
  Escape: ['', zoomOut],
};

/** @param {string} k */
const keyName = k => (k === ' ' ? 'space' : k.length > 1 ? k.replace('Arrow', '').toLowerCase() : k);

/** What works now: a replay's keys, the page's, everybody's. */
function keysNow() {
  const own = { ...everywhere, ...(page?.range ? rangeKeys : {}), ...(page?.keys ?? {}) };
  return replay ? { ...replay.harmless(own), ...replay.keys } : own;
}

function drawKeys() {
  const own = replay
    ? { ...replay.keys, ...replay.harmless(page?.keys ?? {}) }
    : { ...(page?.range ? rangeKeys : {}), ...(page?.keys ?? {}) };
  const shown = Object.entries(own).filter(([k, v]) => v[0] && !k.startsWith('Arrow'));
  // Of a bar that is too narrow the last ones are missing; help has all of them.
  const common = (replay ? ['?', 'n', ':'] : ['?', 'n', ':', ' ', 'H'])
    .filter(k => everywhere[k])
    .map(k => /** @type {[string, any]} */ ([k, everywhere[k]]));
  el('keys').replaceChildren(
    ...[common[0], ...shown, ...common.slice(1)].map(([k, v]) => h('span', h('kbd', keyName(k)), ` ${v[0]}`)),
  );
}

/** @param {boolean} on */
function pause(on) {
  app.paused = on;
  if (!on && app.overview) page?.update?.(app.overview);
  drawBar();
}

/** The first thing that needs a person; from its page the one after it. */
function nextNeed() {
  const all = (app.overview?.needs ?? []).map(needAt);
  if (all.length) go(all[(all.indexOf(location.pathname) + 1) % all.length]);
  else note('Nothing needs you now.');
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    note(`Copied ${text}`);
  } catch {
    note(text);
  }
}

function theme() {
  const order = ['', 'dark', 'light'],
    next = order[(order.indexOf(localStorage.getItem('fairway.theme') ?? '') + 1) % order.length];
  localStorage.setItem('fairway.theme', next); // where first.js looks
  dispatchEvent(new Event('fairway-theme'));
  note(`Theme: ${next || 'as the system says'}`);
}

let noteTimer = 0;
/** @param {string} text */
function note(text) {
  setText(el('note'), text);
  el('note').classList.add('on');
  clearTimeout(noteTimer);
  noteTimer = window.setTimeout(() => el('note').classList.remove('on'), 6000);
}

/** Takes a note back that has become untrue, if it is still the one shown. @param {string} text */
function unnote(text) {
  if (el('note').textContent === text) el('note').classList.remove('on');
}

/** Asks once before the machine is changed. Cancel has the focus, and Enter presses what has it.
 * @param {string} question @param {string} key the key that says yes @param {string} yes @returns {Promise<boolean>} */
function confirmOnce(question, key, yes) {
  return new Promise(answer => {
    const ok = button(`${yes} (shift+${key})`, () => d.close('yes')),
      cancel = button('Cancel', () => d.close(''));
    const d = modal(question, h('p', question), h('div.actions', cancel, ok));
    d.addEventListener('close', () => answer(d.returnValue === 'yes'));
    d.addEventListener('keydown', e => {
      if (e.key === key) {
        e.preventDefault();
        e.stopPropagation(); // the page under it must not ask again
        d.close('yes');
      }
      // Enter on the yes button does nothing: only the key or the mouse approves.
      if (e.key === 'Enter' && document.activeElement === ok) e.preventDefault();
    });
    cancel.focus();
  });
}

/** Takes back what this person did last, where the server can, after asking once. */
async function undo() {
  if (replay) return note('Actions are off in replay: press L for live first.');
  try {
    const last = await api.get('/api/v1/undo');
    if (last.why_not) return note(`You ${last.did}: ${last.why_not}.`);
    if (!(await confirmOnce(`You ${last.did}. ${last.undo}?`, 'Z', 'Undo'))) return;
    await api.post('/api/v1/undo', { seq: last.seq });
    note(`Done: ${last.undo}.`);
    show();
  } catch (err) {
    note(`Refused: ${/** @type {Error} */ (err).message}`);
  }
}

let opening = false,
  typed = '';
/** @param {'go'|'help'|'log'|'session'} which */
async function dialog(which) {
  opening = true;
  typed = '';
  try {
    const { dialogs } = await import('./dialogs.js?v=__V__');
    dialogs[which](app, { keys: keysNow(), own: page?.keys ?? {}, isOpen, keyName, log: api.log, refresh, typed });
  } catch (err) {
    note(`The dialog could not be loaded: ${/** @type {Error} */ (err).message}`);
  } finally {
    opening = false;
  }
}

async function refresh() {
  try {
    app.session = await api.session();
  } catch (err) {
    note(/** @type {Error} */ (err).message);
  }
  drawBar();
  live.connect();
  show();
}

// A link that signs in is used once and leaves no trace in the address, nor does the secret that comes back from the
// provider's page.
async function signInByLink() {
  const [, what, code] = /^#(signin|session)=(\w+)$/.exec(location.hash) ?? [];
  if (!code) return;
  history.replaceState(null, '', location.pathname + location.search);
  if (what === 'session') return api.keepSecret(code);
  try {
    await api.signIn({ code });
  } catch (err) {
    note(/** @type {Error} */ (err).message);
  }
}

document.addEventListener('visibilitychange', drawBar);
addEventListener('popstate', show);
addEventListener('hashchange', async () => {
  await signInByLink();
  refresh();
});
document.addEventListener('click', e => {
  const t = /** @type {HTMLElement} */ (e.target);
  const a = t.closest('a[href^="/"]');
  const row = t.closest('[data-go]');
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
  const to = a?.getAttribute('href') ?? (t.closest('button, input') ? null : row?.getAttribute('data-go'));
  if (!to || to.startsWith('/api/')) return;
  e.preventDefault();
  go(to);
});
setInterval(growOld, 500);
el('bar').replaceChildren(h('strong', 'fairway'), bar.sites, bar.state, bar.health, bar.nav, picker.el, bar.who);
await signInByLink();
show();
refreshSession();
async function refreshSession() {
  try {
    const s = await api.session();
    const changed = s.role !== app.session.role || s.name !== app.session.name;
    app.session = s;
    drawSites();
    drawBar();
    if (s.role === '' && kiosk) return showDenied();
    if (s.role === '') return (go(`/${only ?? 'overview'}`, true), dialog('session'));
    if (changed && (s.name || denied)) {
      live.connect();
      show();
    }
  } catch (err) {
    note(/** @type {Error} */ (err).message);
  }
}

/** A screen without hands cannot sign in: it says who can give it the right, and looks whether somebody has. */
function showDenied() {
  denied = true;
  opened();
  el('page').replaceChildren(
    h('h1', 'This screen has no right to see the machine'),
    h(
      'p.empty',
      'An operator gives it one: access.anonymous = "viewer" in fairwayd.toml lets everybody look who reaches this ' +
        'server; or open this address in this window without kiosk, sign in, and put kiosk behind it again.',
    ),
  );
  setTimeout(refreshSession, 10_000);
}
