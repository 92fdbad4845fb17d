import assert from 'node:assert/strict';
import { test } from 'node:test';

import { traceparent } from '../../page/clipboard.js';
import { build } from '../../page/model.js';
import { objectOf } from '../../page/objectref.js';
import { attributesToText, sameValue, textToAttributes, toServer, traceIdIn, upsert } from '../../page/query.js';
import { clamp, isWhole, pan, zoom } from '../../page/range.js';
import { objectUrl, parse, searchUrl, traceUrl } from '../../page/router.js';
import { fromParams, toUrl } from '../../page/tracestate.js';
import { operator, span, trace } from './build.js';

test('every address shows what it says', () => {
  assert.equal(parse('/', '').view, 'search');
  assert.equal(parse('/search', '?service=a').params.get('service'), 'a');
  assert.deepEqual(parse('/trace/0aF1', '').parts, { id: '0aF1' });
  assert.equal(parse('/trace/nothex', '').view, 'missing');
  assert.deepEqual(parse('/objects/Head/demo/a%2Fb', '').parts, { kind: 'Head', namespace: 'demo', name: 'a/b' });
  assert.equal(parse('/objects/Head/demo/%E0%A4%A', '').view, 'missing', 'an escape that is none');
  assert.equal(parse('/pipelines', '').view, 'pipelines');
});

test('addresses are written so that they are read again', () => {
  assert.equal(searchUrl({ service: 'a b', attr: ['x=1', 'y=2'], errors: false, name: '' }), '/search?service=a+b&attr=x%3D1&attr=y%3D2');
  assert.equal(objectUrl({ kind: 'Node', namespace: '', name: 'n/1' }), '/objects/Node/-/n%2F1');
  assert.equal(traceUrl('ab', { span: 'cd', q: null }), '/trace/ab?span=cd');
});

test('the state of a trace is in its address', () => {
  const model = build(operator());
  const state = fromParams(model, new URLSearchParams());
  assert.equal(toUrl(model, state), `/trace/${model.id}`);
  state.selected = model.nodes[3];
  state.text = 'head';
  state.range = [100e6, 400e6];
  state.collapsed.add(model.roots[0]);
  state.gaps = false;
  const again = fromParams(model, new URLSearchParams(toUrl(model, state).split('?')[1]));
  assert.deepEqual(again, state);
});

test('an address that asks for what is not there shows everything', () => {
  const model = build(operator());
  const state = fromParams(model, new URLSearchParams('span=nope&from=9&to=3&collapsed=a,b,&q='));
  assert.equal(state.selected, null);
  assert.equal(state.collapsed.size, 0);
  assert.ok(isWhole(state.range, model.length));
});

test('a span from the future does not hide the others', () => {
  const told = trace([span('now', 0, 100), span('later', 3e12, 1, { id: 'f'.repeat(16) })], { warnings: [{ kind: 'future', spanId: 'f'.repeat(16), message: '' }] });
  const model = build(told);
  assert.deepEqual(fromParams(model, new URLSearchParams()).range, [0, 100e6]);
});

test('stretches stay within the trace', () => {
  assert.deepEqual(clamp([-50, 50], 1000), [0, 100]);
  assert.deepEqual(clamp([950, 1200], 1000), [750, 1000]);
  assert.deepEqual(clamp([500, 500], 1e6), [500, 600]);
  assert.deepEqual(zoom([0, 1000], 0.5, 0.25, 1000), [125, 625]);
  assert.deepEqual(zoom([100, 200], Infinity, 0.5, 1000), [0, 1000]);
  assert.deepEqual(pan([0, 100], -1, 1000), [0, 100]);
  assert.deepEqual(pan([900, 1000], 1, 1000), [900, 1000]);
  assert.deepEqual(pan([100, 200], 0.5, 1000), [150, 250]);
});

test('attributes are typed as pairs, with quotes where there are spaces', () => {
  assert.deepEqual(textToAttributes('a=1  b.c="two words" "d e=f"'), { pairs: ['a=1', 'b.c=two words', 'd e=f'], problem: null });
  assert.match(textToAttributes('a=1 oops').problem, /“oops” has no value/);
  assert.deepEqual(textToAttributes('').pairs, []);
  const hard = ['a=say "hi" \\ there', 'b=', 'c=x=y'];
  assert.deepEqual(textToAttributes(attributesToText(hard)).pairs, hard);
});

test('a search for the same value is written as the server compares it, and not at all where it would find nothing', () => {
  const same = (value, type = 'string', key = 'k') => sameValue({ key, value, type });
  assert.equal(same('a=b'), 'k=a=b');
  assert.equal(same(' a '), 'k=" a "', 'blanks are kept by quotes');
  assert.equal(same('"a"'), 'k=""a""');
  assert.equal(same(3, 'int'), 'k=3');
  assert.equal(same('9007199254740993', 'int'), 'k=9007199254740993');
  assert.equal(same(-0, 'double'), 'k=-0');
  assert.equal(same(false, 'bool'), 'k=false');
  assert.equal(same({ b: ['<', 1], a: null }, 'map'), 'k={"a":null,"b":["\\u003c",1]}');
  for (const none of [null, '', 'a\ufffdb', { a: '\ufffd' }, ['NaN'], { a: '9007199254740993' }]) assert.equal(same(none), null, JSON.stringify(none));
  for (const none of ['NaN', 'inf', '-inf']) assert.equal(same(none, 'double'), null);
  for (const key of ['a=b', ' a', '', '\ufffd']) assert.equal(same('v', 'string', key), null);
});

test('only what the server knows is sent to it', () => {
  assert.equal(toServer(new URLSearchParams('service=a&sort=longest&limit=50&name=')).toString(), 'service=a&limit=50');
});

test('what arrives is merged, newest first, within the limit', () => {
  const trace = (traceId, start) => ({ traceId, start, spans: 1 });
  const { traces, fresh } = upsert([trace('b', '200'), trace('a', '100')], [trace('c', '1000'), { ...trace('a', '100'), spans: 5 }], 3);
  assert.deepEqual(traces.map((each) => `${each.traceId}${each.spans}`), ['c1', 'b1', 'a5']);
  assert.equal(fresh, 1);
  assert.equal(upsert(traces, [trace('d', '2000')], 3).traces.length, 3);
});

test('a trace id is found in whatever is pasted', () => {
  const id = '0af7651916cd43dd8448eb211c80319c';
  assert.equal(traceIdIn(`00-${id}-b7ad6b7169203331-01`), id);
  assert.equal(traceIdIn(` ${id.toUpperCase()} `), id);
  assert.equal(traceIdIn(`http://127.0.0.1:16686/trace/${id}?span=1`), id);
  assert.equal(traceIdIn('checkout'), null);
  assert.equal(traceparent(id, 'b7ad6b7169203331'), `00-${id}-b7ad6b7169203331-01`);
});

test('the object of a span is known by its attributes', () => {
  const pairs = (all) => Object.entries(all).map(([key, value]) => ({ key, value }));
  assert.deepEqual(objectOf(pairs({ 'k8s.object.kind': 'Head', 'k8s.object.name': 'a', 'k8s.namespace.name': 'n', 'k8s.object.generation': 2 })), { kind: 'Head', namespace: 'n', name: 'a', generation: 2 });
  assert.deepEqual(objectOf(pairs({ 'k8s.pod.name': 'p' })), { kind: 'Pod', namespace: '', name: 'p' });
  assert.equal(objectOf(pairs({ 'k8s.object.kind': 7 })), null);
});
