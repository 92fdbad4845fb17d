// Durations over time, a point for each trace. The list below says the same, so that readers of the screen are spared the points.

import { h } from './dom.js';
import { dragStretch } from './drag.js';
import { count, dateTime, duration, line, plural, toMillis } from './format.js';
import { navigate, traceUrl } from './router.js';

const [WIDTH, HEIGHT] = [1000, 132];
const EDGE = { left: 8, right: 8, top: 10, bottom: 8 };

/** Clocks may differ by this many milliseconds before a trace is one of the future, as for the server. */
const AHEAD = 300_000;

/** The plot of these traces. `choose(from, to)` gets a stretch that was drawn, as strings of nanoseconds. */
export function scatter(traces, choose, now = Date.now()) {
  const times = traces.map((trace) => toMillis(trace.start));
  const { within, before, after } = sift(times, now);
  const x = scale(within, EDGE.left, WIDTH - EDGE.right);
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
  const beyond = [before > 0 && h('span', { class: 'beyond', text: `‹ ${count(before)} without a time` }), after > 0 && h('span', { class: 'beyond after', text: `${count(after)} in the future ›` })];
  // Beside the durations at the left, so that no point hides them.
  const plane = h('div', { class: 'plane', title: 'Drag to search a time range' }, points, tip);
  const area = h('div', { class: 'area' }, lines, beyond, plane);
  const at = (share) => String(BigInt(Math.round(x.from + ((share * WIDTH - EDGE.left) / (WIDTH - EDGE.left - EDGE.right)) * (x.to - x.from))) * 1000000n);
  dragStretch(plane, (from, to) => choose(at(from), at(to)));
  return h('figure', { class: 'scatter', role: 'img', 'aria-label': `Durations of ${plural(traces.length, 'trace')} over time` },
    area,
    h('div', { class: 'axis' }, labels(x.from, x.to, now).map((text) => h('span', { text }))));
}

/** Times that span the plot, and how many lie beyond: a clock that is years ahead, or none at all, would squeeze all others. Pure. */
export function sift(times, now) {
  const within = times.filter((time) => time > 0 && time <= now + AHEAD);
  if (!within.length) return { within: times, before: 0, after: 0 };
  const after = times.filter((time) => time > now + AHEAD).length;
  return { within, before: times.length - within.length - after, after };
}

/** What an axis has at its begin, middle and end: the time of day, with its date unless all of it is today. Pure. */
export function labels(from, to, now) {
  const texts = [from, (from + to) / 2, to].map((millis) => dateTime(String(BigInt(Math.round(millis)) * 1000000n)).slice(0, -4));
  const today = dateTime(String(BigInt(Math.round(now)) * 1000000n)).slice(0, 10);
  if (texts.every((text) => text.startsWith(today))) return texts.map((text) => text.slice(11));
  return to - from > 600_000 ? texts.map((text) => text.slice(0, -3)) : texts;
}

function point(trace, x, y, tip) {
  const size = Math.min(5 + Math.log2(trace.spans + 1) * 1.4, 20);
  const time = toMillis(trace.start);
  const beyond = time < x.from || time > x.to;
  const [left, top] = [(x(Math.min(Math.max(time, x.from), x.to)) / WIDTH) * 100, (y(Math.log10(Math.max(trace.duration, 1))) / HEIGHT) * 100];
  const show = () => {
    tip.textContent = `${line(trace.rootService, 40)} ${line(trace.rootName, 60)} · ${duration(trace.duration)} · ${plural(trace.spans, 'span')}${beyond ? ` · ${dateTime(trace.start)}` : ''}`;
    tip.style.setProperty('left', `${Math.min(Math.max(left, 12), 88)}%`);
    tip.style.setProperty('top', `${top}%`);
    tip.classList.toggle('below', top < 35);
    tip.hidden = false;
  };
  return h('span', {
    class: `point ${trace.errors ? 'bad' : ''} ${beyond ? 'edge' : ''}`, 'aria-hidden': 'true', css: { left: `${left}%`, top: `${top}%`, width: `${size}px`, height: `${size}px` },
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
