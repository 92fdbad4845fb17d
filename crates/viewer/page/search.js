// Looking for traces: the form, the plot, the results, and what arrives meanwhile.

import * as api from './api.js';
import { colorOf } from './colors.js';
import { arrange, button, fill, h, icon } from './dom.js';
import { bytes, count, plural } from './format.js';
import { losses } from './losses.js';
import { SORTS, toServer, upsert } from './query.js';
import { resultRow } from './result.js';
import { navigate, parse, remember, searchUrl } from './router.js';
import { scatter } from './scatter.js';
import { searchForm } from './searchform.js';
import { failed, loading, newcomer } from './states.js';

const LIMIT = 20;

export function search(element, route) {
  document.title = 'Traces · Kubewake';
  const state = { params: route.params, traces: [], matched: 0, waiting: new Map(), paused: false, missed: false, connected: false, store: null };
  const form = searchForm(state.params, (params) => {
    navigate(searchUrl(params));
    place();
  });
  const plot = h('div', { class: 'plot' });
  const head = h('div', { class: 'results-head' });
  const list = h('div', { class: 'results', role: 'list', 'aria-label': 'Traces' });
  const filters = h('details', { class: 'filters' }, h('summary', {}, icon('filter'), 'Filters'), form.element);
  // Beside the results where there is room, behind a line above them where there is not.
  const wide = matchMedia('(min-width: 861px)');
  const place = () => (filters.open = wide.matches);
  wide.addEventListener('change', place);
  place();
  fill(element, h('div', { class: 'search' }, filters, h('section', { class: 'found', 'aria-label': 'Results' }, h('h1', { class: 'offscreen', text: 'Traces' }), plot, head, list)));
  const rows = new Map();
  let [asking, leave, frame, plotted] = [null, null, 0, false];

  /** What comes is followed before the store is asked, so that nothing falls between the two. */
  function load() {
    asking?.abort();
    leave?.();
    plotted = false;
    state.waiting.clear();
    state.missed = false;
    if (!state.traces.length) fill(list, loading('Searching…'));
    const params = toServer(state.params);
    // A search that ends in the past has no news.
    if (params.has('end')) {
      leave = null;
      ask(params);
    } else {
      leave = listen(params, () => ask(params));
    }
  }

  /** Asks the store. A question ends the one before, so that no older answer comes after a newer one. */
  async function ask(params) {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    try {
      const said = await api.search(params, signal);
      if (signal.aborted) return;
      Object.assign(state, { traces: said.traces, matched: said.matched, store: said.store, failure: null });
      // The bar has it from here where there is no stream.
      tellStore(said.store);
      form.problems(said.problems ?? []);
      state.traces.forEach((trace) => trace.services.forEach((service) => colorOf(service.name)));
    } catch (error) {
      if (signal.aborted) return;
      form.problems(error.problems ?? []);
      // What cannot be asked cannot be followed either.
      if (error.status === 400) {
        leave?.();
        leave = null;
      }
      Object.assign(state, { traces: [], matched: 0, failure: error });
    }
    draw();
  }

  /** Calls `ready` when it listens, each time that it does so anew, and when it cannot. */
  function listen(params, ready) {
    const trace = (summary) => {
      state.waiting.set(summary.traceId, summary);
      if (!frame) frame = requestAnimationFrame(() => ((frame = 0), arrive()));
    };
    const store = (said) => {
      const isNews = String(losses(said)) !== String(losses(state.store));
      state.store = said;
      if (isNews) drawHead();
      tellStore(said);
    };
    let asked = false;
    return api.live(params, { trace, store }, (connected) => {
      state.connected = connected;
      let answered = null;
      // Who has paused looks at something: what came while nobody listened is fetched when they go on.
      if (connected && asked && state.paused) state.missed = true;
      else if (connected || !asked) answered = ready();
      asked = true;
      drawHead();
      return answered;
    });
  }

  function arrive() {
    if (state.paused) return drawHead();
    const { traces, fresh } = upsert(state.traces, [...state.waiting.values()], limit());
    const seen = new Set(state.waiting.keys());
    state.waiting.clear();
    Object.assign(state, { traces, matched: state.matched + fresh, failure: null });
    if (fresh) form.refresh();
    draw(seen);
  }

  const limit = () => Number(state.params.get('limit')) || LIMIT;

  function pause() {
    state.paused = !state.paused;
    if (state.paused) drawHead();
    else if (state.missed) load();
    else arrive();
  }

  function draw(fresh = new Set()) {
    drawHead();
    if (state.failure) {
      fill(plot);
      fill(list, failed(state.failure, load));
    } else if (!state.traces.length) {
      fill(plot);
      fill(list, state.store?.traces ? nothing() : newcomer());
    } else {
      // Who points at the plot is not to lose what is under the pointer.
      if (!plotted || !plot.matches(':hover')) fill(plot, scatter(state.traces, chooseTime));
      plotted = true;
      list.style.setProperty('--longest', String(usual()));
      arrange(list, [...sorted().map((trace) => rowOf(trace, fresh.has(trace.traceId))), more()].filter(Boolean));
    }
  }

  /** The row of a trace; made anew only when the trace is another than it was. */
  function rowOf(trace, fresh) {
    const text = JSON.stringify(trace);
    const known = rows.get(trace.traceId);
    if (known?.text === text) return known.element;
    const element = resultRow(trace, fresh);
    if (rows.size > 3000) rows.clear();
    rows.set(trace.traceId, { text, element });
    return element;
  }

  /** A long duration as most know it: one that is far longer than all others would make them all look alike. */
  function usual() {
    const all = state.traces.map((trace) => trace.duration).sort((a, b) => a - b);
    return Math.max(all[Math.floor((all.length - 1) * 0.95)], 1);
  }

  const sorted = () => [...state.traces].sort((SORTS[state.params.get('sort')] ?? SORTS.newest)[1]);

  function more() {
    const left = state.matched - state.traces.length;
    if (left <= 0 || limit() >= 1500) return null;
    const next = Math.min(limit() * 5, 1500);
    return h('div', { class: 'more' }, h('span', { text: `${count(left)} more match. ` }), button(null, `Show ${count(next)}`, () => change('limit', next)));
  }

  function change(name, value) {
    state.params.set(name, value);
    remember(`/search?${state.params}`);
    if (name === 'sort') draw();
    else load();
  }

  function chooseTime(start, end) {
    const params = new URLSearchParams(state.params);
    params.delete('lookback');
    params.set('start', start);
    params.set('end', end);
    navigate(`/search?${params}`);
  }

  function drawHead() {
    const options = Object.entries(SORTS).map(([name, [title]]) => h('option', { value: name, text: title, selected: name === state.params.get('sort') }));
    const news = state.paused && state.waiting.size ? ` · ${count(state.waiting.size)} new` : '';
    const live = leave && h('span', { class: `live ${state.connected && !state.paused ? 'on' : ''}`, text: state.paused ? `Paused${news}` : state.connected ? 'Live' : 'Connecting…' });
    fill(head,
      h('strong', { class: 'total', text: plural(state.matched, 'trace') }),
      state.matched > state.traces.length && h('span', { class: 'dim', text: `${count(state.traces.length)} shown` }),
      dropped(state.store),
      h('span', { class: 'spread' }), live,
      leave && button(state.paused ? 'play' : 'pause', state.paused ? 'Follow new traces' : 'Pause', pause, { quiet: true, class: 'pause' }),
      h('select', { 'aria-label': 'Order', on: { change: (event) => change('sort', event.target.value) } }, options));
  }

  load();
  return {
    update(route) {
      state.params = route.params;
      form.show(route.params);
      load();
      return true;
    },
    close() {
      asking?.abort();
      leave?.();
      cancelAnimationFrame(frame);
      wide.removeEventListener('change', place);
    },
    keys: [
      { keys: ['j'], does: 'Next trace', act: () => step(list, 1) },
      { keys: ['k'], does: 'Previous trace', act: () => step(list, -1) },
      { keys: ['p'], does: 'Pause or follow new traces', act: () => leave && pause() },
      { keys: ['r'], does: 'Search again', act: load },
    ],
  };
}

const tellStore = (store) => dispatchEvent(new CustomEvent('kubewake:store', { detail: store }));

function dropped(store) {
  const title = `The store holds up to ${bytes(store?.limit ?? 0)}, and up to a quarter of that of one trace.`;
  return losses(store).map((text) => h('span', { class: 'dim', title, text }));
}

function step(list, by) {
  const rows = [...list.querySelectorAll('a.result')];
  const at = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))]?.focus();
}

function nothing() {
  const { params } = parse(location.pathname, location.search);
  const has = [...params.keys()].some((name) => !['limit', 'sort'].includes(name));
  return h('div', { class: 'empty' }, h('h2', { text: 'No trace matches' }), h('p', { text: 'New traces that match appear here as they arrive.' }), has && h('a', { class: 'button', href: '/search', text: 'Clear the search' }));
}
