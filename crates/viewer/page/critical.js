// The critical path: what had to become shorter for the trace to end sooner.
//
// As Jaeger finds it, from the end backwards: of a span's children the one that ended last is on the path, before it the one that
// ended last before that one began, and between them the span itself. Jaeger drops what begins after its parent has ended. In an
// operator's trace that is nearly everything, so here a span lasts until the last of what it caused, and the time in which nothing of
// it ran is a stretch of waiting on the path.

/** Stretches `{node, from, to, waits}` of the path, in order of time. `waits`: nothing ran until `node` began. */
export function criticalPath(model) {
  const sections = [];
  const root = lastRoot(model.roots);
  const stack = root ? [root] : [];
  while (stack.length) {
    const node = stack.pop();
    let at = node.last;
    let after = null;
    for (const child of candidates(node)) {
      if (child.last > at) continue;
      between(sections, node, child.last, at, after);
      stack.push(child);
      at = child.start;
      after = child;
    }
    between(sections, node, node.start, at, after);
  }
  return sections.sort((a, b) => a.from - b.from);
}

/** What ended last is explained, with what began earliest as its beginning. */
function lastRoot(roots) {
  return roots.reduce((best, root) => (best && best.last >= root.last ? best : root), null);
}

function candidates(node) {
  const after = (child) => !child.measures && child.start >= node.start;
  return node.children.filter(after).sort((a, b) => b.last - a.last || a.start - b.start);
}

/** From one moment to another a span ran itself, and when it had ended, what comes next was waited for. */
function between(sections, node, from, to, next) {
  const ran = Math.min(to, Math.max(from, node.end));
  if (ran > from) sections.push({ node, from, to: ran, waits: false });
  if (to > ran && next) sections.push({ node: next, from: ran, to, waits: true });
}

/** The stretches by node. */
export function byNode(sections) {
  const found = new Map();
  for (const section of sections) {
    if (!found.has(section.node)) found.set(section.node, []);
    found.get(section.node).push(section);
  }
  return found;
}
