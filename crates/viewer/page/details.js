// Everything about one span, beside the waterfall.

import * as api from './api.js';
import { attributeTable } from './attributes.js';
import { copy, traceparent } from './clipboard.js';
import { colorClass } from './colors.js';
import { button, fill, h, icon } from './dom.js';
import { clock, count, dateTime, duration, line, plural, visible } from './format.js';
import { menu } from './menu.js';
import { objectOf } from './objectref.js';
import { objectUrl, traceUrl } from './router.js';
import { WARNINGS } from './tracehead.js';

/** More events and links than this are counted, not shown. */
const MOST = 200;

/** Gives the element and `draw(node)`; null closes it. */
export function details({ model, select, close, search }) {
  const element = h('aside', { class: 'details', 'aria-label': 'Span', hidden: true });
  let shown = null;
  return {
    element,
    draw(node) {
      if (node === shown) return;
      shown = node;
      element.hidden = !node;
      if (!node) return fill(element);
      element.scrollTop = 0;
      fill(element, top(model, node, close), h('div', { class: 'sections' }, sections(model, node, select, search)));
    },
  };
}

function top(model, node, close) {
  const { span } = node;
  const fact = (name, value, title) => h('div', { title }, h('dt', { text: name }), h('dd', { text: value }));
  return h('header', { class: `details-head ${colorClass(node.service)}` },
    h('div', { class: 'details-title' }, h('span', { class: 'dot' }), h('strong', { text: line(node.service, 80) }), h('span', { class: 'kind', text: span.kind === 'unspecified' ? 'internal' : span.kind }), h('span', { class: 'spread' }),
      menu('copy', 'Copy', copies(model, node)), button('close', 'Close (Esc)', close, { quiet: true })),
    h('h2', { text: line(node.name, 1000) }),
    h('dl', { class: 'facts' },
      fact('Duration', duration(node.length)), node.children.length > 0 && fact('Self', duration(node.self), 'Duration without the time in which child spans ran'),
      node.wait && fact('Waited', duration(node.wait[1] - node.wait[0]), 'Time between the cause of the span and its start, in which no span ran'),
      node.gaps?.length > 0 && fact('Nothing ran', duration(node.gaps.reduce((sum, [from, to]) => sum + to - from, 0))),
      fact('Start', `+${duration(node.start)}`, dateTime(span.start)), fact('At', clock(span.start), dateTime(span.start))),
    span.status === 'error' && h('p', { class: 'status bad' }, icon('error'), h('span', { text: span.message ? visible(span.message.slice(0, 4000)) : 'Error' })),
    span.status === 'ok' && h('p', { class: 'status good', text: 'OK' }));
}

function copies(model, node) {
  return [
    ['Link to this span', () => copy(new URL(traceUrl(model.id, { span: node.id }), location.href).href, 'Link')],
    ['traceparent', () => copy(traceparent(model.id, node.id), 'traceparent')],
    ['Span ID', () => copy(node.id, 'Span ID')],
    ['JSON', () => copy(() => JSON.stringify(node.span, null, 2), 'JSON')],
    ['OTLP JSON of the trace', () => copy(() => api.otlp(model.id), 'OTLP JSON')],
  ];
}

function sections(model, node, select, find) {
  const { span } = node;
  const whole = async (key) => {
    const said = await api.span(model.id, node.id);
    return (said.attributes ?? said.span?.attributes ?? []).find((attribute) => attribute.key === key)?.value;
  };
  const object = objectOf(span.attributes ?? []);
  const incoming = model.linkedFrom.get(node.id) ?? [];
  return [
    oddities(model, node).map((text) => h('p', { class: 'status warn', text: line(text, 1000) })),
    object && h('a', { class: 'object-card', href: objectUrl(object) }, icon('box'), h('span', {}, h('strong', { text: line(object.kind, 60) }), ' ', line(object.namespace ? `${object.namespace}/${object.name}` : object.name, 200)),
      object.generation !== undefined && h('span', { class: 'dim', text: `generation ${line(String(object.generation), 20)}` }), h('span', { class: 'spread' }), h('span', { class: 'go', text: 'Object view' })),
    section('Attributes', span.attributes?.length, attributeTable(span.attributes ?? [], { whole, find })),
    section('Events', span.events?.length, events(node, span.events ?? [])),
    section('Links', span.links?.length, h('ul', { class: 'links' }, (span.links ?? []).slice(0, MOST).map((link) => outgoing(model, link, select)))),
    section('Linked from', incoming.length, h('ul', { class: 'links' }, incoming.slice(0, MOST).map((link) => referrer(model, link, select)))),
    section('Resource', node.resource.length, attributeTable(node.resource, { find }), false),
    section('Identity', 1, identity(model, node, select), false),
  ];
}

function section(title, size, body, open = true) {
  if (!size) return null;
  return h('details', { class: 'section', open }, h('summary', {}, icon('chevron'), h('span', { text: title }), size > 1 && h('span', { class: 'dim', text: count(size) })), body);
}

/** What is odd about a span, in words, each once. Of a kind that many spans have, the server tells of the first ones only. */
export function oddities(model, node) {
  const said = model.warnings.filter((warning) => warning.spanId === node.id && warning.kind !== 'clock_skew');
  const all = said.map((warning) => warning.message);
  for (const kind of node.span.warnings ?? []) if (kind !== 'clock_skew' && !said.some((warning) => warning.kind === kind)) all.push(WARNINGS[kind] ?? kind);
  if (!all.length && node.orphan) all.push(`The parent span ${node.span.parent} is not in this trace: it was not sent, was not sampled, or arrives later.`);
  if (!all.length && node.circle) all.push('The span is its own ancestor, so it is shown as a root.');
  if (node.span.skew) all.push(`The span's clock differs from its parent's: the span is shown ${duration(Math.abs(node.span.skew))} ${node.span.skew < 0 ? 'earlier' : 'later'} than its timestamp.`);
  return [...new Set(all)];
}

function events(node, all) {
  const item = (event) => {
    const offset = Number(BigInt(event.time) - BigInt(node.span.start));
    const rest = event.attributes ?? [];
    return h('li', {}, h('div', { class: 'event-head' }, h('strong', { text: line(event.name, 300) }), h('span', { class: 'dim', title: dateTime(event.time), text: `+${duration(offset)}` })), rest.length > 0 && attributeTable(rest));
  };
  return h('ol', { class: 'events' }, all.slice(0, MOST).map(item), all.length > MOST && h('li', { class: 'dim', text: `and ${plural(all.length - MOST, 'more')}` }));
}

/** A link to a span of this trace selects it, any other opens its trace. */
function outgoing(model, link, select) {
  return linkItem(model, link, link.traceId === model.id ? 'In this trace' : 'Another trace', select, link.attributes?.length > 0 && attributeTable(link.attributes, { search: false }));
}

function referrer(model, link, select) {
  const words = link.rootName ? `${line(link.service ?? '', 60)} ${line(link.rootName, 120)}` : 'Another trace';
  return linkItem(model, link, words, select, null);
}

function linkItem(model, link, words, select, more) {
  const here = link.traceId === model.id ? model.byId.get(link.spanId) : null;
  const code = h('code', { text: `${link.traceId.slice(0, 8)}…${link.spanId.slice(0, 6)}` });
  const title = here ? h('button', { type: 'button', class: 'text', text: line(here.name, 120), on: { click: () => select(here) } }) : h('a', { href: traceUrl(link.traceId, { span: link.spanId }), text: words });
  return h('li', {}, icon('link'), title, code, more);
}

function identity(model, node, select) {
  const { span } = node;
  const rows = [['trace', model.id], ['span', span.id], ['parent', span.parent], ['scope', span.scope], ['trace state', span.state], ['start', `${span.start} (${dateTime(span.start)})`], ['duration', `${count(span.duration)} ns`]];
  const value = (name, text) => (name === 'parent' && node.parent ? h('button', { type: 'button', class: 'text', text: `${text} ${line(node.parent.name, 80)}`, on: { click: () => select(node.parent) } }) : h('span', { class: 'value', text: visible(text) }));
  return h('dl', { class: 'attributes' }, rows.filter(([, text]) => text).map(([name, text]) => h('div', { class: 'attribute' }, h('dt', { text: name }), h('dd', {}, value(name, text)))));
}
