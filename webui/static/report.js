// The page of a week: the very one that 'fairway report --html' writes, with ways to the weeks around it.
import { iso } from './format.js?v=__V__';
import { get } from './api.js?v=__V__';
import { saveFile } from './export.js?v=__V__';
import { h } from './h.js?v=__V__';

const week = 7 * 24 * 3600 * 1000;

/** @param {number} t */
const day = t => new Date(t).toISOString().slice(0, 10);

/** @param {import('./app.js').App} app @param {URLSearchParams} q @returns {Promise<import('./app.js').Page>} */
export async function reportPage(app, q) {
  const given = Date.parse(q.get('to') ?? ''),
    to = given > 0 ? given : app.now(),
    from = Date.parse(q.get('from') ?? '') || to - week;
  const html = await get(
    `/api/v1/report?format=html&from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}`,
  );
  const [element = '', styles = ''] = /<style>([^]*?)<\/style>/.exec(html) ?? [];
  const made = new DOMParser().parseFromString(html.replace(element, ''), 'text/html');
  const inside = h('div');
  // Its styles are its own and the console's stay outside: it is one page here and in a file.
  const shadow = inside.attachShadow({ mode: 'open' });
  const look = new CSSStyleSheet();
  look.replaceSync(styles.replace(/:root|\bbody\b/g, ':host'));
  shadow.adoptedStyleSheets = [look];
  shadow.append(...Array.from(made.body.childNodes, n => document.importNode(n, true)));
  const at = end => (end >= app.now() ? '/report' : `/report?to=${iso(end)}`);
  const save = () => saveFile(`report-${day(to)}.html`, 'text/html', html);
  return {
    title: 'report',
    timeless: true,
    past() {},
    el: h(
      'div',
      h(
        'p',
        h('a', { href: at(to - week) }, 'the week before'),
        ' ',
        given > 0 && h('a', { href: at(to + week) }, 'the week after'),
        ' ',
        h('button', { type: 'button', click: save }, 'save as a file'),
      ),
      inside,
    ),
    keys: {
      '[': ['the week before', () => app.go(at(to - week))],
      ']': ['the week after', () => app.go(at(to + week))],
      E: ['save as a file', save],
    },
  };
}
