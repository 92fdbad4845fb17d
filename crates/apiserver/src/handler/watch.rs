//! Watching: what happens to the objects of a resource, as it happens.
//!
//! A watch reads the store's history at its own pace. One that falls behind what is kept is told so (410) and ends. An object that
//! no longer fits the selector is said to be deleted, one that begins to fit is said to be added.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    answer::{self, Answer},
    call::On,
    filter::Filter,
    form::Form,
    get, respond,
    spans::{self, READ},
};
use crate::{
    api::{Status, meta::set_meta},
    codec::{Media, accept, protobuf, query::ListOptions},
    core::Core,
    http::Body,
    registry::Resource,
    store::{Event, EventKind, Stored, Watch, WatchError, WatchFrom},
    trace::Span,
};

/// Pieces that wait for a slow reader; the rest waits in the store's history.
const PIECES: usize = 4;
/// Events are sent together up to this size.
const PIECE: usize = 64 << 10;
/// How often a bookmark comes, as in kube-apiserver.
const BOOKMARK: Duration = Duration::from_secs(60);
/// And how long before the end of a watch the last one comes.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// Watches without a limit of their own end between one and two of these, as in kube-apiserver.
const LONGEST: Duration = Duration::from_secs(1800);
/// A watcher may ask for any limit, but the clock has an end.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Starts a watch.
pub fn watch(on: On<'_>, options: &ListOptions) -> Result<Answer, Status> {
    let filter = Filter::new(on, options)?;
    let listing = Listing::new(on, options);
    let cache_span = listing.on(on).cache_span("cacher.Watch");
    if cache_span.is_recording() {
        cache_span.set("type", on.collection().to_string().as_str());
    }
    let revision = options.version_of_watch()?;
    let initial = options.initial_events();
    if initial == Some(true) {
        if revision.is_none() {
            on.transaction(&cache_span, READ).end();
        }
        cache_span.event("watchCache locked acquired");
    }
    let newest = on.core().store.revision();
    let asked = revision.filter(|asked| *asked > newest && initial == Some(true));
    if initial == Some(true) && asked.is_none() {
        cache_span.event("watchCache fresh enough");
    }
    let watch = on.core().store.watch(&on.collection(), from(options, revision));
    cache_span.end();
    let form = Form::checked(on, accept::Answer::Watch)?;
    let (sender, receiver) = mpsc::channel(PIECES);
    let deadline = Instant::now() + limit(options);
    let resource = Arc::clone(on.shown());
    let stored = on.view.map(|_| Arc::clone(on.resource));
    let mut stream = Stream {
        begun: std::time::Instant::now(),
        news: Vec::new(),
        head: answer::head(&resource),
        resource,
        stored,
        filter,
        form,
        sender,
        deadline,
        bookmarks: options.allow_watch_bookmarks,
        initial: initial == Some(true) && options.allow_watch_bookmarks,
        core: Arc::clone(on.core()),
        listing: listing.begin(on, form),
    };
    // The spans of the request last as long as its answer.
    let span = on.span.clone();
    tokio::spawn(async move {
        match (asked, watch) {
            (Some(asked), _) => stream.fail(&get::too_large(asked, newest)).await,
            (None, Ok(watch)) => stream.run(watch).await,
            (None, Err(WatchError::TooOld { oldest, asked })) => {
                stream.fail(&Status::expired(format!("too old resource version: {asked} ({oldest})"))).await;
            }
        }
        drop(stream);
        drop(span);
    });
    Ok(Answer::Watch(Body::stream(receiver)))
}

/// The spans of the list that a watch begins with, where its end is marked by a bookmark. They end with that, or never.
struct Listing(Option<(Span, Span)>);

impl Listing {
    fn new(on: On<'_>, options: &ListOptions) -> Self {
        let is_list = options.initial_events() == Some(true) && options.allow_watch_bookmarks;
        Self(is_list.then(|| (spans::watch_list(on), Span::default())))
    }

    /// The call as part of the list.
    fn on<'a>(&'a self, on: On<'a>) -> On<'a> {
        self.0.as_ref().map_or(on, |(list, _)| On { span: list, ..on })
    }

    /// The answer begins.
    fn begin(mut self, on: On<'_>, form: Form) -> Self {
        if let Some((list, serve)) = &mut self.0 {
            *serve = respond::watch_span(on, list, form.chosen);
            serve.event("About to start writing response");
        }
        self
    }

    /// What existed was sent.
    fn end(&mut self) {
        if let Some((list, serve)) = self.0.take() {
            serve.event("Writing initial events done");
            serve.end();
            list.end();
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        if let Some((list, serve)) = self.0.take() {
            serve.discard();
            list.discard();
        }
    }
}

fn from(options: &ListOptions, revision: Option<u64>) -> WatchFrom {
    match (options.send_initial_events, revision) {
        (Some(true), _) => WatchFrom::Start,
        (Some(false), None | Some(0)) => WatchFrom::Now,
        (_, None | Some(0)) => WatchFrom::Start,
        (_, Some(revision)) => WatchFrom::After(revision),
    }
}

fn limit(options: &ListOptions) -> Duration {
    match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()).min(FOREVER),
        // It is over before it begins.
        Some(seconds) if seconds < 0 => Duration::ZERO,
        _ => LONGEST + Duration::from_secs_f64(LONGEST.as_secs_f64() * fastrand::f64()),
    }
}

/// What one watcher gets.
struct Stream {
    begun: std::time::Instant,
    /// When the events were committed that are about to be sent.
    news: Vec<std::time::Instant>,
    core: Arc<Core>,
    resource: Arc<Resource>,
    /// The resource as it is stored, where that is another shape.
    stored: Option<Arc<Resource>>,
    head: String,
    filter: Filter,
    form: Form,
    sender: mpsc::Sender<Bytes>,
    deadline: Instant,
    bookmarks: bool,
    /// A bookmark marks the end of what existed at the start.
    initial: bool,
    listing: Listing,
}

impl Stream {
    async fn run(&mut self, mut watch: Watch) {
        let mut bookmark = self.next_bookmark();
        let mut stopped = self.core.stopped();
        let mut catalog = self.core.registry.changed();
        if self.initial && watch.initial() == 0 && !self.send_initial_end(&watch).await {
            return;
        }
        loop {
            let first = tokio::select! {
                biased;
                () = sleep_until(self.deadline) => return,
                () = self.sender.closed() => return,
                () = stopped.wait() => return,
                () = sleep_until(bookmark), if self.bookmarks => {
                    bookmark = self.next_bookmark();
                    if !self.send_bookmark(watch.seen(), false).await { return }
                    continue;
                }
                event = watch.next() => event,
                // After the last event, which came before.
                Ok(()) = catalog.changed(), if self.resource.custom.is_some() => {
                    if self.is_withdrawn() { return }
                    continue;
                }
            };
            let event = match first {
                Ok(event) => event,
                Err(lagged) => return self.fail(&Status::expired(lagged.to_string())).await,
            };
            if !self.send_events(event, &mut watch).await {
                return;
            }
        }
    }

    /// Whether the resource is no longer served: its definition is gone.
    fn is_withdrawn(&self) -> bool {
        self.core.registry.catalog().get(&self.resource.gv, &self.resource.plural).is_none()
    }

    /// Sends a piece. False if nobody takes it: whoever does not read is not waited for beyond the end of the watch.
    async fn send(&self, bytes: BytesMut) -> bool {
        timeout_at(self.deadline, self.sender.send(bytes.freeze())).await.is_ok_and(|sent| sent.is_ok())
    }

    /// Sends this event and those that wait already.
    async fn send_events(&mut self, first: Arc<Event>, watch: &mut Watch) -> bool {
        let had_initial = self.initial;
        let mut bytes = BytesMut::new();
        let mut next = Some(first);
        while let Some(event) = next {
            self.put(&mut bytes, &event);
            if self.initial && watch.initial() == 0 {
                self.initial = false;
                self.put_bookmark(&mut bytes, watch.started(), true);
            }
            // Having fallen behind is said by the next call.
            next = if bytes.len() < PIECE { watch.try_next().ok().flatten() } else { None };
        }
        let listed = had_initial && !self.initial;
        let taken = bytes.is_empty() || self.send(bytes).await;
        if listed && taken {
            self.listing.end();
        }
        for committed in self.news.drain(..).filter(|_| taken) {
            self.core.metrics.delivered(committed);
        }
        taken
    }

    fn put(&mut self, bytes: &mut BytesMut, event: &Event) {
        let Some((kind, object)) = self.seen_as(event) else { return };
        // What was there before is no news, however old it is.
        if event.object.committed >= self.begun {
            self.news.push(event.object.committed);
        }
        if let (EventKind::Modified, "DELETED") = (event.kind, kind) {
            return self.put_left(bytes, event);
        }
        if self.form.is_plain() && self.stored.is_none() {
            return answer::event(bytes, kind, &self.head, &answer::shown(&self.resource, object));
        }
        let value = self.value(object);
        self.put_object(bytes, kind, value);
    }

    /// An event about an object that is not shown as it is stored.
    fn put_object(&mut self, bytes: &mut BytesMut, kind: &str, object: Value) {
        let shown = self.form.event(&self.resource, &object).unwrap_or(object);
        self.put_value(bytes, kind, &shown);
    }

    fn put_value(&self, bytes: &mut BytesMut, kind: &str, object: &Value) {
        match self.form.chosen.media {
            // Every kind that is watched in this form has a message.
            Media::Protobuf => bytes.extend_from_slice(&protobuf::encode_event(kind, object).unwrap_or_default()),
            _ => answer::event_value(bytes, kind, object),
        }
    }

    /// An object in the shape that the watcher sees.
    fn value(&self, stored: &Stored) -> Value {
        let mut value = answer::value(&self.resource, stored);
        if self.stored.is_some() {
            self.resource.strategy.served(&mut value);
        }
        value
    }

    /// An object that no longer fits is shown as it was when it did, at the revision of the change.
    fn put_left(&mut self, bytes: &mut BytesMut, event: &Event) {
        let Some(previous) = &event.previous else { return };
        let mut object = self.value(previous);
        set_meta(&mut object, "resourceVersion", event.revision.to_string());
        self.put_object(bytes, "DELETED", object);
    }

    /// What an event is to somebody who sees only what fits the selector.
    fn seen_as<'e>(&self, event: &'e Event) -> Option<(&'static str, &'e Arc<Stored>)> {
        let before = event.previous.as_ref().is_some_and(|previous| self.filter.fits(previous));
        let after = event.kind != EventKind::Deleted && self.filter.fits(&event.object);
        match (event.kind, before, after) {
            (EventKind::Deleted, true, _) | (EventKind::Modified, true, false) => Some(("DELETED", &event.object)),
            (EventKind::Modified, true, true) => Some(("MODIFIED", &event.object)),
            (EventKind::Added | EventKind::Modified, false, true) | (EventKind::Added, true, true) => {
                Some(("ADDED", &event.object))
            }
            _ => None,
        }
    }

    async fn send_initial_end(&mut self, watch: &Watch) -> bool {
        self.initial = false;
        let sent = self.send_bookmark(watch.started(), true).await;
        if sent {
            self.listing.end();
        }
        sent
    }

    async fn send_bookmark(&mut self, revision: u64, initial_end: bool) -> bool {
        let mut bytes = BytesMut::new();
        self.put_bookmark(&mut bytes, revision, initial_end);
        self.send(bytes).await
    }

    fn put_bookmark(&mut self, bytes: &mut BytesMut, revision: u64, initial_end: bool) {
        let mut meta = json!({ "resourceVersion": revision.to_string() });
        if initial_end && let Some(meta) = meta.as_object_mut() {
            meta.insert("annotations".into(), json!({ "k8s.io/initial-events-end": "true" }));
        }
        let object =
            json!({ "kind": &*self.resource.kind, "apiVersion": self.resource.gv.to_string(), "metadata": meta });
        let shown = self.form.bookmark(object, &self.resource);
        self.put_value(bytes, "BOOKMARK", &shown);
    }

    fn next_bookmark(&self) -> Instant {
        let regular = Instant::now() + BOOKMARK;
        let last = self.deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > Instant::now());
        last.map_or(regular, |last| last.min(regular))
    }

    async fn fail(&self, status: &Status) {
        let mut bytes = BytesMut::new();
        self.put_value(&mut bytes, "ERROR", &status.to_value());
        // Whoever has gone does not need to know.
        self.send(bytes).await;
    }
}
