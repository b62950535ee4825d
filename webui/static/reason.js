// Reasons, which the audit keeps: a rule for how long one is, and a line in which one is typed.
import { h, setText } from './h.js?v=__V__';

/** A rule for a reason: at least so many letters, as the server says. @param {import('./app.js').App} app
 * @param {HTMLInputElement} field @param {() => number} least */
export function reasonRule(app, field, least) {
  const write = () => `Write a reason of ${least()} letters or more first.`;
  const enough = () => [...field.value.trim()].length >= least();
  field.addEventListener('input', () => enough() && app.unnote(write()));
  return () => {
    if (enough()) return true;
    app.note(write());
    field.focus();
    return false;
  };
}

/** A field for a reason. @param {string} id @param {string|undefined} value @param {() => void} entered */
export const reasonField = (id, value, entered) =>
  h('input', {
    type: 'text',
    id,
    maxlength: 500,
    autocomplete: 'off',
    value: value ?? '',
    keydown: e => {
      if (e.key !== 'Enter') return;
      e.preventDefault();
      entered();
    },
  });

/** A line in which a reason is typed. It stays open until the reason is long enough or Escape takes it back.
 * @param {import('./app.js').App} app @param {() => void|Promise<void>} [done] after what was sent was accepted */
export function reasonForm(app, done) {
  const reason = h('input', { type: 'text', maxlength: 500, autocomplete: 'off' });
  const label = h('label', ''),
    form = h(
      'form.field.reason',
      { hidden: true },
      label,
      reason,
      h('button', { type: 'submit' }, 'Send'),
      h('button', { type: 'button', click: close }, 'Cancel'),
    );
  /** @type {((text: string) => Promise<any>)|null} null from it: nothing was sent */
  let send = null;
  let least = 0,
    what = '';
  function close() {
    form.hidden = true;
    /** @type {HTMLElement} */ (document.getElementById('page')).focus({ preventScroll: true });
  }
  reason.addEventListener('keydown', e => {
    if (e.key === 'Escape') {
      e.stopPropagation();
      close();
    }
  });
  form.addEventListener('submit', async e => {
    e.preventDefault();
    const text = reason.value.trim(),
      letters = [...text].length;
    if (!send) return;
    if (letters < least) return setText(label, `${what} (${letters} of ${least} letters)`);
    try {
      const sent = await send(text);
      close();
      if (sent === null) return app.note('Nothing was sent.');
      app.note('Done.');
      await done?.();
    } catch (err) {
      app.note(`Refused: ${/** @type {Error} */ (err).message}`);
      reason.focus();
    }
  });
  return {
    form,
    /** @param {string} text @param {(text: string) => Promise<any>} f
     * @param {{least?: number, value?: string, hint?: string}} o least: letters, as the server says */
    ask(text, f, o) {
      what = text;
      send = f;
      least = o.least ?? 0;
      setText(label, `${text} (${o.hint ?? `${least ? `${least} letters or more, ` : ''}kept in the audit`})`);
      reason.setAttribute('aria-label', text);
      reason.value = o.value ?? '';
      form.hidden = false;
      form.scrollIntoView({ block: 'nearest' });
      reason.focus();
    },
  };
}

/** @typedef {ReturnType<typeof reasonForm>} ReasonForm */
