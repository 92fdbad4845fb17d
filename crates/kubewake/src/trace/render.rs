//! Renders a trace as a waterfall.
//!
//! ```text
//! 4 spans of 2 services in 120 ms                       0                          120 ms
//! api-server · POST /apis                      12 ms    ███
//! └ operator · reconcile Head                  80 ms       ██████████████████
//!   ├ apply Deployment                          5 ms       ▐
//!   ⋯ 40 ms                                                  ·········
//! ```

use super::{
    model::{SpanDocument, TraceDocument},
    rows::{WaterfallRow, WaterfallRows, build_rows},
};
use crate::output::{
    SERVICE_COLOUR_COUNT, TerminalLayout, TextStyle,
    text::{display_width, pad_or_truncate, sanitize, truncate},
    units::{format_count, format_duration},
};

/// Width of durations such as `59 min 59 s`.
const DURATION_COLUMN_WIDTH: usize = 11;
/// A shorter bar conveys nothing.
const MIN_BAR_WIDTH: usize = 12;
const MAX_LABEL_WIDTH: usize = 76;
/// A warning is a sentence; this many are enough to show that there are some.
const MAX_WARNINGS: usize = 5;

/// The widths of the columns.
struct WaterfallColumns {
    label: usize,
    bar: usize,
}

/// Renders the whole trace, one line per span. `fold` leaves out spans that only wrap another one.
pub(super) fn render_waterfall(trace: &TraceDocument, url: &str, fold: bool, screen: &TerminalLayout) -> String {
    let columns = WaterfallColumns::for_width(screen.width);
    let services = service_names(trace);
    let mut drawn = render_header(trace, url, &services, &columns, screen);
    let mut parents: Vec<usize> = Vec::new();
    let WaterfallRows { rows, folded } = build_rows(trace, fold);
    let branches = TreeBranches::for_rows(&rows, columns.label);
    for row in rows {
        match row {
            WaterfallRow::Span { index, has_next_sibling: follows } => {
                let Some(span) = trace.spans.get(index) else { continue };
                parents.truncate(follows.len().saturating_sub(1));
                let above = parents.last().and_then(|index| trace.spans.get(*index));
                drawn +=
                    &render_span(trace, span, above, branches.render_branches(&follows), &services, &columns, screen);
                parents.push(index);
            }
            WaterfallRow::Gap { start, end, above } => {
                drawn += &render_gap(trace, (start, end), &branches.render_branches(&above).1, &columns, screen)
            }
        }
    }
    if folded > 0 {
        let said = format!("{} hidden; --all shows all", format_count(folded as u64, "span"));
        drawn += &format!("{}\n", screen.paint(TextStyle::Dim, &truncate(&said, screen.width)));
    }
    drawn + &render_warnings(trace, screen)
}

impl WaterfallColumns {
    fn for_width(width: usize) -> Self {
        let label = (width * 9 / 20).min(MAX_LABEL_WIDTH);
        let bar = width.saturating_sub(label + DURATION_COLUMN_WIDTH + 4);
        if bar < MIN_BAR_WIDTH {
            return Self { label: width.saturating_sub(DURATION_COLUMN_WIDTH + 2), bar: 0 };
        }
        Self { label, bar }
    }
}

/// Names of all services, in order of appearance.
fn service_names(trace: &TraceDocument) -> Vec<&str> {
    let mut services: Vec<&str> = Vec::new();
    for span in &trace.spans {
        let service = trace.service_name(span);
        if !services.contains(&service) {
            services.push(service);
        }
    }
    services
}

fn service_style(service: &str, services: &[&str]) -> TextStyle {
    TextStyle::Service(services.iter().position(|it| *it == service).unwrap_or(0) % SERVICE_COLOUR_COUNT)
}

fn render_header(
    trace: &TraceDocument,
    url: &str,
    services: &[&str],
    columns: &WaterfallColumns,
    screen: &TerminalLayout,
) -> String {
    let errors = trace.spans.iter().filter(|span| span.is_error()).count() as u64;
    let errors_said = match errors {
        0 => String::new(),
        errors => format!(", {}", screen.paint(TextStyle::Bad, &format_count(errors, "error"))),
    };
    let spans = trace.spans.len() as u64;
    let number = services.len() as u64;
    let title = format!(
        "{} of {} in {}",
        format_count(spans, "span"),
        format_count(number, "service"),
        format_duration(trace.duration)
    );
    let names: Vec<String> =
        services.iter().map(|it| screen.paint(service_style(it, services), &sanitize(it))).collect();
    let mut drawn = format!("{}{errors_said}: {}\n", screen.paint(TextStyle::Strong, &title), names.join(", "));
    drawn += &format!("{}\n", screen.paint(TextStyle::Dim, &sanitize(&format!("{url}/trace/{}", trace.trace_id))));
    if columns.bar > 0 {
        let end = format_duration(trace.duration);
        let between = columns.bar.saturating_sub(1 + display_width(&end));
        let scale = format!("{}0{}{end}", " ".repeat(columns.label + DURATION_COLUMN_WIDTH + 4), " ".repeat(between));
        drawn += &format!("{}\n", screen.paint(TextStyle::Dim, &scale));
    }
    drawn
}

fn render_span(
    trace: &TraceDocument,
    span: &SpanDocument,
    above: Option<&SpanDocument>,
    (indent, under): (String, String),
    services: &[&str],
    columns: &WaterfallColumns,
    screen: &TerminalLayout,
) -> String {
    let service = trace.service_name(span);
    let room = columns.label.saturating_sub(display_width(&indent));
    let mark = if span.is_error() { "✗ " } else { "" };
    // A service is named where it differs from the parent's.
    let is_new = above.is_none_or(|above| trace.service_name(above) != service);
    let who = if is_new && !service.is_empty() {
        truncate(&format!("{} · ", sanitize(service)), room)
    } else {
        String::new()
    };
    let what =
        pad_or_truncate(&format!("{mark}{}", sanitize(&span.display_name())), room.saturating_sub(display_width(&who)));
    let what = if span.is_error() { screen.paint(TextStyle::Bad, &what) } else { what };
    let took = format!("{:>DURATION_COLUMN_WIDTH$}", format_duration(span.duration));
    let bar = render_bar(trace, span, columns.bar);
    let tone = service_style(service, services);
    let painted = screen.paint(if span.is_error() { TextStyle::Bad } else { tone }, bar.trim_start());
    let spaces = " ".repeat(bar.chars().take_while(|c| *c == ' ').count());
    let line = format!(
        "{}{}{what}  {took}  {spaces}{painted}",
        screen.paint(TextStyle::Dim, &indent),
        screen.paint(tone, &who)
    );
    let mut drawn = line.trim_end().to_owned() + "\n";
    if let Some(message) = span.message.as_ref().filter(|message| span.is_error() && !message.is_empty()) {
        let room = screen.width.saturating_sub(display_width(&under) + 4);
        drawn += &format!(
            "{}  {}\n",
            screen.paint(TextStyle::Dim, &under),
            screen.paint(TextStyle::Bad, &truncate(&sanitize(message), room))
        );
    }
    drawn
}

/// The tree in front of names.
struct TreeBranches {
    /// Columns for each level: fewer in deep trees.
    step: usize,
    /// Levels that are shown. Deeper spans are drawn at the last one.
    max_depth: usize,
}

impl TreeBranches {
    /// Reserves half of the label for names.
    fn for_rows(rows: &[WaterfallRow], label: usize) -> Self {
        let depth = |row: &WaterfallRow| match row {
            WaterfallRow::Span { has_next_sibling: follows, .. } => follows.len(),
            WaterfallRow::Gap { above, .. } => above.len(),
        };
        let deepest = rows.iter().map(depth).max().unwrap_or(0);
        let step = if deepest * 2 > label / 2 { 1 } else { 2 };
        Self { step, max_depth: (label / 2 / step).max(1) }
    }

    /// The branches in front of a span, and in front of its details. The first level is the root's, which has
    /// none.
    fn render_branches(&self, follows: &[bool]) -> (String, String) {
        let Some((last, before)) = follows.get(1..).and_then(<[bool]>::split_last) else {
            return (String::new(), String::new());
        };
        let piece = |sign: &str| format!("{sign:<width$}", width = self.step);
        let before = before.iter().take(self.max_depth - 1);
        let pass: String = before.map(|more| piece(if *more { "│" } else { "" })).collect();
        if *last {
            (format!("{pass}{}", piece("├")), format!("{pass}{}", piece("│")))
        } else {
            (format!("{pass}{}", piece("└")), format!("{pass}{}", piece("")))
        }
    }
}

/// The bar of a span at this number of columns.
fn render_bar(trace: &TraceDocument, span: &SpanDocument, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    let from = column_at_time(trace, span.start, width);
    let to = column_at_time(trace, span.end(), width);
    let from = from.min(width - 1);
    match to.saturating_sub(from) {
        // Shorter than a column: half of one.
        0 => " ".repeat(from) + "▌",
        long => " ".repeat(from) + &"█".repeat(long.min(width - from)),
    }
}

/// The column of a moment. Times outside of the trace, by a wrong clock, are at its edges.
fn column_at_time(trace: &TraceDocument, moment: u64, width: usize) -> usize {
    let offset = moment.saturating_sub(trace.start).min(trace.duration);
    let column = u128::from(offset) * width as u128 / u128::from(trace.duration.max(1));
    usize::try_from(column).unwrap_or(width).min(width)
}

fn render_gap(
    trace: &TraceDocument,
    (start, end): (u64, u64),
    indent: &str,
    columns: &WaterfallColumns,
    screen: &TerminalLayout,
) -> String {
    let label = pad_or_truncate(
        &format!("{indent}⋯ {}", format_duration(end.saturating_sub(start))),
        columns.label + DURATION_COLUMN_WIDTH + 2,
    );
    let from = column_at_time(trace, start, columns.bar);
    let to = column_at_time(trace, end, columns.bar);
    let dots = format!("{}{}", " ".repeat(from), "·".repeat(to.saturating_sub(from)));
    screen.paint(TextStyle::Dim, format!("{label}  {dots}").trim_end()) + "\n"
}

/// The indentation of a span's details.
fn detail_indent(trace: &TraceDocument, span: &SpanDocument, room: usize) -> String {
    let named = [trace.service_name(span), &span.display_name()].map(sanitize);
    let named: Vec<&str> = named.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    if named.is_empty() {
        format!("{}: ", truncate(&sanitize(&span.id), room))
    } else {
        format!("{}: ", truncate(&named.join(" · "), room))
    }
}

fn render_warnings(trace: &TraceDocument, screen: &TerminalLayout) -> String {
    let mut drawn = String::new();
    for warning in trace.warnings.iter().take(MAX_WARNINGS) {
        let of = warning.span_id.as_ref().and_then(|id| trace.spans.iter().find(|span| span.id == *id));
        let of = of.map(|span| detail_indent(trace, span, screen.width / 2)).unwrap_or_default();
        let said = truncate(&format!("{of}{}", sanitize(&warning.message)), screen.width.saturating_sub(2));
        drawn += &format!("{} {said}\n", screen.paint(TextStyle::Warning, "!"));
    }
    match trace.warnings.len().saturating_sub(MAX_WARNINGS) {
        0 => drawn,
        rest => drawn + &format!("  and {} more\n", format_count(rest as u64, "warning")),
    }
}

#[cfg(test)]
mod tests;
