// What opens over a page: help, go box, request log, signing in.
import { button, h, modal, setText } from './h.js?v=__V__';
import { clock, findingWords } from './format.js?v=__V__';
import { plain } from './table.js?v=__V__';
import { get, signIn, signOut } from './api.js?v=__V__';
import { standing } from './levels.js?v=__V__';

/** @param {string} label @param {...Node} children */
function open(label, ...children) {
  const close = button('Close', () => d.close()),
    d = modal(label, h('h1', label), ...children, h('div.actions', close));
  return d;
}

/** The pages: name, what it shows, key, command, address. @type {[string, string, string, string, string][]} */
const pagesOf = [
  ['overview', 'the whole layer', '1', 'fairway top', '/overview'],
  ['table', 'all forwarders', 'g', 'fairway nodes', '/overview?view=table'],
  ['compute nodes', 'all of them as a grid', 'c', '', '/overview?view=compute'],
  ['flow of jobs', 'over forwarders to storage', 'f', '', '/overview?view=flow'],
  ['interference of jobs', 'who stands in whose way', 'f f', '', '/overview?view=matrix'],
  ['history, replay', 'as it was a minute ago', 'H', 'fairway replay', '/history'],
  ['slow', 'the slowest forwarders first', '1', 'fairway nodes --role forwarder', '/overview?view=table&sort=slow'],
  ['who waits', 'jobs, those that wait the most first', '2', 'fairway jobs', '/jobs'],
  ['jobs', 'running and ended jobs', '2', 'fairway jobs', '/jobs'],
  ['findings', 'what is wrong', '3', 'fairway findings', '/findings'],
  ['plans', 'all plans', '4', 'fairway plans', '/plans'],
  ['audit', 'who did what', '5', 'fairway audit', '/audit'],
  ['calendar', 'how busy the forwarders were', '6', 'fairway occupancy', '/occupancy'],
  ['report', 'a week on one page', '', 'fairway report', '/report'],
  ['logs', 'jobs of low bandwidth', '7', 'fairway query low-bandwidth', '/logs'],
  ['what if', 'shares, staggered I/O', '8', 'fairway shares, fairway periodic', '/whatif'],
];

/** The groups of the help, as the terminal has them (console/help.go). */
const groups = [
  'change the machine: each asks once, enter never does',
  'act: no compute node is moved by these',
  'look',
];
const acts = /^(propose|drain|acknowledge|silence|note|not a fault|reject|stop|complete|force)/;

/** A job as the go box lists it. @param {string} id @param {string} what
 * @returns {[string, string, string, string, string]} */
const toJob = (id, what) => [id, what, '', `fairway job ${id}`, `/jobs/${encodeURIComponent(id)}`];

/** A forwarder as the go box lists it. @param {any} r @returns {[string, string, string, string, string]} */
const toNode = r => [r.id, standing(r.state, r.busy), 'enter', `fairway node ${r.id}`, `/forwarders/${r.id}`];

/** The jobs that are the largest somewhere, and where. @param {any} o @returns {[string, string][]} */
const jobsOf = o => [...new Map((o?.forwarders ?? []).filter(r => r.top_job).map(r => [r.top_job, r.id])).entries()];

export const dialogs = {
  /** Only the keys that work here. @param {any} _app @param {any} x */
  help(_app, x) {
    /** @type {Record<string, string>} */
    const words = {
      ArrowUp: 'move up',
      ArrowDown: 'move down',
      ArrowLeft: 'move left',
      ArrowRight: 'move right',
      '<': 'sort by the column to the left',
      '>': 'sort by the column to the right',
      s: 'stop applying',
    };
    const all = Object.entries(/** @type {Record<string, any>} */ (x.keys))
      .map(([k, v]) => [x.keyName(k), v[0] || words[k] || ''])
      .filter(([, t]) => t);
    const group = (/** @type {any} */ [k, t]) => (/^[ABCZ]$/.test(k) ? 0 : acts.test(t) ? 1 : 2);
    /** @type {string[][]} */
    let terms = [];
    const body = h('tbody');
    const find = h('input', {
      type: 'search',
      placeholder: 'find a key or a word',
      'aria-label': 'find a key or a word',
      input: draw,
    });
    function draw() {
      const named = rows => rows.filter(r => r.join(' ').toLowerCase().includes(find.value.toLowerCase()));
      const parts = [...groups.map((_, i) => named(all.filter(r => group(r) === i))), named(terms)];
      body.replaceChildren(
        ...parts.flatMap((rows, i) => [
          ...(rows.length ? [h('tr', h('th', { colspan: 2, scope: 'rowgroup' }, groups[i] ?? 'words'))] : []),
          ...rows.map(([k, t]) =>
            h('tr', i < groups.length ? h('td', k) : h('th', { scope: 'row' }, k), h('td.wrap', t)),
          ),
        ]),
      );
    }
    draw();
    get('/api/v1/glossary').then(
      all => {
        terms = all.map(one => [one.word, one.means]);
        draw();
      },
      () => {},
    ); // the keys stand without it
    open('Keys that work here, and words', find, h('table.keys', body));
    find.focus();
  },

  /** @param {import('./app.js').App} app @param {any} x */
  go(app, x) {
    const o = app.overview;
    /** name, what it is, its key, the command that does the same, where it leads or what it does
     * @type {[string, string, string, string, string|(() => void)][]} */
    const targets = [
      ...Object.entries(x.own)
        .filter(([k, v]) => v[0] && !['Enter', '>', '<', 'r'].includes(k) && !k.startsWith('Arrow'))
        .map(([k, v]) => /** @type {any} */ ([v[0], 'on this page', x.keyName(k), '', v[1]])),
      ...pagesOf,
      ...(o?.findings ?? [])
        .filter(x.isOpen)
        .map(f => [f.id, `${f.node} ${findingWords(f)}`, '', `fairway findings ${f.id}`, `/findings/${f.id}`]),
      ...(o?.waiting ?? []).map(p => [p.id, p.title, '', `fairway plan show ${p.id}`, `/plans/${p.id}`]),
      ...jobsOf(o).map(([j, f]) => toJob(j, `job, the largest on ${f}`)),
      ...(o?.forwarders ?? []).map(toNode),
    ];
    /** All jobs come a moment later. @type {typeof targets} */
    const jobs = [];
    get('/api/v1/jobs?state=all')
      .then(rows => {
        const met = new Set();
        for (const r of rows) {
          const ended = Date.parse(r.end ?? '') > 0 ? ', ended' : '';
          jobs.push(toJob(r.id, `job of ${r.user || '-'}  ${r.app || ''}${ended}`));
          for (const [what, name] of [
            ['user', r.user],
            ['application', r.app],
          ])
            if (name && !met.has(what + name)) {
              met.add(what + name);
              jobs.push([name, `${what}: its jobs`, '', 'fairway jobs', `/jobs?filter=${encodeURIComponent(name)}`]);
            }
        }
        draw();
      })
      .catch(() => {}); // what the overview names is there all the same
    const list = h('tbody');
    const nothing = h('p.empty', { role: 'status', hidden: true });
    const follow = to => {
      d.close();
      typeof to === 'string' ? app.go(to) : to();
    };
    const box = h('input', {
      type: 'search',
      'aria-label': 'go to',
      placeholder: 'job, user, application, forwarder, finding, plan, page or key',
      input: draw,
      keydown: e => {
        if (e.key === 'Enter') {
          e.preventDefault();
          const t = hits()[0];
          if (t) follow(t[4]);
        }
      },
    });
    // A colon in front says nothing: it is the key that opened the box, typed twice or late.
    const hits = () => {
      const known = new Set(jobs.map(([name]) => name)),
        want = box.value.toLowerCase().replace(/^[\s:]+/, ''),
        is = [...targets.filter(t => !known.has(t[0])), ...jobs].filter(([name]) => fuzzy(name.toLowerCase(), want));
      // What starts with it comes first, as in the terminal.
      return [
        ...is.filter(([name]) => name.toLowerCase().startsWith(want)),
        ...is.filter(([name]) => !name.toLowerCase().startsWith(want)),
      ].slice(0, 14);
    };
    function draw() {
      const found = hits();
      nothing.hidden = found.length > 0;
      setText(nothing, `Nothing called "${box.value}". Try a job, user, application, forwarder, F- or P- number.`);
      list.replaceChildren(
        ...found.map(([name, what, key, cli, to], i) =>
          h(
            i ? 'tr' : 'tr.sel',
            typeof to === 'string'
              ? { 'data-go': to, click: () => d.close() }
              : { 'data-do': key, click: () => follow(to) },
            h('td', name),
            h('td.wrap', what),
            h('td', key),
            h('td.dim', cli),
          ),
        ),
      );
    }
    const d = open('Go to', box, nothing, h('div.scroll', h('table', list)));
    box.value = x.typed;
    draw();
    box.focus();
  },

  log(_app, x) {
    const row = l =>
      h(
        'tr',
        h('td', clock(l.at)),
        h('td', l.method),
        h('td.num', l.status ? String(l.status) : 'none'),
        h('td.num', `${l.ms} ms`),
        h('td.wrap', l.path + (l.text ? `\n${l.text}` : '')),
      );
    open('Requests this console sent', plain('the newest first', [], x.log.slice(-60).reverse().map(row)));
  },

  /** @param {import('./app.js').App} app @param {any} x */
  session(app, x) {
    const s = app.session,
      error = h('p.error', { role: 'alert', hidden: true });
    if (s.via === 'session') {
      const out = button('Sign out', async () => {
        await signOut();
        d.close();
        x.refresh();
      });
      const d = open('Signed in', h('p', `You are ${s.name} with the role ${s.role}, until ${clock(s.expires)}.`), out);
      return;
    }
    const name = h('input', { type: 'text', name: 'username', autocomplete: 'username', required: true }),
      pass = h('input', { type: 'password', name: 'password', autocomplete: 'current-password', required: true });
    const form = h(
      'form',
      {
        submit: async () => {
          try {
            await signIn({ name: name.value, password: pass.value });
            d.close();
            x.refresh();
          } catch (err) {
            error.hidden = false;
            setText(error, /** @type {Error} */ (err).message);
          }
        },
      },
      h('div.field', h('label', 'Name ', name)),
      h('div.field', h('label', 'Password ', pass)),
      error,
      h('button', { type: 'submit' }, 'Sign in'),
    );
    const provider = s.sign_in_at
      ? h('p', h('a.button', { href: '/api/v1/oidc/start' }, `Sign in at ${s.sign_in_at}`))
      : h('span');
    const d = s.can_sign_in
      ? open('Sign in', provider, form, h('p.dim', s.how_to))
      : s.sign_in_at
        ? open('Sign in', provider)
        : open(
            'You are looking, not acting',
            h(
              'p',
              s.role
                ? 'Without signing in this console is read-only.'
                : 'This server shows nothing to people it does not know.',
            ),
            h('p.dim', s.how_to ?? ''),
          );
    if (s.can_sign_in) name.focus();
  },
};

/** Letters in order, not necessarily side by side. @param {string} text @param {string} want */
function fuzzy(text, want) {
  let i = 0;
  for (const c of text) if (c === want[i]) i++;
  return i >= want.length;
}
