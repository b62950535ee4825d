// The past: which second is shown, how fast it runs, and the strip above every page that says so.
import { h, setText } from './h.js?v=__V__';
import { age, clock, iso, when } from './format.js?v=__V__';
import { get } from './api.js?v=__V__';
import { glyph } from './levels.js?v=__V__';

const speeds = [0, 1, 2, 5, 10, 30, 60]; // seconds of the past in a second; 0 stands still
const spans = [900, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600, 31 * 24 * 3600]; // seconds that the strip can cover
const BACK = 60_000; // how long ago a replay begins
/** Keys that act on the machine: what is shown is not what would be changed. */
const acts = new Set(['p', 'e', 'x', 'a', 's', 'A', 'B', 'C']);

/** A day and time as the address says it: RFC 3339, Unix milliseconds or -15m; NaN for anything else.
 * @param {string} text @param {number} now */
export function parseAt(text, now) {
  const back = /^-(\d+)([smhd])$/.exec(text);
  if (back) return now - Number(back[1]) * 1000 * { s: 1, m: 60, h: 3600, d: 86400 }[/** @type {'s'} */ (back[2])];
  return /^\d{12,13}$/.test(text) ? Number(text) : Date.parse(text);
}

export class Replay {
  /** @param {{show: (o: any) => Promise<void>|void, drawn: () => void, leave: () => void, note: (text: string) =>
   * void, now: () => number}} on */
  constructor(on) {
    this.on = on;
    this.at = 0; // ms; the second that is shown, or asked for first
    this.speed = 0;
    /** @type {any} the overview of that second */
    this.shown = null;
    this.error = '';
    this.asking = false;
    /** @type {number|undefined} */
    this.timer = undefined;
    this.wanted = 0; // asked for next, once the answer under way is here
    /** @type {any[]} */
    this.marks = [];
    this.from = 0;
    this.to = 0;
    this.over = false;
    this.slider = h('input', {
      type: 'range',
      step: 1000,
      'aria-label': 'second of the past',
      input: () => this.goTo(Number(this.slider.value)),
      change: () => this.slider.blur(),
    });
    this.text = h('strong', { role: 'status' });
    this.ends = [h('span'), h('span')];
    this.flags = h('div.flags', { 'aria-hidden': true });
    this.unknown = h('details', h('summary', 'not known of that time'), h('ul'));
    this.el = h(
      'div',
      { id: 'replay', role: 'region', 'aria-label': 'replay' },
      h(
        'div.facts',
        this.text,
        h('span', 'Actions are off.'),
        h('button', { type: 'button', click: () => this.on.leave() }, 'L live'),
      ),
      h('div.strip', this.ends[0], h('div.track', this.flags, this.slider), this.ends[1]),
      this.unknown,
    );
  }

  /** Begins with what the address says. @param {URLSearchParams} q */
  async begin(q) {
    const now = this.on.now(),
      at = parseAt(q.get('at') ?? '', now);
    this.speed = speeds.includes(Number(q.get('speed'))) ? Number(q.get('speed')) : 0;
    this.timer ??= window.setInterval(() => this.tick(), 1000);
    await this.goTo(Number.isNaN(at) ? now - BACK : at, true);
    if (Number.isNaN(at) && q.has('at'))
      this.on.note(`at=${q.get('at')} is not a time: want 2026-11-21T11:42:00Z, or -15m; this is a minute ago.`);
  }

  end() {
    clearInterval(this.timer);
    this.over = true;
    this.el.remove();
  }

  /** An address of the same second. @param {string} address */
  stamp(address) {
    const url = new URL(address, location.href);
    url.searchParams.set('at', iso(this.at));
    if (this.speed) url.searchParams.set('speed', String(this.speed));
    else url.searchParams.delete('speed');
    return url.pathname + url.search.replaceAll('%3A', ':');
  }

  /** Shows another second; one that is still to come is live. @param {number} ms @param {boolean} [quiet] the page
   * is not there yet */
  async goTo(ms, quiet) {
    ms = Math.floor(ms / 1000) * 1000;
    if (ms > this.on.now() - 2000) {
      this.on.note('This is live again.');
      return this.on.leave();
    }
    if (this.asking) {
      this.wanted = ms;
      return;
    }
    this.asking = true;
    try {
      const o = await get(`/api/v1/overview?at=${iso(ms)}`);
      this.at = ms; // not before: the time that stands there is that of the numbers
      this.shown = o;
      this.error = '';
      if (!quiet && !this.over) await this.on.show(o);
    } catch (err) {
      this.at = ms;
      this.shown = null;
      this.error = /** @type {Error} */ (err).message;
    }
    this.asking = false;
    if (this.over) return; // live again before the answer came
    this.remember();
    await this.readMarks();
    if (this.over) return;
    this.draw();
    this.on.drawn();
    const next = this.wanted;
    this.wanted = 0;
    if (next) await this.goTo(next);
  }

  remember() {
    try {
      history.replaceState(null, '', this.stamp(location.pathname + location.search));
    } catch {
      /* a browser allows so many a second; the next one counts */
    }
  }

  tick() {
    if (this.speed && !this.error) this.goTo(this.at + this.speed * 1000);
    this.draw();
  }

  /** What happened in the time that the strip covers; read again when the second lies outside. */
  async readMarks() {
    if (this.at >= this.from && this.at <= this.to && this.on.now() - this.to < 60_000) return;
    const now = this.on.now(),
      span = spans.find(s => now - this.at < s * 1000) ?? (now - this.at) / 1000 + 3600;
    this.to = Math.floor(now / 1000) * 1000;
    this.from = this.to - span * 1000;
    try {
      this.marks = (await get(`/api/v1/marks?from=${this.from}&to=${this.to}&limit=1000`)).filter(
        m => m.kind !== 'job',
      );
    } catch (err) {
      this.marks = [];
      this.on.note(`Marks could not be read: ${/** @type {Error} */ (err).message}`);
    }
    const place = m => (100 * (Date.parse(m.at) - this.from)) / (this.to - this.from);
    this.flags.replaceChildren(
      ...this.marks.map(m => {
        const f = h(
          'span',
          { title: `${clock(m.at)} ${m.id} ${m.text}`, click: () => this.goTo(Date.parse(m.at)) },
          glyph(m),
        );
        f.style.left = `${place(m)}%`;
        return f;
      }),
    );
  }

  draw() {
    const now = this.on.now();
    const busy = this.asking ? '  reading' : '';
    setText(
      this.text,
      this.error
        ? `REPLAY ${when(this.at, now)} could not be read: ${this.error} Press right to try the next second, L ` +
            `for live.`
        : `REPLAY ${when(this.at, now)}  x${this.speed}  live is ${age(now - this.at)} ahead${busy}`,
    );
    Object.assign(this.slider, { min: String(this.from), max: String(this.to) });
    this.slider.value = String(this.at);
    this.slider.setAttribute('aria-valuetext', clock(this.at));
    setText(this.ends[0], when(this.from, now));
    setText(this.ends[1], clock(this.to));
    this.unknown.hidden = !this.shown?.not_kept?.length;
    this.unknown.lastElementChild?.replaceChildren(...(this.shown?.not_kept ?? []).map(t => h('li', t)));
    document.getElementById('page')?.classList.toggle('unread', this.error !== '');
  }

  /** @param {number} by */
  change(by) {
    this.speed = speeds[Math.max(0, Math.min(speeds.length - 1, speeds.indexOf(this.speed) + by))];
    this.remember();
    this.draw();
  }

  /** @param {number} dir */
  toMark(dir) {
    const list = this.marks
      .map(m => ({ ...m, ms: Math.floor(Date.parse(m.at) / 1000) * 1000 }))
      .filter(m => (dir > 0 ? m.ms > this.at : m.ms < this.at));
    const m = dir > 0 ? list[0] : list[list.length - 1];
    if (!m) return this.on.note(`Nothing is marked ${dir > 0 ? 'after' : 'before'} this within the strip.`);
    this.on.note(`${m.id} ${m.text}`);
    this.goTo(m.ms);
  }

  /** The keys of a replay; they come before the page's own.
   * @type {Record<string, [string, (e: KeyboardEvent) => void]>} */
  keys = {
    ArrowLeft: ['1 s back, with shift 1 min', e => this.goTo((this.wanted || this.at) - (e.shiftKey ? 60_000 : 1000))],
    ArrowRight: ['1 s on, with shift 1 min', e => this.goTo((this.wanted || this.at) + (e.shiftKey ? 60_000 : 1000))],
    '{': ['1 min back', () => this.goTo((this.wanted || this.at) - 60_000)],
    '}': ['1 min on', () => this.goTo((this.wanted || this.at) + 60_000)],
    '[': ['mark before', () => this.toMark(-1)],
    ']': ['mark after', () => this.toMark(1)],
    '+': ['faster', () => this.change(1)],
    '=': ['', () => this.change(1)],
    '-': ['slower', () => this.change(-1)],
    ' ': ['run, stop', () => this.change(this.speed ? -speeds.length : 1)],
    L: ['live', () => this.on.leave()],
    H: ['', () => this.on.leave()],
  };

  /** A page's keys without those that act. @param {Record<string, any>} keys @returns {Record<string, any>} */
  harmless(keys) {
    const off = () => this.on.note('Actions are off in replay: press L for live first.');
    return Object.fromEntries(Object.entries(keys).map(([k, v]) => (acts.has(k) ? [k, ['', off]] : [k, v])));
  }
}
