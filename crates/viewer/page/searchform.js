// The form of the search.

import * as api from './api.js';
import { fill, h, icon } from './dom.js';
import { visible } from './format.js';
import { attributesToText, textToAttributes } from './query.js';

const TIMES = [['', 'Any time'], ['5m', 'Last 5 minutes'], ['15m', 'Last 15 minutes'], ['1h', 'Last hour'], ['6h', 'Last 6 hours'], ['24h', 'Last day']];

/** How often services are asked for, in milliseconds. */
const RARELY = 3000;

/** Gives the form, `show(params)`, `problems(list)` and `refresh()`; `submit` gets what was asked for. */
export function searchForm(params, submit) {
  const service = h('select', { name: 'service' });
  const operations = h('datalist', { id: 'operations' });
  const input = (name, props) => h('input', { name, autocomplete: 'off', spellcheck: 'false', maxlength: 4096, ...props });
  const fields = {
    service,
    operation: input('operation', { list: 'operations', placeholder: 'Any' }),
    kind: input('kind', { placeholder: 'Deployment' }),
    namespace: input('namespace', { placeholder: 'default' }),
    name: input('name', { placeholder: 'Any' }),
    attr: input('attr', { placeholder: 'http.route=/cart error=true' }),
    minDuration: input('minDuration', { placeholder: '200ms' }),
    maxDuration: input('maxDuration', { placeholder: '1.5s' }),
    lookback: h('select', { name: 'lookback' }),
    errors: h('input', { type: 'checkbox', name: 'errors' }),
  };
  fields.service.dataset.search = '';
  const notes = new Map();
  const field = (name, label, hint) => {
    const note = h('span', { class: 'problem', id: `problem-${name}` });
    notes.set(name, note);
    fields[name].setAttribute('aria-describedby', note.id);
    return h('label', { class: `field field-${name}` }, h('span', { text: label }), fields[name], hint && h('small', { text: hint }), note);
  };
  const general = h('p', { class: 'problem', role: 'alert' });
  const element = h('form', { class: 'form', 'aria-label': 'Search for traces' },
    field('service', 'Service'), field('operation', 'Operation'), operations,
    h('fieldset', {}, h('legend', {}, icon('box'), 'Kubernetes object'), h('div', { class: 'pair' }, field('kind', 'Kind'), field('namespace', 'Namespace')), field('name', 'Name')),
    field('attr', 'Attributes', 'key=value; put quotes around spaces'),
    h('div', { class: 'pair' }, field('minDuration', 'Longer than'), field('maxDuration', 'Shorter than')),
    field('lookback', 'Time'),
    h('label', { class: 'check' }, fields.errors, h('span', { text: 'Only with errors' })), general,
    h('div', { class: 'actions' }, h('button', { class: 'button primary', type: 'submit', text: 'Find traces' }), h('a', { class: 'button', href: '/search', text: 'Clear' })));
  let [known, kept, asked] = [[], new URLSearchParams(), 0];

  function fillServices() {
    const chosen = service.value || kept.get('service') || '';
    const names = known.map((each) => each.name);
    if (chosen && !names.includes(chosen)) names.push(chosen);
    fill(service, h('option', { value: '', text: 'All services' }), names.map((name) => h('option', { value: name, text: visible(name) })));
    service.value = chosen;
    const shown = known.filter((each) => !chosen || each.name === chosen);
    fill(operations, [...new Set(shown.flatMap((each) => each.operations))].slice(0, 1000).map((name) => h('option', { value: name })));
  }

  function show(now) {
    kept = now;
    for (const [name, each] of Object.entries(fields)) {
      if (name === 'attr') each.value = attributesToText(now.getAll('attr'));
      else if (name === 'errors') each.checked = now.get('errors') === 'true';
      else if (name === 'lookback') fillTimes(each, now);
      else each.value = now.get(name) ?? '';
    }
    service.value = '';
    fillServices();
  }

  /** A problem is shown at its field, or below all of them. */
  function problems(list) {
    for (const note of [...notes.values(), general]) note.textContent = '';
    for (const each of Object.values(fields)) each.removeAttribute('aria-invalid');
    for (const { parameter, message } of list) {
      (notes.get(parameter) ?? general).textContent = message;
      fields[parameter]?.setAttribute('aria-invalid', 'true');
    }
  }

  element.addEventListener('submit', (event) => {
    event.preventDefault();
    const { pairs, problem } = textToAttributes(fields.attr.value);
    if (problem) return problems([{ parameter: 'attr', message: problem }]);
    const asked = {};
    for (const [name, each] of Object.entries(fields)) if (each.value) asked[name] = each.type === 'checkbox' ? each.checked : each.value.trim();
    const time = fields.lookback.value === 'range' ? { lookback: '', start: kept.get('start'), end: kept.get('end') } : {};
    submit({ ...asked, ...time, attr: pairs, limit: kept.get('limit'), sort: kept.get('sort') });
  });
  service.addEventListener('change', fillServices);

  /** Asks which services there are, but not for every trace that comes, and leaves a list that is open alone. */
  async function refresh() {
    if (Date.now() - asked < RARELY) return;
    asked = Date.now();
    const said = await api.services().catch(() => null);
    if (!said || JSON.stringify(said.services) === JSON.stringify(known)) return;
    known = said.services;
    if (document.activeElement !== service || !service.options.length) fillServices();
  }

  show(params);
  refresh();
  return { element, show, problems, refresh };
}

function fillTimes(select, params) {
  const range = params.has('start') || params.has('end');
  const value = range ? 'range' : params.get('lookback') ?? '';
  const times = range ? [...TIMES, ['range', 'Custom range']] : TIMES.some(([time]) => time === value) ? TIMES : [...TIMES, [value, `Last ${value}`]];
  fill(select, times.map(([time, text]) => h('option', { value: time, text })));
  select.value = value;
}
