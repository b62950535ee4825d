// What opens over a page: help, go box, request log, signing in.
import { h, setText } from './h.js?v=__V__';
import { clock } from './format.js?v=__V__';
import { signIn, signOut } from './api.js?v=__V__';

/** @param {string} label @param {...Node} children */
function open(label, ...children) {
  const close = h('button', { type: 'button', click: () => d.close() }, 'Close');
  const d = /** @type {HTMLDialogElement} */ (h('dialog', { 'aria-label': label }, h('h1', null, label), ...children, h('div.actions', null, close)));
  d.addEventListener('close', () => d.remove());
  document.body.append(d);
  d.showModal();
  return d;
}

export const dialogs = {
  /** Only the keys that work here. @param {any} _app @param {any} x */
  help(_app, x) {
    /** @type {Record<string, string>} */
    const words = { ArrowUp: 'move up', ArrowDown: 'move down', ArrowLeft: 'move left', ArrowRight: 'move right', '<': 'sort by the column to the left', '>': 'sort by the column to the right', s: 'stop applying' };
    const all = Object.entries(/** @type {Record<string, any>} */ (x.keys));
    const body = h('tbody');
    const find = /** @type {HTMLInputElement} */ (h('input', { type: 'search', placeholder: 'find a key or a word', 'aria-label': 'find a key or a word', input: draw }));
    function draw() {
      body.replaceChildren(...all.map(([k, v]) => [x.keyName(k), v[0] || words[k] || '']).filter(([k, t]) => t && `${k} ${t}`.toLowerCase().includes(find.value.toLowerCase())).map(([k, t]) => h('tr', null, h('td', null, k), h('td', null, t))));
    }
    draw();
    open('Keys that work here', find, h('table.keys', null, body), h('p.dim', null, 'A lower-case key never changes the machine. A, B and C do, and each asks once.'));
    find.focus();
  },

  /** @param {import('./app.js').App} app @param {any} x */
  go(app, x) {
    const o = app.overview;
    const targets = [...(o?.forwarders ?? []).map((/** @type {any} */ r) => [`${r.id}`, r.state === 'ok' ? '' : r.state.toUpperCase(), `/forwarders/${r.id}`, `fairway node ${r.id}`]), ...(o?.waiting ?? []).map((/** @type {any} */ p) => [p.id, p.title, `/plans/${p.id}`, `fairway plan show ${p.id}`]),
      ['overview', '1', '/overview', 'fairway top'], ['table', 'g', '/overview?view=table', 'fairway nodes'], ['compute nodes', 'c', '/overview?view=compute', ''], ['flow of jobs', 'f', '/overview?view=flow', ''], ['interference of jobs', 'f f', '/overview?view=matrix', ''], ['history, replay', 'H', '/history', 'fairway top'], ['plans', '4', '/plans', 'fairway plans'], ['findings', '3', '/findings', 'fairway findings'], ['jobs', '2', '/jobs', 'fairway jobs'], ['audit', '5', '/audit', 'fairway audit'], ['occupancy calendar', '6', '/occupancy', ''], ['I/O logs', '7', '/logs', 'fairway query low-bandwidth'], ['what if', '8', '/whatif', 'fairway shares, fairway periodic']];
    const list = h('tbody');
    const box = /** @type {HTMLInputElement} */ (h('input', { type: 'search', 'aria-label': 'go to', placeholder: 'forwarder, plan or page', input: draw, keydown: (/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter') { e.preventDefault(); const t = hits()[0]; if (t) { d.close(); app.go(t[2]); } } } }));
    // A colon in front says nothing: it is the key that opened the box, typed twice or late.
    const hits = () => { const want = box.value.toLowerCase().replace(/^[\s:]+/, ''); return targets.filter(([name, what]) => fuzzy(`${name} ${what}`.toLowerCase(), want)).slice(0, 12); };
    function draw() { list.replaceChildren(...hits().map(([name, what, to, cli]) => h('tr', { 'data-go': to, click: () => d.close() }, h('td', null, name), h('td', null, what), h('td.dim', null, cli)))); }
    const d = open('Go to', box, h('table', null, list));
    box.value = x.typed;
    draw();
    box.focus();
  },

  /** @param {any} _app @param {any} x */
  log(_app, x) {
    open('Requests this console sent', h('div.scroll', null, h('table', null, h('tbody', null, ...x.log.slice(-60).reverse().map((/** @type {any} */ l) => h('tr', null, h('td', null, clock(l.at)), h('td', null, l.method), h('td.wrap', null, l.path), h('td.num', null, l.status ? String(l.status) : 'none'), h('td.num', null, `${l.ms} ms`), h('td.wrap', null, l.text)))))));
  },

  /** @param {import('./app.js').App} app @param {any} x */
  session(app, x) {
    const s = app.session, error = h('p.error', { role: 'alert', hidden: true });
    if (s.via === 'session') {
      const d = open('Signed in', h('p', null, `You are ${s.name} with the role ${s.role}, until ${clock(s.expires)}.`), h('button', { type: 'button', click: async () => { await signOut(); d.close(); x.refresh(); } }, 'Sign out'));
      return;
    }
    const name = /** @type {HTMLInputElement} */ (h('input', { type: 'text', name: 'username', autocomplete: 'username', required: true })), pass = /** @type {HTMLInputElement} */ (h('input', { type: 'password', name: 'password', autocomplete: 'current-password', required: true }));
    const form = h('form', { submit: async (/** @type {Event} */ e) => {
      e.preventDefault();
      try {
        await signIn({ name: name.value, password: pass.value });
        d.close();
        x.refresh();
      } catch (err) {
        error.hidden = false;
        setText(error, /** @type {Error} */ (err).message);
      }
    } }, h('div.field', null, h('label', null, 'Name ', name)), h('div.field', null, h('label', null, 'Password ', pass)), error, h('button', { type: 'submit' }, 'Sign in'));
    const provider = s.sign_in_at ? h('p', null, h('a.button', { href: '/api/v1/oidc/start' }, `Sign in at ${s.sign_in_at}`)) : h('span');
    const d = s.can_sign_in ? open('Sign in', provider, form, h('p.dim', null, s.how_to)) : s.sign_in_at ? open('Sign in', provider) : open('You are looking, not acting', h('p', null, s.role ? 'Without signing in this console is read-only.' : 'This server shows nothing to people it does not know.'), h('p.dim', null, s.how_to ?? ''));
    if (s.can_sign_in) name.focus();
  },
};

/** Letters in order, not necessarily side by side. @param {string} text @param {string} want */
function fuzzy(text, want) {
  let i = 0;
  for (const c of text) if (c === want[i]) i++;
  return i >= want.length;
}
