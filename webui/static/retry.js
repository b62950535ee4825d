// @ts-check
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
