import assert from 'node:assert/strict';
import { test } from 'node:test';

import { byNode, criticalPath } from '../../page/critical.js';
import { oddities } from '../../page/details.js';
import { find } from '../../page/find.js';
import { build, oneLevel, subject, visibleRows } from '../../page/model.js';
import { millis, operator, span, trace } from './build.js';

const names = (nodes) => nodes.map((node) => node.name);
const named = (model, name) => model.nodes.find((node) => node.name === name);

test('children are below their parents, in the order of their start', () => {
  const root = span('root', 0, 10);
  const model = build(trace([span('b', 5, 1, { parent: root }), span('a', 1, 1, { parent: root }), root]));
  assert.deepEqual(names(model.order), ['root', 'a', 'b']);
  assert.deepEqual(model.order.map((node) => node.depth), [0, 1, 1]);
  assert.equal(model.length, 10e6);
  assert.equal(model.order[0].below, 2);
});

test('a span whose parent is missing is a root, and says so', () => {
  const model = build(trace([span('root', 0, 10), span('lost', 2, 1, { parent: 'f'.repeat(16) })]));
  assert.deepEqual(names(model.roots), ['root', 'lost']);
  assert.ok(named(model, 'lost').orphan);
  assert.ok(!named(model, 'root').orphan);
});

test('circles are cut, and nothing is lost or shown twice', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((letter) => letter.repeat(16));
  const spans = [span('a', 0, 5, { id: a, parent: c }), span('b', 1, 3, { id: b, parent: a }), span('c', 2, 1, { id: c, parent: b }), span('below', 3, 1, { parent: b })];
  const self = span('self', 1, 1, { id: 'd'.repeat(16), parent: 'd'.repeat(16) });
  const model = build(trace([...spans, self]));
  assert.deepEqual(names(model.order).sort(), ['a', 'b', 'below', 'c', 'self']);
  assert.ok(named(model, 'a').circle);
  assert.deepEqual(names(model.roots), ['a', 'self']);
});

test('two spans of one id are both shown, and children are below the first', () => {
  const id = '1'.repeat(16);
  const model = build(trace([span('one', 0, 9, { id }), span('two', 1, 5, { id }), span('child', 2, 1, { parent: id })]));
  assert.equal(model.order.length, 3);
  assert.equal(named(model, 'child').parent.name, 'one');
});

test('a chain of twenty thousand spans is a tree as any other', () => {
  const spans = [span('0', 0, 1)];
  for (let at = 1; at < 20_000; at += 1) spans.push(span(String(at), at / 1e5, 1, { parent: spans[at - 1] }));
  const model = build(trace(spans));
  assert.equal(model.depth, 20_000);
  assert.equal(visibleRows(model, new Set([model.order[10]])).length, 11);
  assert.ok(criticalPath(model).length > 0);
});

test('own time is what no child covers', () => {
  const root = span('root', 0, 100);
  const model = build(trace([root, span('a', 10, 20, { parent: root }), span('b', 20, 30, { parent: root }), span('late', 90, 50, { parent: root })]));
  assert.deepEqual(millis(model.roots[0].own), [[0, 10], [50, 90]]);
  assert.equal(model.roots[0].self, 50e6);
  assert.equal(named(model, 'a').self, 20e6);
});

test('waiting lies between a cause and its effect', () => {
  const model = build(operator());
  const [first, last] = model.nodes.filter((node) => node.name === 'reconcile Head');
  assert.deepEqual(millis([first.wait]), [[5, 110]], 'nothing below the stamp ran in between');
  assert.deepEqual(millis([named(model, 'reconcile ChildA').wait]), [[130, 950]]);
  assert.deepEqual(millis([last.wait]), [[970, 980]], 'what another child caused counts as running');
  assert.equal(named(model, 'apply ChildA').wait, undefined, 'its parent was running');
});

test('a converge span measures and is not itself work', () => {
  const model = build(operator());
  const converge = named(model, 'converge Head');
  assert.ok(converge.measures);
  assert.deepEqual(millis(converge.gaps), [[5, 110], [150, 950], [970, 980]]);
  assert.equal(named(model, 'stamp Head').last, 1005e6);
});

test('the critical path goes through what was waited for', () => {
  const model = build(operator());
  const path = criticalPath(model).map((section) => `${section.waits ? 'until ' : ''}${section.node.name} ${section.from / 1e6}-${section.to / 1e6}`);
  assert.deepEqual(path, [
    'POST 0-2', 'stamp Head 2-5', 'until reconcile Head 5-110', 'reconcile Head 110-120', 'apply ChildA 120-130', 'until reconcile ChildA 130-950', 'reconcile ChildA 950-970', 'until reconcile Head 970-980', 'reconcile Head 980-1005',
  ]);
});

test('the critical path of synchronous spans is that of Jaeger', () => {
  const root = span('root', 0, 100);
  const early = span('early', 10, 20, { parent: root });
  const long = span('long', 35, 60, { parent: root });
  const beside = span('beside', 40, 10, { parent: root });
  const model = build(trace([root, early, long, beside]));
  const sections = byNode(criticalPath(model));
  assert.deepEqual(millis(sections.get(model.roots[0]).map((section) => [section.from, section.to])), [[0, 10], [30, 35], [95, 100]]);
  assert.ok(sections.has(named(model, 'long')) && sections.has(named(model, 'early')));
  assert.ok(!sections.has(named(model, 'beside')), 'it made nothing later');
});

test('levels are opened and closed one by one', () => {
  const model = build(operator());
  let collapsed = oneLevel(model, new Set(), false);
  assert.deepEqual(names([...collapsed]), ['apply ChildA']);
  collapsed = oneLevel(model, collapsed, false);
  assert.deepEqual(names([...collapsed]), ['apply ChildA', 'reconcile Head']);
  collapsed = oneLevel(model, collapsed, true);
  assert.deepEqual(names([...collapsed]), ['apply ChildA']);
  assert.deepEqual(oneLevel(model, new Set(), true).size, 0);
});

test('spans that only wrap another are folded, unless they have something to tell', () => {
  const outer = span('authentication', 0, 100);
  const request = span('POST', 0.1, 99, { parent: outer, kind: 'server' });
  const audit = span('audit', 0.2, 98, { parent: request });
  const told = span('told', 0.3, 97.5, { parent: audit, events: [{ time: '1', name: 'step', attributes: [] }] });
  const work = span('work', 1, 50, { parent: told });
  const model = build(trace([outer, request, audit, told, work]));
  const shown = (fold, keep) => visibleRows(model, new Set(), fold, keep).map((node) => `${node.level} ${node.name}`);
  assert.deepEqual(shown(true), ['0 POST', '1 told', '2 work']);
  assert.deepEqual(shown(true, new Set([named(model, 'audit')])), ['0 POST', '1 audit', '2 told', '3 work'], 'what was found or selected is shown');
  assert.deepEqual(shown(false), ['0 authentication', '1 POST', '2 audit', '3 told', '4 work']);
  assert.equal(model.wrappers, 2);
  assert.equal(subject(model).name, 'POST');
});

test('what is left out of a chain is judged as a whole', () => {
  const spans = [span('x', 0, 200)];
  for (let at = 1; at <= 30; at += 1) spans.push(span(`level ${at}`, at * 1.5, 200 - at * 1.5, { parent: spans[at - 1] }));
  const model = build(trace(spans));
  for (const [at, row] of visibleRows(model, new Set(), true).entries()) {
    const above = row.above ?? { start: 0 };
    assert.ok(row.start - above.start <= 4e6, `${at}: ${row.name} begins ${row.start - above.start} ns after ${above.name}`);
  }
  assert.equal(model.roots[0].wraps, null, 'a root names its trace');
  const lost = span('authentication', 0, 100, { parent: 'f'.repeat(16) });
  assert.equal(build(trace([lost, span('audit', 0.1, 99.9, { parent: lost, kind: 'server' })])).wrappers, 0, 'what has no parent here says so');
});

test('a span with attributes of its own is no wrapper', () => {
  const pair = (key, value) => ({ key, value, type: 'string' });
  const wraps = (outer, core, props = {}) => {
    const root = span('root', 0, 200);
    const run = span('run', 1, 100, { parent: root, attributes: outer, ...props });
    return build(trace([root, span('beside', 150, 10, { parent: root }), run, span('work', 1, 100, { parent: run, attributes: core, service: props.other })])).wrappers === 1;
  };
  assert.ok(wraps([], []));
  assert.ok(wraps([pair('a', 'b')], [pair('c', 'd'), pair('a', 'b')]));
  assert.ok(!wraps([pair('customer', 'acme')], [pair('rows', '3')]));
  assert.ok(!wraps([pair('a', 'b')], [pair('a', 'c')]));
  assert.ok(!wraps([], [], { other: 1 }), 'another process');
  assert.ok(!wraps([], [], { kind: 'client' }));
  assert.ok(!wraps([], [], { status: 'error' }));
});

test('what is odd about a span is said once, in words', () => {
  const [told, counted] = ['b', 'c'].map((digit) => digit.repeat(16));
  const odd = [span('told', 0, 1, { id: told, warnings: ['future', 'clock_skew'], skew: 5e6 }), span('counted', 0, 1, { id: counted, warnings: ['future'] })];
  const warnings = [{ kind: 'future', spanId: told, message: 'the span begins in the future' }, { kind: 'clock_skew', spanId: told, message: "the span's clock is 5000 µs behind" }];
  const model = build(trace(odd, { warnings }));
  assert.deepEqual(oddities(model, named(model, 'told')), ['the span begins in the future', "The span's clock differs from its parent's: the span is shown 5 ms later than its timestamp."]);
  assert.deepEqual(oddities(model, named(model, 'counted')), ['In the future']);
});

test('words are found in names, services, values and events', () => {
  const attributes = [{ key: 'k8s.object.name', value: 'Web-1', type: 'string' }, { key: 'attempt', value: 3, type: 'int' }];
  const model = build(trace([span('GET /cart', 0, 5, { attributes, status: 'error', message: 'no such item' }), span('charge', 1, 2, { service: 1, events: [{ time: '1', name: 'retry', attributes: [] }] })]));
  const found = (text) => names(find(model, text));
  assert.deepEqual(found('cart'), ['GET /cart']);
  assert.deepEqual(found('STOCK'), ['charge']);
  assert.deepEqual(found('web get'), ['GET /cart'], 'each word, in any place');
  assert.deepEqual(found('k8s.object.name=web'), ['GET /cart']);
  assert.deepEqual(found('attempt=3'), ['GET /cart']);
  assert.deepEqual(found('attempt=4'), []);
  assert.deepEqual(found('error'), ['GET /cart']);
  assert.deepEqual(found('retry'), ['charge']);
  assert.deepEqual(found('  '), []);
});

test('times in the far future and durations that are none break nothing', () => {
  const model = build(trace([span('now', 0, 1), span('far', 3e15, 1), span('odd', 1, NaN)]));
  assert.ok(model.length > 3e21 - 1);
  assert.equal(named(model, 'odd').length, 0);
});
