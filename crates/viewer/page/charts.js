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

/** A figure with its chart. `look` is its colour; `most` the top of the scale, where it is known. */
export function chart(title, values, text, { look = 'accent', most } = {}) {
  const { line, area } = paths(values, most);
  const last = values.length ? values[values.length - 1] : NaN;
  return h('figure', { class: `chart ${look}`, 'aria-label': `${title}: ${text(last)}` },
    h('figcaption', {}, h('span', { text: title }), h('strong', { text: text(last) })),
    s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('path', { class: 'area', d: area }), s('path', { class: 'stroke', d: line })));
}
