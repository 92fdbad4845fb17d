// The page begins here: the bar at the top, and below it the view that the address names.
//
// A view is a function `(element, route) => {update, close, keys}`: it fills the element; `update` is called when the address changes
// but stays within the view, and says whether it could follow; `close` ends what the view began; `keys` are its shortcuts.
// A further view is one more line in VIEWS and in the router.

import { bar } from './bar.js';
import { h, fill } from './dom.js';
import { start } from './router.js';
import { shortcuts } from './shortcuts.js';
import { object } from './object.js';
import { objects } from './objects.js';
import { pipelines } from './pipelines.js';
import { search } from './search.js';
import { keepUp } from './since.js';
import { theme } from './theme.js';
import { trace } from './trace.js';
import { dropFiles } from './transfer.js';

const VIEWS = { search, trace, objects, object, pipelines, missing };

function missing(element, route) {
  document.title = 'Page not found · Kubewake';
  const words = h('p', {}, 'There is no page ', h('code', { text: route.parts.path }), '.');
  fill(element, h('div', { class: 'empty' }, h('h1', { text: 'Page not found' }), words, h('a', { class: 'button', href: '/search', text: 'Search for traces' })));
  return {};
}

const main = document.getElementById('main');
const keys = shortcuts();
const top = bar(document.getElementById('bar'), keys);
let [current, begun] = [null, false];

theme.apply();
dropFiles();
keepUp();
start((route) => {
  const sameView = current?.route.view === route.view;
  if (sameView && current.view.update?.(route)) {
    current.route = route;
  } else {
    current?.view.close?.();
    main.className = `view-${route.view}`;
    fill(main);
    current = { route, view: VIEWS[route.view](main, route) };
    keys.use(current.view.keys ?? []);
    scrollTo(0, 0);
    // Readers of the screen go on where the page does.
    if (begun) main.focus({ preventScroll: true });
    begun = true;
  }
  top.show(route);
});
