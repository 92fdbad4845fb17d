import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as format from '../../page/format.js';

test('durations have three digits and a unit', () => {
  const cases = [[0, '0'], [1, '1 ns'], [999, '999 ns'], [1500, '1.5 µs'], [999_960, '1 ms'], [12_345_678, '12.3 ms'], [1e9, '1 s'], [1.254e9, '1.25 s'], [59.96e9, '60 s'], [125e9, '2 m 5 s'], [3599.9e9, '1 h'], [7200e9, '2 h'], [90_061e9, '1 d 1 h'], [-5e6, '−5 ms'], [NaN, '–']];
  for (const [ns, text] of cases) assert.equal(format.duration(ns), text, String(ns));
});

test('durations can be written as the search reads them', () => {
  assert.equal(format.goDuration(1.5e9), '1.5s');
  assert.equal(format.goDuration(200e6), '200ms');
  assert.equal(format.goDuration(12_000), '12us');
});

test('times keep their milliseconds', () => {
  assert.equal(format.toMillis('1794833524042039170'), 1794833524042.039);
  assert.match(format.clock('1794833524042039170'), /^\d\d:\d\d:\d\d\.042$/);
  assert.equal(format.clock('no time'), 'no time');
  assert.match(format.dateTime('1794833524042039170'), /^2026-11-16 /);
  assert.equal(format.dateTime('99999999999999999999999'), '99999999999999999999999');
});

test('how long ago is said in one unit', () => {
  const now = 1_000_000_000;
  const at = (seconds) => String(BigInt(now - seconds * 1000) * 1000000n);
  assert.equal(format.ago(at(0), now), 'now');
  assert.equal(format.ago(at(12), now), '12 s ago');
  assert.equal(format.ago(at(600), now), '10 min ago');
  assert.equal(format.ago(at(-7300), now), 'in 2 h');
});

test('counts, bytes and rates can be read', () => {
  assert.equal(format.count(1234567), '1 234 567');
  assert.equal(format.bytes(1536), '1.5 KiB');
  assert.equal(format.bytes(268435456), '256 MiB');
  assert.equal(format.rate(1234), '1.23 k/s');
  assert.equal(format.plural(1, 'span'), '1 span');
  assert.equal(format.plural(2000, 'span'), '2 000 spans');
});

test('what cannot be seen is made visible', () => {
  assert.equal(format.visible('a\u0000b\u001b[31m'), 'a\u27e80000\u27e9b\u27e8001B\u27e9[31m');
  assert.equal(format.visible('exe\u202egnp'), 'exe\u27e8202E\u27e9gnp');
  assert.equal(format.visible('two\nlines\tof <b>text</b> ✓ 日本'), 'two\nlines\tof <b>text</b> ✓ 日本');
  assert.equal(format.visible('\ud800 alone, 😀 together'), '\u27e8D800\u27e9 alone, 😀 together');
  assert.equal(format.line('one\ntwo'), 'one two');
  assert.equal(format.line('x'.repeat(300)).length, 201);
});

test('requests to Kubernetes are named by what they are about', () => {
  assert.equal(format.shortName('PATCH /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/childas/{:name}/status'), 'PATCH …/childas/{:name}/status');
  assert.equal(format.shortName('GET /api/v1/nodes'), 'GET …/nodes');
  assert.equal(format.shortName('GET /api/cart'), 'GET /api/cart');
  assert.equal(format.shortName('reconcile Head'), 'reconcile Head');
});

test('marks of an axis are round and few', () => {
  assert.deepEqual(format.ticks(0, 10e6, 5), [0, 2e6, 4e6, 6e6, 8e6, 10e6]);
  assert.deepEqual(format.ticks(0, 600e9, 4), [0, 300e9, 600e9]);
  assert.deepEqual(format.ticks(5, 5, 4), []);
  for (const length of [1, 7, 1e3, 123_456, 4.2e9, 86_400e9, 4e20]) {
    const marks = format.ticks(0, length, 6);
    assert.ok(marks.length >= 1 && marks.length <= 8, `${length}: ${marks}`);
  }
});
