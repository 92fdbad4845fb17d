// Drawing a stretch with the pointer.

import { h } from './dom.js';

/** What is shorter was a click. */
const LEAST = 0.005;

/** Calls `done(from, to)` with shares of the element's width when somebody has drawn a stretch over it. */
export function dragStretch(element, done) {
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const box = element.getBoundingClientRect();
    const share = (x) => Math.min(Math.max((x - box.left) / box.width, 0), 1);
    const from = share(event.clientX);
    const brush = h('div', { class: 'brush' });
    element.append(brush);
    const ended = new AbortController();
    const { signal } = ended;
    const move = (now) => {
      const to = share(now.clientX);
      brush.style.setProperty('left', `${Math.min(from, to) * 100}%`);
      brush.style.setProperty('width', `${Math.abs(to - from) * 100}%`);
    };
    const end = () => {
      ended.abort();
      brush.remove();
    };
    const up = (now) => {
      end();
      const to = share(now.clientX);
      if (Math.abs(to - from) > LEAST) done(Math.min(from, to), Math.max(from, to));
    };
    // On the window: the pointer may leave the element, and what is clicked keeps its click.
    addEventListener('pointermove', move, { signal });
    addEventListener('pointerup', up, { signal });
    addEventListener('pointercancel', end, { signal });
  });
}
