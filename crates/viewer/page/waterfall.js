// The waterfall. Only rows that can be seen are in the page, however many there are.

import { fill, h } from './dom.js';
import { dragStretch } from './drag.js';
import { duration, ticks } from './format.js';
import { pan, place, zoom } from './range.js';
import { row } from './row.js';
import { stored } from './theme.js';

const narrow = matchMedia('(max-width: 720px)');
/** As the style sheet has them. */
const heightOf = () => (narrow.matches ? 46 : 26);
/** Rows beyond the edges, so that a fast scroll does not outrun us. */
const BEYOND = 12;
const SPLIT = 'kubewake.split';

/**
 * Makes the grid. `on`: `select(node)`, `toggle(node)`, `range(range)`. Gives `draw(state)`, which is called for every change;
 * `reveal(node)`; `move(by)`, `page(by)` and `focus()`.
 */
export function waterfall(on) {
  const space = h('div', { class: 'space', role: 'rowgroup' });
  const scroll = h('div', { class: 'scroll', role: 'presentation' }, space);
  const axis = h('div', { class: 'time axis', role: 'columnheader', 'aria-label': 'Time' });
  const handle = h('div', { class: 'split', role: 'separator', 'aria-orientation': 'vertical', 'aria-label': 'Width of the name column' });
  const head = h('div', { class: 'row head', role: 'row', 'aria-rowindex': '1' }, h('div', { class: 'name', role: 'columnheader', text: 'Span' }), axis, handle);
  const element = h('div', { class: 'waterfall', role: 'treegrid', 'aria-label': 'Spans', tabindex: '0' }, head, scroll);
  const shown = new Map();
  let [state, rows, places, frame] = [null, [], new Map(), 0];

  function draw(next) {
    state = next;
    rows = next.rows;
    places = new Map(rows.map((node, at) => [node, at]));
    element.setAttribute('aria-rowcount', String(rows.length + 1));
    space.style.setProperty('height', `${rows.length * heightOf()}px`);
    for (const made of shown.values()) made.remove();
    shown.clear();
    drawAxis();
    drawRows();
  }

  function drawAxis() {
    const most = Math.max(Math.floor(axis.clientWidth / 110), 2);
    const marks = ticks(state.range[0], state.range[1], most);
    const shownTicks = marks.filter((at) => place(state.range, at) < 96);
    fill(axis, shownTicks.map((at) => h('span', { class: 'tick', css: { left: `${place(state.range, at)}%` }, text: duration(at) })));
    const lines = shownTicks.map((at) => `linear-gradient(var(--line), var(--line)) ${place(state.range, at)}% 0 / 1px 100% no-repeat`);
    element.style.setProperty('--ticks', lines.length ? lines.join(', ') : 'none');
  }

  function drawRows() {
    frame = 0;
    if (!state) return;
    const height = heightOf();
    const first = Math.max(Math.floor(scroll.scrollTop / height) - BEYOND, 0);
    const last = Math.min(Math.ceil((scroll.scrollTop + scroll.clientHeight) / height) + BEYOND, rows.length);
    for (const [index, made] of shown) {
      if (index >= first && index < last) continue;
      made.remove();
      shown.delete(index);
    }
    const made = document.createDocumentFragment();
    const width = axis.clientWidth;
    for (let index = first; index < last; index += 1) {
      if (shown.has(index)) continue;
      const each = row(rows[index], { ...state.view, index, top: index * height, width });
      shown.set(index, each);
      made.append(each);
    }
    space.append(made);
    const active = state.view.selected;
    if (active && shown.has(places.get(active))) element.setAttribute('aria-activedescendant', `row-${active.index}`);
    else element.removeAttribute('aria-activedescendant');
  }

  const later = () => (frame ||= requestAnimationFrame(drawRows));
  scroll.addEventListener('scroll', later, { passive: true });
  const resized = new ResizeObserver(() => state && draw(state));
  resized.observe(scroll);

  space.addEventListener('click', (event) => {
    const target = event.target.closest('.row');
    if (!target || !state) return;
    const node = state.model.nodes[Number(target.dataset.index)];
    if (event.target.closest('.toggle')) on.toggle(node);
    else on.select(node);
  });

  element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.target !== element) return;
    if (gridKey(event.key)) event.preventDefault();
  });

  /** Keys as a tree grid has them. */
  function gridKey(key) {
    const node = state.view.selected;
    const isOpen = node && node.children.length > 0 && !state.view.collapsed.has(node);
    if (key === 'ArrowDown') return move(1);
    if (key === 'ArrowUp') return move(-1);
    if (key === 'Home') return choose(rows[0]);
    if (key === 'End') return choose(rows[rows.length - 1]);
    if (key === 'PageDown' || key === 'PageUp') return move((key === 'PageDown' ? 1 : -1) * perPage());
    if (!node) return false;
    if (key === 'ArrowRight') return isOpen ? move(1) : node.children.length ? (on.toggle(node), true) : true;
    if (key === 'ArrowLeft') return isOpen ? (on.toggle(node), true) : node.above ? choose(node.above) : true;
    if (key === 'Enter' || key === ' ') return node.children.length ? (on.toggle(node), true) : true;
    return false;
  }

  const perPage = () => Math.max(Math.floor(scroll.clientHeight / heightOf()) - 2, 1);

  function choose(node) {
    if (node) on.select(node);
    return true;
  }

  function move(by) {
    const at = places.get(state.view.selected);
    const next = at === undefined ? (by > 0 ? 0 : rows.length - 1) : at + by;
    return choose(rows[Math.min(Math.max(next, 0), rows.length - 1)]);
  }

  /** Scrolls so that a node can be seen. */
  function reveal(node) {
    const at = places.get(node);
    if (at === undefined) return;
    const [top, height] = [at * heightOf(), heightOf()];
    if (top < scroll.scrollTop + height) scroll.scrollTop = top - height * 2;
    else if (top + height * 2 > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top - scroll.clientHeight + height * 3;
    drawRows();
  }

  // Ctrl and the wheel zoom around the pointer, the wheel to the side moves.
  element.addEventListener('wheel', (event) => {
    const box = axis.getBoundingClientRect();
    const length = state.model.length;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const around = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
      on.range(zoom(state.range, event.deltaY > 0 ? 1.25 : 0.8, around, length));
    } else if (event.deltaX || event.shiftKey) {
      const by = event.deltaX || event.deltaY;
      event.preventDefault();
      on.range(pan(state.range, by / box.width, length));
    }
  }, { passive: false });

  dragStretch(axis, (from, to) => {
    const [begin, end] = state.range;
    on.range([begin + (end - begin) * from, begin + (end - begin) * to]);
  });
  dragSplit(handle, element, () => state && draw(state));

  return {
    element, draw, reveal, move,
    page: (by) => scroll.scrollBy({ top: by * perPage() * heightOf() }),
    focus: () => element.focus({ preventScroll: true }),
    top: () => scroll.scrollTop,
    scrollTo: (top) => ((scroll.scrollTop = top), drawRows()),
    close: () => (resized.disconnect(), cancelAnimationFrame(frame)),
  };
}

function dragSplit(handle, element, done) {
  const set = (share) => element.style.setProperty('--split', `${share}%`);
  const kept = Number(stored(SPLIT));
  if (kept >= 15 && kept <= 70) set(kept);
  handle.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    handle.setPointerCapture(event.pointerId);
    const box = element.getBoundingClientRect();
    const move = (now) => {
      const share = Math.min(Math.max(((now.clientX - box.left) / box.width) * 100, 15), 70);
      set(share);
      stored(SPLIT, share.toFixed(1));
      done();
    };
    handle.addEventListener('pointermove', move);
    handle.addEventListener('pointerup', () => handle.removeEventListener('pointermove', move), { once: true });
  });
}
