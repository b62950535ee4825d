// Numbers and times as the terminal shows them (console/chart/format.go).
export const missing = '-';

/** @param {number|null|undefined} v @returns {string} */
export function number(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return missing;
  const a = Math.abs(v);
  if (a === 0) return '0';
  if (a < 9.95) return v.toFixed(1);
  if (a < 1e6) return v.toFixed(0);
  const sign = Math.min(3, Math.floor(Math.log10(a) / 3) - 2);
  return number(v / 1e6 / 1e3 ** sign) + 'MGTP'[sign];
}
/** bytes/s as MB/s @param {number|null|undefined} v */
export const mega = v => (v === null || v === undefined ? missing : number(v / 1e6));
/** 0..1 as percent @param {number|null|undefined} v */
export const ratio = v => (v === null || v === undefined ? missing : (v * 100).toFixed(0));
/** A ratio, the same in every sentence, heading and list (anomaly.Times): two digits. @param {number} v */
export const times = v => (v > 100 ? 'over 100x' : `${v >= 99.5 ? v.toFixed(0) : Number(v.toPrecision(2))}x`);
/** seconds as ms @param {number|null|undefined} v */
export const millis = v => (v === null || v === undefined ? missing : number(v * 1e3));

/** Bytes with three digits and the unit that fits them (anomaly.Size). @param {number|null|undefined} v */
export function volume(v) {
  if (v === null || v === undefined) return missing;
  const unit = [1e18, 1e15, 1e12, 1e9, 1e6, 1e3].find(u => v >= 0.9995 * u);
  if (!unit) return `${v.toFixed(0)} B`;
  return `${Number((v / unit).toPrecision(3))} ${'kMGTPE'[Math.log10(unit) / 3 - 1]}B`;
}

/** A number of things as people say it: 1 job, 2 jobs, 1 process, 2 processes. @param {number} n
 * @param {string} thing */
export const counted = (n, thing) => `${n} ${thing}${n === 1 ? '' : thing.endsWith('s') ? 'es' : 's'}`;

/** @param {number} ms @returns {string} */
export function age(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 60) return `${Math.floor(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${String(Math.floor(s / 60) % 60).padStart(2, '0')}`;
  return `${Math.floor(s / 86400)}d`;
}

/** Time of day in the reader's zone. @param {string|number|Date|null|undefined} t @returns {string} */
export function clock(t) {
  const d = new Date(t ?? NaN);
  if (Number.isNaN(d.getTime()) || d.getUTCFullYear() < 1970) return missing;
  return [d.getHours(), d.getMinutes(), d.getSeconds()].map(n => String(n).padStart(2, '0')).join(':');
}

/** The same with its day where that is another one than today. @param {string|number} t @param {number} now */
export const when = (t, now) =>
  (new Date(t).toDateString() === new Date(now).toDateString() ? '' : `${new Date(t).toLocaleDateString('sv')} `) +
  clock(t);

/** A second as addresses have it. @param {string|number|Date} t */
export const iso = t => `${new Date(t).toISOString().slice(0, 19)}Z`;

/** The address of the page about one job, forwarder, finding or plan. @param {string} kind @param {string} id */
export const pathTo = (kind, id) => `/${kind}/${encodeURIComponent(id)}`;

/** The first of some names, and how many more there are. @param {string[]} names @param {number} most */
export const some = (names, most) =>
  names.slice(0, most).join(' ') + (names.length > most ? ` and ${names.length - most} more` : '');

/** The zone of all times on the pages, such as GMT+8. */
export const zone =
  new Intl.DateTimeFormat('en', { timeZoneName: 'short' }).formatToParts().find(p => p.type === 'timeZoneName')
    ?.value ?? '';

/** @param {number|null|undefined} a @param {number|null|undefined} b sum of what is known */
export function sum(a, b) {
  if (a === null || a === undefined) return b ?? null;
  return b === null || b === undefined ? a : a + b;
}

/** What a finding says; one without a sentence the way in which its node fails, or its kind. @param {any} f */
export const findingWords = f => f.sentence || f.condition || f.kind.replaceAll('_', ' ');
