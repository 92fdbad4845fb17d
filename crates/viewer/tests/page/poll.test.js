import assert from 'node:assert/strict';
import { test } from 'node:test';

import { poll } from '../../page/poll.js';
import { clock, settled } from './build.js';

/** A page that is seen, questions that are answered by hand, and what was shown. */
function looking() {
  globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
  const [questions, shown] = [[], []];
  const ask = (signal) => new Promise((answer, refuse) => questions.push({ signal, answer, refuse }));
  const polled = poll(3000, ask, (said) => shown.push(said), (error) => shown.push(error.message));
  return { polled, questions, shown };
}

test('an older answer does not replace a newer one', async () => {
  const { polled, questions, shown } = looking();
  polled.now();
  assert.deepEqual(questions.map(({ signal }) => signal.aborted), [true, false], 'nobody waits for the first any more');
  questions[1].answer('newer');
  await settled();
  questions[0].answer('older');
  await settled();
  assert.deepEqual(shown, ['newer']);
  polled.close();
});

test('who types asks when they pause', async () => {
  const { tick, putBack } = clock();
  const { polled, questions, shown } = looking();
  for (const _ of 'head') {
    polled.soon(250);
    tick(200);
  }
  assert.equal(questions.length, 1, 'the one that was asked before');
  questions[0].answer('all');
  await settled();
  assert.deepEqual(shown, [], 'it is not what is wanted now');
  tick(50);
  questions[1].answer('heads');
  await settled();
  assert.deepEqual(shown, ['heads']);
  tick(3000);
  assert.equal(questions.length, 3, 'and then it goes on as ever');
  polled.close();
  tick(9000);
  assert.equal(questions.length, 3);
  putBack();
});

test('an error is told to whoever sees nothing yet', async () => {
  const { polled, questions, shown } = looking();
  questions[0].refuse(new Error('gone'));
  await settled();
  assert.deepEqual(shown, ['gone']);
  polled.close();
});
