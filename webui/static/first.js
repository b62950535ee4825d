// @ts-check
// What is needed before the first paint.

/** The theme as one attribute: what this browser's person chose, else what the system says. */
function setTheme() {
  const asked = localStorage.getItem('fairway.theme');
  document.documentElement.dataset.theme =
    asked || (matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark');
}
setTheme();
addEventListener('fairway-theme', setTheme);
for (const q of ['(prefers-color-scheme: light)', '(forced-colors: active)'])
  matchMedia(q).addEventListener('change', () => dispatchEvent(new Event('fairway-theme')));

// A page with a file that did not come, since the network changed meanwhile, would stay closed: it is loaded again.
const KEY = 'fairway.retries',
  MOST = 3;
addEventListener(
  'error',
  e => {
    const of = /** @type {Element} */ (e.target);
    if (!of.matches?.('script, link[rel=stylesheet]') || !document.querySelector('html.opening')) return;
    const tries = Number(sessionStorage.getItem(KEY)) + 1;
    sessionStorage.setItem(KEY, String(tries));
    if (tries <= MOST) setTimeout(() => location.reload(), 500 * tries);
    else {
      const page = document.querySelector('#page > .empty');
      if (page) page.textContent = 'A file of this page has not come from the server. Load it again (F5).';
    }
  },
  true,
);
