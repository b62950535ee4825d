// A chart of one metric beside its peers, as a drawing: of a finding's page, and the proof beside a card.
import { h, setText, s } from './h.js?v=__V__';
import { clock, number } from './format.js?v=__V__';

const LEFT = 44,
  BOTTOM = 18,
  TOP = 6,
  LANES = 3, // of marks' labels
  LETTER = 7, // of a label, at most
  DECADES = 1e4; // of a logarithmic scale: what is below is next to nothing, and drawn at its foot

/** Stretches that are known. @param {(number|null)[]} row */
function runs(row) {
  /** @type {[number, number][]} */
  const out = [];
  row.forEach((v, i) => {
    if (v === null) return;
    if (i && row[i - 1] !== null) out[out.length - 1][1] = i;
    else out.push([i, i]);
  });
  return out;
}

/** From a value to its part of the height, and the values that have a label. Times that differ by more than five are
 * on a logarithmic scale; what only one point in a hundred reaches is cut, for one outlier must not flatten the rest.
 * @param {any} c */
export function scaleOf(c) {
  const known = [...c.node, ...c.high, ...c.low].filter(v => v > 0).sort((a, b) => a - b);
  if (!known.length) return { part: () => 0, marks: [0], cut: Infinity };
  const cut = known[Math.min(known.length - 1, Math.floor(0.99 * known.length))],
    low = Math.max(known[Math.floor(0.01 * known.length)], cut / DECADES);
  if (c.unit === 'ms' && cut > 5 * low) {
    const from = Math.log(low * 0.8),
      to = Math.log(cut * 1.1);
    const marks = [-3, -2, -1, 0, 1, 2, 3, 4, 5]
      .flatMap(e => [10 ** e, 3 * 10 ** e])
      .map(v => v / c.scale)
      .filter(v => Math.log(v) >= from && Math.log(v) <= to)
      .filter((_, i, all) => all.length < 6 || i % 2 === all.length % 2); // as many as have room
    return {
      part: v => Math.min(1, Math.max(0, (Math.log(Math.max(v, 1e-12)) - from) / (to - from))),
      marks,
      cut: cut * 1.1,
    };
  }
  const top = cut * 1.05;
  return { part: v => Math.min(1, v / top), marks: [0, top / 2, top], cut: top };
}

/** One chart: grid, shade, the peers' band and median, then the node's own line on top. @param {any} inc
 * @param {any} c one of its charts @param {number} width @param {number} [height] @param {boolean} [below] a headline
 * with a ratio: the chart has its values alone, a second ratio would contradict */
export function chart(inc, c, width, height = 120, below = false) {
  const n = c.node.length,
    from = Date.parse(inc.series.from),
    step = inc.series.step_seconds * 1000,
    scale = scaleOf(c),
    high = height - BOTTOM - TOP;
  const x = i => LEFT + ((width - LEFT) * i) / Math.max(1, n - 1),
    y = v => TOP + high * (1 - scale.part(v));
  const ratio = !c.says ? '' : below ? c.means : `${c.says} its peers${c.means ? ` (${c.means})` : ''}`;
  const svg = s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${c.label} ${ratio}` });
  drawGround(svg, inc, c, { x, y, n, from, step, scale, width, height, high });
  const points = (row, [i, k]) => row.slice(i, k + 1).map((v, j) => `${x(i + j).toFixed(1)} ${y(v).toFixed(1)}`);
  for (const r of runs(c.low))
    svg.append(s('path', { class: 'band', d: `M${[...points(c.high, r), ...points(c.low, r).reverse()].join('L')}Z` }));
  for (const [name, row] of /** @type {[string, any][]} */ ([
    ['mid', c.mid],
    ['own', c.node],
  ]))
    svg.append(
      s('path', {
        class: name,
        d: runs(row)
          .map(r => `M${points(row, r).join('L')}h.8`)
          .join(''),
      }),
    );
  c.node.forEach((v, i) => {
    if (v !== null && v > scale.cut) svg.append(s('path', { class: 'cut', d: `M${x(i) - 3} ${TOP + 4}l3-4l3 4` }));
  });
  return withCursor(svg, c, { x, n, from, step, width, height, ratio });
}

/** Grid, labels, the accused stretch, moves. @param {any} svg @param {any} inc @param {any} c @param {any} g */
function drawGround(svg, inc, c, g) {
  for (const v of g.scale.marks) {
    svg.append(s('line', { class: 'grid', x1: LEFT, x2: g.width, y1: g.y(v), y2: g.y(v) }));
    svg.append(s('text', { x: LEFT - 6, y: Math.max(11, g.y(v) + 4), 'text-anchor': 'end' }, number(v * c.scale)));
  }
  const at = t => Math.min(g.n - 1, Math.max(0, (Date.parse(t) - g.from) / g.step)),
    a = at(inc.accused.from),
    z = at(inc.accused.to);
  if (z > a) svg.append(s('rect', { class: 'accused', x: g.x(a), y: TOP, width: g.x(z) - g.x(a), height: g.high }));
  const marks = (inc.plans ?? []).map(p => [p.effect?.before_to ?? p.created, p.effect ? 'moved' : p.id, p.title]);
  for (const c of inc.life ?? []) if (c.noted) marks.push([c.noted, 'N', `${c.by}, ${c.why}`]);
  const ends = Array(LANES).fill(-Infinity); // of the labels so far: those near each other stand below each other
  for (const [at, text, about] of marks.sort((a, b) => Date.parse(a[0]) - Date.parse(b[0]))) {
    const when = Date.parse(at);
    if (!(when >= g.from && when <= g.from + g.step * (g.n - 1))) continue;
    const px = g.x((when - g.from) / g.step),
      long = 4 + LETTER * text.length,
      left = Math.min(px + 3, g.width - long),
      lane = ends.findIndex(end => left >= end);
    svg.append(s('line', { class: 'moved', x1: px, x2: px, y1: TOP, y2: TOP + g.high }, s('title', {}, about)));
    if (lane < 0) continue; // no place is left: the line has its words
    ends[lane] = left + long;
    svg.append(s('text', { class: 'moved', x: left, y: TOP + 9 + 11 * lane }, text, s('title', {}, about)));
  }
  const last = g.width < 600 ? 2 : 4; // times that fit beside each other
  for (let k = 0; k <= last; k++) {
    const i = Math.round((k * (g.n - 1)) / last);
    const anchor = k === last ? 'end' : k ? 'middle' : 'start';
    svg.append(s('text', { x: g.x(i), y: g.height - 3, 'text-anchor': anchor }, clock(g.from + i * g.step)));
  }
}

/** The figure with what shows and picks a step. @param {any} svg @param {any} c @param {any} g */
function withCursor(svg, c, g) {
  const picked = s('rect', { class: 'picked', y: TOP, height: g.height - BOTTOM - TOP, visibility: 'hidden' });
  const line = s('line', { class: 'cursor', y1: TOP, y2: g.height - BOTTOM, visibility: 'hidden' }),
    value = h('span.dim');
  svg.append(picked, line);
  const unit = c.unit && `, ${c.unit}`,
    figure = h('figure', h('figcaption', c.label, unit, g.ratio && h('strong', ` ${g.ratio}`), ' ', value), svg);
  const show = i => {
    line.setAttribute('visibility', i === null ? 'hidden' : 'visible');
    if (i === null) return setText(value, '');
    line.setAttribute('x1', String(g.x(i)));
    line.setAttribute('x2', String(g.x(i)));
    const of = v => number(v === null ? null : v * c.scale);
    const peers = c.mid[i] === null ? 'peers not known' : `peers ${of(c.mid[i])} (${of(c.low[i])} to ${of(c.high[i])})`;
    setText(value, ` ${of(c.node[i])} ${c.unit}, ${peers}  ${clock(g.from + i * g.step)}`);
  };
  /** The step under the pointer. @param {PointerEvent} e */
  const under = e => {
    const box = svg.getBoundingClientRect(),
      part = (((e.clientX - box.left) / box.width) * g.width - LEFT) / (g.width - LEFT);
    return part < 0 || part > 1 ? null : Math.round(part * (g.n - 1));
  };
  /** Marks the steps from a to b, or none. @param {number|null} a @param {number} [b] */
  const pick = (a, b = 0) => {
    picked.setAttribute('visibility', a === null ? 'hidden' : 'visible');
    if (a === null) return;
    picked.setAttribute('x', String(g.x(Math.min(a, b))));
    picked.setAttribute('width', String(Math.abs(g.x(b) - g.x(a))));
  };
  /** When a step began. @param {number} i */
  const time = i => g.from + i * g.step;
  return { figure, show, under, pick, time, svg };
}
