// What the server is asked.

import { follow } from './follow.js';

/** An answer that is none: its `status`, words for a person, and which parameters are at fault. */
export class Failure extends Error {
  constructor(status, message, problems = []) {
    super(message);
    Object.assign(this, { status, problems });
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failure(0, 'The viewer does not answer. Is `kubewake` still running?');
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  const problems = Array.isArray(said.problems) ? said.problems : [];
  const words = said.error ?? problems.map((problem) => problem.message).join('; ');
  throw new Failure(answer.status, words || `The viewer responded with status ${answer.status}.`, problems);
}

const json = async (path, options) => (await ask(path, options)).json();

/** Version, addresses for OTLP, how full the store is. */
export const info = () => json('/api/v1/info');

export const services = (signal) => json('/api/v1/services', { signal });

export const search = (params, signal) => json(`/api/v1/search?${params}`, { signal });

export const trace = (id, signal) => json(`/api/v1/traces/${encodeURIComponent(id)}`, { signal });

/** A span with its values in full length. */
export const span = (id, spanId) => json(`/api/v1/traces/${encodeURIComponent(id)}/spans/${encodeURIComponent(spanId)}`);

/** Where a trace is as OTLP JSON. */
export const otlpUrl = (id) => `/api/v1/traces/${encodeURIComponent(id)}?format=otlp`;

export const otlp = async (id) => (await ask(otlpUrl(id))).text();

export const objects = (params, signal) => json(`/api/v1/objects?${params}`, { signal });

export const object = ({ kind, namespace, name }, signal) =>
  json(`/api/v1/objects/${[kind, namespace || '-', name].map(encodeURIComponent).join('/')}`, { signal });

export const pipelines = (signal) => json('/api/v1/pipelines', { signal });

/** Hands a document of OTLP JSON to the store. */
export const importOtlp = (body) =>
  json('/api/v1/import', { method: 'POST', headers: { 'content-type': 'application/json' }, body });

/** Follows traces that match a search. */
export const live = (params, listeners, state) => follow(`/api/v1/live?${params}`, listeners, state);
