// One trace in a list of results.

import { colorClass } from './colors.js';
import { h, icon } from './dom.js';
import { clock, dateTime, duration, line, plural } from './format.js';
import { traceUrl } from './router.js';
import { since } from './since.js';

/** Beyond this, services and objects of a trace are only counted. */
const MOST_SERVICES = 6;
const MOST_OBJECTS = 3;

/** A line of the list: a link to the trace. How long its bar is depends on `--longest` of the list. */
export function resultRow(trace, fresh) {
  const link = h('a', { class: `result${fresh ? ' fresh' : ''}`, href: traceUrl(trace.traceId), data: { trace: trace.traceId }, css: { '--took': String(trace.duration) } },
    h('span', { class: 'title' },
      h('span', { class: `dot ${colorClass(trace.rootService)}` }),
      h('strong', { text: line(trace.rootService, 60) }), ' ', h('span', { class: 'operation', text: line(trace.rootName) })),
    h('span', { class: 'took' }, h('span', { class: 'amount', text: duration(trace.duration) }), h('span', { class: 'track' }, h('span', { class: trace.errors ? 'bad' : '' }))),
    h('span', { class: 'facts' },
      trace.errors > 0 && h('span', { class: 'pill bad' }, icon('error'), plural(trace.errors, 'error')),
      h('span', { class: 'spans', text: plural(trace.spans, 'span') }),
      trace.orphans > 0 && h('span', { class: 'pill warn', title: 'Spans whose parent is not in the trace', text: `${trace.orphans} without parent` }),
      trace.objects.slice(0, MOST_OBJECTS).map((object) => h('span', { class: 'pill object' }, icon('box'), `${line(object.kind, 40)} ${line(object.name, 60)}`)),
      trace.objects.length > MOST_OBJECTS && h('span', { text: `+${trace.objects.length - MOST_OBJECTS}` }),
      services(trace.services)),
    h('span', { class: 'when', title: dateTime(trace.start) }, since(trace.start), h('span', { class: 'dim', text: clock(trace.start) }), h('code', { text: trace.traceId.slice(0, 8) })));
  return h('div', { role: 'listitem' }, link);
}

function services(all) {
  const shown = all.slice(0, MOST_SERVICES).map((service) => h('span', { class: `service ${colorClass(service.name)}` }, h('span', { class: 'dot' }), `${line(service.name, 40)} ${service.spans}`));
  return [shown, all.length > MOST_SERVICES && h('span', { class: 'dim', text: `+${all.length - MOST_SERVICES}` })];
}
