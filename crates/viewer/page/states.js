// What is shown when there is nothing to show, and why.

import { info } from './api.js';
import { copy } from './clipboard.js';
import { button, fill, h } from './dom.js';

/** Something that did not work, with a way to try again. */
export function failed(error, again) {
  return h('div', { class: 'empty', role: 'alert' }, h('h2', { text: error.status === 404 ? 'Not found' : 'Request failed' }), h('p', { text: error.message }),
    again && button('reset', 'Try again', again));
}

export const loading = (what) => h('div', { class: 'empty loading', role: 'status', text: what });

/** A command that can be copied as it is. */
export function command(text) {
  return h('div', { class: 'command' }, h('pre', { tabindex: '0', text }), button('copy', 'Copy', () => copy(text, 'Command'), { quiet: true }));
}

/** What a newcomer sends to see a first trace. */
export function newcomer() {
  const element = h('div', { class: 'empty newcomer' });
  const show = (http, grpc, cluster) => fill(element,
    h('h2', { text: 'No traces yet' }),
    h('p', { text: 'This page shows spans as soon as they arrive. Send one from a terminal:' }),
    command(sample(http)),
    h('p', { text: 'Or point a program with an OpenTelemetry SDK here:' }),
    command(`export OTEL_EXPORTER_OTLP_ENDPOINT=http://${http} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`),
    h('p', {}, 'gRPC is at ', h('code', { text: grpc }), '. A file of OTLP JSON can be dropped anywhere on this page.'),
    cluster && [h('p', { text: 'A trace of a Kubernetes change, from kubectl until everything is ready:' }), command('kubewake demo head')]);
  info().then((said) => show(said.otlp?.http ?? '127.0.0.1:4318', said.otlp?.grpc ?? '127.0.0.1:4317', said.cluster), () => show('127.0.0.1:4318', '127.0.0.1:4317', false));
  return element;
}

/** One span that lasts a second, beginning now. */
function sample(http) {
  const span = '{"traceId":"\'$(od -An -N16 -tx1 /dev/urandom | tr -d " \\n")\'","spanId":"00f067aa0ba902b7","name":"first try","kind":1,"startTimeUnixNano":"\'$(date +%s)000000000\'","endTimeUnixNano":"\'$(date +%s)900000000\'"}';
  const resource = '{"attributes":[{"key":"service.name","value":{"stringValue":"terminal"}}]}';
  return `curl http://${http}/v1/traces -H 'content-type: application/json' \\\n  -d '{"resourceSpans":[{"resource":${resource},"scopeSpans":[{"spans":[${span}]}]}]}'`;
}
