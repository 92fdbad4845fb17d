// A trace as the page thinks of it: a tree of nodes with times relative to the trace's start. Pure functions over the server's JSON.
//
// *Guarantees.* Every span is in the tree exactly once, whatever its parent says: one whose parent is missing is a root, and a
// circle is cut at its earliest span. Nothing here recurses, so that a chain of ten thousand spans is as good as any other.
// *Assumes* spans in the order of their start.

import { gapsOf, merge } from './intervals.js';
import { objectOf } from './objectref.js';

/** Spans of the trail library that say how long something took as a whole. They measure; what they measure is in other spans. */
const MEASURES = /^converge /;

/** Makes the tree, and everything that is drawn of it. */
export function build(trace) {
  const begin = BigInt(trace.start);
  const nodes = trace.spans.map((span, index) => node(trace, span, index, begin));
  const byId = new Map();
  for (const each of nodes) if (!byId.has(each.id)) byId.set(each.id, each);
  const roots = adopt(nodes, byId);
  const order = preorder(roots);
  measure(order);
  wait(order);
  const end = nodes.reduce((most, each) => Math.max(most, each.end), 0);
  return {
    id: trace.traceId,
    begin,
    length: Math.max(end, Number(trace.duration) || 0, 1),
    nodes,
    order,
    roots,
    byId,
    services: services(nodes),
    depth: order.reduce((most, each) => Math.max(most, each.depth + 1), 0),
    errors: nodes.filter((each) => each.error).length,
    wrappers: nodes.filter((each) => each.wraps).length,
    linkedFrom: group(trace.linkedFrom ?? []),
    warnings: trace.warnings ?? [],
  };
}

function node(trace, span, index, begin) {
  const start = Number(BigInt(span.start) - begin);
  const length = Math.max(Number(span.duration) || 0, 0);
  const resource = trace.services[span.resource];
  return {
    span,
    index,
    id: span.id,
    name: span.name,
    service: resource?.name ?? 'unknown service',
    resource: resource?.attributes ?? [],
    start,
    end: start + length,
    length,
    error: span.status === 'error',
    parent: null,
    children: [],
    depth: 0,
  };
}

/** Gives each node its parent, and the roots. */
function adopt(nodes, byId) {
  const parentOf = (each) => (each.span.parent ? byId.get(each.span.parent) : undefined);
  const roots = [];
  for (const each of nodes) {
    const parent = parentOf(each);
    each.orphan = Boolean(each.span.parent) && !parent;
    if (parent && parent !== each) each.parent = parent;
    else roots.push(each);
  }
  cut(nodes, roots);
  for (const each of nodes) if (each.parent) each.parent.children.push(each);
  const byStart = (a, b) => a.start - b.start || b.end - a.end || a.index - b.index;
  for (const each of nodes) each.children.sort(byStart);
  return roots.sort(byStart);
}

/** Cuts circles: who comes back to itself on the way up is made a root. */
function cut(nodes, roots) {
  const done = new Set(roots);
  for (const each of nodes) {
    const way = new Set();
    let at = each;
    while (at && !done.has(at) && !way.has(at)) {
      way.add(at);
      at = at.parent;
    }
    if (at && way.has(at)) {
      const circle = [at];
      for (let next = at.parent; next !== at; next = next.parent) circle.push(next);
      const first = circle.reduce((a, b) => (b.index < a.index ? b : a));
      first.parent = null;
      first.circle = true;
      roots.push(first);
    }
    for (const passed of way) done.add(passed);
  }
}

/** Parents before their children, in the order in which they are shown. */
function preorder(roots) {
  const order = [];
  const stack = [...roots].reverse();
  while (stack.length) {
    const at = stack.pop();
    at.depth = at.parent ? at.parent.depth + 1 : 0;
    at.row = order.length;
    order.push(at);
    for (let child = at.children.length - 1; child >= 0; child -= 1) stack.push(at.children[child]);
  }
  return order;
}

/** From the leaves up: how many are below, when the first of them starts and the last ends, and a span's own time. */
function measure(order) {
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const each = order[at];
    each.wraps = wrapped(each);
    each.measures = each.children.length === 0 && each.parent !== null && MEASURES.test(each.name);
    each.below = 0;
    each.errorsBelow = 0;
    [each.first, each.last] = [each.start, each.end];
    for (const child of each.children) {
      each.below += child.below + 1;
      each.errorsBelow += child.errorsBelow + (child.error ? 1 : 0);
      if (child.measures) continue;
      each.first = Math.min(each.first, child.first);
      each.last = Math.max(each.last, child.last);
    }
  }
}

/**
 * Where nothing is recorded. `own` of a node: stretches of it in which no child runs. `wait`: the stretch before it in which nothing
 * below its parent ran, so from cause to effect. `gaps` of a node that measures: where nothing of what it measures ran.
 */
function wait(order) {
  const busy = new Map();
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const each = order[at];
    if (!each.children.length) {
      each.own = [];
      each.self = each.length;
      busy.set(each, [[each.start, each.end]]);
      continue;
    }
    const below = merge(each.children.filter((child) => !child.measures).flatMap((child) => busy.get(child)));
    each.own = gapsOf(below, each.start, each.end);
    each.self = each.own.reduce((sum, [from, to]) => sum + to - from, 0);
    const all = merge([...below, [each.start, each.end]]);
    busy.set(each, all);
    explain(each, all);
    for (const child of each.children) busy.delete(child);
  }
}

function explain(parent, all) {
  const starts = new Map(all.map((interval, at) => [interval[0], at]));
  for (const child of parent.children) {
    if (child.measures) {
      child.gaps = gapsOf(all, child.start, child.end);
      continue;
    }
    const at = starts.get(child.first);
    if (at > 0 && all[at - 1][1] < child.start) child.wait = [all[at - 1][1], child.start];
  }
}

function services(nodes) {
  const found = new Map();
  for (const each of nodes) {
    const service = found.get(each.service) ?? { name: each.service, spans: 0, errors: 0 };
    service.spans += 1;
    service.errors += each.error ? 1 : 0;
    found.set(each.service, service);
  }
  return [...found.values()];
}

function group(links) {
  const found = new Map();
  for (const link of links) found.set(link.toSpanId, [...(found.get(link.toSpanId) ?? []), link]);
  return found;
}

/**
 * The nodes that are shown when these are collapsed, in order, each with the `level` on which it is shown and the one `above` it. With
 * `fold`, wrappers are left out, but for those in `keep`.
 */
export function visibleRows(model, collapsed, fold = false, keep = new Set()) {
  const rows = [];
  for (let at = 0; at < model.order.length; at += 1) {
    const each = model.order[at];
    const folded = fold && each.wraps && !keep.has(each);
    const { parent } = each;
    each.above = parent?.folded ? parent.above : parent;
    each.level = each.above ? each.above.level + 1 : 0;
    each.folded = folded;
    if (folded) continue;
    rows.push(each);
    if (collapsed.has(each)) at += each.below;
  }
  return rows;
}

/** What may be hidden of a wrapper's time: a hundredth, or this many nanoseconds where that is no more than a tenth. */
const HIDDEN = 1e6;

const inner = (span) => span.kind === 'internal' || span.kind === 'unspecified';

/**
 * The node that says all that a wrapper says, or null if it is none: the first below it that is no wrapper itself. So what is left out of a
 * chain is judged as a whole. A wrapper is inner work of the same process with one child, and has nothing of its own to tell, neither time
 * nor attributes. Such are the filters of a Kubernetes API server around each request. A root names its trace, and is one only around a request.
 */
function wrapped(node) {
  const { span } = node;
  const [child] = node.children;
  if (node.children.length !== 1 || child.span.resource !== span.resource || !inner(span) || child.measures) return null;
  const core = child.wraps ?? child;
  if (core.start < node.start || core.end > node.end) return null;
  if (node.length - core.length > Math.max(node.length / 100, Math.min(HIDDEN, node.length / 10))) return null;
  if (!node.parent && core.span.kind !== 'server') return null;
  return tells(node, core) ? null : core;
}

/** Whether a node says what another does not. */
function tells(node, other) {
  const { span } = node;
  if (node.error || node.orphan || node.circle || span.skew || span.warnings?.length || span.events?.length || span.links?.length) return true;
  const own = span.attributes ?? [];
  return objectOf(own) !== null || own.some((attribute) => !has(other.span.attributes ?? [], attribute));
}

const has = (attributes, { key, value }) => attributes.some((each) => each.key === key && JSON.stringify(each.value) === JSON.stringify(value));

/** The span that says what a trace is about: the root, or the request that it only wraps. */
export function subject(model) {
  const [root] = model.roots;
  const [child] = root.children;
  return inner(root.span) && child?.service === root.service && child.span.kind === 'server' ? child : root;
}

/** What one more level is: the deepest level that is open, and the nodes that it would close; and the reverse. */
export function oneLevel(model, collapsed, open, fold = false) {
  const next = new Set(collapsed);
  const parents = visibleRows(model, collapsed, fold).filter((each) => each.children.length);
  if (open) {
    const depth = Math.min(...parents.filter((each) => collapsed.has(each)).map((each) => each.depth));
    parents.forEach((each) => each.depth === depth && next.delete(each));
  } else {
    const depth = Math.max(...parents.filter((each) => !collapsed.has(each)).map((each) => each.depth));
    parents.forEach((each) => each.depth === depth && next.add(each));
  }
  return next;
}
