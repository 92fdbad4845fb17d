// What is open in a trace, and how its address says it.

import { clamp, isWhole } from './range.js';
import { traceUrl } from './router.js';

/** An address gets too long for what it is good for beyond this many collapsed spans. */
const MOST = 60;

/** The state that an address asks for. What the trace does not have is left out. */
export function fromParams(model, params) {
  const ids = (params.get('collapsed') ?? '').split(',').filter(Boolean);
  return {
    selected: model.byId.get(params.get('span')) ?? null,
    text: params.get('q') ?? '',
    range: range(model, params.get('from'), params.get('to')),
    collapsed: new Set(ids.map((id) => model.byId.get(id)).filter((node) => node?.children.length)),
    path: params.get('path') !== 'false',
    gaps: params.get('gaps') !== 'false',
    fold: params.get('fold') !== 'false',
  };
}

/** What is shown first: everything, but not the void before a span whose clock is years ahead. */
function usual(model) {
  const ahead = new Set(model.warnings.filter((warning) => warning.kind === 'future').map((warning) => warning.spanId));
  const end = model.nodes.reduce((most, node) => (ahead.has(node.id) ? most : Math.max(most, node.end)), 0);
  return ahead.size && end > 0 ? clamp([0, end], model.length) : [0, model.length];
}

function range(model, from, to) {
  const at = (text, otherwise) => (/^\d{1,20}$/.test(text ?? '') ? Number(BigInt(text) - model.begin) : otherwise);
  const [begin, end] = [at(from, 0), at(to, model.length)];
  return (from || to) && begin < end ? clamp([begin, end], model.length) : usual(model);
}

/** The address of the state. */
export function toUrl(model, state) {
  const whole = isWhole(state.range, model.length);
  const time = (at) => String(model.begin + BigInt(Math.round(at)));
  const collapsed = [...state.collapsed].slice(0, MOST).map((node) => node.id);
  return traceUrl(model.id, {
    span: state.selected?.id,
    q: state.text,
    from: whole ? null : time(state.range[0]),
    to: whole ? null : time(state.range[1]),
    collapsed: collapsed.join(','),
    path: state.path ? null : 'false',
    gaps: state.gaps ? null : 'false',
    fold: state.fold ? null : 'false',
  });
}
