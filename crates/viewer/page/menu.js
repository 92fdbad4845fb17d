// A button that opens a short list of things to do.

import { h, icon } from './dom.js';

/** `items`: `[name, act]` or `[name, {href, download}]`. */
export function menu(drawing, name, items) {
  const close = () => (element.open = false);
  const entry = ([title, what]) => (typeof what === 'function'
    ? h('button', { type: 'button', text: title, on: { click: () => (close(), what()) } })
    : h('a', { ...what, text: title, on: { click: close } }));
  const element = h('details', { class: 'menu' }, h('summary', { class: 'button' }, icon(drawing), h('span', { text: name })), h('div', { class: 'menu-list' }, items.map(entry)));
  element.addEventListener('focusout', (event) => !element.contains(event.relatedTarget) && event.relatedTarget && close());
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !element.open) return;
    event.stopPropagation();
    close();
    element.firstChild.focus();
  });
  return element;
}

// A click elsewhere closes what is open.
globalThis.document?.addEventListener('pointerdown', (event) => {
  for (const open of document.querySelectorAll('.menu[open]')) if (!open.contains(event.target)) open.open = false;
});
