// Addresses of the page: what each one shows, and how it is written. Every state that is worth showing to somebody has one.

const PATTERNS = [
  ['search', /^\/(?:search)?\/?$/, []],
  ['trace', /^\/trace\/([0-9a-fA-F]{1,32})\/?$/, ['id']],
  ['objects', /^\/objects\/?$/, []],
  ['object', /^\/objects\/([^/]+)\/([^/]+)\/([^/]+)\/?$/, ['kind', 'namespace', 'name']],
  ['pipelines', /^\/pipelines\/?$/, []],
];

/** What an address shows: the name of a view, the parts of the path, and the parameters. */
export function parse(path, query) {
  const params = new URLSearchParams(query);
  for (const [view, pattern, names] of PATTERNS) {
    const match = pattern.exec(path);
    if (!match) continue;
    const parts = {};
    try {
      names.forEach((name, at) => (parts[name] = decodeURIComponent(match[at + 1])));
    } catch {
      break;
    }
    return { view, parts, params };
  }
  return { view: 'missing', parts: { path }, params };
}

/** The address of a trace, with what is open in it. */
export function traceUrl(id, state = {}) {
  return withQuery(`/trace/${id}`, state);
}

/** The address of an object. A cluster-wide one has `-` in the place of a namespace. */
export function objectUrl({ kind, namespace, name }, state = {}) {
  const path = [kind, namespace || '-', name].map(encodeURIComponent).join('/');
  return withQuery(`/objects/${path}`, state);
}

/** The address of a search; values that are lists are written once for each item. */
export function searchUrl(state = {}) {
  return withQuery('/search', state);
}

function withQuery(path, state) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== null && item !== undefined && item !== '' && item !== false) params.append(name, item);
    }
  }
  const query = params.toString();
  return query ? `${path}?${query}` : path;
}

/** Follows the address bar: calls `show` with each route, also for links that stay on this page. */
export function start(show) {
  const now = () => show(parse(location.pathname, location.search));
  addEventListener('popstate', now);
  addEventListener('kubewake:navigate', now);
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]');
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute('download')) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || url.pathname.startsWith('/api/') || url.hash) return;
    event.preventDefault();
    navigate(url.pathname + url.search);
  });
  now();
}

/** Goes to an address of the page. */
export function navigate(url) {
  if (url !== location.pathname + location.search) history.pushState(null, '', url);
  dispatchEvent(new Event('kubewake:navigate'));
}

/** Writes the state of what is shown into the address bar. Nothing is shown anew, and going back does not stop here. */
export function remember(url) {
  if (url !== location.pathname + location.search) history.replaceState(null, '', url);
}
