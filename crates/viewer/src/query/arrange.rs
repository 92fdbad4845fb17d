//! A trace as it is shown: in the order of time, with what is wrong with it.
//!
//! *Guaranteed.* Each span is there once; following [`Placed::parent`] ends. A span whose clock was behind that of its parent's process is moved, with all that
//! the same process did below it, so that nothing begins before what caused it. Not done: to move what merely lasts longer than its parent, as work that is handed
//! on does.

use std::collections::HashMap;

use crate::store::{SpanRef, Trace};

/// Clocks that agree so far agree.
const TOLERANCE: u64 = 1_000_000;
/// A time that is so far ahead is wrong, and not a clock that is a little fast.
const AHEAD: u64 = 300_000_000_000;
/// Warnings of one kind that are told one by one.
const TOLD: usize = 100;

/// A trace as it is shown.
#[derive(Clone, Debug)]
pub struct Arranged<'a> {
    /// Its spans by their begin.
    pub spans: Vec<Placed<'a>>,
    /// What is wrong with it.
    pub warnings: Vec<Warning>,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

/// A span in its place.
#[derive(Clone, Debug)]
pub struct Placed<'a> {
    /// The span.
    pub span: SpanRef<'a>,
    /// The span that caused it, whether it is there or not. None where it would have caused itself.
    pub parent: Option<u64>,
    /// Where its parent is among the spans as they came.
    above: Option<usize>,
    /// When it began, after it was moved.
    pub start: u64,
    /// By how much it was moved.
    pub skew: u64,
    /// What is wrong with it.
    pub warnings: Vec<WarningKind>,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// The span that caused it is not there.
    MissingParent,
    /// It is among its own causes.
    Cycle,
    /// It began before what caused it.
    ClockSkew,
    /// Another span has the same id.
    DuplicateSpan,
    /// It says that it began later than now.
    Future,
    /// It does not say when it was.
    NoTime,
    /// It ends before it starts, or says only one of the two.
    BadTime,
    /// Spans are missing because there were too many.
    Truncated,
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Warning {
    /// What.
    pub kind: WarningKind,
    /// The span that it is about.
    pub span: Option<u64>,
    /// In words.
    pub message: String,
}

/// Arranges a trace.
pub fn arrange(trace: &Trace, now: u64) -> Arranged<'_> {
    let mut spans = place(trace, now);
    break_cycles(&mut spans);
    straighten(&mut spans);
    spans.sort_by_key(|placed| (placed.start, placed.span.entry.id));
    let start = spans.iter().map(|placed| placed.start).min().unwrap_or_else(|| trace.start());
    let end = spans.iter().map(|placed| placed.start.saturating_add(placed.span.entry.duration())).max();
    let warnings = tell(trace, &spans);
    Arranged { spans, warnings, start, end: end.unwrap_or(start) }
}

fn place(trace: &Trace, now: u64) -> Vec<Placed<'_>> {
    let mut by_id: HashMap<u64, usize> = HashMap::with_capacity(trace.spans);
    let mut spans: Vec<Placed<'_>> = Vec::with_capacity(trace.spans);
    for span in trace.spans() {
        let entry = span.entry;
        let mut warnings = Vec::new();
        if *by_id.entry(entry.id).or_insert(spans.len()) != spans.len() {
            warnings.push(WarningKind::DuplicateSpan);
        }
        if !entry.has_time() {
            warnings.push(WarningKind::NoTime);
        } else {
            let (start, end) = (span.view().start(), span.view().end());
            if start == 0 || end < start {
                warnings.push(WarningKind::BadTime);
            }
            if entry.start > now.saturating_add(AHEAD) {
                warnings.push(WarningKind::Future);
            }
        }
        let start = if entry.has_time() { entry.start } else { trace.start() };
        let parent = Some(entry.parent).filter(|parent| *parent != 0);
        spans.push(Placed { span, parent, above: None, start, skew: 0, warnings });
    }
    for placed in &mut spans {
        let Some(parent) = placed.parent else { continue };
        placed.above = by_id.get(&parent).copied();
        if placed.above.is_none() {
            placed.warnings.push(WarningKind::MissingParent);
        }
    }
    spans
}

/// Takes a span away from its parent in each circle: the one that began first.
fn break_cycles(spans: &mut [Placed<'_>]) {
    /// Not looked at, on the way that is being followed (by its number), or known to end.
    const NEW: usize = 0;
    const DONE: usize = usize::MAX;
    let mut states = vec![NEW; spans.len()];
    for from in 0..spans.len() {
        let (mut way, mut next) = (Vec::new(), Some(from));
        while let Some(at) = next {
            match states.get_mut(at) {
                Some(state) if *state == NEW => *state = from + 1,
                Some(state) if *state == from + 1 => {
                    cut_circle(spans, &way, at);
                    break;
                }
                _ => break,
            }
            way.push(at);
            next = spans.get(at).and_then(|placed| placed.above);
        }
        way.into_iter().for_each(|at| states.get_mut(at).into_iter().for_each(|state| *state = DONE));
    }
}

fn cut_circle(spans: &mut [Placed<'_>], way: &[usize], entry: usize) {
    let circle = way.iter().copied().skip_while(|at| *at != entry);
    let first = circle.min_by_key(|at| spans.get(*at).map(|placed| (placed.start, placed.span.entry.id)));
    if let Some(placed) = first.and_then(|at| spans.get_mut(at)) {
        (placed.parent, placed.above) = (None, None);
        placed.warnings.push(WarningKind::Cycle);
    }
}

/// Moves what began before its cause. A parent is dealt with before its children.
fn straighten(spans: &mut [Placed<'_>]) {
    let mut done = vec![false; spans.len()];
    for from in 0..spans.len() {
        let (mut way, mut next) = (Vec::new(), Some(from));
        while let Some(at) = next.filter(|at| done.get(*at) == Some(&false)) {
            way.push(at);
            next = spans.get(at).and_then(|placed| placed.above);
        }
        for at in way.into_iter().rev() {
            let above = spans.get(at).and_then(|placed| placed.above).and_then(|above| spans.get(above)).cloned();
            if let (Some(placed), Some(above)) = (spans.get_mut(at), above) {
                follow(placed, &above);
            }
            done.get_mut(at).into_iter().for_each(|done| *done = true);
        }
    }
}

fn follow(placed: &mut Placed<'_>, above: &Placed<'_>) {
    if !placed.span.entry.has_time() || !above.span.entry.has_time() {
        return;
    }
    let same = match (placed.span.origin(), above.span.origin()) {
        (Some(one), Some(other)) => one.resource == other.resource,
        _ => true,
    };
    let skew = if same {
        above.skew
    } else if placed.start.saturating_add(TOLERANCE) < above.start {
        let (mine, whole) = (placed.span.entry.duration(), above.span.entry.duration());
        // In the middle of its parent, if it fits: the ways there and back took the same time, as far as is known.
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

/// The warnings of all spans in words, those of one kind together when they are many.
fn tell(trace: &Trace, spans: &[Placed<'_>]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if trace.cut > 0 {
        let message = format!("{} more spans came than are kept of one trace; they are not shown", trace.cut);
        warnings.push(Warning { kind: WarningKind::Truncated, span: None, message });
    }
    let mut counts: HashMap<WarningKind, usize> = HashMap::new();
    for placed in spans {
        for kind in &placed.warnings {
            let count = counts.entry(*kind).or_default();
            *count += 1;
            if *count <= TOLD {
                let message = message(*kind, placed);
                warnings.push(Warning { kind: *kind, span: Some(placed.span.entry.id), message });
            }
        }
    }
    let mut rest: Vec<_> = counts.into_iter().filter(|(_, count)| *count > TOLD).collect();
    rest.sort_unstable();
    warnings.extend(rest.into_iter().map(|(kind, count)| Warning {
        kind,
        span: None,
        message: format!("the same is true of {} more spans", count - TOLD),
    }));
    warnings
}

fn message(kind: WarningKind, placed: &Placed<'_>) -> String {
    let entry = placed.span.entry;
    match kind {
        WarningKind::MissingParent => {
            format!("its parent {:016x} is not in this trace; it may still come, or was not sampled", entry.parent)
        }
        WarningKind::Cycle => "it is among its own ancestors; it is shown without a parent".to_owned(),
        WarningKind::ClockSkew => {
            format!("its clock is {} behind its parent's; it is shown later by that", in_units(placed.skew))
        }
        WarningKind::DuplicateSpan => "another span of this trace has the same id".to_owned(),
        WarningKind::Future => "it begins in the future".to_owned(),
        WarningKind::NoTime => "it has no time; it is shown at the begin of the trace".to_owned(),
        WarningKind::BadTime => bad_time(placed.span.view().start(), placed.span.view().end()),
        WarningKind::Truncated => String::new(),
    }
}

fn bad_time(start: u64, end: u64) -> String {
    match (start, end) {
        (0, _) => "it does not say when it started; it is shown as a moment, at its end".to_owned(),
        (_, 0) => "it does not say when it ended; it is shown as a moment, at its start".to_owned(),
        (start, end) => {
            let early = in_units(start.saturating_sub(end));
            format!("it ends {early} before it starts; it is shown as a moment, at its start")
        }
    }
}

/// Nanoseconds in a unit of which there are a few.
fn in_units(nanoseconds: u64) -> String {
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
