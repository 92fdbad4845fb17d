// Small charts: how a figure went, without axes, with its last value beside it.

import { h, s } from './dom.js';

const [WIDTH, HEIGHT] = [240, 44];

/** The line through values and the area below it, as paths. Pure. */
export function paths(values, most) {
  const good = values.map((value) => (Number.isFinite(value) ? Math.max(value, 0) : 0));
  if (good.length < 2) return { line: '', area: '' };
  const top = Math.max(most ?? 0, ...(most === undefined ? good : [])) || 1;
  const point = (value, at) => `${((at / (good.length - 1)) * WIDTH).toFixed(1)} ${(HEIGHT - 2 - (Math.min(value / top, 1) * (HEIGHT - 6))).toFixed(1)}`;
  const line = `M${good.map(point).join('L')}`;
  return { line, area: `${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z` };
}

/** A figure with its chart. `look` is its colour; `most` the top of the scale, where it is known; `at` the times of the values. */
export function chart(title, values, text, { look = 'accent', most, at = [] } = {}) {
  const { line, area } = paths(values, most);
  const last = values.length ? values[values.length - 1] : NaN;
  const name = h('span', { text: title });
  const value = h('strong', { text: text(last) });
  const mark = h('span', { class: 'chart-mark', hidden: true });
  const picture = s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('path', { class: 'area', d: area }), s('path', { class: 'stroke', d: line }));
  const plot = h('div', { class: 'chart-plot' }, picture, mark);
  // Pointing at a place says what it was then.
  plot.addEventListener('pointermove', (event) => {
    const box = plot.getBoundingClientRect();
    const index = Math.round(Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * (values.length - 1));
    if (values[index] === undefined) return;
    name.textContent = at[index] ? new Date(at[index]).toLocaleTimeString() : title;
    value.textContent = text(values[index]);
    mark.hidden = false;
    mark.style.setProperty('left', `${(index / Math.max(values.length - 1, 1)) * 100}%`);
  });
  plot.addEventListener('pointerleave', () => {
    mark.hidden = true;
    name.textContent = title;
    value.textContent = text(last);
  });
  return h('figure', { class: `chart ${look}`, role: 'img', 'aria-label': `${title}: ${text(last)}` }, h('figcaption', {}, name, value), plot);
}
