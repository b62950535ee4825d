// Requests to the server, each kept in a log that `@` shows.

/** @typedef {{at: Date, method: string, path: string, status: number, ms: number, text: string}} LogLine */
/** @type {LogLine[]} */
export const log = [];

let underWay = 0;
/** Whether nothing that was asked for is still on its way. */
export const settled = () => underWay === 0;

export class Refused extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

// A session has two halves: its cookie, which a browser sends to every port of the host, and a secret that the
// console's pages alone know. A tab has it from its sign-in or from another tab; it is gone with the last of them.
const kept = 'fairway.session';
const tabs = new BroadcastChannel(kept);
const question = '?'; // asks the other tabs for it
/** @type {(got: boolean) => void} */
let received = () => {};
tabs.onmessage = e => {
  if (e.data !== question) {
    sessionStorage.setItem(kept, e.data);
    received(true);
  } else if (secret()) tabs.postMessage(secret());
};

export const secret = () => sessionStorage.getItem(kept) ?? '';

/** @param {string} s */
export function keepSecret(s) {
  sessionStorage.setItem(kept, s);
  tabs.postMessage(s); // the cookie is theirs, too
}

/** Who this tab is. One that has only the cookie asks the other tabs for the secret. */
export async function session() {
  const s = await get('/api/v1/session');
  if (!s.locked) return s;
  const got = await new Promise(done => {
    received = done;
    tabs.postMessage(question);
    setTimeout(() => done(false), 500);
  });
  return got ? get('/api/v1/session') : s;
}

/** @param {string} method @param {string} path @param {any} [body] @param {string} [key] @returns {Promise<any>} */
async function ask(method, path, body, key) {
  const begun = performance.now();
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (key) headers['Idempotency-Key'] = key;
  if (secret()) headers['X-Fairway-Session'] = secret();
  underWay++;
  const line = { at: new Date(), method, path, status: 0, ms: 0, text: '' };
  log.push(line);
  if (log.length > 200) log.shift();
  try {
    const res = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(15000),
    });
    line.status = res.status;
    if (res.ok && res.headers.get('Content-Type') === 'application/octet-stream') return await res.arrayBuffer();
    if (res.ok && res.headers.get('Content-Type')?.startsWith('text/html')) return await res.text();
    const value = await res.json();
    if (!res.ok) throw new Refused(res.status, value.code ?? '', value.detail ?? res.statusText);
    return value;
  } catch (err) {
    line.text = String(/** @type {Error} */ (err).message ?? err);
    if (err instanceof Refused) throw err;
    throw new Refused(
      0,
      'unreachable',
      `The server does not answer (${line.text}). Check that fairwayd runs; this page tries again by itself.`,
    );
  } finally {
    underWay--;
    line.ms = Math.round(performance.now() - begun);
  }
}

/** What is at a path: an object, of a page its text, of numbers alone their bytes. @param {string} path */
export const get = path => ask('GET', path);

/** What a query of PromQL's finds, by step. @param {string} query @param {number} start @param {number} end
 * @param {number} step s @returns {Promise<{metric: Record<string, string>, values: [number, string][]}[]>} */
export async function queried(query, start, end, step) {
  const of = `query=${encodeURIComponent(query)}&start=${start}&end=${end}&step=${step}`;
  return (await get(`/prometheus/api/v1/query_range?${of}`)).data.result;
}

/** @param {string} path @param {any} body */
export const post = (path, body) => write('POST', path, body);

/** A write is sent again under its own key once when the server could not be reached: repeating it is harmless.
 * @param {'POST'|'PUT'|'DELETE'} method @param {string} path @param {any} [body] */
export async function write(method, path, body) {
  const key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  try {
    return await ask(method, path, body, key);
  } catch (err) {
    if (!(err instanceof Refused) || err.status !== 0) throw err;
    await new Promise(done => setTimeout(done, 1000));
    return ask(method, path, body, key);
  }
}

export async function signIn(body) {
  const s = await ask('POST', '/api/v1/session', body);
  keepSecret(s.secret);
}
export const signOut = () => ask('DELETE', '/api/v1/session');
