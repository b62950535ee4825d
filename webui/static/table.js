// One table for every list: columns say what they show; rows are kept and changed in place.
import { h, setText } from './h.js?v=__V__';
import { counted, mega, missing } from './format.js?v=__V__';
import { FAILED } from './levels.js?v=__V__';

/**
 * @typedef {{name: string, head: string, num?: boolean, text: (r: any) => string, value?: (r: any) => any, wrap?:
 * boolean | 'phone', title?: string, rare?: boolean, wide?: boolean, fill?: boolean,
 * draw?: (cell: HTMLElement, r: any) => void}} Column
 * A rare column is shown once a row has a value there, a wide one not on a phone; one that fills takes the room
 * that others leave.
 */
/** A column of text. @param {string} name @param {string} head @param {(r: any) => string} text
 * @param {Partial<Column>} [more] @returns {Column} */
export const column = (name, head, text, more) => ({ name, head, text, ...more });

/** A column of numbers, which it is sorted by. @param {string} name @param {string} head
 * @param {(r: any) => number|null|undefined} value @param {((v: any) => string)|null} write what is known; null: more
 * has the text @param {Partial<Column>} [more] @returns {Column} */
export const numeric = (name, head, value, write, more) => ({
  name,
  head,
  num: true,
  text: r => {
    const v = value(r);
    return v === null || v === undefined || !write ? missing : write(v);
  },
  value,
  ...more,
});

/** A column of bytes/s as MB/s, some of them estimated. @param {string} name @param {string} head
 * @param {(r: any) => number|null} value @returns {Column} */
export const moving = (name, head, value) =>
  numeric(name, head, value, null, { text: r => (r.estimated && value(r) !== null ? '~' : '') + mega(value(r)) });

/** A table that nobody sorts, in a box that scrolls. @param {string} caption @param {string[]} heads # before a name:
 * of numbers @param {HTMLElement[]|HTMLElement} rows a body of them, or its rows */
export const plain = (caption, heads, rows) =>
  h(
    'div.scroll',
    h(
      'table',
      h('caption.sr', caption),
      heads.length > 0 &&
        h(
          'thead',
          h(
            'tr',
            ...heads.map(t =>
              t === '' ? h('td') : h(t[0] === '#' ? 'th.num' : 'th', { scope: 'col' }, t.replace('#', '')),
            ),
          ),
        ),
      Array.isArray(rows) ? h('tbody', ...rows) : rows,
    ),
  );

/** The keys that sort a table and choose its columns. @param {Table} table
 * @returns {Record<string, [string, () => void]>} */
export const sortKeys = table => ({
  '<': ['', () => table.stepSort(-1)],
  '>': ['sort', () => table.stepSort(1)],
  r: ['reverse', () => table.sortBy(table.sort)],
  '-': ['hide the sorted column', () => table.hide()],
  '+': ['all columns', () => table.hide(false)],
});

/** The page's address with other parts in its query. @param {Record<string, string>} parts '' takes one away */
export function addressWith(parts) {
  const url = new URL(location.href);
  for (const [k, v] of Object.entries(parts)) v ? url.searchParams.set(k, v) : url.searchParams.delete(k);
  return url.pathname + url.search;
}

/** How a list was left: order, filter, hidden columns. @param {string|undefined} name */
function left(name) {
  try {
    return (name && JSON.parse(localStorage.getItem(`fairway.list.${name}`) ?? '')) || {};
  } catch {
    return {}; // nothing is kept, or not by this version
  }
}

export class Table {
  /** A list with keep opens as it was left, but for what the address q names. @param {Column[]} columns @param
   * {{id: (r: any) => string, go?: (r: any) => string, sort?: string, caption?: string, fixed?: boolean, tie?: (r:
   * any) => number, keep?: {name: string, q: URLSearchParams}}} o sort: a column, after - the other way around */
  constructor(columns, o) {
    const kept = left(o.keep?.name),
      q = o.keep?.q;
    this.every = columns;
    this.o = o;
    /** @type {Set<string>} */
    this.hidden = new Set(kept.hidden);
    this.columns = columns.filter(c => !c.rare && !this.hidden.has(c.name));
    const known = [q?.get('sort'), kept.sort].find(t => t && columns.some(c => c.name === t.replace(/^-/, '')));
    this.order = known ?? o.sort ?? columns[0].name;
    this.filter = q?.get('filter') ?? kept.filter ?? '';
    /** @type {any[]} */
    this.rows = [];
    /** @type {any[]} shown, in order */
    this.shown = [];
    /** @type {any[]} all that pass the filter, in order */
    this.passed = [];
    this.limit = Infinity;
    this.selected = '';
    /** Keys act on a row: the first one is shown as the chosen one until another is. */
    this.cursor = false;
    /** @type {(() => void)|undefined} says how many pass the filter */
    this.filtered = undefined;
    this.head = h('tr');
    this.body = h('tbody');
    this.table = h('table', h('caption.sr', o.caption ?? ''), h('thead', this.head), this.body);
    this.more = h('button.dim', { type: 'button', hidden: true, click: () => this.hide(false) });
    this.el = h('div.scroll', { tabindex: o.fixed ? 0 : null }, this.table, this.more);
    this.drawHead();
  }

  get sort() {
    return this.order.replace(/^-/, '');
  }

  get reverse() {
    return this.order.startsWith('-');
  }

  /** Keeps how the list is left, and names it in the address. */
  keep() {
    const { order: sort, filter, hidden } = this;
    if (!this.o.keep) return;
    localStorage.setItem(`fairway.list.${this.o.keep.name}`, JSON.stringify({ sort, filter, hidden: [...hidden] }));
    history.replaceState(history.state, '', addressWith({ sort: sort === this.o.sort ? '' : sort, filter }));
  }

  /** Hides the column that the list is sorted by, but never the last one, or shows all. @param {boolean} [one] */
  hide(one = true) {
    if (!one) this.hidden.clear();
    else if (this.columns.length > 1) {
      this.hidden.add(this.sort);
      this.stepSort(1);
    }
    this.update(this.rows);
    this.keep();
  }

  /** Where the filter is typed: / goes there, Escape clears it. @param {string} about
   * @param {boolean} [quiet] it is not there before it is asked for */
  filterBox(about, quiet = false) {
    const set = text => {
      this.filter = text;
      this.update(this.rows);
      this.keep();
    };
    const count = h('span.dim', { role: 'status' });
    const box = h('input', {
      type: 'search',
      'aria-label': about,
      placeholder: about,
      value: this.filter,
      input: () => set(box.value),
      keydown: e => {
        if (e.key === 'Escape' || e.key === 'Enter') box.blur();
        if (e.key === 'Escape') set((box.value = ''));
      },
    });
    this.filtered = () => setText(count, this.filter ? `${this.passed.length} of ${this.rows.length} shown` : '');
    if (this.filter) this.keep();
    const el = h('div.filter', { hidden: quiet && !this.filter }, box, count);
    return {
      el,
      /** @type {Record<string, [string, () => void]>} */
      keys: {
        '/': ['filter', () => ((el.hidden = false), box.focus())],
        Escape: ['', () => this.filter && set((box.value = ''))],
      },
    };
  }

  drawHead() {
    this.head.replaceChildren(
      ...this.columns.map(c =>
        h(
          (c.num ? 'th.num' : c.head ? 'th' : 'td') + (c.wide ? '.wide' : '') + (c.fill ? '.fill' : ''),
          {
            scope: c.head ? 'col' : null,
            title: c.title,
            'aria-sort': !this.o.fixed && c.name === this.sort ? (this.reverse ? 'ascending' : 'descending') : null,
          },
          this.o.fixed
            ? c.head
            : h(
                'button',
                { type: 'button', click: () => this.sortBy(c.name) },
                c.head + (c.name === this.sort ? (this.reverse ? '\u00a0^' : '\u00a0v') : ''),
              ),
        ),
      ),
    );
  }

  /** @param {string} name */
  sortBy(name) {
    this.order = this.order === name ? `-${name}` : name;
    this.drawHead();
    this.update(this.rows);
    this.keep();
  }

  /** @param {number} step */
  stepSort(step) {
    const i = this.columns.findIndex(c => c.name === this.sort);
    this.sortBy(this.columns[(i + step + this.columns.length) % this.columns.length].name);
  }

  /** @param {any[]} rows */
  update(rows) {
    this.rows = rows;
    const columns = this.every.filter(
      c =>
        !this.hidden.has(c.name) && (!c.rare || this.columns.includes(c) || rows.some(r => c.value?.(r) !== undefined)),
    );
    this.more.hidden = !this.hidden.size;
    setText(this.more, `${counted(this.hidden.size, 'column')} hidden: show all (+)`);
    if (columns.length !== this.columns.length || columns.some((c, i) => c !== this.columns[i])) {
      this.columns = columns;
      this.body.replaceChildren();
      this.drawHead();
    }
    const col = this.columns.find(c => c.name === this.sort) ?? this.columns[0];
    const value = col.value ?? col.text;
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    let list = words.length
      ? rows.filter(r => {
          const all = this.every // a filter looks at hidden columns, too
            .map(c => c.text(r))
            .join(' ')
            .toLowerCase();
          return words.every(w => all.includes(w));
        })
      : [...rows];
    if (!this.o.fixed)
      list.sort(
        (a, b) =>
          (this.reverse ? -1 : 1) * compare(value(a), value(b)) ||
          (this.o.tie ? this.o.tie(b) - this.o.tie(a) : 0) ||
          compare(this.o.id(b), this.o.id(a)),
      );
    this.passed = list;
    this.filtered?.();
    this.el.hidden = !rows.length; // heads alone say nothing
    list = list.slice(0, this.limit);
    this.shown = list;
    while (this.body.children.length > list.length) this.body.lastChild?.remove();
    list.forEach((r, i) => this.drawRow(r, i));
    this.mark();
  }

  /** Shows which row keys act on. */
  mark() {
    const at = this.cursor ? this.current() : this.shown.find(r => this.o.id(r) === this.selected);
    this.shown.forEach((r, i) => this.body.children[i]?.classList.toggle('sel', r === at));
  }

  /** @param {any} r @param {number} i */
  drawRow(r, i) {
    let tr = /** @type {any} */ (this.body.children[i]);
    if (!tr) {
      tr = h(
        'tr',
        ...this.columns.map(c => {
          const wrap = c.wrap === true ? '.wrap' : c.wrap ? '.narrow' : '';
          return h((c.num ? 'td.num' : 'td') + wrap + (c.wide ? '.wide' : ''));
        }),
      );
      this.body.append(tr);
    }
    this.columns.forEach((c, k) => {
      const cell = tr.children[k];
      if (c.draw) c.draw(cell, r);
      else setText(cell, c.text(r));
    });
    tr.dataset.state = FAILED.includes(r.state) ? 'slow' : (r.state ?? '');
    const to = this.o.go?.(r);
    if (to) tr.dataset.go = to;
    else delete tr.dataset.go;
  }

  /** @param {number} step @returns {any} the row that is selected now */
  move(step) {
    if (!this.shown.length) return null;
    const i = this.shown.findIndex(r => this.o.id(r) === this.selected);
    const r = this.shown[Math.max(0, Math.min(this.shown.length - 1, i < 0 ? (this.cursor ? step : 0) : i + step))];
    this.select(this.o.id(r));
    return r;
  }

  /** Calls for the row that is pressed. @param {(r: any) => void} chosen */
  onPick(chosen) {
    this.table.addEventListener('click', e => {
      const row = /** @type {HTMLElement} */ (e.target).closest('tbody tr'),
        r = row && this.shown[[...this.body.children].indexOf(row)];
      if (r !== null && r !== undefined) chosen(r);
    });
  }

  /** @param {string} id */
  select(id) {
    this.selected = id;
    this.mark();
    const i = this.shown.findIndex(r => this.o.id(r) === id);
    if (i >= 0) this.body.children[i].scrollIntoView({ block: 'nearest' });
  }

  current() {
    return this.shown.find(r => this.o.id(r) === this.selected) ?? this.shown[0];
  }

  /** The heads and every row that passes the filter, in the order shown, as texts; an unknown value is empty. A row
   * on screen is given as it stands there: an age would be another one by now. */
  all() {
    return [
      this.columns.map(c => c.head),
      ...this.passed.map((r, i) =>
        this.columns.map((c, k) => {
          const t = c.draw ? c.text(r) : (this.body.children[i]?.children[k].textContent ?? c.text(r));
          return t === missing ? '' : t;
        }),
      ),
    ];
  }
}

/** The keys that move in a list. @param {(step: number) => void} move @param {string} [hint] what the bottom line
 * says of them @returns {Record<string, [string, () => void]>} */
export function rowKeys(move, hint = '') {
  const up = () => move(-1),
    down = () => move(1);
  return { ArrowUp: ['', up], k: ['', up], ArrowDown: [hint, down], j: [hint, down] };
}

/** Largest first; unknown values last. @param {any} a @param {any} b */
function compare(a, b) {
  const na = a === null || a === undefined,
    nb = b === null || b === undefined;
  if (na || nb) return na && nb ? 0 : na ? 1 : -1;
  if (typeof a === 'number' && typeof b === 'number') return b - a;
  return String(b).localeCompare(String(a), 'en', { numeric: true });
}
