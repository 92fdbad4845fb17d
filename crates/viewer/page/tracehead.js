// What a trace is, in a few figures, and what can be done with it.

import * as api from './api.js';
import { copy, traceparent } from './clipboard.js';
import { colorClass } from './colors.js';
import { button, fill, h, icon } from './dom.js';
import { count, dateTime, duration, line, plural } from './format.js';
import { menu } from './menu.js';
import { subject } from './model.js';
import { objectOf } from './objectref.js';
import { objectUrl } from './router.js';

/** Warnings of a trace that are listed; more are counted. */
const MOST_WARNINGS = 50;

/** Gives the element and `draw(state, matches)`, `focus()`, `clear()`. */
export function traceHead({ model, raw, critical, state, setText, next, option, all, jump }) {
  const field = h('input', { type: 'search', placeholder: 'Find in this trace', 'aria-label': 'Find in this trace', spellcheck: 'false', autocomplete: 'off', maxlength: 500, data: { search: '' } });
  field.value = state.text;
  const found = h('span', { class: 'found-count', role: 'status' });
  field.addEventListener('input', () => setText(field.value));
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') next(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') clear();
  });
  const toggle = (name, title, swatch, hint) => {
    const box = h('input', { type: 'checkbox' });
    box.addEventListener('change', () => option(name, box.checked));
    return { name, box, element: h('label', { class: 'check', title: hint }, box, swatch && h('span', { class: `key ${swatch}` }), h('span', { text: title })) };
  };
  const toggles = [toggle('path', 'Critical path', 'path', 'Spans that determine the duration of the trace'), toggle('gaps', 'Waiting', 'gap', 'Time in which no span ran')];
  if (model.wrappers) toggles.push(toggle('fold', `Fold ${plural(model.wrappers, 'wrapper')}`, null, 'Hide spans that only wrap a single child'));
  const element = h('header', { class: 'trace-head' },
    title(model), facts(model, critical),
    h('div', { class: 'trace-tools' },
      h('div', { class: 'finder' }, icon('search'), field, found, button('up', 'Previous (shift+n)', () => next(-1), { quiet: true }), button('down', 'Next (n)', () => next(1), { quiet: true })),
      toggles.map((each) => each.element),
      h('span', { class: 'spread' }),
      button(null, 'Expand all', () => all(true), { class: 'optional' }), button(null, 'Collapse all', () => all(false), { class: 'optional' }),
      copies(model, raw),
      h('a', { class: 'button', href: api.otlpUrl(model.id), download: `trace-${model.id}.json` }, icon('download'), h('span', { text: 'Export' }))),
    legend(model, (text) => ((field.value = text), setText(text))), warnings(model, jump));

  function clear() {
    field.value = '';
    setText('');
    field.blur();
  }

  return {
    element,
    clear,
    focus: () => (field.focus(), field.select()),
    /** What somebody is typing, and where; and how another takes it up. */
    typing: () => (document.activeElement === field ? { text: field.value, at: field.selectionStart } : null),
    resume({ text, at }) {
      field.value = text;
      field.focus();
      field.setSelectionRange(at, at);
    },
    draw(now, matches) {
      if (document.activeElement !== field) field.value = now.text;
      const at = matches.indexOf(now.selected);
      fill(found, now.text && (matches.length ? `${at < 0 ? '' : `${at + 1} of `}${count(matches.length)}` : 'none'));
      toggles.forEach((each) => (each.box.checked = now[each.name]));
    },
  };
}

function title(model) {
  const root = subject(model);
  const object = model.order.slice(0, 200).map((node) => objectOf(node.span.attributes ?? [])).find(Boolean);
  return h('h1', {},
    h('span', { class: `dot ${colorClass(root.service)}` }), h('span', { class: 'service', text: line(root.service, 60) }), h('span', { class: 'operation', title: line(root.name, 500), text: line(root.name) }),
    object && h('a', { class: 'pill object', href: objectUrl(object), title: 'The object, its dependents, and how each converged' }, icon('box'), `${line(object.kind, 40)} ${line(object.name, 60)}`));
}

/** How long the critical path waited is the story of most traces of operators. */
function facts(model, critical) {
  const waited = critical.filter((section) => section.waits).reduce((sum, section) => sum + section.to - section.from, 0);
  const share = Math.round((waited / model.length) * 100);
  const fact = (name, ...value) => h('div', {}, h('dt', { text: name }), h('dd', {}, value));
  return h('dl', { class: 'facts' },
    fact('Duration', duration(model.length)),
    share > 0 && fact('Waiting on the path', h('span', { class: 'key path waits', title: 'Along the critical path, from the end of a cause until its effect began' }), `${duration(waited)} · ${share} %`),
    fact('Spans', count(model.nodes.length)),
    model.errors > 0 && h('div', { class: 'bad' }, h('dt', { text: 'Errors' }), h('dd', { text: count(model.errors) })),
    fact('Services', count(model.services.length)),
    fact('Depth', count(model.depth)),
    fact('Started', dateTime(String(model.begin))),
    fact('Trace ID', h('code', { text: model.id }), button('copy', 'Copy the trace ID', () => copy(model.id, 'Trace ID'), { quiet: true })));
}

function copies(model, raw) {
  const json = () => JSON.stringify(raw, null, 2);
  return menu('copy', 'Copy', [
    ['Link to this view', () => copy(location.href, 'Link')],
    ['Trace ID', () => copy(model.id, 'Trace ID')],
    ['traceparent', () => copy(traceparent(model.id, model.roots[0].id), 'traceparent')],
    ['JSON', () => copy(json, 'JSON')],
    ['OTLP JSON', () => copy(() => api.otlp(model.id), 'OTLP JSON')],
  ]);
}

function legend(model, search) {
  const chip = (service) => h('button', { type: 'button', class: `service ${colorClass(service.name)}`, title: 'Find spans of this service', on: { click: () => search(service.name) } },
    h('span', { class: 'dot' }), h('span', { text: line(service.name, 60) }), h('span', { class: 'dim', text: count(service.spans) }));
  return h('div', { class: 'legend', 'aria-label': 'Services' }, model.services.slice(0, 30).map(chip), model.services.length > 30 && h('span', { class: 'dim', text: `+${model.services.length - 30}` }));
}

/** Kinds of warnings, in words. */
export const WARNINGS = {
  missing_parent: 'Missing parent', cycle: 'Cycle', clock_skew: 'Clock skew', duplicate_span: 'Duplicate span ID', truncated: 'Incomplete', future: 'In the future', no_time: 'No time', bad_time: 'Invalid times',
};

function warnings(model, jump) {
  if (!model.warnings.length) return null;
  const item = (warning) => {
    const node = model.byId.get(warning.spanId);
    return h('li', {}, h('strong', { text: WARNINGS[warning.kind] ?? line(warning.kind) }), ' ', line(warning.message, 400), ' ',
      node && h('button', { type: 'button', class: 'text', text: line(node.name, 60), on: { click: () => jump(node) } }));
  };
  const more = model.warnings.length - MOST_WARNINGS;
  return h('details', { class: 'warnings' }, h('summary', {}, icon('error'), plural(model.warnings.length, 'warning'), h('span', { class: 'dim', text: summary(model.warnings) })),
    h('ul', {}, model.warnings.slice(0, MOST_WARNINGS).map(item), more > 0 && h('li', { text: `and ${count(more)} more` })));
}

function summary(all) {
  return [...new Set(all.map((warning) => WARNINGS[warning.kind] ?? line(warning.kind, 40)))].join(', ').toLowerCase();
}
