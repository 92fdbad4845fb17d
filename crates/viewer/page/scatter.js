// Durations over time, a point for each trace. The list below says the same, so that readers of the screen are spared the points.

import { h } from './dom.js';
import { dragStretch } from './drag.js';
import { clock, duration, line, plural, toMillis } from './format.js';
import { navigate, traceUrl } from './router.js';

const [WIDTH, HEIGHT] = [1000, 132];
const EDGE = { left: 8, right: 8, top: 10, bottom: 8 };

/** The plot of these traces. `choose(from, to)` gets a stretch that was drawn, as strings of nanoseconds. */
export function scatter(traces, choose) {
  const x = scale(traces.map((trace) => toMillis(trace.start)), EDGE.left, WIDTH - EDGE.right);
  const y = scale(traces.map((trace) => Math.log10(Math.max(trace.duration, 1))), HEIGHT - EDGE.bottom, EDGE.top, 1.2);
  const tip = h('div', { class: 'tip', hidden: true });
  const points = h('div', { class: 'points' });
  for (const trace of traces) points.append(point(trace, x, y, tip));
  const [low, high] = [Math.floor(y.from), Math.ceil(y.to)];
  const lines = [];
  for (let power = low; power <= high && lines.length < 8; power += Math.max(1, Math.ceil((high - low) / 4))) {
    if (power < y.from || power > y.to || y(power) > HEIGHT - 18) continue;
    lines.push(h('div', { class: 'line', css: { top: `${(y(power) / HEIGHT) * 100}%` } }, h('span', { text: duration(10 ** power) })));
  }
  const text = (millis) => clock(String(BigInt(Math.round(millis)) * 1000000n), false);
  const area = h('div', { class: 'area', title: 'Drag to search a stretch of time' }, lines, points, tip);
  const at = (share) => String(BigInt(Math.round(x.from + ((share * WIDTH - EDGE.left) / (WIDTH - EDGE.left - EDGE.right)) * (x.to - x.from))) * 1000000n);
  dragStretch(area, (from, to) => choose(at(from), at(to)));
  return h('figure', { class: 'scatter', role: 'img', 'aria-label': `Durations of ${plural(traces.length, 'trace')} over time` },
    area,
    h('div', { class: 'axis' }, h('span', { text: text(x.from) }), h('span', { text: text((x.from + x.to) / 2) }), h('span', { text: text(x.to) })));
}

function point(trace, x, y, tip) {
  const size = Math.min(5 + Math.log2(trace.spans + 1) * 1.4, 20);
  const [left, top] = [(x(toMillis(trace.start)) / WIDTH) * 100, (y(Math.log10(Math.max(trace.duration, 1))) / HEIGHT) * 100];
  const show = () => {
    tip.textContent = `${line(trace.rootService, 40)} ${line(trace.rootName, 60)} · ${duration(trace.duration)} · ${plural(trace.spans, 'span')}`;
    tip.style.setProperty('left', `${Math.min(Math.max(left, 12), 88)}%`);
    tip.style.setProperty('top', `${top}%`);
    tip.classList.toggle('below', top < 35);
    tip.hidden = false;
  };
  return h('span', {
    class: trace.errors ? 'point bad' : 'point', 'aria-hidden': 'true', css: { left: `${left}%`, top: `${top}%`, width: `${size}px`, height: `${size}px` },
    on: { click: () => navigate(traceUrl(trace.traceId)), mouseenter: show, mouseleave: () => (tip.hidden = true) },
  });
}

/** From values to places. What lies closer together than `least` is in the middle. */
function scale(values, begin, end, least = 1) {
  let [from, to] = [Math.min(...values), Math.max(...values)];
  const more = Math.max(least - (to - from), 0) / 2;
  [from, to] = [from - more, to + more];
  const place = (value) => begin + ((value - from) / (to - from)) * (end - begin);
  return Object.assign(place, { from, to });
}
