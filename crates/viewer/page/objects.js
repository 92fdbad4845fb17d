// Objects of Kubernetes that traces tell of.

import * as api from './api.js';
import { fill, h, icon } from './dom.js';
import { line, plural } from './format.js';
import { poll } from './poll.js';
import { objectUrl, remember } from './router.js';
import { since } from './since.js';
import { command, failed, loading } from './states.js';

const FIELDS = ['kind', 'namespace', 'name'];

export const STATES = {
  converged: ['good', 'Converged'],
  converging: ['busy', 'Converging'],
  failed: ['bad', 'Failed'],
  replaced: ['none', 'Replaced'],
  unknown: ['none', 'Unknown'],
};

/** How an object fares, in a word. */
export function statePill(state) {
  const [look, text] = STATES[state] ?? STATES.unknown;
  return h('span', { class: `pill state ${look}`, text });
}

export function objects(element, route) {
  document.title = 'Objects · Kubewake';
  const params = new URLSearchParams(FIELDS.filter((name) => route.params.get(name)).map((name) => [name, route.params.get(name)]));
  const list = h('div', { class: 'object-list' }, loading('Looking for objects…'));
  const total = h('span', { class: 'dim' });
  const inputs = FIELDS.map((name) => h('input', { name, type: 'search', placeholder: name[0].toUpperCase() + name.slice(1), 'aria-label': name, value: params.get(name) ?? '', autocomplete: 'off', spellcheck: 'false', maxlength: 300 }));
  inputs[0].dataset.search = '';
  const change = () => {
    inputs.forEach((input) => (input.value.trim() ? params.set(input.name, input.value.trim()) : params.delete(input.name)));
    remember(params.size ? `/objects?${params}` : '/objects');
    asked.now();
  };
  const form = h('form', { class: 'object-filter', role: 'search', on: { input: change, submit: (event) => event.preventDefault() } }, inputs, total);
  fill(element, h('div', { class: 'page' }, h('h1', { text: 'Objects' }), h('p', { class: 'lead', text: 'Each object that a trace tells of, with how its last change went. Open one to see what it made, and how each of these converged.' }), form, list));
  const show = (said) => {
    total.textContent = plural(said.objects.length, 'object');
    fill(list, said.objects.length ? table(said.objects) : params.size ? h('div', { class: 'empty' }, h('h2', { text: 'No object matches' })) : none());
  };
  const ask = (signal) => api.objects(new URLSearchParams([...params, ['limit', '500']]), signal);
  const asked = poll(3000, ask, show, (error) => fill(list, failed(error, () => asked.now())));
  return { close: () => asked.close() };
}

function table(all) {
  const row = (object) => h('tr', {},
    h('td', {}, h('a', { href: objectUrl(object) }, icon('box'), h('strong', { text: line(object.kind, 60) }), ' ', h('span', { text: line(object.name, 120) }))),
    h('td', { class: 'dim', text: line(object.namespace || 'cluster-wide', 80) }),
    h('td', {}, statePill(object.state)),
    h('td', { class: 'number', text: object.generations ? String(object.generations) : '–' }),
    h('td', { class: 'dim' }, object.last && since(object.last.start)));
  return h('table', {}, h('thead', {}, h('tr', {}, ['Object', 'Namespace', 'State', 'Changes', 'Last'].map((name) => h('th', { scope: 'col', class: name === 'Changes' ? 'number' : null, text: name })))), h('tbody', {}, all.map(row)));
}

function none() {
  return h('div', { class: 'empty' }, h('h2', { text: 'No objects yet' }),
    h('p', {}, 'Objects come from spans with ', h('code', { text: 'k8s.object.kind' }), ' and ', h('code', { text: 'k8s.object.name' }), ', as the trail library and the webhook make them. See one for yourself:'),
    command('kubewake demo head'));
}
