// One object and what it made: how each of them converged, change by change, on one axis of time.

import * as api from './api.js';
import { fill, h, icon } from './dom.js';
import { dateTime, duration, line, plural, ticks } from './format.js';
import { STATES, statePill, unasked } from './objects.js';
import { poll } from './poll.js';
import { objectUrl, remember, searchUrl, traceUrl } from './router.js';
import { since } from './since.js';
import { failed, loading } from './states.js';
import { extent, flatten, sides, stretch, took, within } from './timeline.js';

/** The width of a letter of a label, in pixels, on average. */
const LETTER = 6.4;

export function object(element, route) {
  const asked = route.parts;
  const wanted = { kind: asked.kind, namespace: asked.namespace === '-' ? '' : asked.namespace, name: asked.name };
  document.title = `${line(wanted.kind, 40)} ${line(wanted.name, 60)} · Kubewake`;
  fill(element, loading('Loading the object…'));
  let [chosen, said] = [route.params.get('trace'), null];

  function choose(traceId) {
    chosen = traceId;
    remember(objectUrl(wanted, { trace: traceId }));
    draw();
  }

  function draw() {
    const rows = flatten(said.tree);
    const changes = rows[0].node.generations;
    // The last change is what one comes for.
    const trace = chosen === 'all' ? null : changes.find((each) => each.traceId === chosen)?.traceId ?? changes[0]?.traceId ?? null;
    const focus = document.activeElement?.dataset?.key;
    fill(element, h('div', { class: 'page object-page' }, head(said), strip(changes, trace, choose), hierarchy(rows, trace, trackWidth(element)), unasked(said), history(changes)));
    if (focus) element.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  }

  const polled = poll(3000, (signal) => api.object(wanted, signal), (answer) => ((said = answer), draw()), (error) => fill(element, failed(gone(error, wanted), () => polled.now())));
  return { close: () => polled.close() };
}

function gone(error, { kind, name }) {
  return error.status === 404 ? Object.assign(new Error(`${kind} ${name} is neither in the stored traces nor in the cluster.`), { status: 404 }) : error;
}

function head({ object, parents }) {
  const above = (parents ?? []).map((parent) => [h('span', { class: 'dim', text: ' › ' }), h('a', { href: objectUrl(parent), text: `${line(parent.kind, 40)} ${line(parent.name, 60)}` })]);
  const where = [object.namespace && `namespace ${line(object.namespace, 80)}`, object.apiVersion && line(object.apiVersion, 80)].filter(Boolean).join(' · ');
  return h('header', { class: 'object-head' },
    h('nav', { class: 'crumbs', 'aria-label': 'Owners' }, h('a', { href: '/objects', text: 'Objects' }), above),
    h('h1', {}, icon('box'), h('span', { text: line(object.kind, 60) }), h('span', { class: 'operation', text: line(object.name, 200) }), statePill(object.state), object.live === false && h('span', { class: 'pill', text: 'gone' })),
    h('p', { class: 'dim' }, where, ' · ', h('a', { href: searchUrl({ kind: object.kind, namespace: object.namespace, name: object.name }), text: 'All traces of this object' })));
}

/** The changes of the object, to choose the one that is looked at. */
function strip(changes, trace, choose) {
  const chip = (each) => h('button', {
    type: 'button', class: `change ${STATES[each.state]?.[0] ?? 'none'}`, 'aria-pressed': String(trace !== null && each.traceId === trace), disabled: !each.traceId, data: { key: `${each.uid}-${each.generation}` }, title: dateTime(each.start), on: { click: () => choose(each.traceId) },
  }, h('strong', { text: `Generation ${each.generation}` }), h('span', { text: took(each) ?? STATES[each.state]?.[1] ?? '' }), h('span', { class: 'dim' }, since(each.start)));
  const all = h('button', { type: 'button', class: 'change none', 'aria-pressed': String(trace === null), data: { key: 'all' }, on: { click: () => choose('all') } }, h('strong', { text: 'All' }), h('span', { class: 'dim', text: plural(changes.length, 'change') }));
  return h('div', { class: 'changes', role: 'group', 'aria-label': 'Changes' }, changes.slice(0, 50).map(chip), changes.length > 1 && all);
}

/** About how many pixels wide the tracks are. */
function trackWidth(element) {
  const page = Math.min(element.clientWidth || 1000, 1200);
  return page > 620 ? page * 0.64 : page - 44;
}

function hierarchy(rows, trace, width) {
  const now = Date.now();
  const time = extent(rows, trace, now);
  if (!time) return h('div', { class: 'empty' }, h('p', { text: 'There is no data about the convergence of this object.' }));
  const place = (at) => ((time.zero + at / 1e6 - time.from) / (time.to - time.from)) * 100;
  const marks = ticks(0, (time.to - time.zero) * 1e6, 6).filter((at) => place(at) < 96);
  const axis = marks.map((at) => h('span', { class: 'tick', css: { left: `${place(at)}%` }, text: duration(at) }));
  const first = rows[0].node;
  const belongs = within(first.generations, trace);
  const body = rows.map(({ node, depth }) => h('div', { class: 'object-row', role: 'row', 'aria-level': depth + 1 },
    h('div', { class: 'name', role: 'rowheader', css: { '--depth': String(Math.min(depth, 12)) } }, h('span', { class: 'indent' }),
      h('span', { class: `state-dot ${STATES[node.state]?.[0] ?? 'none'}`, title: STATES[node.state]?.[1] }),
      node === first ? h('strong', { text: `${line(node.kind, 40)} ${line(node.name, 100)}` }) : h('a', { href: objectUrl(node) }, h('span', { class: 'dim', text: line(node.kind, 40) }), ' ', h('span', { text: line(node.name, 100) }))),
    h('div', { class: 'track', role: 'gridcell' }, bars(node, node.generations.filter(belongs), time, now, width))));
  const lines = marks.map((at) => `linear-gradient(var(--line), var(--line)) ${place(at)}% 0 / 1px 100% no-repeat`).join(', ');
  return h('section', { class: 'hierarchy', role: 'treegrid', 'aria-label': 'Dependents, and when each converged', css: { '--ticks': lines || 'none' } },
    h('div', { class: 'object-row axis-row', role: 'row' }, h('div', { class: 'name', role: 'columnheader', text: 'Object' }), h('div', { class: 'track axis', role: 'columnheader', 'aria-label': 'Time' }, axis)), body);
}

/** The generations of an object. */
function bars(node, generations, { from, to }, now, width) {
  const place = (at) => Math.min(Math.max((at - from) / (to - from), 0), 1);
  // No bar is narrower than it can be seen.
  const places = generations.map((each) => stretch(each, now).map(place)).map(([left, right]) => [left, Math.max(right, left + 5 / width)]);
  const amounts = generations.map((each) => took(each) ?? STATES[each.state]?.[1] ?? '');
  const labels = sides(places, amounts.map((amount) => (amount.length * LETTER + 12) / width));
  return generations.map((each, at) => bar(node, each, places[at], amounts[at], labels[at]));
}

/** A generation: a link into its trace, at the span that says how long it took. */
function bar(node, each, [left, right], amount, side) {
  const fromCluster = each.source === 'cluster';
  const look = `${STATES[each.state]?.[0] ?? 'none'} ${each.spanId && !fromCluster ? '' : 'guessed'}`;
  const words = `${node.kind} ${node.name}, generation ${each.generation}: ${STATES[each.state]?.[1] ?? each.state}, ${amount}, ${fromCluster ? 'from the cluster, accurate to one second' : plural(each.reconciles ?? 0, 'reconcile')}${each.errors ? `, ${plural(each.errors, 'error')}` : ''}${each.message ? `. ${each.message}` : ''}`;
  return h(each.traceId ? 'a' : 'span', { class: `generation ${look}`, href: each.traceId ? traceUrl(each.traceId, { span: each.spanId }) : null, 'aria-label': line(words, 600), title: line(words, 600), css: { left: `${left * 100}%`, width: `${(right - left) * 100}%` } },
    side && h('span', { class: `amount ${side}`, text: amount }));
}

function history(changes) {
  if (!changes.length) return null;
  const row = (each) => h('tr', {},
    h('td', {}, each.traceId ? h('a', { href: traceUrl(each.traceId, { span: each.spanId }), text: `Generation ${each.generation}` }) : `Generation ${each.generation}`),
    h('td', {}, since(each.start)), h('td', { class: 'number', text: took(each) ?? '–' }),
    h('td', {}, statePill(each.state)), h('td', { class: 'number', text: each.source === 'cluster' ? '–' : String(each.reconciles ?? '') }), h('td', { class: each.errors ? 'number bad' : 'number', text: String(each.errors ?? '') }),
    h('td', { class: 'message', text: each.message ? line(each.message, 400) : '' }));
  const names = ['Change', 'When', 'Took', 'State', 'Reconciles', 'Errors', 'Message'];
  return h('section', { class: 'history' }, h('h2', { text: 'Changes' }), h('div', { class: 'scroll-x' }, h('table', {}, h('thead', {}, h('tr', {}, names.map((name) => h('th', { scope: 'col', class: ['Took', 'Reconciles', 'Errors'].includes(name) ? 'number' : null, text: name })))), h('tbody', {}, changes.slice(0, 200).map(row)))));
}
