// Streams of events, few enough that every tab can still ask.
//
// A browser opens six connections to a host, for all its tabs together, and a stream holds one for as long as it is open. So only a page
// that is seen has one, and of several windows side by side no more than FEW; the others look again and again, until one of these is done.
// What came meanwhile is not told: `state(true)` says that a stream begins, or that it is time to look, and whoever follows asks anew then. Who looks
// is waited for: `state` may give a promise.

/** Two connections are left for what is asked. */
const FEW = 4;
/** How long a window without a stream waits until it looks again: long enough that many of them fit through these two. */
const EVERY = 3000;

/** Follows a stream of events while the page is seen; gives what ends it. The browser connects again by itself when it breaks. */
export function follow(path, listeners, state = () => {}) {
  const ended = new AbortController();
  let stay = null;

  function come() {
    if (stay || ended.signal.aborted) return;
    if (document.hidden) return state(false);
    stay = new AbortController();
    const { signal } = stay;
    const said = (open) => !signal.aborted && state(open);
    let [timer, waits] = [0, true];
    const done = () => ((waits = false), clearTimeout(timer));
    const look = async () => {
      await said(true);
      if (waits) timer = setTimeout(look, EVERY);
    };
    signal.addEventListener('abort', done);
    place(signal, () => (done(), listen(path, listeners, said, signal)), look);
  }

  function go() {
    stay?.abort();
    stay = null;
  }

  const { signal } = ended;
  document.addEventListener('visibilitychange', () => (document.hidden ? go() : come()), { signal });
  // A page that is kept for the way back is not hidden in every browser.
  addEventListener('pagehide', go, { signal });
  addEventListener('pageshow', come, { signal });
  signal.addEventListener('abort', go);
  come();
  return () => ended.abort();
}

/** Calls `use` when one of the few places is free, `full` when it has to wait for one. The place is kept until `signal` ends. */
async function place(signal, use, full) {
  const { locks } = navigator;
  // Browsers have locks where the address is safe, such as 127.0.0.1; elsewhere every page in sight has its stream.
  if (!locks) return use();
  const keep = () => new Promise((done) => {
    if (signal.aborted) return done();
    signal.addEventListener('abort', done);
    use();
  });
  for (let at = 0; at < FEW; at += 1) {
    const had = await locks.request(`stream ${at}`, { ifAvailable: true }, (lock) => (lock ? keep().then(() => true) : false));
    if (had || signal.aborted) return;
  }
  full();
  let taken = false;
  const first = () => !taken && ((taken = true), keep());
  for (let at = 0; at < FEW; at += 1) locks.request(`stream ${at}`, { signal }, first).catch(() => {});
}

function listen(path, listeners, state, signal) {
  const source = new EventSource(path);
  signal.addEventListener('abort', () => source.close());
  source.addEventListener('open', () => state(true));
  source.addEventListener('error', () => state(false));
  for (const [name, listener] of Object.entries(listeners)) {
    source.addEventListener(name, (event) => {
      try {
        listener(JSON.parse(event.data));
      } catch (error) {
        console.warn('failed to parse an event', error);
      }
    });
  }
}
