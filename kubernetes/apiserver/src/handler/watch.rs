//! Watches: streams the events of a resource.
//!
//! A watch reads the store's history at its own pace. One that falls behind the history gets the error 410 and
//! ends. An object that stops matching the selector is reported as deleted, one that starts matching as added.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    call::ResourceRequest,
    get,
    handler_response::{self, HandlerResponse},
    respond,
    selection_predicate::SelectionPredicate,
    spans::{self, READ_TRANSACTION},
    transform::ResponseTransform,
};
use crate::{
    api::{StatusError, meta::set_meta},
    codec::{MediaType, accept, protobuf, query::ListOptions},
    http::Body,
    registry::ServedResource,
    server_state::ServerState,
    store::{EventKind, StoreEvent, StoreWatch, Stored, WatchError, WatchFrom},
    trace::TraceSpan,
};

/// The number of chunks that are queued for a slow reader; the rest waits in the store's history.
const MAX_QUEUED_CHUNKS: usize = 4;
/// Events are combined into chunks up to this size.
const MAX_CHUNK_BYTES: usize = 64 << 10;
/// The interval of bookmarks, as in kube-apiserver.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// How long before its end a watch gets its last bookmark.
const LAST_BOOKMARK_LEAD_TIME: Duration = Duration::from_secs(2);
/// The minimum of the random timeout of watches without one of their own, as in kube-apiserver; its maximum is
/// twice that.
const MIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(1800);
/// The longest timeout of a watch, so that its deadline does not overflow.
const MAX_WATCH_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

pub fn watch(on: ResourceRequest<'_>, options: &ListOptions) -> Result<HandlerResponse, StatusError> {
    let filter = SelectionPredicate::new(on, options)?;
    let listing = WatchListSpans::new(on, options);
    let cache_span = listing.request_in_list_span(on).cache_span("cacher.Watch");
    if cache_span.is_recording() {
        cache_span.set_attribute("type", on.collection().to_string().as_str());
    }
    let revision = options.watch_resource_version()?;
    let initial = options.sends_initial_events();
    if initial == Some(true) {
        if revision.is_none() {
            on.transaction_span(&cache_span, READ_TRANSACTION).end();
        }
        cache_span.add_event("watchCache locked acquired");
    }
    let newest = on.core().store.revision();
    let asked = revision.filter(|asked| *asked > newest && initial == Some(true));
    if initial == Some(true) && asked.is_none() {
        cache_span.add_event("watchCache fresh enough");
    }
    let watch = on.core().store.watch(&on.collection(), watch_start(options, revision));
    cache_span.end();
    let form = ResponseTransform::negotiate_with_include(on, accept::ResponseKind::Watch)?;
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
    let deadline = Instant::now() + watch_timeout(options);
    let resource = Arc::clone(on.served_resource());
    let stored = on.view.map(|_| Arc::clone(on.resource));
    let mut stream = WatchServer {
        started_at: std::time::Instant::now(),
        commit_times: Vec::new(),
        head: handler_response::type_meta_prefix(&resource),
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
    // The spans of the request last as long as its response.
    let span = on.span.clone();
    tokio::spawn(async move {
        match (asked, watch) {
            (Some(asked), _) => stream.send_error(&get::version_too_large_status(asked, newest)).await,
            (None, Ok(watch)) => stream.run(watch).await,
            (None, Err(WatchError::TooOld { oldest, asked })) => {
                stream.send_error(&StatusError::expired(format!("too old resource version: {asked} ({oldest})"))).await;
            }
        }
        drop(stream);
        drop(span);
    });
    Ok(HandlerResponse::Watch(Body::from_receiver(receiver)))
}

/// The spans of the initial list, if a bookmark marks its end. They end with that bookmark, or never.
struct WatchListSpans(Option<(TraceSpan, TraceSpan)>);

impl WatchListSpans {
    fn new(on: ResourceRequest<'_>, options: &ListOptions) -> Self {
        let is_list = options.sends_initial_events() == Some(true) && options.allow_watch_bookmarks;
        Self(is_list.then(|| (spans::start_watch_list_span(on), TraceSpan::default())))
    }

    /// The request with the list's span as parent.
    fn request_in_list_span<'a>(&'a self, on: ResourceRequest<'a>) -> ResourceRequest<'a> {
        self.0.as_ref().map_or(on, |(list, _)| ResourceRequest { span: list, ..on })
    }

    fn begin(mut self, on: ResourceRequest<'_>, form: ResponseTransform) -> Self {
        if let Some((list, serve)) = &mut self.0 {
            *serve = respond::watch_span(on, list, form.chosen);
            serve.add_event("About to start writing response");
        }
        self
    }

    fn end(&mut self) {
        if let Some((list, serve)) = self.0.take() {
            serve.add_event("Writing initial events done");
            serve.end();
            list.end();
        }
    }
}

impl Drop for WatchListSpans {
    fn drop(&mut self) {
        if let Some((list, serve)) = self.0.take() {
            serve.discard();
            list.discard();
        }
    }
}

fn watch_start(options: &ListOptions, revision: Option<u64>) -> WatchFrom {
    match (options.send_initial_events, revision) {
        (Some(true), _) => WatchFrom::Start,
        (Some(false), None | Some(0)) => WatchFrom::Now,
        (_, None | Some(0)) => WatchFrom::Start,
        (_, Some(revision)) => WatchFrom::After(revision),
    }
}

fn watch_timeout(options: &ListOptions) -> Duration {
    match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()).min(MAX_WATCH_DURATION),
        // The watch ends before it begins.
        Some(seconds) if seconds < 0 => Duration::ZERO,
        _ => MIN_REQUEST_TIMEOUT + Duration::from_secs_f64(MIN_REQUEST_TIMEOUT.as_secs_f64() * fastrand::f64()),
    }
}

struct WatchServer {
    started_at: std::time::Instant,
    /// The commit times of the events that are about to be sent.
    commit_times: Vec<std::time::Instant>,
    core: Arc<ServerState>,
    resource: Arc<ServedResource>,
    /// The resource in the stored shape, if that is another one.
    stored: Option<Arc<ServedResource>>,
    head: String,
    filter: SelectionPredicate,
    form: ResponseTransform,
    sender: mpsc::Sender<Bytes>,
    deadline: Instant,
    bookmarks: bool,
    /// Whether a bookmark marks the end of the initial events.
    initial: bool,
    listing: WatchListSpans,
}

impl WatchServer {
    async fn run(&mut self, mut watch: StoreWatch) {
        let mut bookmark = self.next_bookmark();
        let mut stopped = self.core.stop_signal();
        let mut catalog = self.core.registry.subscribe();
        if self.initial && watch.remaining_initial() == 0 && !self.send_initial_end(&watch).await {
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
                // Polled last, so that all earlier events are sent first.
                Ok(()) = catalog.changed(), if self.resource.custom.is_some() => {
                    if self.is_withdrawn() { return }
                    continue;
                }
            };
            let event = match first {
                Ok(event) => event,
                Err(lagged) => return self.send_error(&StatusError::expired(lagged.to_string())).await,
            };
            if !self.send_events(event, &mut watch).await {
                return;
            }
        }
    }

    /// Whether the resource is no longer served: its definition was deleted.
    fn is_withdrawn(&self) -> bool {
        self.core.registry.catalog().get(&self.resource.gv, &self.resource.plural).is_none()
    }

    /// Sends a chunk. False if the client is gone or does not read until the end of the watch.
    async fn send(&self, bytes: BytesMut) -> bool {
        timeout_at(self.deadline, self.sender.send(bytes.freeze())).await.is_ok_and(|sent| sent.is_ok())
    }

    /// Sends this event together with those that are available already.
    async fn send_events(&mut self, first: Arc<StoreEvent>, watch: &mut StoreWatch) -> bool {
        let had_initial = self.initial;
        let mut bytes = BytesMut::new();
        let mut next = Some(first);
        while let Some(event) = next {
            self.write_event(&mut bytes, &event);
            if self.initial && watch.remaining_initial() == 0 {
                self.initial = false;
                self.write_bookmark(&mut bytes, watch.started(), true);
            }
            // A lagging watch is reported by the next call.
            next = if bytes.len() < MAX_CHUNK_BYTES { watch.try_next().ok().flatten() } else { None };
        }
        let listed = had_initial && !self.initial;
        let taken = bytes.is_empty() || self.send(bytes).await;
        if listed && taken {
            self.listing.end();
        }
        for committed in self.commit_times.drain(..).filter(|_| taken) {
            self.core.metrics.observe_delivery(committed);
        }
        taken
    }

    fn write_event(&mut self, bytes: &mut BytesMut, event: &StoreEvent) {
        let Some((kind, object)) = self.filter_event(event) else { return };
        // Initial objects are not deliveries, however old they are.
        if event.object.committed >= self.started_at {
            self.commit_times.push(event.object.committed);
        }
        if let (EventKind::Modified, "DELETED") = (event.kind, kind) {
            return self.write_left_selection(bytes, event);
        }
        if self.form.is_plain() && self.stored.is_none() {
            return handler_response::write_event(
                bytes,
                kind,
                &self.head,
                &handler_response::convert_stored(&self.resource, object),
            );
        }
        let value = self.decode_stored(object);
        self.write_transformed_event(bytes, kind, value);
    }

    /// Writes an event about an object that is not sent in its stored form.
    fn write_transformed_event(&mut self, bytes: &mut BytesMut, kind: &str, object: Value) {
        let shown = self.form.transform_event(&self.resource, &object).unwrap_or(object);
        self.write_value_event(bytes, kind, &shown);
    }

    fn write_value_event(&self, bytes: &mut BytesMut, kind: &str, object: &Value) {
        match self.form.chosen.media {
            // Every kind that can be watched in protobuf has a message.
            MediaType::Protobuf => bytes.extend_from_slice(&protobuf::encode_event(kind, object).unwrap_or_default()),
            _ => handler_response::write_event_value(bytes, kind, object),
        }
    }

    /// An object in the served shape.
    fn decode_stored(&self, stored: &Stored) -> Value {
        let mut value = handler_response::value(&self.resource, stored);
        if self.stored.is_some() {
            self.resource.strategy.convert_to_served(&mut value);
        }
        value
    }

    /// An object that stops matching is shown in its last matching state, at the revision of the change.
    fn write_left_selection(&mut self, bytes: &mut BytesMut, event: &StoreEvent) {
        let Some(previous) = &event.previous else { return };
        let mut object = self.decode_stored(previous);
        set_meta(&mut object, "resourceVersion", event.revision.to_string());
        self.write_transformed_event(bytes, "DELETED", object);
    }

    /// The event as seen through the selector.
    fn filter_event<'e>(&self, event: &'e StoreEvent) -> Option<(&'static str, &'e Arc<Stored>)> {
        let before = event.previous.as_ref().is_some_and(|previous| self.filter.matches(previous));
        let after = event.kind != EventKind::Deleted && self.filter.matches(&event.object);
        match (event.kind, before, after) {
            (EventKind::Deleted, true, _) | (EventKind::Modified, true, false) => Some(("DELETED", &event.object)),
            (EventKind::Modified, true, true) => Some(("MODIFIED", &event.object)),
            (EventKind::Added | EventKind::Modified, false, true) | (EventKind::Added, true, true) => {
                Some(("ADDED", &event.object))
            }
            _ => None,
        }
    }

    async fn send_initial_end(&mut self, watch: &StoreWatch) -> bool {
        self.initial = false;
        let sent = self.send_bookmark(watch.started(), true).await;
        if sent {
            self.listing.end();
        }
        sent
    }

    async fn send_bookmark(&mut self, revision: u64, initial_end: bool) -> bool {
        let mut bytes = BytesMut::new();
        self.write_bookmark(&mut bytes, revision, initial_end);
        self.send(bytes).await
    }

    fn write_bookmark(&mut self, bytes: &mut BytesMut, revision: u64, initial_end: bool) {
        let mut meta = json!({ "resourceVersion": revision.to_string() });
        if initial_end && let Some(meta) = meta.as_object_mut() {
            meta.insert("annotations".into(), json!({ "k8s.io/initial-events-end": "true" }));
        }
        let object =
            json!({ "kind": &*self.resource.kind, "apiVersion": self.resource.gv.to_string(), "metadata": meta });
        let shown = self.form.transform_bookmark(object, &self.resource);
        self.write_value_event(bytes, "BOOKMARK", &shown);
    }

    fn next_bookmark(&self) -> Instant {
        let regular = Instant::now() + BOOKMARK_INTERVAL;
        let last = self.deadline.checked_sub(LAST_BOOKMARK_LEAD_TIME).filter(|last| *last > Instant::now());
        last.map_or(regular, |last| last.min(regular))
    }

    async fn send_error(&self, status: &StatusError) {
        let mut bytes = BytesMut::new();
        self.write_value_event(&mut bytes, "ERROR", &status.to_value());
        // The client may be gone.
        self.send(bytes).await;
    }
}
