import assert from 'node:assert/strict';
import { test } from 'node:test';

import { follow } from '../../page/follow.js';
import { clock, settled } from './build.js';

test('a window without a stream does not look again before it has seen', async () => {
  const { tick, putBack } = clock();
  globalThis.document = { hidden: false, addEventListener() {} };
  globalThis.addEventListener = () => {};
  // Others have all the places.
  const request = async (_, options, use) => (options.ifAvailable ? use(null) : new Promise(() => {}));
  Object.defineProperty(globalThis, 'navigator', { value: { locks: { request } }, configurable: true });
  const looks = [];
  const leave = follow('/live', {}, () => new Promise((seen) => looks.push(seen)));
  await settled();
  tick(9000);
  await settled();
  assert.equal(looks.length, 1);
  looks[0]();
  await settled();
  tick(3000);
  assert.equal(looks.length, 2);
  leave();
  looks[1]();
  await settled();
  tick(9000);
  assert.equal(looks.length, 2);
  putBack();
});
