// One trace: overview, waterfall, details of a span, and the search within.

import * as api from './api.js';
import { byNode, criticalPath } from './critical.js';
import { details } from './details.js';
import { fill, h } from './dom.js';
import { find } from './find.js';
import { line, shortName } from './format.js';
import { minimap } from './minimap.js';
import { build, oneLevel, subject, visibleRows } from './model.js';
import { clamp, pan, zoom } from './range.js';
import { remember } from './router.js';
import { failed, loading } from './states.js';
import { traceHead } from './tracehead.js';
import { fromParams, toUrl } from './tracestate.js';
import { waterfall } from './waterfall.js';

export function trace(element, route) {
  const id = route.parts.id.toLowerCase().padStart(32, '0');
  document.title = `Trace ${id.slice(0, 8)} · Kubewake`;
  const asking = new AbortController();
  let [shown, loaded] = [null, 0];
  fill(element, loading('Loading the trace…'));

  async function load(params) {
    let said;
    try {
      said = await api.trace(id, asking.signal);
      if (!said.spans.length) throw new api.Failure(404, 'The trace has no spans.');
    } catch (error) {
      if (error.name !== 'AbortError' && !shown) fill(element, failed(explain(error, id), () => load(params)));
      return;
    }
    if (said.spans.length === loaded) return;
    loaded = said.spans.length;
    const place = shown?.place();
    shown?.close();
    shown = show(element, said, params);
    if (place) shown.resume(place);
  }

  // It may go on: what arrives later is shown in its place, and what is open stays open. So it is followed first, then asked for.
  const again = () => load(shown ? new URLSearchParams(location.search) : route.params);
  let asked = false;
  const leave = api.live(new URLSearchParams({ q: id }), {
    trace: (summary) => summary.traceId === id && summary.spans !== loaded && again(),
    store: (store) => dispatchEvent(new CustomEvent('kubewake:store', { detail: store })),
  }, (connected) => {
    const isFirst = !asked;
    asked = true;
    return connected || isFirst ? again() : null;
  });
  return {
    update: (next) => next.parts.id.toLowerCase().padStart(32, '0') === id && Boolean(shown?.follow(next.params)),
    close() {
      asking.abort();
      leave();
      shown?.close();
    },
    keys: keys(() => shown),
  };
}

function explain(error, id) {
  if (error.status !== 404) return error;
  return Object.assign(new Error(`The trace ${id} is not in the store. It may have been dropped to make room, or has not arrived yet.`), { status: 404 });
}

/** Shows a trace that was loaded. */
function show(element, said, params) {
  const model = build(said);
  const critical = criticalPath(model);
  const paths = byNode(critical);
  const state = fromParams(model, params);
  document.title = `${line(shortName(subject(model).name), 60)} · Kubewake`;

  const grid = waterfall({ select, toggle, range: setRange });
  const map = minimap(setRange);
  const panel = details({ model, raw: said, select: jump, close: () => select(null), search: (text) => setText(text) });
  const head = traceHead({ model, raw: said, critical, state, setText, next, option, all, jump });
  const body = h('div', { class: 'trace-body' }, grid.element, panel.element);
  fill(element, h('article', { class: 'trace', 'aria-label': 'Trace' }, head.element, map.element, body));
  let matches = [];
  setText(state.text, false);
  if (state.selected) open(state.selected);
  draw();
  if (state.selected) grid.reveal(state.selected);
  else if (matches.length) grid.reveal(matches[0]);

  function draw() {
    remember(toUrl(model, state));
    const view = {
      ...state,
      begin: model.begin,
      matches: state.text ? new Set(matches) : null,
      critical: state.path ? paths : null,
      linkedFrom: model.linkedFrom,
    };
    grid.draw({ model, range: state.range, rows: visibleRows(model, state.collapsed, state.fold, new Set([...matches, state.selected])), view });
    map.draw({ model, range: state.range });
    head.draw(state, matches);
    panel.draw(state.selected);
    body.classList.toggle('with-details', Boolean(state.selected));
  }

  function select(node) {
    state.selected = state.selected === node ? state.selected : node;
    draw();
    if (node) grid.reveal(node);
  }

  /** Selects a node that may be hidden below a collapsed one, or beyond the stretch that is shown. */
  function jump(node) {
    open(node);
    const [from, to] = state.range;
    if (node.end < from || node.start > to) state.range = [0, model.length];
    select(node);
    grid.focus();
  }

  function open(node) {
    for (let at = node.parent; at; at = at.parent) state.collapsed.delete(at);
  }

  function toggle(node) {
    if (!state.collapsed.delete(node)) state.collapsed.add(node);
    draw();
  }

  function all(isOpen) {
    state.collapsed = new Set(isOpen ? [] : model.order.filter((node) => node.children.length));
    draw();
  }

  function level(isOpen) {
    state.collapsed = oneLevel(model, state.collapsed, isOpen, state.fold);
    draw();
  }

  function setRange(range) {
    state.range = clamp(range, model.length);
    draw();
  }

  function setText(text, redraw = true) {
    state.text = text;
    matches = find(model, text);
    if (redraw) draw();
  }

  /** The next or the one before of what was found; without a search, of what failed. */
  function next(by) {
    const among = matches.length ? matches : state.text ? [] : model.order.filter((node) => node.error);
    if (!among.length) return;
    const row = state.selected ? state.selected.row : by > 0 ? -1 : Infinity;
    const found = by > 0 ? among.find((node) => node.row > row) : among.findLast((node) => node.row < row);
    jump(found ?? (by > 0 ? among[0] : among[among.length - 1]));
  }

  function option(name, value) {
    state[name] = value;
    draw();
  }

  return {
    state, grid, head, next, level, all, select,
    move: (share) => setRange(pan(state.range, share, model.length)),
    zoom: (factor) => setRange(zoom(state.range, factor, 0.5, model.length)),
    follow(params) {
      Object.assign(state, fromParams(model, params));
      setText(state.text, false);
      if (state.selected) open(state.selected);
      draw();
      if (state.selected) grid.reveal(state.selected);
      return true;
    },
    /** Where the reader is, for a view of the same trace that takes this one's place. */
    place: () => ({ top: grid.top(), typing: head.typing(), focused: document.activeElement === grid.element }),
    resume({ top, typing, focused }) {
      grid.scrollTo(top);
      if (typing) head.resume(typing);
      else if (focused) grid.focus();
    },
    leaveOne() {
      if (state.selected) select(null);
      else if (state.text) head.clear();
    },
    close() {
      grid.close();
      map.close();
    },
  };
}

/** Jaeger's keys, and a few more. */
function keys(shown) {
  const act = (does) => () => shown() && does(shown());
  return [
    { keys: ['/', 'ctrl+b'], does: 'Find in the trace', act: act((view) => view.head.focus()) },
    { keys: ['n', 'shift+n'], does: 'Next, previous match (or error)', act: (event) => shown()?.next(event.shiftKey ? -1 : 1) },
    { keys: ['j', 'f'], does: 'Next span', act: act((view) => view.grid.move(1)) },
    { keys: ['k', 'b'], does: 'Previous span', act: act((view) => view.grid.move(-1)) },
    { keys: ['s', 'w'], does: 'Scroll down, up', act: (event) => shown()?.grid.page(event.key === 's' ? 1 : -1) },
    { keys: ['a', 'ArrowLeft'], does: 'Move to the left', act: act((view) => view.move(-0.1)) },
    { keys: ['d', 'ArrowRight'], does: 'Move to the right', act: act((view) => view.move(0.1)) },
    { keys: ['shift+a', 'shift+ArrowLeft'], does: 'Move far to the left', act: act((view) => view.move(-0.5)) },
    { keys: ['shift+d', 'shift+ArrowRight'], does: 'Move far to the right', act: act((view) => view.move(0.5)) },
    { keys: ['ArrowUp', 'shift+ArrowUp'], does: 'Zoom in (shift: more)', act: (event) => shown()?.zoom(event.shiftKey ? 0.5 : 0.8) },
    { keys: ['ArrowDown', 'shift+ArrowDown'], does: 'Zoom out (shift: more)', act: (event) => shown()?.zoom(event.shiftKey ? 2 : 1.25) },
    { keys: ['0'], does: 'Show everything', act: act((view) => view.zoom(Infinity)) },
    { keys: ['['], does: 'Expand all', act: act((view) => view.all(true)) },
    { keys: [']'], does: 'Collapse all', act: act((view) => view.all(false)) },
    { keys: ['o'], does: 'Expand one level', act: act((view) => view.level(true)) },
    { keys: ['p'], does: 'Collapse one level', act: act((view) => view.level(false)) },
    { keys: ['Escape'], does: 'Close the details, clear the search', act: act((view) => view.leaveOne()) },
  ];
}
