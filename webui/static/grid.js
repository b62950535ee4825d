// A grid of cells on a canvas: one pixel a cell in an ImageData, scaled once without smoothing.
// Labels are drawn only where a cell is at least 24 px wide.
import { h } from './h.js?v=__V__';
import { IDLE, darkSteps, ramp } from './levels.js?v=__V__';

/** @typedef {{level: number, mark?: string, digit?: string, dark?: boolean}} Cell */

export const labelSize = 24;

export class GridView {
  /**
   * @param {{label: string, pick: (i: number) => void, open: (i: number) => void, tip?: (i: number) => string}} on
   */
  constructor(on) {
    this.canvas = /** @type {HTMLCanvasElement} */ (h('canvas', { tabindex: 0, role: 'img', 'aria-label': on.label }));
    this.tip = h('div.tip');
    this.el = h('div.gridbox', null, this.canvas, this.tip);
    this.raster = document.createElement('canvas');
    this.count = 0;
    this.cols = 48;
    this.size = 24;
    this.gutter = 40;
    /** @type {number[]} times of redraws, ms */
    this.took = [];
    this.at = (/** @type {MouseEvent} */ e) => {
      const box = this.canvas.getBoundingClientRect();
      const x = Math.floor((e.clientX - box.left - this.gutter) / this.size), y = Math.floor((e.clientY - box.top) / this.size);
      const i = y * this.cols + x;
      return x >= 0 && x < this.cols && i >= 0 && i < this.count ? i : -1;
    };
    this.canvas.addEventListener('click', (e) => this.at(e) >= 0 && on.pick(this.at(e)));
    this.canvas.addEventListener('dblclick', (e) => this.at(e) >= 0 && on.open(this.at(e)));
    this.canvas.addEventListener('mousemove', (e) => {
      const i = this.at(e), text = i >= 0 ? (on.tip?.(i) ?? '') : '';
      this.tip.classList.toggle('on', text !== '');
      this.tip.textContent = text;
      const left = e.clientX - this.el.getBoundingClientRect().left;
      this.tip.style.left = `${Math.min(left + 14, this.el.clientWidth - this.tip.offsetWidth - 4)}px`;
      this.tip.style.top = `${e.clientY - this.el.getBoundingClientRect().top + 14}px`;
    });
    this.canvas.addEventListener('mouseleave', () => this.tip.classList.remove('on'));
  }

  /** Chooses columns and cell size for a width. @param {number} count @param {number} width @param {number} height @param {boolean} big */
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
      const fit = Math.floor((width - this.gutter) / 26);
      const choices = [48, 36, 24, 16, 12, 8];
      this.cols = Math.max(1, Math.min(count || 1, choices.find((c) => c <= fit) ?? 8));
      this.size = Math.max(12, Math.min(40, Math.floor((width - this.gutter) / this.cols)));
    }
  }

  /**
   * @param {{length: number, level: (i: number) => number, cell?: (i: number) => {digit: string, mark: string, shown: boolean}}} cells
   * @param {number} cursor
   */
  draw(cells, cursor) {
    const begun = performance.now();
    const rows = Math.max(1, Math.ceil(cells.length / this.cols)), ratio = window.devicePixelRatio || 1;
    const w = this.gutter + this.cols * this.size, hgt = rows * this.size;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(hgt * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(hgt * ratio);
      this.canvas.style.width = `${w}px`;
      this.canvas.style.height = `${hgt}px`;
    }
    const g = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
    const style = getComputedStyle(document.documentElement);
    const bg = style.getPropertyValue('--bg').trim(), fg = style.getPropertyValue('--fg').trim(), dim = style.getPropertyValue('--dim').trim();
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = bg;
    g.fillRect(0, 0, w, hgt);
    this.drawRaster(g, cells, rows, parse(style.getPropertyValue('--panel').trim()), parse(style.getPropertyValue('--line').trim()));
    if (this.size >= 6) this.drawLines(g, rows, bg);
    if (this.size >= labelSize && cells.cell) this.drawLabels(g, cells, fg);
    if (this.gutter) {
      g.fillStyle = dim;
      g.font = '13px ui-monospace, "DejaVu Sans Mono", monospace';
      g.textAlign = 'left';
      g.textBaseline = 'middle';
      for (let r = 0; r < rows; r++) g.fillText(String(r * this.cols).padStart(3, '0'), 4, r * this.size + this.size / 2 + 1);
    }
    if (cursor >= 0 && cursor < cells.length) {
      const x = this.gutter + (cursor % this.cols) * this.size, y = Math.floor(cursor / this.cols) * this.size;
      g.lineWidth = 2;
      g.strokeStyle = fg;
      g.strokeRect(x + 1, y + 1, Math.max(this.size - 2, 4), Math.max(this.size - 2, 4));
      g.lineWidth = 1;
      g.strokeStyle = bg;
      g.strokeRect(x + 2.5, y + 2.5, Math.max(this.size - 5, 2), Math.max(this.size - 5, 2));
    }
    this.took.push(performance.now() - begun);
    if (this.took.length > 240) this.took.shift();
  }

  /** @param {CanvasRenderingContext2D} g @param {any} cells @param {number} rows @param {number[]} idle @param {number[]} none */
  drawRaster(g, cells, rows, idle, none) {
    this.raster.width = this.cols;
    this.raster.height = rows;
    const r = /** @type {CanvasRenderingContext2D} */ (this.raster.getContext('2d'));
    const image = r.createImageData(this.cols, rows), d = image.data;
    for (let i = 0; i < cells.length; i++) {
      const lev = cells.level(i), c = lev >= 0 ? ramp[lev] : lev === IDLE ? idle : none;
      const at = i * 4;
      d[at] = c[0];
      d[at + 1] = c[1];
      d[at + 2] = c[2];
      d[at + 3] = 255;
    }
    r.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(this.raster, 0, 0, this.cols, rows, this.gutter, 0, this.cols * this.size, rows * this.size);
  }

  /** @param {CanvasRenderingContext2D} g @param {number} rows @param {string} bg */
  drawLines(g, rows, bg) {
    g.fillStyle = bg;
    for (let c = 1; c <= this.cols; c++) g.fillRect(this.gutter + c * this.size - 1, 0, 1, rows * this.size);
    for (let r = 1; r <= rows; r++) g.fillRect(this.gutter, r * this.size - 1, this.cols * this.size, 1);
  }

  /** @param {CanvasRenderingContext2D} g @param {any} cells @param {string} fg */
  drawLabels(g, cells, fg) {
    const mono = 'ui-monospace, "DejaVu Sans Mono", monospace';
    g.textBaseline = 'middle';
    for (let i = 0; i < cells.length; i++) {
      const c = cells.cell(i), lev = cells.level(i);
      const x = this.gutter + (i % this.cols) * this.size, y = Math.floor(i / this.cols) * this.size + this.size / 2 + 1;
      g.fillStyle = !c.shown || lev < 0 ? fg : lev < darkSteps ? '#fff' : '#000';
      g.font = `13px ${mono}`;
      g.textAlign = c.mark ? 'right' : 'center';
      if (c.digit !== ' ') g.fillText(c.digit, x + this.size / 2 - (c.mark ? 0 : 0.5), y);
      if (c.mark) {
        g.font = `bold 14px ${mono}`;
        g.textAlign = c.digit === ' ' ? 'center' : 'left';
        g.fillText(c.mark, x + this.size / 2 + (c.digit === ' ' ? -0.5 : 1), y);
      }
    }
  }
}

/** @param {string} hex @returns {number[]} */
function parse(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

/** The ramp as a small picture for the legend. */
export function rampCanvas() {
  const c = /** @type {HTMLCanvasElement} */ (h('canvas', { width: 10, height: 1, role: 'img', 'aria-label': 'dark is low, light is high' }));
  const g = /** @type {CanvasRenderingContext2D} */ (c.getContext('2d'));
  ramp.forEach((rgb, i) => {
    g.fillStyle = `rgb(${rgb.join()})`;
    g.fillRect(i, 0, 1, 1);
  });
  return c;
}
