//! A span, or the lack of one.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderValue};

use super::{Context, Finished, Origin, Pipeline, SpanId, context, encode};

/// A piece of work. Cheap to clone; it ends with its last clone, or when it is told to. One that is not recorded costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Span {
    context: Option<Arc<Context>>,
    baggage: Option<HeaderValue>,
    recording: Option<Arc<Recording>>,
}

/// Whose instrumentation a span is, in kube-apiserver's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The HTTP server and client.
    Http,
    /// The filters before the handler.
    Filter,
    /// Handlers, admission and storage.
    Component,
    /// The store's own transactions.
    Store,
}

/// As in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are OpenTelemetry's own")]
pub enum Kind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Attribute<'a> {
    Text(&'a str),
    Number(i64),
    Flag(bool),
}

/// What a span begins with.
#[derive(Clone, Copy)]
pub struct Begin<'a> {
    /// Whose instrumentation it is.
    pub scope: Scope,
    /// As in OTLP.
    pub kind: Kind,
    /// Its name, which is written only if the span is recorded.
    pub name: &'a dyn fmt::Display,
    /// When it began.
    pub start: SystemTime,
}

impl fmt::Debug for Begin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Begin({})", self.name)
    }
}

#[derive(Debug)]
struct Recording {
    pipeline: Arc<Pipeline>,
    scope: Scope,
    /// Times are counted from the request's start, since the wall clock may jump.
    epoch: Epoch,
    /// The span so far; none once it has ended.
    bytes: Mutex<Option<Vec<u8>>>,
    /// What it is part of does not end before it, unless it is told to: a watch goes on after its handler.
    _parent: Option<Arc<Recording>>,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    wall: u64,
    clock: Instant,
}

impl Scope {
    /// Name and version.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Scope::Http => ("go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp", "0.69.0"),
            Scope::Filter => ("k8s.op/apiserver/pkg/endpoints/filterlatency", ""),
            Scope::Component => ("k8s.io/component-base/tracing", ""),
            Scope::Store => ("go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc", "0.68.0"),
        }
    }
}

impl<'a> From<&'a str> for Attribute<'a> {
    fn from(text: &'a str) -> Self {
        Attribute::Text(text)
    }
}

impl<'a> From<&'a String> for Attribute<'a> {
    fn from(text: &'a String) -> Self {
        Attribute::Text(text)
    }
}

impl From<i64> for Attribute<'_> {
    fn from(number: i64) -> Self {
        Attribute::Number(number)
    }
}

impl From<usize> for Attribute<'_> {
    fn from(number: usize) -> Self {
        Attribute::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl Span {
    /// No span; a caller's context is passed on as it came.
    pub(super) fn passing(origin: &Origin<'_>) -> Self {
        let context = match origin {
            Origin::Parent(context) | Origin::Link(context) => Some(Arc::new((*context).clone())),
            Origin::Root => None,
        };
        Self { context, baggage: None, recording: None }
    }

    /// The first span here, whose context was decided already.
    pub(super) fn first(
        pipeline: Option<Arc<Pipeline>>,
        context: Context,
        origin: &Origin<'_>,
        begin: Begin<'_>,
    ) -> Self {
        let recording = pipeline.map(|pipeline| {
            let epoch = Epoch::at(begin.start);
            let (parent, link) = match origin {
                Origin::Parent(context) => (Some(context.span), None),
                Origin::Link(context) => (None, Some(*context)),
                Origin::Root => (None, None),
            };
            let mut bytes = started(&context, parent, begin.kind, &begin.name.to_string(), epoch.wall);
            if let Some(link) = link {
                encode::bytes(&mut bytes, encode::LINKS, &linked(link));
            }
            Arc::new(Recording { pipeline, scope: begin.scope, epoch, bytes: Mutex::new(Some(bytes)), _parent: None })
        });
        Self { context: Some(Arc::new(context)), baggage: None, recording }
    }

    /// The same with what else its caller sent along.
    #[must_use]
    pub fn with_baggage(self, headers: &HeaderMap) -> Self {
        Self { baggage: context::baggage(headers), ..self }
    }

    /// Whether anything that is said to it is kept. Attributes that cost something to make are made only then.
    pub fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Its context, or the one that is passed on.
    pub fn context(&self) -> Option<&Context> {
        self.context.as_deref()
    }

    /// Writes its context for the next process.
    pub fn inject(&self, headers: &mut HeaderMap) {
        if let Some(context) = &self.context {
            context.inject(headers);
        }
        if let Some(baggage) = &self.baggage {
            context::inject_baggage(baggage, headers);
        }
    }

    /// Work that is part of this.
    #[must_use]
    pub fn child(&self, scope: Scope, kind: Kind, name: &str) -> Self {
        let (Some(context), Some(recording)) = (&self.context, &self.recording) else { return self.clone() };
        let child = Context { span: SpanId::random(), ..(**context).clone() };
        let bytes = started(&child, Some(context.span), kind, name, recording.epoch.now());
        let child_recording = Recording {
            pipeline: Arc::clone(&recording.pipeline),
            scope,
            epoch: recording.epoch,
            bytes: Mutex::new(Some(bytes)),
            _parent: Some(Arc::clone(recording)),
        };
        let baggage = self.baggage.clone();
        Self { context: Some(Arc::new(child)), baggage, recording: Some(Arc::new(child_recording)) }
    }

    /// A child that has just begun, among handlers, admission and storage.
    #[must_use]
    pub fn step(&self, name: &str) -> Self {
        self.child(Scope::Component, Kind::Internal, name)
    }

    /// Says more about it.
    pub fn set<'a>(&self, key: &str, value: impl Into<Attribute<'a>>) {
        if let Some(recording) = &self.recording {
            let value = value.into();
            recording.write(|bytes| encode::attribute(bytes, encode::ATTRIBUTES, key, &value));
        }
    }

    /// Something happened in it.
    pub fn event(&self, name: &str) {
        self.event_with(name, &[]);
    }

    /// Something happened in it, with details.
    pub fn event_with(&self, name: &str, attributes: &[(&str, Attribute<'_>)]) {
        if let Some(recording) = &self.recording {
            let now = recording.epoch.now();
            recording.write(|bytes| encode::event(bytes, now, name, attributes));
        }
    }

    /// It failed.
    pub fn fail(&self, message: &str) {
        if let Some(recording) = &self.recording {
            let mut status = Vec::with_capacity(message.len() + 6);
            if !message.is_empty() {
                encode::bytes(&mut status, 2, message.as_bytes());
            }
            encode::varint(&mut status, 3, 2);
            recording.write(|bytes| encode::bytes(bytes, encode::STATUS, &status));
        }
    }

    /// It never ends, so that nobody hears of it.
    pub fn discard(&self) {
        if let Some(recording) = &self.recording {
            recording.bytes.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// It ends now, whoever still holds it. What is said afterwards is lost.
    pub fn end(&self) {
        if let Some(recording) = &self.recording {
            recording.finish();
        }
    }
}

impl Recording {
    fn write(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = bytes.as_mut() {
            write(bytes);
        }
    }

    fn finish(&self) {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut bytes) = bytes {
            encode::fixed64(&mut bytes, encode::END, self.epoch.now());
            self.pipeline.push(Finished { scope: self.scope, bytes });
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Epoch {
    fn at(wall: SystemTime) -> Self {
        let passed = SystemTime::now().duration_since(wall).unwrap_or_default();
        let clock = Instant::now().checked_sub(passed).unwrap_or_else(Instant::now);
        let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX), clock }
    }

    fn now(self) -> u64 {
        self.wall.saturating_add(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

fn started(context: &Context, parent: Option<SpanId>, kind: Kind, name: &str, start: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    encode::bytes(&mut bytes, encode::TRACE_ID, context.trace.bytes());
    encode::bytes(&mut bytes, encode::SPAN_ID, context.span.bytes());
    if let Some(state) = &context.state {
        encode::bytes(&mut bytes, encode::TRACE_STATE, state.as_bytes());
    }
    if let Some(parent) = parent {
        encode::bytes(&mut bytes, encode::PARENT_SPAN_ID, parent.bytes());
    }
    encode::bytes(&mut bytes, encode::NAME, name.as_bytes());
    encode::varint(&mut bytes, encode::KIND, kind as u64);
    encode::fixed64(&mut bytes, encode::START, start);
    bytes
}

fn linked(context: &Context) -> Vec<u8> {
    let mut link = Vec::with_capacity(40);
    encode::bytes(&mut link, 1, context.trace.bytes());
    encode::bytes(&mut link, 2, context.span.bytes());
    if let Some(state) = &context.state {
        encode::bytes(&mut link, 3, state.as_bytes());
    }
    link
}
