// Objects of Kubernetes: those that traces tell of and what belongs to them, each below what it belongs to.

import * as api from './api.js';
import { fill, h, icon } from './dom.js';
import { count, line, plural } from './format.js';
import { poll } from './poll.js';
import { objectUrl, remember, traceUrl } from './router.js';
import { since } from './since.js';
import { command, failed, loading } from './states.js';
import { took } from './timeline.js';

const FIELDS = ['kind', 'namespace', 'name'];
/** Milliseconds for which whoever types has to pause until it is asked for. */
const PAUSE = 250;

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

/** Kinds that the cluster was not asked for. */
export function unasked({ unasked: kinds = [] }) {
  return kinds.length > 0 && h('p', { class: 'dim', text: line(`Traces refer to more kinds than the viewer reads from the cluster. Not read: ${kinds.join(', ')}.`, 400) });
}

export function objects(element, route) {
  document.title = 'Objects · Kubewake';
  const params = new URLSearchParams(FIELDS.filter((name) => route.params.get(name)).map((name) => [name, route.params.get(name)]));
  const list = h('div', { class: 'object-list' }, loading('Loading objects…'));
  const total = h('span', { class: 'dim' });
  const inputs = FIELDS.map((name) => h('input', { name, type: 'search', placeholder: name[0].toUpperCase() + name.slice(1), 'aria-label': name, value: params.get(name) ?? '', autocomplete: 'off', spellcheck: 'false', maxlength: 300 }));
  inputs[0].dataset.search = '';
  const change = () => {
    inputs.forEach((input) => (input.value.trim() ? params.set(input.name, input.value.trim()) : params.delete(input.name)));
    remember(params.size ? `/objects?${params}` : '/objects');
    asked.soon(PAUSE);
  };
  const form = h('form', { class: 'object-filter', role: 'search', on: { input: change, submit: (event) => event.preventDefault() } }, inputs, total);
  fill(element, h('div', { class: 'page' }, h('h1', { text: 'Objects' }), h('p', { class: 'lead', text: 'Objects that traces refer to, with their dependents and the time that the last change took to converge. Open an object to see all its changes on one time axis.' }), form, list));
  const show = (said) => {
    total.textContent = (said.total > said.objects.length ? `${count(said.objects.length)} of ` : '') + plural(said.total, 'object');
    fill(list, unasked(said), said.objects.length ? table(said.objects) : params.size ? h('div', { class: 'empty' }, h('h2', { text: 'No object matches' })) : none());
  };
  const ask = (signal) => api.objects(new URLSearchParams([...params, ['limit', '500']]), signal);
  const asked = poll(3000, ask, show, (error) => fill(list, failed(error, () => asked.now())));
  return { close: () => asked.close() };
}

const COLUMNS = [['Object'], ['Namespace', 'wide'], ['State'], ['Converged in', 'number'], ['Changes', 'number wide'], ['Last', 'wide']];

function table(all) {
  const cells = (object) => [
    h('a', { href: objectUrl(object) }, icon('box'), h('strong', { text: line(object.kind, 60) }), ' ', h('span', { text: line(object.name, 120) })),
    h('span', { class: 'dim', text: line(object.namespace || 'cluster-wide', 80) }),
    [statePill(object.state), object.live === false && h('span', { class: 'pill', text: 'gone' })],
    converged(object),
    object.generations ? String(object.generations) : '–',
    h('span', { class: 'dim' }, object.last && since(object.last.start)),
  ];
  const row = (object) => h('tr', { role: 'row', 'aria-level': object.depth + 1, css: { '--depth': String(Math.min(object.depth, 12)) } },
    cells(object).map((cell, at) => h('td', { role: 'gridcell', class: COLUMNS[at][1] ?? null }, cell)));
  const names = COLUMNS.map(([text, look]) => h('th', { scope: 'col', role: 'columnheader', class: look ?? null, text }));
  return h('table', { role: 'treegrid', 'aria-label': 'Objects' }, h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, names)), h('tbody', { role: 'rowgroup' }, all.map(row)));
}

/** How long the last change took, with the way to where it is seen. */
function converged({ kind, name, change }) {
  const amount = change && took(change);
  if (!amount) return '–';
  return change.traceId ? h('a', { href: traceUrl(change.traceId, { span: change.spanId }), 'aria-label': line(`The trace of ${kind} ${name}: ${amount}`, 300), text: amount }) : amount;
}

function none() {
  return h('div', { class: 'empty' }, h('h2', { text: 'No objects yet' }),
    h('p', {}, 'Objects come from spans with ', h('code', { text: 'k8s.object.kind' }), ' and ', h('code', { text: 'k8s.object.name' }), ', as the trail library and the webhook create them. Try it:'),
    command('kubewake demo head'));
}
