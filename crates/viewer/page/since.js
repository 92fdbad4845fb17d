// How long ago something was, which grows while one looks.

import { h } from './dom.js';
import { ago, dateTime } from './format.js';

/** No one needs to know it to the second for longer. */
const EVERY = 5000;

/** A text that keeps up with time. */
export function since(time) {
  return h('span', { class: 'since', data: { since: time }, title: dateTime(time), text: ago(time) });
}

/** Brings all of them up to date, again and again. */
export function keepUp() {
  setInterval(() => {
    if (!document.hidden) for (const each of document.querySelectorAll('[data-since]')) each.textContent = ago(each.dataset.since);
  }, EVERY);
}
