// The whole trace at a glance, and a brush that chooses the stretch to look at.

import { colorOf } from './colors.js';
import { button, fill, h } from './dom.js';
import { duration, ticks } from './format.js';
import { clamp, isWhole, place } from './range.js';

const HEIGHT = 56;

/** Gives `draw({model, range})`; `change(range)` is called with each new stretch. */
export function minimap(change) {
  const canvas = h('canvas', { height: HEIGHT, 'aria-hidden': 'true' });
  const axis = h('div', { class: 'axis', 'aria-hidden': 'true' });
  const before = h('div', { class: 'shade before' });
  const after = h('div', { class: 'shade after' });
  const [left, right] = ['left', 'right'].map((side) => h('div', { class: `grip ${side}`, data: { side } }));
  const reset = button('reset', 'Show everything', () => state && change([0, state.model.length]), { quiet: true, class: 'reset' });
  const map = h('div', { class: 'map', title: 'Drag to zoom to a time range; double-click to show everything' }, canvas, before, after, left, right);
  const element = h('div', { class: 'minimap', role: 'group', 'aria-label': 'Overview' }, axis, map, reset);
  let [state, painted] = [null, ''];

  function draw(next) {
    state = next;
    paint();
    const [from, to] = state.range.map((at) => place([0, state.model.length], at));
    before.style.setProperty('width', `${from}%`);
    after.style.setProperty('width', `${100 - to}%`);
    left.style.setProperty('left', `${from}%`);
    right.style.setProperty('left', `${to}%`);
    element.classList.toggle('whole', isWhole(state.range, state.model.length));
    reset.hidden = isWhole(state.range, state.model.length);
    const marks = ticks(0, state.model.length, Math.max(Math.floor(map.clientWidth / 140), 2)).filter((at) => at / state.model.length < 0.95);
    fill(axis, marks.map((at) => h('span', { css: { left: `${(at / state.model.length) * 100}%` }, text: duration(at) })));
  }

  /** Spans are painted once for a width and a theme. */
  function paint() {
    const ratio = devicePixelRatio || 1;
    const width = map.clientWidth;
    const key = `${state.model.id} ${state.model.nodes.length} ${width} ${ratio}`;
    if (key === painted || !width) return;
    painted = key;
    canvas.width = width * ratio;
    canvas.height = HEIGHT * ratio;
    const paper = canvas.getContext('2d');
    paper.scale(ratio, ratio);
    const { order, length } = state.model;
    const step = Math.min((HEIGHT - 4) / order.length, 5);
    const colors = palette(map);
    for (const node of order) {
      paper.fillStyle = node.error ? colors.bad : colors[colorOf(node.service)];
      paper.globalAlpha = node.measures ? 0.3 : 1;
      paper.fillRect((node.start / length) * width, 2 + node.row * step, Math.max((node.length / length) * width, 1), Math.max(step - (step > 2 ? 1 : 0), 1));
    }
  }

  const repaint = () => ((painted = ''), state && draw(state));
  addEventListener('kubewake:theme', repaint);
  const resized = new ResizeObserver(() => state && draw(state));
  resized.observe(map);

  map.addEventListener('dblclick', () => state && change([0, state.model.length]));
  map.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || !state) return;
    event.preventDefault();
    map.setPointerCapture(event.pointerId);
    const box = map.getBoundingClientRect();
    const { length } = state.model;
    const at = (x) => Math.min(Math.max((x - box.left) / box.width, 0), 1) * length;
    const [from, to] = state.range;
    const side = event.target.dataset.side;
    const origin = at(event.clientX);
    const move = (now) => {
      const here = at(now.clientX);
      if (side === 'left') change(clamp([Math.min(here, to - length / 1000), to], length));
      else if (side === 'right') change(clamp([from, Math.max(here, from + length / 1000)], length));
      else if (Math.abs(here - origin) > length / 200) change(clamp([Math.min(origin, here), Math.max(origin, here)], length));
    };
    map.addEventListener('pointermove', move);
    const up = () => map.removeEventListener('pointermove', move);
    map.addEventListener('pointerup', up, { once: true });
    map.addEventListener('pointercancel', up, { once: true });
  });

  return { element, draw, close: () => (resized.disconnect(), removeEventListener('kubewake:theme', repaint)) };
}

/** The colours of services as the style sheet has them now. */
function palette(where) {
  const probe = h('span', {});
  where.append(probe);
  const read = (name) => ((probe.className = name), getComputedStyle(probe).color);
  const colors = Array.from({ length: 12 }, (_, color) => read(`probe svc-${color}`));
  colors.bad = read('probe bad');
  probe.remove();
  return colors;
}
