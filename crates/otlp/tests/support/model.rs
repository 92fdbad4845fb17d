//! The operations on decoded data, written for clarity alone: the reference for the operations on bytes.

use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// A request of any signal, in one common structure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decoded<R>(pub(crate) Vec<ResourceEntry<R>>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResourceEntry<R> {
    pub(crate) resource: Option<Resource>,
    pub(crate) schema_url: String,
    pub(crate) scopes: Vec<ScopeEntry<R>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScopeEntry<R> {
    pub(crate) scope: Option<InstrumentationScope>,
    pub(crate) schema_url: String,
    pub(crate) records: Vec<R>,
}

/// The facts about a record that the models need.
pub(crate) trait Record: Clone + std::fmt::Debug + PartialEq + Message + Default {
    const SIGNAL: Signal;

    fn decode_request(bytes: &[u8]) -> Decoded<Self>;
    fn items(&self) -> usize;
    /// One record per item; a record without items stays one.
    fn explode(self) -> Vec<Self>;
    fn trace_id(&self) -> &[u8];
    fn attribute_lists(&mut self) -> Vec<&mut Vec<KeyValue>>;
    fn ids(&mut self) -> Vec<&mut Vec<u8>>;
}

macro_rules! decode {
    ($bytes:ident, $request:ident, $resources:ident, $scopes:ident, $records:ident) => {
        Decoded(
            $request::decode($bytes)
                .expect("an independent decoder reads it")
                .$resources
                .into_iter()
                .map(|entry| ResourceEntry {
                    resource: entry.resource,
                    schema_url: entry.schema_url,
                    scopes: (entry.$scopes.into_iter())
                        .map(|scope| ScopeEntry {
                            scope: scope.scope,
                            schema_url: scope.schema_url,
                            records: scope.$records,
                        })
                        .collect(),
                })
                .collect(),
        )
    };
}

impl Record for Span {
    const SIGNAL: Signal = Signal::Traces;

    fn decode_request(bytes: &[u8]) -> Decoded<Self> {
        decode!(bytes, ExportTraceServiceRequest, resource_spans, scope_spans, spans)
    }

    fn items(&self) -> usize {
        1
    }

    fn explode(self) -> Vec<Self> {
        vec![self]
    }

    fn trace_id(&self) -> &[u8] {
        &self.trace_id
    }

    fn attribute_lists(&mut self) -> Vec<&mut Vec<KeyValue>> {
        vec![&mut self.attributes]
    }

    fn ids(&mut self) -> Vec<&mut Vec<u8>> {
        vec![&mut self.trace_id, &mut self.span_id, &mut self.parent_span_id]
    }
}

impl Record for LogRecord {
    const SIGNAL: Signal = Signal::Logs;

    fn decode_request(bytes: &[u8]) -> Decoded<Self> {
        decode!(bytes, ExportLogsServiceRequest, resource_logs, scope_logs, log_records)
    }

    fn items(&self) -> usize {
        1
    }

    fn explode(self) -> Vec<Self> {
        vec![self]
    }

    fn trace_id(&self) -> &[u8] {
        &self.trace_id
    }

    fn attribute_lists(&mut self) -> Vec<&mut Vec<KeyValue>> {
        vec![&mut self.attributes]
    }

    fn ids(&mut self) -> Vec<&mut Vec<u8>> {
        vec![&mut self.trace_id, &mut self.span_id]
    }
}

/// Applies a function to the points of any kind of data.
macro_rules! with_points {
    ($data:expr, $points:ident => $body:expr, $none:expr) => {
        match $data {
            None => $none,
            Some(metric::Data::Gauge(data)) => {
                let $points = &mut data.data_points;
                $body
            }
            Some(metric::Data::Sum(data)) => {
                let $points = &mut data.data_points;
                $body
            }
            Some(metric::Data::Histogram(data)) => {
                let $points = &mut data.data_points;
                $body
            }
            Some(metric::Data::ExponentialHistogram(data)) => {
                let $points = &mut data.data_points;
                $body
            }
            Some(metric::Data::Summary(data)) => {
                let $points = &mut data.data_points;
                $body
            }
        }
    };
}

impl Record for Metric {
    const SIGNAL: Signal = Signal::Metrics;

    fn decode_request(bytes: &[u8]) -> Decoded<Self> {
        decode!(bytes, ExportMetricsServiceRequest, resource_metrics, scope_metrics, metrics)
    }

    fn items(&self) -> usize {
        with_points!(&mut self.data.clone(), points => points.len(), 0)
    }

    fn explode(self) -> Vec<Self> {
        if self.items() == 0 {
            return vec![self];
        }
        let alone = |index: usize| {
            let mut metric = self.clone();
            with_points!(&mut metric.data, points => *points = vec![points[index].clone()], ());
            metric
        };
        (0..self.items()).map(alone).collect()
    }

    fn trace_id(&self) -> &[u8] {
        &[]
    }

    fn attribute_lists(&mut self) -> Vec<&mut Vec<KeyValue>> {
        with_points!(&mut self.data, points => points.iter_mut().map(|point| &mut point.attributes).collect(), vec![])
    }

    fn ids(&mut self) -> Vec<&mut Vec<u8>> {
        Vec::new()
    }
}

/// One item with everything that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item<R> {
    pub(crate) resource: (Option<Resource>, String),
    pub(crate) scope: (Option<InstrumentationScope>, String),
    pub(crate) record: R,
}

impl<R: Record> Decoded<R> {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        R::decode_request(bytes)
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &R> {
        self.0.iter().flat_map(|entry| &entry.scopes).flat_map(|scope| &scope.records)
    }

    pub(crate) fn items(&self) -> usize {
        self.records().map(R::items).sum()
    }

    /// Each item by itself, whatever its entry.
    pub(crate) fn flat(&self) -> Vec<Item<R>> {
        let mut items = Vec::new();
        for entry in &self.0 {
            for scope in &entry.scopes {
                for record in scope.records.iter().cloned().flat_map(R::explode) {
                    items.push(Item {
                        resource: (entry.resource.clone(), entry.schema_url.clone()),
                        scope: (scope.scope.clone(), scope.schema_url.clone()),
                        record,
                    });
                }
            }
        }
        items
    }

    /// Number of empty entries: resources without scopes, scopes without records.
    pub(crate) fn empty_entries(&self) -> (usize, usize) {
        let scopes = self.0.iter().flat_map(|entry| &entry.scopes);
        (
            self.0.iter().filter(|entry| entry.scopes.is_empty()).count(),
            scopes.filter(|scope| scope.records.is_empty()).count(),
        )
    }

    pub(crate) fn retain(mut self, keep: impl Fn(&ResourceEntry<R>, &ScopeEntry<R>, &R) -> bool) -> Self {
        self.0.retain_mut(|entry| {
            let whole = entry.clone();
            let had = count(entry);
            entry.scopes.retain_mut(|scope| {
                let all = scope.clone();
                scope.records.retain(|record| keep(&whole, &all, record));
                all.records.is_empty() || !scope.records.is_empty()
            });
            had == 0 || count(entry) > 0
        });
        self
    }
}

fn count<R>(entry: &ResourceEntry<R>) -> usize {
    entry.scopes.iter().map(|scope| scope.records.len()).sum()
}
