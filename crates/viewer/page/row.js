// A row of the waterfall: who did what, and when.

import { colorClass } from './colors.js';
import { h, icon } from './dom.js';
import { duration, line, plural, shortName } from './format.js';
import { place } from './range.js';

/** Deeper levels are not moved further in. */
const DEEPEST = 24;

/** Makes the row of a node. `view`: `{range, collapsed, selected, matches, critical, gaps, linkedFrom, index, top, width}`. */
export function row(node, view) {
  const open = node.children.length ? !view.collapsed.has(node) : null;
  const states = [
    view.selected === node && 'selected',
    view.matches && (view.matches.has(node) ? 'match' : 'no-match'),
    node.error && 'failed',
    node.measures && 'measures',
    view.index % 2 ? 'odd' : '',
  ];
  return h('div', {
    class: `row ${colorClass(node.service)} ${states.filter(Boolean).join(' ')}`,
    role: 'row', id: `row-${node.index}`, css: { top: `${view.top}px` }, data: { index: node.index, span: node.id },
    'aria-level': node.level + 1, 'aria-rowindex': view.index + 2, 'aria-expanded': open === null ? null : String(open), 'aria-selected': String(view.selected === node),
  }, name(node, open, view), time(node, open, view));
}

function name(node, open, view) {
  const other = node.above?.service !== node.service;
  const links = (node.span.links?.length ?? 0) + (view.linkedFrom.get(node.id)?.length ?? 0);
  const warned = node.orphan || node.circle || node.span.skew || node.span.warnings?.length;
  return h('div', { class: 'name', role: 'gridcell', css: { '--depth': String(Math.min(node.level, DEEPEST)) } },
    h('span', { class: 'indent' }),
    open === null ? h('span', { class: 'leaf' }) : h('span', { class: 'toggle', 'aria-hidden': 'true', title: open ? 'Collapse' : `Expand ${plural(node.below, 'span')}` }, icon('chevron'), !open && h('span', { class: 'below', text: String(node.below) })),
    h('span', { class: 'swatch' }),
    other && h('strong', { class: 'service', text: line(node.service, 60) }),
    h('span', { class: 'operation', title: line(node.name, 500), text: shortName(line(node.name)) }),
    (node.error || (!open && open !== null && node.errorsBelow > 0)) && h('span', { class: node.error ? 'flag bad' : 'flag bad faint', title: node.error ? 'Error' : `${plural(node.errorsBelow, 'error')} below` }, icon('error')),
    links > 0 && h('span', { class: 'flag', title: plural(links, 'link') }, icon('link')),
    warned && h('span', { class: 'flag warn', title: 'This span has warnings; see its details', text: '!' }));
}

function time(node, open, view) {
  const at = (value) => place(view.range, value);
  const stretch = (kind, from, to, props = {}, ...children) => {
    const [left, right] = [Math.max(at(from), 0), Math.min(at(to), 100)];
    if (right < 0 || left > 100 || right < left) return null;
    return h('div', { class: kind, css: { left: `${left}%`, width: `${right - left}%` }, ...props }, children);
  };
  /** Stretches of waiting say how long they are where there is room for it. */
  const gap = (kind, [from, to], words) => {
    const [left, right] = [Math.max(at(from), 0), Math.min(at(to), 100)];
    const pixels = ((right - left) / 100) * view.width;
    if (pixels < 3) return null;
    // The bar's own label may stand at its end.
    const free = ((Math.min(at(node.end), 100) - (left + right) / 2) / 100) * view.width > 76 || kind !== 'gap measured';
    return stretch(kind, from, to, { title: `${words} ${duration(to - from)}` }, pixels > 56 && free && h('span', { text: duration(to - from) }));
  };
  const gaps = view.gaps ? [
    node.wait && gap('gap wait', node.wait, 'Nothing ran for'),
    (node.gaps ?? []).map((each) => gap('gap measured', each, 'Nothing ran for')),
    node.own.map((each) => gap('gap own', each, 'No child span ran for')),
  ] : [];
  const hull = open === false && node.last > node.end ? stretch('hull', node.end, node.last) : null;
  const path = (view.critical?.get(node) ?? []).map((section) => stretch(section.waits ? 'path waits' : 'path', section.from, section.to));
  const events = (node.span.events ?? []).slice(0, 50).map((event) => mark(event, at, view));
  return h('div', { class: 'time', role: 'gridcell', 'aria-label': `${duration(node.length)}, from ${duration(node.start)}${node.error ? ', error' : ''}` },
    hull, stretch('bar', node.start, node.end), gaps, path, events, label(node, at, hull ? node.last : node.end, view.gaps && node.wait ? node.wait[0] : node.start));
}

function mark(event, at, view) {
  const left = at(Number(BigInt(event.time) - view.begin));
  return left >= 0 && left <= 100 ? h('div', { class: 'event', title: line(event.name), css: { left: `${left}%` } }) : null;
}

/** How long it took, where it hides nothing: behind what is drawn, else before it, else on it. */
function label(node, at, end, begin) {
  const [left, right] = [at(begin), at(end)];
  const text = duration(node.length);
  if (right < 0) return h('div', { class: 'label out', css: { left: '4px' }, text: `‹ ${text}` });
  if (at(node.start) > 100) return h('div', { class: 'label out', css: { right: '4px' }, text: `${text} ›` });
  if (right < 86) return h('div', { class: 'label', css: { left: `${Math.max(right, 0)}%` }, text });
  if (left > 14) return h('div', { class: 'label', css: { right: `${100 - Math.min(left, 100)}%` }, text });
  return h('div', { class: 'label on', css: { right: `${Math.max(100 - right, 0)}%` }, text });
}
