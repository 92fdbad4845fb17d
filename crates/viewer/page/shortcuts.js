// Keys, and the sheet that shows them.
//
// A shortcut is `{keys, does, act}` with names as `KeyboardEvent.key` has them, and `ctrl+` or `shift+` before them. Nothing is taken
// from somebody who types into a field, but Escape, which leaves it.

import { fill, h } from './dom.js';
import { navigate } from './router.js';
import { theme } from './theme.js';

const isField = (element) => element?.matches?.('input:not([type=checkbox]), textarea, select, [contenteditable]');

const NAMES = { ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc', Enter: '↵' };

/** How a press is written. */
export function nameOf(event) {
  const letter = event.key.length === 1;
  const shift = event.shiftKey && (!letter || /[a-z]/i.test(event.key));
  return `${event.ctrlKey || event.metaKey ? 'ctrl+' : ''}${shift ? 'shift+' : ''}${letter ? event.key.toLowerCase() : event.key}`;
}

/** Listens; gives `use(keys)` for those of the view, and `sheet()`. */
export function shortcuts() {
  let own = [];
  const common = [
    { keys: ['?'], does: 'Show or hide this sheet', act: () => sheet.toggle() },
    { keys: ['/'], does: 'Search', act: () => focusSearch() },
    { keys: ['g'], does: 'Go: then s to search, o to objects, p to pipelines', act: () => {} },
    { keys: ['t'], does: 'Theme: system, light, dark', act: () => theme.next() },
  ];
  const places = { s: '/search', o: '/objects', p: '/pipelines' };
  const sheet = makeSheet(() => [['Everywhere', common], ['Here', own]]);
  let leading = false;
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing) return;
    if (sheet.open) {
      // What lies behind it gets no key.
      if (!['?', 'Escape'].includes(nameOf(event))) return;
      event.preventDefault();
      sheet.toggle();
      return;
    }
    if (isField(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      if (!(event.ctrlKey || event.metaKey)) return;
    }
    const name = nameOf(event);
    if (leading && places[name]) {
      leading = false;
      event.preventDefault();
      navigate(places[name]);
      return;
    }
    leading = name === 'g';
    const found = [...own, ...common].find((shortcut) => shortcut.keys.includes(name));
    if (!found || (event.ctrlKey || event.metaKey) !== name.startsWith('ctrl+')) return;
    event.preventDefault();
    found.act(event);
  });
  return { use: (keys) => (own = keys), sheet: () => sheet.toggle() };
}

function focusSearch() {
  const field = document.querySelector('[data-search]');
  field?.focus();
  field?.select?.();
}

function makeSheet(groups) {
  const body = h('div', { class: 'sheet-body' });
  const dialog = h('dialog', { class: 'sheet', 'aria-labelledby': 'sheet-title' }, h('h2', { id: 'sheet-title', text: 'Keyboard' }), body,
    h('form', { method: 'dialog' }, h('button', { class: 'button', text: 'Close' })));
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  return {
    get open() {
      return dialog.open;
    },
    toggle() {
      if (dialog.open) return dialog.close();
      fill(body, groups().filter(([, keys]) => keys.length).map(([title, keys]) => h('section', {}, h('h3', { text: title }), h('dl', {}, keys.map(row)))));
      dialog.showModal();
    },
  };
}

function row(shortcut) {
  const key = (name) => h('kbd', { text: name.split('+').map((part) => NAMES[part] ?? part).join(' ') });
  return h('div', {}, h('dt', {}, shortcut.keys.map(key)), h('dd', { text: shortcut.does }));
}
