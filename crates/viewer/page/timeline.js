// When the objects of a hierarchy converged, on one axis. Pure.

import { duration, toMillis } from './format.js';

/** Changes, the newest first. One that did not end before the next began was replaced by it. */
export function settle(generations) {
  return generations.map((each, at) => {
    if (at === 0 || each.state !== 'converging') return each;
    const length = Number(BigInt(generations[at - 1].start) - BigInt(each.start));
    return { ...each, state: 'replaced', duration: Math.max(length, 0) };
  });
}

/** A hierarchy as rows: `{node, depth}`, parents first, with settled generations. */
export function flatten(tree, most = 1000) {
  const rows = [];
  const stack = [{ node: tree, depth: 0 }];
  while (stack.length && rows.length < most) {
    const { node, depth } = stack.pop();
    const row = { node: { ...node, generations: settle(node.generations) }, depth };
    rows.push(row);
    const children = row.node.children ?? [];
    for (let at = children.length - 1; at >= 0; at -= 1) stack.push({ node: children[at], depth: row.depth + 1 });
  }
  return rows;
}

/** A generation as a stretch `[from, to]` of milliseconds since the epoch. One that goes on lasts until now. */
export function stretch(generation, now) {
  const from = toMillis(generation.start);
  if (generation.duration !== undefined && generation.duration !== null) return [from, from + generation.duration / 1e6];
  return [from, generation.state === 'converging' ? Math.max(now, from) : from];
}

/** How long a generation took, in words, if that is known. A cluster tells the time in whole seconds. */
export function took({ duration: length, source }) {
  if (length === undefined || length === null) return null;
  if (source === 'cluster' && !length) return '< 1 s';
  return source === 'cluster' ? `≈ ${duration(Math.max(Math.round(length / 1e9), 1) * 1e9)}` : duration(length);
}

/**
 * On which side of each bar its label stands: `behind`, `before` or `on` it, or null where there is no room that no other bar or label has.
 * Bars are stretches of a track that goes from 0 to 1, and `widths` are what their labels take of it. Each is compared with all others: the
 * server gives a hundred generations of an object at most.
 */
export function sides(bars, widths) {
  const taken = [];
  return bars.map(([left, right], at) => {
    const width = widths[at];
    const places = [['behind', right, right + width], ['before', left - width, left], right - left >= width && ['on', right - width, right]].filter(Boolean);
    const apart = (from, to) => ([begin, end]) => end <= from || begin >= to;
    const isFree = (from, to) => taken.every(apart(from, to)) && bars.every((bar, other) => other === at || apart(from, to)(bar));
    const free = places.find(([, from, to]) => from >= 0 && to <= 1 && isFree(from, to));
    if (free) taken.push(free.slice(1));
    return free?.[0] ?? null;
  });
}

/**
 * Whether a generation belongs to a change of the object that is looked at: it is of the same trace. What is known from the cluster alone
 * may have a trace of its own, as a pod that a controller made which passes none on; it belongs to the change after which it began.
 */
export function within(changes, traceId) {
  if (!traceId) return () => true;
  const starts = changes.map((each) => BigInt(each.start));
  const changeAt = (start) => changes[starts.findIndex((began) => began <= start)];
  return (each) => each.traceId === traceId || (each.source === 'cluster' && changeAt(BigInt(each.start))?.traceId === traceId);
}

/** The time to look at, of all traces or of one: `{from, to, zero}`, with a margin around it. `zero` is where the first begins. */
export function extent(rows, traceId, now) {
  const belongs = within(rows[0].node.generations, traceId);
  const all = rows.flatMap(({ node }) => node.generations.filter(belongs).map((each) => stretch(each, now)));
  if (!all.length) return null;
  const from = Math.min(...all.map((each) => each[0]));
  const to = Math.max(...all.map((each) => each[1]));
  const edge = Math.max((to - from) * 0.03, 1);
  return { from: from - edge, to: to + edge, zero: from };
}
