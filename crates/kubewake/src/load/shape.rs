//! The content of requests: one resource, one scope, and records as an instrumented web service produces them.

use kubewake_otlp::Signal;

use super::encode::{MessageBuilder, SlotContent, TemplateSlot};

/// Sizes of a request's content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestShape {
    pub signal: Signal,
    pub items: u64,
    pub traces: u64,
    pub attributes: usize,
    /// Share of records with an error.
    pub error_share: f64,
}

/// One millisecond, the unit of the generated durations.
const MILLISECOND: u64 = 1_000_000;

impl RequestShape {
    /// Number of records with an error in the request with this number. Where the share does not yield a whole
    /// number, some requests have one more than others, so that the average is exact.
    pub(crate) fn errors_in_request(&self, request: u64) -> u64 {
        let until = |requests: u64| (requests as f64 * self.items as f64 * self.error_share).round() as u64;
        until(request + 1).saturating_sub(until(request)).min(self.items)
    }

    /// Encodes a request with this number of errors and with empty slots.
    pub(crate) fn encode(&self, errors: u64) -> (Vec<u8>, Vec<TemplateSlot>) {
        let scope = MessageBuilder::default().text(1, "kubewake.load").text(2, "1.0.0");
        let records = MessageBuilder::default().message(1, scope);
        let records = match self.signal {
            Signal::Traces => records.for_each(0..self.items, |scope, i| scope.message(2, self.span(i, errors))),
            Signal::Logs => records.for_each(0..self.items, |scope, i| scope.message(2, self.log_record(i, errors))),
            Signal::Metrics => records.message(2, self.metric()),
        };
        let resource = MessageBuilder::default().message(1, resource()).message(2, records);
        MessageBuilder::default().message(1, resource).finish()
    }

    fn span(&self, i: u64, errors: u64) -> MessageBuilder {
        let root = self.first_item_of_trace(self.trace_index(i));
        let span =
            MessageBuilder::default().slot(1, SlotContent::Trace(self.trace_index(i))).slot(2, SlotContent::Item(i));
        let span = if i == root { span } else { span.slot(4, SlotContent::Item(root)) };
        let span = span
            .text(5, if i == root { "GET /api/v1/orders/{id}" } else { "SELECT shop.orders" })
            .varint(6, if i == root { 2 } else { 3 })
            .slot(7, SlotContent::Time(0))
            .slot(8, SlotContent::Time((1 + i % 50) * MILLISECOND));
        let span = self.with_attributes(span, 9, i);
        if self.is_error(i, errors) {
            return span.message(15, MessageBuilder::default().text(2, "upstream connect error").varint(3, 2));
        }
        span
    }

    fn log_record(&self, i: u64, errors: u64) -> MessageBuilder {
        let (number, text) = if self.is_error(i, errors) { (17, "ERROR") } else { (9, "INFO") };
        let record = MessageBuilder::default()
            .slot(1, SlotContent::Time(0))
            .varint(2, number)
            .text(3, text)
            .message(5, MessageBuilder::default().text(1, "order accepted, payment is under way"));
        self.with_attributes(record, 6, i)
            .slot(9, SlotContent::Trace(self.trace_index(i)))
            .slot(10, SlotContent::Item(i))
            .slot(11, SlotContent::Time(0))
    }

    /// One sum with a data point per item. The exemplar carries the ids, for which a data point has no field.
    fn metric(&self) -> MessageBuilder {
        let sum = MessageBuilder::default().for_each(0..self.items, |sum, i| sum.message(1, self.point(i)));
        let sum = sum.varint(2, 2).varint(3, 1);
        MessageBuilder::default().text(1, "http.server.requests").text(3, "{request}").message(7, sum)
    }

    fn point(&self, i: u64) -> MessageBuilder {
        let exemplar = MessageBuilder::default()
            .slot(2, SlotContent::Time(0))
            .slot(4, SlotContent::Item(i))
            .slot(5, SlotContent::Trace(self.trace_index(i)));
        let point =
            MessageBuilder::default().slot(2, SlotContent::Time(0)).slot(3, SlotContent::Time(0)).message(5, exemplar);
        // The value only has to change, so it repeats the time.
        self.with_attributes(point.slot(6, SlotContent::Time(i)), 7, i)
    }

    fn with_attributes(&self, record: MessageBuilder, field: u64, i: u64) -> MessageBuilder {
        record.for_each(0..self.attributes, |record, k| record.message(field, attribute(k, i)))
    }

    fn trace_index(&self, i: u64) -> u64 {
        i * self.traces / self.items
    }

    fn first_item_of_trace(&self, trace: u64) -> u64 {
        (trace * self.items).div_ceil(self.traces)
    }

    /// Errors are spread evenly: the running total increases at this record.
    fn is_error(&self, i: u64, errors: u64) -> bool {
        (i + 1) * errors / self.items > i * errors / self.items
    }
}

fn resource() -> MessageBuilder {
    let attributes = [
        ("service.name", "checkout"),
        ("service.version", "2.14.3"),
        ("service.instance.id", "checkout-6c8f7d9b5-x2x7k"),
        ("k8s.namespace.name", "shop"),
        ("k8s.pod.name", "checkout-6c8f7d9b5-x2x7k"),
        ("telemetry.sdk.language", "rust"),
    ];
    MessageBuilder::default()
        .for_each(attributes, |resource, (key, value)| resource.message(1, pair(key, string(value))))
}

/// The attribute with index `k`: attributes of HTTP instrumentation, then numbered ones.
fn attribute(k: usize, i: u64) -> MessageBuilder {
    match k {
        0 => pair("http.request.method", string("GET")),
        1 => pair("url.path", string(&format!("/api/v1/orders/{:05}", 10_000 + i * 7))),
        2 => pair("http.route", string("/api/v1/orders/{id}")),
        3 => pair("http.response.status_code", integer(200)),
        4 => pair("server.address", string("checkout.shop.svc.cluster.local")),
        5 => pair("server.port", integer(8443)),
        6 => pair("client.address", string(&format!("10.42.{}.{}", i % 16, i % 250))),
        7 => pair("user_agent.original", string("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101")),
        8 => pair("network.protocol.version", string("1.1")),
        9 => pair("http.response.body.size", integer(512 + i * 13)),
        _ => pair(&format!("app.attribute.{k}"), string("some value of ordinary length")),
    }
}

fn pair(key: &str, value: MessageBuilder) -> MessageBuilder {
    MessageBuilder::default().text(1, key).message(2, value)
}

fn string(value: &str) -> MessageBuilder {
    MessageBuilder::default().text(1, value)
}

fn integer(value: u64) -> MessageBuilder {
    MessageBuilder::default().varint(3, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(items: u64, error_share: f64) -> RequestShape {
        RequestShape { signal: Signal::Traces, items, traces: 1, attributes: 0, error_share }
    }

    #[test]
    fn the_share_of_errors_is_right_in_the_long_run_however_small() {
        for (items, share) in [(10, 0.01), (100, 0.001), (7, 0.5), (1, 0.3), (20, 0.25), (10, 0.0), (10, 1.0)] {
            let shape = shape(items, share);
            let counts: Vec<u64> = (0..10_000).map(|request| shape.errors_in_request(request)).collect();
            let least = counts.iter().min().unwrap();
            let most = counts.iter().max().unwrap();
            assert!(most - least <= 1, "{items} {share}: {least} to {most}");
            let expected = 10_000.0 * items as f64 * share;
            assert!((counts.iter().sum::<u64>() as f64 - expected).abs() <= 1.0, "{items} {share}");
        }
    }

    #[test]
    fn a_request_has_as_many_errors_as_it_is_to() {
        let shape = shape(10, 0.0);
        for errors in 0..=10 {
            assert_eq!((0..10).filter(|i| shape.is_error(*i, errors)).count() as u64, errors);
        }
    }
}
