// How each pipeline of the cluster fares, from the collectors' own figures.

import * as api from './api.js';
import { chart } from './charts.js';
import { fill, h, icon } from './dom.js';
import { bytes, count, line, plural, rate } from './format.js';
import { poll } from './poll.js';
import { command, failed, loading } from './states.js';

/** The states of a pipeline, as its status has them. */
const LOOKS = { Ready: 'good', Degraded: 'warn', Pending: 'busy', Invalid: 'bad' };

export function pipelines(element) {
  document.title = 'Pipelines · Kubewake';
  const list = h('div', { class: 'pipeline-list' }, loading('Loading pipelines…'));
  fill(element, h('div', { class: 'page' }, h('h1', { text: 'Pipelines' }), h('p', { class: 'lead', text: 'Throughput of each pipeline of the cluster over the last five minutes.' }), list));
  // Who points at a chart is not to lose it.
  const show = (said) => list.matches(':has(.chart-plot:hover)') || fill(list, !said.available ? unavailable(said.reason) : said.pipelines.length ? said.pipelines.map(card) : none());
  const asked = poll(2000, api.pipelines, show, (error) => fill(list, failed(error, () => asked.now())));
  return { close: () => asked.close() };
}

function card(pipeline) {
  const series = pipeline.series ?? {};
  const look = LOOKS[pipeline.state] ?? 'none';
  const ready = (pipeline.collectors ?? []).filter((collector) => collector.ready).length;
  const percent = (value) => (Number.isFinite(value) ? `${Math.round(value * 100)} %` : '–');
  const fillNow = series.bufferFill?.at(-1) ?? 0;
  const drops = series.droppedPerSecond ?? [];
  const at = series.at ?? [];
  return h('article', { class: 'pipeline' },
    h('header', {}, h('h2', {}, h('span', { class: 'dim', text: line(pipeline.kind, 40) }), ' ', line(pipeline.name, 100)), h('span', { class: `pill state ${look}`, text: line(pipeline.state || 'Unknown', 40) }), pipeline.reason && h('span', { class: 'dim', text: line(pipeline.reason, 60) }),
      h('span', { class: 'spread' }), h('span', { class: 'dim', title: (pipeline.collectors ?? []).map((each) => `${each.pod}${each.ready ? '' : ' (not ready)'}`).join('\n'), text: `${ready} of ${plural(pipeline.collectors?.length ?? 0, 'collector')} ready` })),
    pipeline.message && h('p', { class: look === 'bad' || look === 'warn' ? `status ${look}` : 'message', text: line(pipeline.message, 1000) }),
    pipeline.backend && h('p', { class: 'dim' }, 'to ', h('code', { text: line(pipeline.backend, 200) })),
    h('div', { class: 'charts' },
      chart('Received', series.receivedPerSecond ?? [], rate, { at }), chart('Sent', series.sentPerSecond ?? [], rate, { at }),
      chart('Dropped', drops, rate, { at, look: drops.some((value) => value > 0) ? 'bad' : 'none' }),
      chart('Buffer', series.bufferFill ?? [], percent, { at, most: 1, look: fillNow > 0.8 ? 'bad' : fillNow > 0.5 ? 'warn' : 'accent' })),
    totals(pipeline.totals),
    pipeline.lastError && h('p', { class: 'status bad' }, icon('error'), h('span', { text: line(pipeline.lastError, 1000) })));
}

function totals(all) {
  if (!all) return null;
  return h('dl', { class: 'facts' }, ['received', 'sent', 'dropped', 'queued'].filter((name) => all[name] !== undefined).map((name) => h('div', { class: name === 'dropped' && all[name] > 0 ? 'bad' : '' }, h('dt', { text: name[0].toUpperCase() + name.slice(1) }), h('dd', { text: (name === 'queued' ? bytes : count)(Math.round(all[name])) }))));
}

/** Without a cluster there are none to ask for; with one, the reason says what is missing. */
function unavailable(reason) {
  const element = h('div', { class: 'empty' });
  const words = reason ? `${reason[0].toUpperCase()}${reason.slice(1)}.` : 'The viewer is not connected to a cluster.';
  const without = [h('h2', { text: 'No cluster' }), h('p', { text: words }), command('kubewake viewer --kubeconfig ~/.kube/config'), h('p', { text: 'Or start everything on this machine, including a cluster and a pipeline:' }), command('kubewake up')];
  const within = [h('h2', { text: 'No pipelines' }), h('p', { text: words }), h('p', { text: 'Install the operator first:' }), command('kubewake operator manifests | kubectl apply -f -')];
  api.info().then((said) => fill(element, said.cluster ? within : without), () => fill(element, without));
  return element;
}

function none() {
  const yaml = 'kubectl apply -f - <<EOF\napiVersion: telemetry.kubewake.io/v1alpha1\nkind: TracePipeline\nmetadata: {name: default}\nspec: {output: {otlp: {endpoint: {value: "http://127.0.0.1:4317"}}}}\nEOF';
  return h('div', { class: 'empty' }, h('h2', { text: 'No pipelines' }), h('p', { text: 'The cluster has no pipelines yet. Create one:' }), command(yaml));
}
