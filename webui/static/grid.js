// A grid of cells on a canvas: one pixel a cell in an ImageData, scaled once without smoothing.
// Labels are drawn only where a cell is at least 24 px wide.
import { colour, h } from './h.js?v=__V__';
import { inkOn, ramp, rgbOf } from './levels.js?v=__V__';

/**
 * What a grid shows: levels as in levels.js, and of each cell a digit and a mark where cells are large
 * enough for them.
 * @typedef {{levels: Int8Array, digits?: string[], marks?: string[]}} Cells
 * @typedef {{bg: string, fg: string, dim: string, table: Uint32Array}} Colours table holds the pixel of each level,
 * from UNKNOWN on
 */

/** @type {Colours|null} */
let known = null;
/** The colours of the theme; read once, because asking the style sheet costs more than drawing. @returns {Colours} */
function colours() {
  if (known) return known;
  // little-endian, as every host that runs a browser today
  const pixel = (/** @type {number[]} */ [r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  known = {
    bg: colour('--bg'),
    fg: colour('--fg'),
    dim: colour('--dim'),
    table: Uint32Array.from([
      ...['--line', '--panel'].map(name => pixel(rgbOf(colour(name)))),
      ...ramp().map(pixel),
      ...['--warn', '--slow'].map(name => pixel(rgbOf(colour(name)))),
    ]),
  };
  return known;
}
addEventListener('fairway-theme', () => (known = null));

export const labelSize = 24;

export class GridView {
  /** @param {{label: string, pick: (i: number) => void, open: (i: number) => void, tip?: (i: number) => string}} on
   * */
  constructor(on) {
    this.canvas = h('canvas', { tabindex: 0, role: 'img', 'aria-label': on.label });
    this.raster = document.createElement('canvas');
    this.count = 0;
    this.cols = 48;
    this.size = 24;
    this.gutter = 40;
    /** Time of the last redraw, ms. */
    this.took = 0;
    /** @type {{key: string, colours: Colours|null, cursor: number, image: ImageData|null, pixels: Uint32Array,
     * labels: string[]}} what is on the canvas */
    this.drawn = { key: '', colours: null, cursor: -1, image: null, pixels: new Uint32Array(0), labels: [] };
    this.at = e => {
      const box = this.canvas.getBoundingClientRect();
      const x = Math.floor((e.clientX - box.left - this.gutter) / this.size),
        y = Math.floor((e.clientY - box.top) / this.size);
      const i = y * this.cols + x;
      return x >= 0 && x < this.cols && i >= 0 && i < this.count ? i : -1;
    };
    this.canvas.addEventListener('click', e => this.at(e) >= 0 && on.pick(this.at(e)));
    this.canvas.addEventListener('dblclick', e => this.at(e) >= 0 && on.open(this.at(e)));
    this.el = withTip(this.canvas, e => {
      const i = this.at(e);
      return i >= 0 ? (on.tip?.(i) ?? '') : '';
    });
  }

  /** Chooses columns and cell size for a width. @param {number} count @param {number} width @param {number} height
   * @param {boolean} big */
  layout(count, width, height, big) {
    this.count = count;
    if (big) {
      this.gutter = 0;
      let size = Math.max(1, Math.floor(Math.sqrt((width * height) / Math.max(1, count))));
      while (size > 1 && Math.ceil(count / Math.floor(width / size)) * size > height) size--;
      this.size = Math.min(size, 28);
      this.cols = Math.max(1, Math.floor(width / this.size));
    } else {
      this.gutter = 40;
      const fit = Math.floor((width - this.gutter) / labelSize);
      const choices = [48, 36, 24, 16, 12, 8];
      this.cols = Math.max(1, Math.min(count || 1, choices.find(c => c <= fit) ?? 8));
      this.size = Math.max(12, Math.min(40, Math.floor((width - this.gutter) / this.cols)));
    }
  }

  /** Draws what has changed since the last time; everything after another layout or other colours.
   * @param {Cells} cells @param {number} cursor */
  draw(cells, cursor) {
    const begun = performance.now(),
      n = cells.levels.length,
      rows = Math.max(1, Math.ceil(n / this.cols)),
      ratio = window.devicePixelRatio || 1;
    const w = this.gutter + this.cols * this.size,
      hgt = rows * this.size,
      c = colours();
    const g = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d')),
      key = [n, this.cols, this.size, this.gutter, ratio].join();
    const all = key !== this.drawn.key || c !== this.drawn.colours;
    if (all) this.begin(g, w, hgt, rows, ratio, c, key);
    const was = this.drawn;
    const [from, to] = this.paint(cells.levels, c.table),
      labelled = this.size >= labelSize && cells.digits && cells.marks;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!labelled || all) {
      // The cursor is wider than a small cell, so it goes with the rows about it.
      const at = Math.floor(was.cursor / this.cols),
        moved = was.cursor !== cursor && was.cursor >= 0;
      const lo = all ? 0 : Math.max(0, moved ? Math.min(from, at - 1) : from),
        hi = all ? rows : Math.min(rows, moved ? Math.max(to, at + 2) : to);
      if (hi > lo) this.blit(g, lo, hi, c.bg);
    }
    if (labelled) this.label(g, cells, cursor, c, all);
    if (cursor >= 0 && cursor < n) this.outline(g, cursor, c);
    was.cursor = cursor;
    this.took = performance.now() - begun;
  }

  /** A clean canvas and raster. @param {CanvasRenderingContext2D} g @param {number} w @param {number} hgt
   * @param {number} rows @param {number} ratio @param {Colours} c @param {string} key */
  begin(g, w, hgt, rows, ratio, c, key) {
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(hgt * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(hgt * ratio);
      this.canvas.style.width = `${w}px`;
      this.canvas.style.height = `${hgt}px`;
    }
    this.raster.width = this.cols;
    this.raster.height = rows;
    const image = new ImageData(this.cols, rows);
    this.drawn = { key, colours: c, cursor: -1, image, pixels: new Uint32Array(image.data.buffer), labels: [] };
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = c.bg;
    g.fillRect(0, 0, w, hgt);
    if (!this.gutter) return;
    g.fillStyle = c.dim;
    g.font = `13px ${mono}`;
    g.textAlign = 'left';
    g.textBaseline = 'middle';
    for (let r = 0; r < rows; r++)
      g.fillText(String(r * this.cols).padStart(3, '0'), 4, r * this.size + this.size / 2 + 1);
  }

  /** One pixel a cell into the raster. @param {Int8Array} levels @param {Uint32Array} table
   * @returns {[number, number]} the rows that changed, the last one exclusive */
  paint(levels, table) {
    const p = this.drawn.pixels;
    let first = -1,
      last = -1;
    for (let i = 0; i < levels.length; i++) {
      const pixel = table[levels[i] + 2];
      if (p[i] === pixel) continue;
      p[i] = pixel;
      last = i;
      if (first < 0) first = i;
    }
    return first < 0 ? [Infinity, 0] : [Math.floor(first / this.cols), Math.floor(last / this.cols) + 1];
  }

  /** Rows of the raster onto the canvas, scaled once. @param {CanvasRenderingContext2D} g @param {number} lo
   * @param {number} hi @param {string} bg */
  blit(g, lo, hi, bg) {
    const r = /** @type {CanvasRenderingContext2D} */ (this.raster.getContext('2d')),
      n = hi - lo,
      y = lo * this.size,
      wide = this.cols * this.size;
    r.putImageData(/** @type {ImageData} */ (this.drawn.image), 0, 0, 0, lo, this.cols, n);
    g.imageSmoothingEnabled = false;
    g.fillStyle = bg;
    g.fillRect(this.gutter, y, wide, n * this.size); // cells behind the last one are blank
    g.drawImage(this.raster, 0, lo, this.cols, n, this.gutter, y, wide, n * this.size);
    if (this.size < 6) return;
    for (let c = 1; c <= this.cols; c++) g.fillRect(this.gutter + c * this.size - 1, y, 1, n * this.size);
    for (let k = lo + 1; k <= hi; k++) g.fillRect(this.gutter, k * this.size - 1, wide, 1);
  }

  /** Digits and marks of the cells that changed. @param {CanvasRenderingContext2D} g @param {Cells} cells
   * @param {number} cursor @param {Colours} c @param {boolean} all */
  label(g, cells, cursor, c, all) {
    const digits = /** @type {string[]} */ (cells.digits),
      marks = /** @type {string[]} */ (cells.marks),
      labels = this.drawn.labels;
    g.textBaseline = 'middle';
    for (let i = 0; i < cells.levels.length; i++) {
      const lev = cells.levels[i],
        digit = digits[i],
        mark = marks[i],
        text = `${lev}${digit}${mark}${i === cursor ? '[' : ''}`;
      if (labels[i] === text) continue;
      labels[i] = text;
      const left = this.gutter + (i % this.cols) * this.size,
        top = Math.floor(i / this.cols) * this.size,
        x = left + this.size / 2,
        y = top + this.size / 2 + 1;
      const p = c.table[lev + 2],
        rgb = [p & 255, (p >> 8) & 255, (p >> 16) & 255];
      if (!all) {
        g.fillStyle = `rgb(${rgb.join()})`;
        g.fillRect(left, top, this.size - 1, this.size - 1);
      }
      g.fillStyle = lev === -1 ? c.dim : lev < 0 ? c.fg : inkOn(rgb);
      if (digit !== ' ') {
        g.font = `13px ${mono}`;
        g.textAlign = mark ? 'right' : 'center';
        g.fillText(digit, x - (mark ? 0 : 0.5), y);
      }
      if (mark) {
        g.font = `bold 14px ${mono}`;
        g.textAlign = digit === ' ' ? 'center' : 'left';
        g.fillText(mark, x + (digit === ' ' ? -0.5 : 1), y);
      }
    }
  }

  /** @param {CanvasRenderingContext2D} g @param {number} cursor @param {Colours} c */
  outline(g, cursor, c) {
    const x = this.gutter + (cursor % this.cols) * this.size,
      y = Math.floor(cursor / this.cols) * this.size;
    g.lineWidth = 2;
    g.strokeStyle = c.fg;
    g.strokeRect(x + 1, y + 1, Math.max(this.size - 2, 4), Math.max(this.size - 2, 4));
    g.lineWidth = 1;
    g.strokeStyle = c.bg;
    g.strokeRect(x + 2.5, y + 2.5, Math.max(this.size - 5, 2), Math.max(this.size - 5, 2));
  }
}

/** A canvas in a box with words at the pointer. @param {HTMLCanvasElement} canvas
 * @param {(e: MouseEvent) => string} say @returns {HTMLElement} */
export function withTip(canvas, say) {
  const tip = h('div.tip'),
    el = h('div.gridbox', canvas, tip);
  canvas.addEventListener('mousemove', e => {
    const text = say(e),
      box = el.getBoundingClientRect();
    tip.textContent = text;
    tip.classList.toggle('on', text !== '');
    tip.style.left = `${Math.min(e.clientX - box.left + 14, el.clientWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${e.clientY - box.top + 14}px`;
  });
  canvas.addEventListener('mouseleave', () => tip.classList.remove('on'));
  return el;
}

const mono = 'ui-monospace, "DejaVu Sans Mono", monospace';

/** The ramp as a small picture for the legend. */
export function rampCanvas() {
  const c = h('canvas', {
    width: 10,
    height: 1,
    role: 'img',
    'aria-label': 'what stands out most from the page is high',
  });
  const g = /** @type {CanvasRenderingContext2D} */ (c.getContext('2d'));
  ramp().forEach((rgb, i) => {
    g.fillStyle = `rgb(${rgb.join()})`;
    g.fillRect(i, 0, 1, 1);
  });
  return c;
}
