//! Routing keys of records. Records with the same key stay together.

use kubewake_config::model::RoutingKey;
use kubewake_otlp::{
    PartitionGrain, Signal,
    view::{AttributesView, DataPoint, KeyValue, MessageView, RecordRef, RecordView},
};

use super::ranking;

#[cfg(test)]
mod tests;

/// Computes the routing keys of records.
pub(super) struct RecordRouter {
    key: RoutingKey,
    /// The last resource, by its position, and its key: consecutive records share it.
    last: Option<(usize, usize, u64)>,
    text: Vec<u8>,
}

impl RecordRouter {
    /// Routes by `key`, or by the signal's default.
    pub(super) fn new(key: Option<&RoutingKey>, signal: Signal) -> Self {
        let usual = || match signal {
            Signal::Traces => RoutingKey::TraceId,
            Signal::Logs | Signal::Metrics => RoutingKey::Service,
        };
        Self { key: key.cloned().unwrap_or_else(usual), last: None, text: Vec::new() }
    }

    /// The smallest unit of a partition.
    pub(super) fn grain(&self) -> PartitionGrain {
        match self.key {
            RoutingKey::StreamId | RoutingKey::Attributes(_) => PartitionGrain::Items,
            _ => PartitionGrain::Records,
        }
    }

    /// The key of a record, or of a data point.
    pub(super) fn routing_key(&mut self, record: &RecordRef<'_>, point: Option<&DataPoint<'_>>) -> u64 {
        match &self.key {
            RoutingKey::TraceId => match (record.trace_id(), record.view()) {
                // Log records without a trace, which is most of them, must not all go to one peer.
                ([], RecordView::Log(_)) => fastrand::u64(..),
                (id, _) => ranking::key(id),
            },
            RoutingKey::Service => {
                self.resource_key(record, |resource| ranking::key(resource.text("service.name").unwrap_or_default()))
            }
            RoutingKey::Resource => self.resource_key(record, attributes_key),
            RoutingKey::Metric => ranking::key(record.metric().map(|metric| metric.name()).unwrap_or_default()),
            RoutingKey::StreamId => {
                let resource = self.resource_key(record, attributes_key);
                self.stream_key(resource, record, point)
            }
            RoutingKey::Attributes(names) => {
                self.text.clear();
                for name in names {
                    add_attribute(&mut self.text, name, record, point);
                }
                ranking::key(&self.text)
            }
        }
    }

    fn resource_key(&mut self, record: &RecordRef<'_>, key: impl FnOnce(AttributesView<'_>) -> u64) -> u64 {
        let resource = record.resource();
        let place = (resource.as_bytes().as_ptr().addr(), resource.as_bytes().len());
        match self.last {
            // An empty resource has no position of its own.
            Some((at, length, key)) if (at, length) == place && length > 0 => key,
            _ => {
                let key = key(resource.attributes());
                self.last = Some((place.0, place.1, key));
                key
            }
        }
    }

    fn stream_key(&mut self, resource: u64, record: &RecordRef<'_>, point: Option<&DataPoint<'_>>) -> u64 {
        let scope = record.scope();
        let text = &mut self.text;
        text.clear();
        text.extend_from_slice(&resource.to_le_bytes());
        text.extend_from_slice(&attributes_key(scope.attributes()).to_le_bytes());
        text.extend_from_slice(&point.map_or(0, |point| attributes_key(point.attributes())).to_le_bytes());
        let metric = record.metric();
        let data = metric.and_then(|metric| metric.data());
        let kind = data.map(|data| (data.kind() as u8, data.temporality() as u8, data.is_monotonic()));
        let (kind, temporality, monotonic) = kind.unwrap_or_default();
        text.extend_from_slice(&[kind, temporality, u8::from(monotonic)]);
        let names = metric.map(|metric| [metric.name(), metric.unit()]).unwrap_or_default();
        for name in [scope.name(), scope.version()].into_iter().chain(names) {
            text.extend_from_slice(name);
            text.push(0);
        }
        ranking::key(text)
    }
}

/// One hash for all attributes, independent of their order.
fn attributes_key(attributes: AttributesView<'_>) -> u64 {
    attributes.iter().fold(0, |sum: u64, attribute| sum.wrapping_add(ranking::key(attribute.as_bytes())))
}

/// Appends a name and its value: of the resource, else of the scope, else of the record.
fn add_attribute(text: &mut Vec<u8>, name: &str, record: &RecordRef<'_>, point: Option<&DataPoint<'_>>) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    let find = |attributes: AttributesView<'_>, text: &mut Vec<u8>| {
        let is_it = |attribute: &KeyValue<'_>| attribute.key() == name.as_bytes();
        let found = attributes.iter().find(is_it);
        found.inspect(|attribute| text.extend_from_slice(&attribute.raw_value())).is_some()
    };
    let around = find(record.resource().attributes(), text) || find(record.scope().attributes(), text);
    if !around {
        match (record.view(), name) {
            (RecordView::Span(span), "span.kind") => text.push(span.kind() as u8),
            (RecordView::Span(span), "span.name") => text.extend_from_slice(span.name()),
            (RecordView::Span(span), _) => drop(find(span.attributes(), text)),
            (RecordView::Log(log), "log.severity") => text.push(log.severity_number() as u8),
            (RecordView::Log(log), "log.body") => text.extend_from_slice(&log.raw_body()),
            (RecordView::Log(log), _) => drop(find(log.attributes(), text)),
            (RecordView::Metric(_), _) => drop(point.map(|point| find(point.attributes(), text))),
        }
    }
    text.push(b'|');
}
