//! A trace as it is shown: its spans in order of time, with warnings about inconsistencies.
//!
//! *Guaranteed.* Each span occurs once; following [`PlacedSpan::parent`] ends. If the clock of a span's process
//! is behind that of its parent's process, the span is moved together with all that the same process did below
//! it, so that nothing begins before its cause. *Not done.* A span that merely ends after its parent, as
//! asynchronous work does, is not moved.

use std::collections::HashMap;

use crate::store::{SpanRef, StoredTrace};

/// Clock differences up to this size are ignored.
const CLOCK_TOLERANCE_NANOS: u64 = 1_000_000;
/// A start that is further ahead is wrong, rather than a clock that is a little fast.
const MAX_FUTURE_NANOS: u64 = 300_000_000_000;
/// Warnings of one kind that are listed individually.
const MAX_WARNINGS_PER_KIND: usize = 100;

#[derive(Clone, Debug)]
pub struct ArrangedTrace<'a> {
    /// Spans in order of their start.
    pub spans: Vec<PlacedSpan<'a>>,
    pub warnings: Vec<TraceWarning>,
    pub start: u64,
    pub end: u64,
}

/// A span at its corrected time.
#[derive(Clone, Debug)]
pub struct PlacedSpan<'a> {
    pub span: SpanRef<'a>,
    /// The span that caused it, which may be missing. None where the span would be its own ancestor.
    pub parent: Option<u64>,
    /// Index of the parent among the spans in order of arrival.
    parent_index: Option<usize>,
    /// The corrected start.
    pub start: u64,
    /// By how much the span was moved.
    pub skew: u64,
    pub warnings: Vec<WarningKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// The parent is not in the trace.
    MissingParent,
    /// The span is its own ancestor.
    Cycle,
    /// The span began before its parent.
    ClockSkew,
    /// Another span has the same id.
    DuplicateSpan,
    /// The start is later than now.
    Future,
    /// The span has no times.
    NoTime,
    /// The span ends before it starts, or has only one of the two times.
    BadTime,
    /// Spans are missing because the trace reached its limit.
    Truncated,
}

#[derive(Clone, Debug)]
pub struct TraceWarning {
    pub kind: WarningKind,
    /// The span concerned.
    pub span: Option<u64>,
    pub message: String,
}

pub fn arrange(trace: &StoredTrace, now: u64) -> ArrangedTrace<'_> {
    let mut spans = place_spans(trace, now);
    break_cycles(&mut spans);
    correct_clock_skew(&mut spans);
    spans.sort_by_key(|placed| (placed.start, placed.span.entry.id));
    let start = spans.iter().map(|placed| placed.start).min().unwrap_or_else(|| trace.start());
    let end = spans.iter().map(|placed| placed.start.saturating_add(placed.span.entry.duration())).max();
    let warnings = collect_warnings(trace, &spans);
    ArrangedTrace { spans, warnings, start, end: end.unwrap_or(start) }
}

fn place_spans(trace: &StoredTrace, now: u64) -> Vec<PlacedSpan<'_>> {
    let mut by_id: HashMap<u64, usize> = HashMap::with_capacity(trace.spans);
    let mut spans: Vec<PlacedSpan<'_>> = Vec::with_capacity(trace.spans);
    for span in trace.spans() {
        let entry = span.entry;
        let mut warnings = Vec::new();
        if *by_id.entry(entry.id).or_insert(spans.len()) != spans.len() {
            warnings.push(WarningKind::DuplicateSpan);
        }
        if !entry.has_time() {
            warnings.push(WarningKind::NoTime);
        } else {
            let start = span.view().start();
            let end = span.view().end();
            if start == 0 || end < start {
                warnings.push(WarningKind::BadTime);
            }
            if entry.start > now.saturating_add(MAX_FUTURE_NANOS) {
                warnings.push(WarningKind::Future);
            }
        }
        let start = if entry.has_time() { entry.start } else { trace.start() };
        let parent = Some(entry.parent).filter(|parent| *parent != 0);
        spans.push(PlacedSpan { span, parent, parent_index: None, start, skew: 0, warnings });
    }
    for placed in &mut spans {
        let Some(parent) = placed.parent else { continue };
        placed.parent_index = by_id.get(&parent).copied();
        if placed.parent_index.is_none() {
            placed.warnings.push(WarningKind::MissingParent);
        }
    }
    spans
}

/// Detaches one span of each cycle from its parent: the one that began first.
fn break_cycles(spans: &mut [PlacedSpan<'_>]) {
    /// Unvisited, on the current path (identified by its number), or known to be acyclic.
    const UNVISITED: usize = 0;
    const TERMINATES: usize = usize::MAX;
    let mut states = vec![UNVISITED; spans.len()];
    for from in 0..spans.len() {
        let mut way = Vec::new();
        let mut next = Some(from);
        while let Some(at) = next {
            match states.get_mut(at) {
                Some(state) if *state == UNVISITED => *state = from + 1,
                Some(state) if *state == from + 1 => {
                    detach_from_parent(spans, &way, at);
                    break;
                }
                _ => break,
            }
            way.push(at);
            next = spans.get(at).and_then(|placed| placed.parent_index);
        }
        way.into_iter().for_each(|at| states.get_mut(at).into_iter().for_each(|state| *state = TERMINATES));
    }
}

fn detach_from_parent(spans: &mut [PlacedSpan<'_>], way: &[usize], entry: usize) {
    let circle = way.iter().copied().skip_while(|at| *at != entry);
    let first = circle.min_by_key(|at| spans.get(*at).map(|placed| (placed.start, placed.span.entry.id)));
    if let Some(placed) = first.and_then(|at| spans.get_mut(at)) {
        (placed.parent, placed.parent_index) = (None, None);
        placed.warnings.push(WarningKind::Cycle);
    }
}

/// Moves spans that begin before their parent. A parent is processed before its children.
fn correct_clock_skew(spans: &mut [PlacedSpan<'_>]) {
    let mut done = vec![false; spans.len()];
    for from in 0..spans.len() {
        let mut way = Vec::new();
        let mut next = Some(from);
        while let Some(at) = next.filter(|at| done.get(*at) == Some(&false)) {
            way.push(at);
            next = spans.get(at).and_then(|placed| placed.parent_index);
        }
        for at in way.into_iter().rev() {
            let above =
                spans.get(at).and_then(|placed| placed.parent_index).and_then(|above| spans.get(above)).cloned();
            if let (Some(placed), Some(above)) = (spans.get_mut(at), above) {
                shift_into_parent(placed, &above);
            }
            done.get_mut(at).into_iter().for_each(|done| *done = true);
        }
    }
}

fn shift_into_parent(placed: &mut PlacedSpan<'_>, above: &PlacedSpan<'_>) {
    if !placed.span.entry.has_time() || !above.span.entry.has_time() {
        return;
    }
    let same = match (placed.span.origin(), above.span.origin()) {
        (Some(one), Some(other)) => one.resource == other.resource,
        _ => true,
    };
    let skew = if same {
        above.skew
    } else if placed.start.saturating_add(CLOCK_TOLERANCE_NANOS) < above.start {
        let mine = placed.span.entry.duration();
        let whole = above.span.entry.duration();
        // Centred in its parent if it fits: request and response are assumed to have taken the same time.
        above.start - placed.start + whole.saturating_sub(mine) / 2
    } else {
        0
    };
    if skew > 0 {
        placed.skew = skew;
        placed.start = placed.start.saturating_add(skew);
        if !same {
            placed.warnings.push(WarningKind::ClockSkew);
        }
    }
}

/// Messages for the warnings of all spans. Many of one kind are summarised.
fn collect_warnings(trace: &StoredTrace, spans: &[PlacedSpan<'_>]) -> Vec<TraceWarning> {
    let mut warnings = Vec::new();
    if trace.surplus_spans > 0 {
        let message =
            format!("{} spans beyond the limit of one trace were dropped and are not shown", trace.surplus_spans);
        warnings.push(TraceWarning { kind: WarningKind::Truncated, span: None, message });
    }
    let mut counts: HashMap<WarningKind, usize> = HashMap::new();
    for placed in spans {
        for kind in &placed.warnings {
            let count = counts.entry(*kind).or_default();
            *count += 1;
            if *count <= MAX_WARNINGS_PER_KIND {
                let message = warning_message(*kind, placed);
                warnings.push(TraceWarning { kind: *kind, span: Some(placed.span.entry.id), message });
            }
        }
    }
    let mut rest: Vec<_> = counts.into_iter().filter(|(_, count)| *count > MAX_WARNINGS_PER_KIND).collect();
    rest.sort_unstable();
    warnings.extend(rest.into_iter().map(|(kind, count)| TraceWarning {
        kind,
        span: None,
        message: format!("{} more spans have this warning", count - MAX_WARNINGS_PER_KIND),
    }));
    warnings
}

fn warning_message(kind: WarningKind, placed: &PlacedSpan<'_>) -> String {
    let entry = placed.span.entry;
    match kind {
        WarningKind::MissingParent => {
            format!(
                "the parent span {:016x} is not in this trace; it may arrive later, or was not sampled",
                entry.parent
            )
        }
        WarningKind::Cycle => "the span is its own ancestor; it is shown without a parent".to_owned(),
        WarningKind::ClockSkew => {
            format!(
                "the span's clock is {} behind its parent's clock; the span is shown that much later",
                format_nanos(placed.skew)
            )
        }
        WarningKind::DuplicateSpan => "another span of this trace has the same id".to_owned(),
        WarningKind::Future => "the span begins in the future".to_owned(),
        WarningKind::NoTime => "the span has no time; it is shown at the start of the trace".to_owned(),
        WarningKind::BadTime => bad_time(placed.span.view().start(), placed.span.view().end()),
        WarningKind::Truncated => String::new(),
    }
}

fn bad_time(start: u64, end: u64) -> String {
    match (start, end) {
        (0, _) => "the span has no start time; it is shown with zero duration at its end".to_owned(),
        (_, 0) => "the span has no end time; it is shown with zero duration at its start".to_owned(),
        (start, end) => {
            let early = format_nanos(start.saturating_sub(end));
            format!("the span ends {early} before it starts; it is shown with zero duration at its start")
        }
    }
}

/// Nanoseconds in the largest unit of which there are at least two.
fn format_nanos(nanoseconds: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    const UNITS: [(u64, &str); 6] = [
        (86_400 * SECOND, "d"),
        (3_600 * SECOND, "h"),
        (60 * SECOND, "min"),
        (SECOND, "s"),
        (1_000_000, "ms"),
        (1_000, "µs"),
    ];
    let found = UNITS.into_iter().find(|(unit, _)| nanoseconds / unit >= 2);
    let (unit, name) = found.unwrap_or((1_000, "µs"));
    format!("{} {name}", nanoseconds / unit)
}
