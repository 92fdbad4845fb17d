// Small charts: how a figure went in the last five minutes, with its last value beside it.

import { h, s } from './dom.js';
import { duration } from './format.js';

const [WIDTH, HEIGHT] = [240, 44];

/** Milliseconds from the left edge to the right. */
const WINDOW = 300_000;

/** The values with their places from 0 to 1, of those that are not too old. Without times they are as far apart as each other. Pure. */
export function placed(values, at) {
  const last = at[values.length - 1];
  if (!Number.isFinite(last)) return values.map((value, index) => ({ value, place: values.length > 1 ? index / (values.length - 1) : 1 }));
  return values.map((value, index) => ({ value, at: at[index], place: 1 - (last - at[index]) / WINDOW })).filter(({ place }) => place >= 0);
}

/** The line through values and the area below it, as paths. Pure. */
export function paths(values, most, places = placed(values, []).map(({ place }) => place)) {
  const good = values.map((value) => (Number.isFinite(value) ? Math.max(value, 0) : 0));
  if (good.length < 2) return { line: '', area: '' };
  const top = Math.max(most ?? 0, ...(most === undefined ? good : [])) || 1;
  const point = (value, at) => `${(places[at] * WIDTH).toFixed(1)} ${(HEIGHT - 2 - (Math.min(value / top, 1) * (HEIGHT - 6))).toFixed(1)}`;
  const line = `M${good.map(point).join('L')}`;
  return { line, area: `${line}L${WIDTH} ${HEIGHT}L${(places[0] * WIDTH).toFixed(1)} ${HEIGHT}Z` };
}

/** A figure with its chart. `look` is its colour; `most` the top of the scale, where it is known; `at` the times of the values. */
export function chart(title, values, text, { look = 'accent', most, at = [] } = {}) {
  const points = placed(values, at);
  const { line, area } = paths(points.map(({ value }) => value), most, points.map(({ place }) => place));
  const last = values.length ? values[values.length - 1] : NaN;
  const name = h('span', { text: title });
  const value = h('strong', { text: text(last) });
  const mark = h('span', { class: 'chart-mark', hidden: true });
  const picture = s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('path', { class: 'area', d: area }), s('path', { class: 'stroke', d: line }));
  const plot = h('div', { class: 'chart-plot' }, picture, mark);
  // Pointing at a place says what it was then.
  plot.addEventListener('pointermove', (event) => {
    const box = plot.getBoundingClientRect();
    const pointed = (event.clientX - box.left) / box.width;
    const near = points.reduce((best, point) => (best && Math.abs(best.place - pointed) <= Math.abs(point.place - pointed) ? best : point), null);
    if (!near) return;
    name.textContent = near.at ? new Date(near.at).toLocaleTimeString() : title;
    value.textContent = text(near.value);
    mark.hidden = false;
    mark.style.setProperty('left', `${near.place * 100}%`);
  });
  plot.addEventListener('pointerleave', () => {
    mark.hidden = true;
    name.textContent = title;
    value.textContent = text(last);
  });
  // Figures are there from when somebody first looked.
  const known = points.length ? points.at(-1).at - points[0].at : NaN;
  const since = Number.isFinite(known) ? `, over ${duration(known * 1e6)}` : '';
  const axis = Number.isFinite(known) && h('div', { class: 'chart-time' }, h('span', { text: duration(-WINDOW * 1e6) }), h('span', { text: 'now' }));
  return h('figure', { class: `chart ${look}`, role: 'img', 'aria-label': `${title}: ${text(last)}${since}` }, h('figcaption', {}, name, value), plot, axis);
}
