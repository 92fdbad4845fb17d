// Keys and values of a span. A value is text, whatever it holds.

import { copy } from './clipboard.js';
import { button, fill, h, icon } from './dom.js';
import { bytes, valueText, visible } from './format.js';
import { attributesToText, sameValue } from './query.js';
import { searchUrl } from './router.js';

/** What is shown of a long value before the reader asks for more. */
const SHORT = 400;
/** Beyond this even a value that was asked for is only for the clipboard: no browser lays out a megabyte gladly. */
const LONG = 100_000;

/** A table of attributes. `whole(key)` fetches a value that the server cut, `find` looks for one in the trace; `search` where a search looks at them. */
export function attributeTable(attributes, { whole, find, search = true } = {}) {
  const sorted = [...attributes].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return h('dl', { class: 'attributes' }, sorted.map((attribute) => pair(attribute, whole, find, search)));
}

function pair(attribute, whole, find, search) {
  const text = valueText(attribute.value);
  const value = h('div', { class: `value type-${attribute.type}` });
  show(value, attribute, text, text.length <= SHORT, whole);
  const short = text.length <= 200 && !attribute.cut;
  const same = search && short && sameValue(attribute);
  const tools = h('div', { class: 'pair-tools' },
    find && short && button('search', 'Find in this trace', () => find(attributesToText([`${attribute.key}=${text}`])), { quiet: true }),
    same && h('a', { class: 'button quiet', href: searchUrl({ attr: same }), title: 'Traces with the same value', 'aria-label': 'Traces with the same value' }, icon('filter')),
    button('copy', 'Copy the value', () => copy(async () => (attribute.cut && whole ? valueText(await whole(attribute.key)) : text), 'Value'), { quiet: true }));
  return h('div', { class: 'attribute' }, h('dt', { text: visible(attribute.key) }), h('dd', {}, value, tools));
}

function show(element, attribute, text, open, whole) {
  if (!open) {
    const size = bytes(attribute.bytes ?? text.length);
    const more = button(null, `Show all (${size})`, () => show(element, attribute, text, true, whole), { class: 'small' });
    fill(element, h('span', { text: `${visible(text.slice(0, SHORT))}…` }), more);
    return;
  }
  if (attribute.cut && whole) {
    fill(element, h('span', { class: 'dim', text: 'Loading…' }));
    whole(attribute.key).then((value) => block(element, valueText(value)), (error) => fill(element, h('span', { class: 'problem', text: error.message })));
    return;
  }
  block(element, text, attribute.type);
}

function block(element, text, type) {
  if (text === '') return fill(element, h('span', { class: 'dim', text: 'empty' }));
  const shaped = pretty(text);
  const rest = shaped.length > LONG;
  const shown = visible(rest ? shaped.slice(0, LONG) : shaped);
  const many = shaped.includes('\n') || shaped.length > SHORT;
  fill(element, many ? h('pre', { tabindex: '0', text: shown }) : h('span', { text: shown }), rest && h('p', { class: 'dim', text: `Showing the first ${bytes(LONG)} of ${bytes(text.length)}. Copy the value to get all of it.` }),
    type && !['string', 'map', 'array'].includes(type) && h('span', { class: 'type', text: type }));
}

/** JSON on several lines when it has structure, and everything else as it is. */
export function pretty(text) {
  if (!/^\s*[[{]/.test(text) || text.length > LONG) return text;
  try {
    const written = JSON.stringify(JSON.parse(text), null, 2);
    return written.length > 60 ? written : text;
  } catch {
    return text;
  }
}
