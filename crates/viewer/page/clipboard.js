// To the clipboard, and the word that it is there.

import { h } from './dom.js';

/** Says something for a moment, at the edge of the page. */
export function toast(text, bad = false) {
  const note = h('div', { class: bad ? 'toast bad' : 'toast', text });
  document.getElementById('toasts').append(note);
  setTimeout(() => note.remove(), bad ? 8000 : 2500);
}

/** Copies a text, or what a function gives in time. */
export async function copy(text, what) {
  try {
    await write(typeof text === 'function' ? await text() : text);
    toast(`${what} copied`);
  } catch (error) {
    toast(`Failed to copy: ${error.message}`, true);
  }
}

/** Browsers have the clipboard only for pages of this machine or with TLS; for the others there is the old way. */
async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = h('textarea', { class: 'offscreen', 'aria-hidden': 'true' });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (!done) throw new Error('the browser denied access to the clipboard');
}

/** The `traceparent` header that would continue from a span. */
export const traceparent = (traceId, spanId) => `00-${traceId}-${spanId}-01`;
