import assert from 'node:assert/strict';
import { test } from 'node:test';

import { paths } from '../../page/charts.js';
import { gapsOf, merge } from '../../page/intervals.js';
import { labels, sift } from '../../page/scatter.js';
import { extent, flatten, settle, stretch } from '../../page/timeline.js';

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
