//! Spans, recorded or not.

use std::{
    fmt,
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderValue};
use kubewake_runtime::lock::Mutex;

use super::{FinishedSpan, SpanContext, SpanId, SpanOrigin, SpanPipeline, context, encode};

/// A span. Cheap to clone; it ends with its last clone, or explicitly. One that is not recorded costs nothing.
#[derive(Clone, Debug, Default)]
pub struct TraceSpan {
    context: Option<Arc<SpanContext>>,
    baggage: Option<HeaderValue>,
    recording: Option<Arc<SpanRecording>>,
}

/// The instrumentation scope of a span, with kube-apiserver's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstrumentationScope {
    /// The HTTP server and client.
    Http,
    /// The filters before the handler.
    Filter,
    Component,
    Store,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanAttributeValue<'a> {
    Text(&'a str),
    Number(i64),
    Flag(bool),
}

/// The initial properties of a span.
#[derive(Clone, Copy)]
pub struct SpanStart<'a> {
    pub scope: InstrumentationScope,
    pub kind: TraceSpanKind,
    /// The name, which is formatted only if the span is recorded.
    pub name: &'a dyn fmt::Display,
    pub start: SystemTime,
}

impl fmt::Debug for SpanStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Begin({})", self.name)
    }
}

#[derive(Debug)]
struct SpanRecording {
    pipeline: Arc<SpanPipeline>,
    scope: InstrumentationScope,
    /// Times are measured from the request's start, since the wall clock may jump.
    epoch: ClockEpoch,
    /// The encoded span so far; none once it has ended.
    bytes: Mutex<Option<Vec<u8>>>,
    /// Keeps the parent from ending before this span, unless it is ended explicitly: a watch continues after
    /// its handler.
    _parent: Option<Arc<SpanRecording>>,
}

/// The same moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct ClockEpoch {
    wall: u64,
    clock: Instant,
}

impl InstrumentationScope {
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            InstrumentationScope::Http => ("go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp", "0.69.0"),
            InstrumentationScope::Filter => ("k8s.op/apiserver/pkg/endpoints/filterlatency", ""),
            InstrumentationScope::Component => ("k8s.io/component-base/tracing", ""),
            InstrumentationScope::Store => {
                ("go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc", "0.68.0")
            }
        }
    }
}

impl<'a> From<&'a str> for SpanAttributeValue<'a> {
    fn from(text: &'a str) -> Self {
        SpanAttributeValue::Text(text)
    }
}

impl<'a> From<&'a String> for SpanAttributeValue<'a> {
    fn from(text: &'a String) -> Self {
        SpanAttributeValue::Text(text)
    }
}

impl From<i64> for SpanAttributeValue<'_> {
    fn from(number: i64) -> Self {
        SpanAttributeValue::Number(number)
    }
}

impl From<usize> for SpanAttributeValue<'_> {
    fn from(number: usize) -> Self {
        SpanAttributeValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl TraceSpan {
    /// A span that is not recorded, but passes the caller's context on.
    pub(super) fn passthrough(origin: &SpanOrigin<'_>) -> Self {
        let context = match origin {
            SpanOrigin::Parent(context) | SpanOrigin::Link(context) => Some(Arc::new((*context).clone())),
            SpanOrigin::Root => None,
        };
        Self { context, baggage: None, recording: None }
    }

    /// The first span of this process, whose context was decided already.
    pub(super) fn start_local_root(
        pipeline: Option<Arc<SpanPipeline>>,
        context: SpanContext,
        origin: &SpanOrigin<'_>,
        begin: SpanStart<'_>,
    ) -> Self {
        let recording = pipeline.map(|pipeline| {
            let epoch = ClockEpoch::from_wall_clock(begin.start);
            let (parent, link) = match origin {
                SpanOrigin::Parent(context) => (Some(context.span), None),
                SpanOrigin::Link(context) => (None, Some(*context)),
                SpanOrigin::Root => (None, None),
            };
            let mut bytes = encode_start(&context, parent, begin.kind, &begin.name.to_string(), epoch.wall);
            if let Some(link) = link {
                encode::bytes(&mut bytes, encode::LINKS, &encode_link(link));
            }
            Arc::new(SpanRecording {
                pipeline,
                scope: begin.scope,
                epoch,
                bytes: Mutex::new(Some(bytes)),
                _parent: None,
            })
        });
        Self { context: Some(Arc::new(context)), baggage: None, recording }
    }

    /// Adds the baggage of the caller.
    #[must_use]
    pub fn with_baggage(self, headers: &HeaderMap) -> Self {
        Self { baggage: context::baggage(headers), ..self }
    }

    /// Whether the span is recorded. Costly attributes are computed only then.
    pub fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Its context, or the one that is passed on.
    pub fn context(&self) -> Option<&SpanContext> {
        self.context.as_deref()
    }

    pub fn inject(&self, headers: &mut HeaderMap) {
        if let Some(context) = &self.context {
            context.inject(headers);
        }
        if let Some(baggage) = &self.baggage {
            context::inject_baggage(baggage, headers);
        }
    }

    #[must_use]
    pub fn child(&self, scope: InstrumentationScope, kind: TraceSpanKind, name: &str) -> Self {
        let (Some(context), Some(recording)) = (&self.context, &self.recording) else { return self.clone() };
        let child = SpanContext { span: SpanId::random(), ..(**context).clone() };
        let bytes = encode_start(&child, Some(context.span), kind, name, recording.epoch.now());
        let child_recording = SpanRecording {
            pipeline: Arc::clone(&recording.pipeline),
            scope,
            epoch: recording.epoch,
            bytes: Mutex::new(Some(bytes)),
            _parent: Some(Arc::clone(recording)),
        };
        let baggage = self.baggage.clone();
        Self { context: Some(Arc::new(child)), baggage, recording: Some(Arc::new(child_recording)) }
    }

    /// A child span for handlers, admission and storage, which starts now.
    #[must_use]
    pub fn component_child(&self, name: &str) -> Self {
        self.child(InstrumentationScope::Component, TraceSpanKind::Internal, name)
    }

    pub fn set_attribute<'a>(&self, key: &str, value: impl Into<SpanAttributeValue<'a>>) {
        if let Some(recording) = &self.recording {
            let value = value.into();
            recording.write(|bytes| encode::attribute(bytes, encode::ATTRIBUTES, key, &value));
        }
    }

    pub fn add_event(&self, name: &str) {
        self.add_event_with(name, &[]);
    }

    /// Adds an event with attributes.
    pub fn add_event_with(&self, name: &str, attributes: &[(&str, SpanAttributeValue<'_>)]) {
        if let Some(recording) = &self.recording {
            let now = recording.epoch.now();
            recording.write(|bytes| encode::event(bytes, now, name, attributes));
        }
    }

    pub fn set_error(&self, message: &str) {
        if let Some(recording) = &self.recording {
            let mut status = Vec::with_capacity(message.len() + 6);
            if !message.is_empty() {
                encode::bytes(&mut status, 2, message.as_bytes());
            }
            encode::varint(&mut status, 3, 2);
            recording.write(|bytes| encode::bytes(bytes, encode::STATUS, &status));
        }
    }

    /// Drops the span, which is then never exported.
    pub fn discard(&self) {
        if let Some(recording) = &self.recording {
            recording.bytes.lock().take();
        }
    }

    /// Ends the span, whoever still holds it. Later changes are lost.
    pub fn end(&self) {
        if let Some(recording) = &self.recording {
            recording.finish();
        }
    }
}

impl SpanRecording {
    fn write(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes.lock();
        if let Some(bytes) = bytes.as_mut() {
            write(bytes);
        }
    }

    fn finish(&self) {
        let bytes = self.bytes.lock().take();
        if let Some(mut bytes) = bytes {
            encode::fixed64(&mut bytes, encode::END, self.epoch.now());
            self.pipeline.push(FinishedSpan { scope: self.scope, bytes });
        }
    }
}

impl Drop for SpanRecording {
    fn drop(&mut self) {
        self.finish();
    }
}

impl ClockEpoch {
    fn from_wall_clock(wall: SystemTime) -> Self {
        let passed = SystemTime::now().duration_since(wall).unwrap_or_default();
        let clock = Instant::now().checked_sub(passed).unwrap_or_else(Instant::now);
        let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX), clock }
    }

    fn now(self) -> u64 {
        self.wall.saturating_add(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

fn encode_start(context: &SpanContext, parent: Option<SpanId>, kind: TraceSpanKind, name: &str, start: u64) -> Vec<u8> {
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

fn encode_link(context: &SpanContext) -> Vec<u8> {
    let mut link = Vec::with_capacity(40);
    encode::bytes(&mut link, 1, context.trace.bytes());
    encode::bytes(&mut link, 2, context.span.bytes());
    if let Some(state) = &context.state {
        encode::bytes(&mut link, 3, state.as_bytes());
    }
    link
}
