//! Requests from decoded spans, a consumer that records, and a sampler between them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use kubewake_config::{ComponentId, FixedSources, load, model::ProcessorConfig as Settings};
use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, Status},
};
use prost::Message;
use tokio::sync::Notify;

use super::super::TailSampler;
use crate::core::{
    Batch, Charge, ConsumeOutcome, Consumer, DropReason, Member, OverflowPolicy, Part, Processor, Refusal,
    TailSamplerStats, testing::settle,
};

/// Settings as a document configures them.
pub(super) fn settings(text: &str) -> kubewake_config::model::TailSamplingProcessor {
    let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
    let document = format!(
        "receivers:\n  otlp: {{protocols: {{grpc: }}}}\nprocessors:\n  tail_sampling:\n{indented}exporters:\n  nop:\n\
         service:\n  pipelines:\n    traces: {{receivers: [otlp], processors: [tail_sampling], exporters: [nop]}}\n"
    );
    let loaded = load(&document, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}"));
    match loaded.document.processors.into_values().next().unwrap() {
        Settings::TailSampling(settings) => *settings,
        other => panic!("{other:?}"),
    }
}

pub(super) const START: u64 = 1_700_000_000_000_000_000;

/// A plain span of a trace.
pub(super) fn span(trace: u128) -> Span {
    Span {
        trace_id: if trace == 0 { Vec::new() } else { trace.to_be_bytes().to_vec() },
        span_id: vec![1; 8],
        parent_span_id: vec![2; 8],
        name: "op".into(),
        start_time_unix_nano: START,
        end_time_unix_nano: START + 10_000_000,
        ..Span::default()
    }
}

/// A span with an error.
pub(super) fn error(trace: u128) -> Span {
    Span { status: Some(Status { code: 2, ..Status::default() }), ..span(trace) }
}

/// A span without a parent.
pub(super) fn root(trace: u128) -> Span {
    Span { parent_span_id: Vec::new(), ..span(trace) }
}

pub(super) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// A request of one resource and one scope.
pub(super) fn request(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope = Some(InstrumentationScope { name: "lib".into(), ..InstrumentationScope::default() });
    let resource = Some(Resource { attributes: vec![text("service.name", "svc")], ..Resource::default() });
    let scope_spans = vec![ScopeSpans { scope, spans, ..ScopeSpans::default() }];
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }],
    }
}

/// A consumer that keeps the batches that it gets, when it has room.
#[derive(Default)]
pub(super) struct Backend {
    got: Mutex<Vec<Batch>>,
    closed: Mutex<bool>,
    opened: Notify,
}

impl Backend {
    pub(super) fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    pub(super) fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_waiters();
    }

    /// Marks the batches as sent: their memory is given back.
    fn take(&self, batch: Batch) {
        let mut sent = Batch::empty(batch.signal());
        let charge = Arc::new(Charge::exempt());
        batch.into_parts().into_iter().for_each(|part| sent.push(Part { charge: charge.clone(), ..part }));
        self.got.lock().unwrap().push(sent);
    }

    pub(super) fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let got = self.got.lock().unwrap();
        let parts = got.iter().flat_map(Batch::parts);
        parts
            .map(|part| {
                let scanned = kubewake_otlp::scan(Signal::Traces, &part.bytes).unwrap();
                assert_eq!(scanned.items, part.items, "a part counts its items right");
                ExportTraceServiceRequest::decode(part.bytes.clone()).unwrap()
            })
            .collect()
    }

    pub(super) fn batches(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        let resources = self.requests().into_iter().flat_map(|request| request.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// Number of spans that arrived, by trace.
    pub(super) fn traces(&self) -> BTreeMap<u128, usize> {
        let mut traces = BTreeMap::new();
        for span in self.spans() {
            *traces.entry(span.trace_id.try_into().map_or(0, u128::from_be_bytes)).or_default() += 1;
        }
        traces
    }

    pub(super) fn forget(&self) {
        self.got.lock().unwrap().clear();
    }
}

impl Consumer for Backend {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        assert_eq!(pressure, OverflowPolicy::Wait, "what was acknowledged waits for room");
        if !*self.closed.lock().unwrap() {
            self.take(batch);
            return ConsumeOutcome::Now(Ok(()));
        }
        ConsumeOutcome::later(async move {
            while *self.closed.lock().unwrap() {
                self.opened.notified().await;
            }
            self.take(batch);
            Ok(())
        })
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {
        panic!("nothing is lost");
    }
}

/// A sampler with a backend behind it.
pub(super) struct Setup {
    pub(super) sampler: Arc<TailSampler>,
    pub(super) backend: Arc<Backend>,
    pub(super) stats: Arc<TailSamplerStats>,
    pub(super) member: Option<Arc<Member>>,
}

impl Setup {
    pub(super) fn new(text: &str) -> Self {
        Self::with_settings(settings(text))
    }

    pub(super) fn with_settings(settings: kubewake_config::model::TailSamplingProcessor) -> Self {
        let stats = Arc::<TailSamplerStats>::default();
        let sampler = TailSampler::new(&ComponentId::new("tail_sampling"), settings, Arc::default(), stats.clone());
        let backend = Arc::new(Backend::default());
        sampler.output().set_targets(vec![backend.clone()]);
        Self { sampler, backend, stats, member: None }
    }

    /// Requests are charged to this account from now on.
    pub(super) fn charged_to(self, member: Arc<Member>) -> Self {
        Self { member: Some(member), ..self }
    }

    pub(super) async fn send(&self, spans: Vec<Span>) {
        self.try_send(&request(spans)).await.unwrap();
    }

    pub(super) async fn try_send(&self, request: &ExportTraceServiceRequest) -> Result<(), Refusal> {
        let bytes = Bytes::from(request.encode_to_vec());
        let items = kubewake_otlp::scan(Signal::Traces, &bytes).unwrap().items;
        let charge = match &self.member {
            None => Charge::exempt(),
            Some(member) => member.reserve(bytes.len() as u64).ok_or_else(Refusal::out_of_memory)?,
        };
        let part = Part::new(bytes, items, Arc::default(), Arc::new(charge));
        self.sampler.clone().consume(Batch::single(Signal::Traces, part), OverflowPolicy::Refuse).wait().await
    }

    pub(super) async fn pass(&self, milliseconds: u64) {
        settle().await;
        // Step by step, as a timer that is set meanwhile must be noticed.
        for _ in 0..milliseconds.div_ceil(100) {
            tokio::time::advance(Duration::from_millis(100)).await;
            settle().await;
        }
    }

    pub(super) fn kept(&self) -> BTreeMap<u128, usize> {
        self.backend.traces()
    }
}
