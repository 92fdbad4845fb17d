import assert from 'node:assert/strict';
import { test } from 'node:test';

import { paths, placed } from '../../page/charts.js';
import { gapsOf, merge } from '../../page/intervals.js';
import { losses } from '../../page/losses.js';
import { labels, sift } from '../../page/scatter.js';
import { extent, flatten, settle, sides, stretch, took, within } from '../../page/timeline.js';

test('stretches of time are merged, and what they leave is found', () => {
  assert.deepEqual(merge([[5, 7], [1, 3], [2, 4], [4, 5]]), [[1, 7]]);
  assert.deepEqual(gapsOf([[2, 4], [6, 8]], 0, 10), [[0, 2], [4, 6], [8, 10]]);
  assert.deepEqual(gapsOf([[0, 10]], 2, 8), []);
  assert.deepEqual(gapsOf([], 2, 8), [[2, 8]]);
});

test('a hierarchy is rows, and its time is that of one trace or of all', () => {
  const at = (millis) => String(BigInt(millis) * 1000000n);
  const child = { generations: [{ traceId: 'a', start: at(1100), duration: 500e6, state: 'converged' }], children: [] };
  const root = { generations: [{ traceId: 'b', start: at(5000), state: 'converging' }, { traceId: 'a', start: at(1000), duration: 200e6, state: 'failed' }], children: [child] };
  const rows = flatten(root);
  assert.deepEqual(rows.map((row) => row.depth), [0, 1]);
  const near = ({ from, to, zero }) => [Math.round(from), Math.round(zero), Math.round(to)];
  assert.deepEqual(near(extent(rows, 'a', 9000)), [982, 1000, 1618]);
  assert.deepEqual(near(extent(rows, null, 9000)), [760, 1000, 9240]);
  assert.equal(extent(rows, 'c', 9000), null);
  assert.deepEqual(stretch(root.generations[0], 9000), [5000, 9000], 'it goes on');
});

test('a change that did not end before the next one was replaced by it', () => {
  const changes = settle([{ start: '9000', state: 'converging' }, { start: '4000', state: 'converging' }, { start: '1000', duration: 5, state: 'converged' }]);
  assert.deepEqual(changes.map((each) => each.state), ['converging', 'replaced', 'converged']);
  assert.equal(changes[1].duration, 5000);
});

test('charts are drawn of whatever figures there are', () => {
  assert.deepEqual(paths([], 1), { line: '', area: '' });
  assert.equal(paths([0, 1]).line, 'M0.0 42.0L240.0 4.0');
  assert.ok(!paths([NaN, null, -1, 5]).line.includes('NaN'));
  assert.equal(paths([0, 0.5], 1).line, 'M0.0 42.0L240.0 23.0');
});

test('what is known for less than five minutes takes no more than its part', () => {
  const points = placed([1, 2, 3], [1_000_000, 1_299_000, 1_329_000]);
  assert.deepEqual(points.map(({ value, place }) => [value, Number(place.toFixed(2))]), [[2, 0.9], [3, 1]], 'the first is too old');
  assert.equal(paths([0, 1], undefined, [0.5, 1]).line, 'M120.0 42.0L240.0 4.0');
  assert.ok(paths([0, 1], undefined, [0.5, 1]).area.endsWith('L120.0 44Z'));
});

test('what the cluster measured is not more exact than its clock', () => {
  assert.equal(took({ duration: 2_400_000_000, source: 'cluster' }), '≈ 2 s');
  assert.equal(took({ duration: 0, source: 'cluster' }), '< 1 s');
  assert.equal(took({ duration: 3e8, source: 'cluster' }), '≈ 1 s');
  assert.equal(took({ duration: 2_400_000_000 }), '2.4 s');
  assert.equal(took({}), null);
});

test('a trace from the far future or without a time does not squeeze the others', () => {
  const now = Date.UTC(2026, 10, 16);
  const far = Date.UTC(2554, 0, 1);
  assert.deepEqual(sift([now - 5, far, now, 0], now), { within: [now - 5, now], before: 1, after: 1 });
  assert.deepEqual(sift([now + 1000], now), { within: [now + 1000], before: 0, after: 0 }, 'clocks differ a little');
  assert.deepEqual(sift([far], now), { within: [far], before: 0, after: 0 }, 'there is no other');
});

test('an axis has dates unless all of it is today', () => {
  const at = (...parts) => new Date(2026, 10, ...parts).getTime();
  assert.deepEqual(labels(at(16, 10), at(16, 12), at(16, 13)), ['10:00:00', '11:00:00', '12:00:00']);
  assert.deepEqual(labels(at(14, 10), at(16, 12), at(16, 13)), ['2026-11-14 10:00', '2026-11-15 11:00', '2026-11-16 12:00']);
  assert.deepEqual(labels(at(15, 10), at(15, 10, 2), at(16, 13)), ['2026-11-15 10:00:00', '2026-11-15 10:01:00', '2026-11-15 10:02:00']);
});

test('what the cluster alone knows belongs to the change after which it began', () => {
  const changes = [{ traceId: 'b', start: '500' }, { traceId: 'a', start: '100' }];
  const pod = (start) => ({ traceId: 'own', start, source: 'cluster' });
  assert.deepEqual(['50', '100', '499', '500'].map((start) => within(changes, 'a')(pod(start))), [false, true, true, false]);
  assert.ok(within(changes, 'b')(pod('900')) && within(changes, null)(pod('1')));
  assert.ok(!within(changes, 'b')({ traceId: 'a', start: '900' }), 'spans say where they belong');
  // One trace may change the object more than once, also after another did.
  const often = [{ traceId: 'a', start: '700' }, { traceId: 'b', start: '500' }, { traceId: 'a', start: '300' }, { traceId: 'a', start: '100' }];
  assert.deepEqual(['50', '200', '400', '600', '800'].map((start) => within(often, 'a')(pod(start))), [false, true, true, false, true]);
});

test('labels stand where nothing else does, or not at all', () => {
  assert.deepEqual(sides([[0.1, 0.2]], [0.1]), ['behind']);
  assert.deepEqual(sides([[0.8, 0.95]], [0.1]), ['before']);
  assert.deepEqual(sides([[0.02, 0.98]], [0.1]), ['on']);
  // Two that are close: one label on each side of them, and none for what is between two.
  assert.deepEqual(sides([[0.5, 0.52], [0.46, 0.48]], [0.1, 0.1]), ['behind', 'before']);
  assert.deepEqual(sides([[0.5, 0.52], [0.46, 0.48], [0.42, 0.44]], [0.1, 0.1, 0.1]), ['behind', null, 'before']);
  // Labels keep apart from labels, too.
  assert.deepEqual(sides([[0.9, 1], [0.75, 0.78]], [0.08, 0.08]), ['before', 'before']);
});

test('what was too large is not said to have been dropped', () => {
  assert.deepEqual(losses(null), []);
  assert.deepEqual(losses({ dropped: { traces: 0 }, refused: { traces: 0 } }), []);
  assert.deepEqual(losses({ dropped: { traces: 0 }, refused: { traces: 1 } }), ['1 trace too large for the store']);
  assert.deepEqual(losses({ dropped: { traces: 2 }, refused: { traces: 3 } }), ['the store is full: 2 older traces dropped', '3 traces too large for the store']);
});
