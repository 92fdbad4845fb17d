// The bar at the top: where one can go, and how full the store is.

import { info } from './api.js';
import { button, fill, h, icon, s } from './dom.js';
import { bytes, count, dateTime, plural } from './format.js';
import { losses } from './losses.js';
import { traceIdIn } from './query.js';
import { navigate, searchUrl, traceUrl } from './router.js';
import { theme } from './theme.js';
import { chooseFiles } from './transfer.js';

const PLACES = [
  ['search', 'Traces', '/search'],
  ['objects', 'Objects', '/objects'],
  ['pipelines', 'Pipelines', '/pipelines'],
];
/** The place in which a view is. */
const WITHIN = { trace: 'search', object: 'objects' };
const LOOKS = { system: ['auto', 'Theme: system'], light: ['sun', 'Theme: light'], dark: ['moon', 'Theme: dark'] };

/** Fills the bar; `show(route)` marks the place. */
export function bar(element, keys) {
  const links = PLACES.map(([view, name, href]) => h('a', { href, data: { view }, text: name }));
  const store = h('span', { class: 'store', hidden: true });
  const look = h('span', {});
  const drawLook = () => fill(look, button(LOOKS[theme.choice][0], LOOKS[theme.choice][1], () => theme.next(), { quiet: true, class: 'theme' }));
  addEventListener('kubewake:theme', drawLook);
  fill(
    element,
    h('a', { class: 'brand', href: '/search', 'aria-label': 'Kubewake' }, mark(), h('span', { text: 'Kubewake' })),
    h('nav', { 'aria-label': 'Views' }, links),
    lookup(),
    h('div', { class: 'tools' }, store,
      button('upload', 'Import OTLP JSON', chooseFiles, { quiet: true }), look,
      button('help', 'Keyboard shortcuts (?)', () => keys.sheet(), { quiet: true })),
  );
  drawLook();
  info().then((said) => showStore(said.store), () => {});
  addEventListener('kubewake:store', (event) => showStore(event.detail));

  function showStore(state) {
    store.hidden = false;
    const share = state.limit ? Math.min(state.bytes / state.limit, 1) : 0;
    const lost = state.dropped?.traces ?? 0;
    store.classList.toggle('full', lost > 0);
    const missing = losses(state).map((text) => ` ${text[0].toUpperCase()}${text.slice(1)}.`).join('');
    store.title = `${plural(state.traces, 'trace')}, ${plural(state.spans, 'span')}, ${bytes(state.bytes)} of ${bytes(state.limit)}.${missing}${state.oldest ? ` The oldest trace is from ${dateTime(state.oldest)}.` : ''}`;
    const meter = h('span', { class: 'meter' }, h('span', { css: { width: `${share * 100}%` } }));
    fill(store, meter, h('span', { text: plural(state.traces, 'trace') }), lost > 0 && h('span', { class: 'lost', text: `${count(lost)} dropped` }));
  }

  return {
    show(route) {
      const place = WITHIN[route.view] ?? route.view;
      links.forEach((link) => (link.dataset.view === place ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current')));
    },
  };
}

function mark() {
  const line = (d) => s('path', { d });
  return s('svg', { class: 'mark', viewBox: '0 0 32 32', 'aria-hidden': 'true' }, s('rect', { width: 32, height: 32, rx: 7 }), line('M7 10h18'), line('M10 16h9'), line('M14 22h11'));
}

/** A field that takes a trace id from anywhere: also a `traceparent`, or a link. */
function lookup() {
  const field = h('input', { type: 'search', name: 'id', placeholder: 'Trace ID', 'aria-label': 'Open a trace by its ID', spellcheck: 'false', autocomplete: 'off', maxlength: 300 });
  const submit = (event) => {
    event.preventDefault();
    const id = traceIdIn(field.value);
    if (id) navigate(traceUrl(id));
    else if (field.value.trim()) navigate(searchUrl({ q: field.value.trim() }));
    field.blur();
  };
  return h('form', { class: 'lookup', role: 'search', on: { submit } }, icon('search'), field);
}
