//! Invariants for any bytes: the bodies of the fuzz targets, which the corpus test replays too.
//!
//! The first byte of an input selects the signal and the other variants; the rest is the request.

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use kubewake_otlp::view::{
    self, AnyValue, AttributesView, DataPoint, MessageView, RecordRef, RecordView, Resource, Scope,
};
use kubewake_otlp::wire::{WireFields, put_bytes};
use kubewake_otlp::{
    AttributeChange, AttributeDisposition, AttributeList, EditList, MessageEdit, RecordEditor, ScanSummary,
    SetCondition, Signal, SpanDisposition, SpanTraits, SplitLimit,
};

/// The signal, the other variants, and the request.
fn parts(data: &[u8]) -> Option<(Signal, usize, Bytes)> {
    let (&choice, request) = data.split_first()?;
    let signal = Signal::ALL[usize::from(choice) % 3];
    Some((signal, usize::from(choice) / 3, Bytes::copy_from_slice(request)))
}

/// `scan` ends, `index` and the views agree with it, and all-zero ids can be cleared.
pub(crate) fn scan(data: &[u8]) {
    let Some((signal, _, request)) = parts(data) else { return };
    let summary = kubewake_otlp::scan(signal, &request);
    let index = kubewake_otlp::index(signal, &request);
    assert_eq!(index.as_ref().map(|index| index.summary), summary.as_ref().map(|summary| *summary));
    let seen = see_all(signal, &request);
    let cleared = kubewake_otlp::clear_zero_ids(signal, &request);
    kubewake_otlp::group_by_trace(&request).for_each(drop);
    match (summary, index) {
        (Ok(summary), Ok(index)) => {
            assert_eq!(index.records.len(), summary.records);
            let counted = ScanSummary { zero_ids: false, traits: SpanTraits::default(), ..summary };
            assert_eq!(seen, counted);
            assert_eq!(index.records.iter().map(|record| record.items).sum::<usize>(), summary.items);
            let after = kubewake_otlp::scan(signal, &cleared).expect("a request without zero ids is a request");
            assert_eq!(ScanSummary { traits: SpanTraits::default(), ..after }, counted);
            known(signal, &request, summary.traits);
            grouped(signal, &request, summary);
        }
        (Err(error), _) => assert!(error.offset <= request.len(), "{error}"),
        _ => {}
    }
}

/// The traits of all spans are true of each span.
fn known(signal: Signal, request: &[u8], traits: SpanTraits) {
    if signal != Signal::Traces {
        assert_eq!(traits, SpanTraits::default());
        return;
    }
    let scopes = view::resources(request).flat_map(|resource| resource.scopes());
    for span in scopes.flat_map(|scope| scope.spans()) {
        if traits.has_plain_ids() {
            assert!(!span.trace_id().is_empty() && span.trace_state().is_empty());
            assert_eq!(span.leading_trace_id().map(|id| &id[..]), Some(span.trace_id()));
        }
        for attribute in span.attributes().iter() {
            // An attribute with several keys is an encoding that no SDK writes.
            let keys = WireFields::new(attribute.as_bytes()).filter(|field| field.is_len(1)).count();
            let key = str::from_utf8(attribute.key()).ok().filter(|_| keys == 1);
            assert!(key.is_none_or(|key| traits.may_have(key)), "{key:?}");
        }
    }
}

fn grouped(signal: Signal, request: &Bytes, summary: ScanSummary) {
    if signal != Signal::Traces {
        return;
    }
    let groups: Vec<_> = kubewake_otlp::group_by_trace(request).collect();
    assert_eq!(groups.iter().map(|group| group.items).sum::<usize>(), summary.items);
    for group in groups {
        let index = kubewake_otlp::index(signal, &group.bytes).expect("a group is a request");
        assert_eq!(index.summary.items, group.items);
        assert!(index.records.iter().all(|record| record.trace_id == group.trace_id));
    }
}

/// The pieces are requests within the limit, and have the same content together.
pub(crate) fn split(data: &[u8]) {
    let Some((signal, choice, request)) = parts(data) else { return };
    let size = NonZeroUsize::MIN.saturating_add(choice / 2 * if choice % 2 == 0 { 1 } else { 8 });
    let limit = if choice % 2 == 0 { SplitLimit::Items(size) } else { SplitLimit::Bytes(size) };
    let pieces: Vec<_> = kubewake_otlp::split(signal, &request, limit).collect();
    let Ok(summary) = kubewake_otlp::scan(signal, &request) else { return };
    let mut records = 0;
    for piece in &pieces {
        let part = kubewake_otlp::scan(signal, &piece.bytes).expect("a piece is a request");
        assert_eq!(part.items, piece.items);
        records += part.records;
        let within = match limit {
            SplitLimit::Items(limit) => piece.items <= limit.get(),
            SplitLimit::Bytes(limit) => piece.bytes.len() <= limit.get(),
        };
        // A larger piece cannot be cut, and is alone: a record, or an entry of little else than headers.
        assert!(within || part.records <= 1 || part.resources <= 1, "{limit:?} {part:?}");
    }
    assert_eq!(pieces.iter().map(|piece| piece.items).sum::<usize>(), summary.items);
    assert!(records >= summary.records);
}

/// Any OpenCensus input becomes OTLP or an error, and the same the second time, when the sender is known.
pub(crate) fn opencensus(data: &[u8]) {
    let Some((&choice, request)) = data.split_first() else { return };
    let requests: Vec<Vec<u8>> = match choice % 2 {
        0 => vec![request.to_vec()],
        _ => kubewake_otlp::opencensus::from_json(request).map_while(Result::ok).collect(),
    };
    let mut sender = kubewake_otlp::opencensus::OpenCensusStream::default();
    for request in requests {
        let mut translate = || sender.translate(&request, |_| Ok::<_, ()>(())).ok();
        if let Some(translated) = translate() {
            assert!(kubewake_otlp::scan(Signal::Traces, &translated).is_ok());
            assert_eq!(translate(), Some(translated));
        }
    }
}

/// The kept and the dropped records together are the request.
pub(crate) fn retain(data: &[u8]) {
    let Some((signal, choice, request)) = parts(data) else { return };
    let chosen = |record: &RecordRef<'_>| {
        let text = record.resource().attributes().iter().count() + record.scope().name().len();
        (text + record.as_bytes().iter().map(|&byte| usize::from(byte)).sum::<usize>() + choice).is_multiple_of(3)
    };
    let kept = kubewake_otlp::retain(signal, &request, chosen);
    let others = kubewake_otlp::retain(signal, &request, |record| !chosen(record));
    let all = kubewake_otlp::retain(signal, &request, |_| true);
    let none = kubewake_otlp::retain(signal, &request, |_| false);
    assert_eq!(all.bytes.as_ptr(), request.as_ptr());
    let Ok(summary) = kubewake_otlp::scan(signal, &request) else { return };
    assert_eq!((kept.items, kept.dropped), (others.dropped, others.items));
    assert_eq!(all.items, summary.items);
    let scanned = |bytes: &Bytes| kubewake_otlp::scan(signal, bytes).expect("what is left is a request");
    assert_eq!(scanned(&none.bytes).records, 0);
    assert_eq!(scanned(&kept.bytes).items, kept.items);
    assert_eq!(scanned(&kept.bytes).records + scanned(&others.bytes).records, summary.records);
    if summary.traits.has_plain_ids() {
        by_trace(&request, choice);
    }
}

/// Deciding traces equals deciding each of their spans.
pub(crate) fn by_trace(request: &Bytes, choice: usize) {
    let fate = |id: &[u8]| match (id.iter().map(|&byte| usize::from(byte)).sum::<usize>() + choice) % 3 {
        0 => SpanDisposition::Drop,
        1 => SpanDisposition::Keep,
        _ => SpanDisposition::Mark("ot=th:8".into()),
    };
    let mut told = 0;
    let by_trace = kubewake_otlp::select_traces(request, |id, spans| {
        told += spans;
        fate(id)
    });
    let by_span = kubewake_otlp::select(Signal::Traces, request, |record, edits| {
        let fate = record.span().map_or(SpanDisposition::Keep, |span| fate(span.trace_id()));
        if let SpanDisposition::Mark(state) = &fate {
            edits.push(MessageEdit::trace_state(state.clone()));
        }
        fate != SpanDisposition::Drop
    });
    assert_eq!(told, by_span.items + by_span.dropped);
    assert_eq!((by_trace.items, by_trace.dropped), (by_span.items, by_span.dropped));
    assert_eq!(by_number(0, &by_trace.bytes), by_number(0, &by_span.bytes));
}

/// The request with the fields of each span sorted by number: an edit moves attributes together, without a
/// change of meaning.
fn by_number(level: usize, message: &[u8]) -> Vec<u8> {
    const CHILDREN: [u32; 3] = [1, 2, 2];
    let mut fields: Vec<_> = WireFields::new(message).collect();
    let child = CHILDREN.get(level);
    if child.is_none() {
        fields.sort_by_key(|field| field.number);
    }
    let mut out = Vec::new();
    for field in fields {
        if child.is_some_and(|number| field.is_len(*number)) {
            put_bytes(&mut out, field.number, &by_number(level + 1, field.value))
        } else {
            out.extend_from_slice(field.raw)
        }
    }
    out
}

/// An edited request is a request, the edits have their effect, and they are idempotent.
pub(crate) fn rewrite(data: &[u8]) {
    let Some((signal, choice, request)) = parts(data) else { return };
    let mut editor = FuzzEditor { choice };
    let once = kubewake_otlp::rewrite(signal, &request, &mut editor);
    let twice = kubewake_otlp::rewrite(signal, &once, &mut editor);
    assert_eq!(once, twice);
    let Ok(summary) = kubewake_otlp::scan(signal, &request) else { return };
    let after = kubewake_otlp::scan(signal, &once).map(|after| ScanSummary { traits: summary.traits, ..after });
    assert_eq!(after, Ok(summary));
    let traits = kubewake_otlp::scan(signal, &once).unwrap_or_default().traits;
    known(signal, &once, traits);
}

struct FuzzEditor {
    choice: usize,
}

impl FuzzEditor {
    fn push(&self, edits: &mut EditList) {
        let all = [
            MessageEdit::remove("gone"),
            MessageEdit::rename("a", "b"),
            MessageEdit::set("service.name", "set"),
            MessageEdit::insert("inserted", 7),
            MessageEdit::update("b", true),
            MessageEdit::trace_state("ot=th:8"),
        ];
        let is_chosen = |bit: usize| self.choice >> bit & 1 == 1;
        let chosen = all.into_iter().enumerate().filter(|(bit, _)| is_chosen(*bit));
        edits.extend(chosen.map(|(_, edit)| edit));
        if is_chosen(6) {
            let change = Arc::new(FuzzChange);
            edits.extend([
                MessageEdit::apply_change(change.clone()),
                MessageEdit::events(change),
                MessageEdit::body("said"),
            ]);
        }
    }
}

/// Has no effect the second time.
#[derive(Debug)]
struct FuzzChange;

impl AttributeChange for FuzzChange {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        attributes.visit(|attribute| match attribute.value() {
            AnyValue::None => AttributeDisposition::Remove,
            AnyValue::Int(value) => AttributeDisposition::Set(value.to_string().into()),
            AnyValue::Array(_) => {
                AttributeDisposition::Set(String::from_utf8_lossy(&attribute.value().to_text()).into_owned().into())
            }
            _ => AttributeDisposition::Keep,
        });
        attributes.copy("a", "copy", SetCondition::Absent);
    }
}

impl RecordEditor for FuzzEditor {
    fn resource(&mut self, _: Resource<'_>, edits: &mut EditList) {
        self.push(edits);
    }

    fn scope(&mut self, _: Scope<'_>, edits: &mut EditList) {
        self.push(edits);
    }

    fn record(&mut self, _: &RecordRef<'_>, edits: &mut EditList) {
        self.push(edits);
    }

    fn point(&mut self, _: &RecordRef<'_>, _: &DataPoint<'_>, edits: &mut EditList) {
        self.push(edits);
    }
}

/// Reads every field of every view, and counts.
fn see_all(signal: Signal, request: &[u8]) -> ScanSummary {
    let mut seen = ScanSummary::default();
    for resource in view::resources(request) {
        seen.resources += 1;
        see_attributes(resource.resource().attributes());
        for scope in resource.scopes() {
            seen.scopes += 1;
            see_attributes(scope.scope().attributes());
            let records: Vec<RecordView<'_>> = match signal {
                Signal::Traces => scope.spans().map(RecordView::Span).collect(),
                Signal::Logs => scope.log_records().map(RecordView::Log).collect(),
                Signal::Metrics => scope.metrics().map(RecordView::Metric).collect(),
            };
            seen.records += records.len();
            seen.items += records.iter().map(see_record).sum::<usize>();
        }
    }
    seen
}

fn see_record(record: &RecordView<'_>) -> usize {
    match record {
        RecordView::Span(span) => {
            see_attributes(span.attributes());
            span.events().for_each(|event| see_attributes(event.attributes()));
            span.links().for_each(|link| see_attributes(link.attributes()));
            let _ = (span.trace_id(), span.kind(), span.start(), span.flags(), span.status().code());
            1
        }
        RecordView::Log(record) => {
            see_attributes(record.attributes());
            see_value(record.body(), 8);
            let _ = (record.time(), record.severity_number(), record.trace_id(), record.event_name());
            1
        }
        RecordView::Metric(metric) => {
            let Some(data) = metric.data() else { return 0 };
            let _ = (data.temporality(), data.is_monotonic());
            data.points().inspect(see_point).count()
        }
    }
}

fn see_point(point: &DataPoint<'_>) {
    see_attributes(point.attributes());
    let _ = (point.start(), point.time());
    match point {
        DataPoint::Number(number) => _ = (number.value(), number.int_value()),
        DataPoint::Histogram(histogram) => _ = (histogram.bucket_counts().count(), histogram.bounds().count()),
        DataPoint::ExponentialHistogram(histogram) => {
            for buckets in [histogram.positive(), histogram.negative()].into_iter().flatten() {
                let _ = (buckets.offset(), buckets.counts().count());
            }
        }
        DataPoint::Summary(summary) => summary.quantiles().for_each(|at| _ = (at.quantile(), at.value())),
    }
}

fn see_attributes(attributes: AttributesView<'_>) {
    for attribute in attributes {
        let _ = (attribute.key(), attribute.as_bytes());
        see_value(attribute.value(), 8);
    }
}

fn see_value(value: AnyValue<'_>, depth: usize) {
    if depth == 0 {
        return;
    }
    match value {
        AnyValue::Array(values) => values.for_each(|value| see_value(AnyValue::new(value), depth - 1)),
        AnyValue::KeyValueList(pairs) => pairs.for_each(|pair| see_value(pair.value(), depth - 1)),
        _ => {}
    }
}
