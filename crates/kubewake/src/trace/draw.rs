//! The waterfall.
//!
//! ```text
//! 4 spans of 2 services in 120 ms                       0                          120 ms
//! api-server · POST /apis                      12 ms    ███
//! └ operator · reconcile Head                  80 ms       ██████████████████
//!   ├ apply Deployment                          5 ms       ▐
//!   ⋯ 40 ms                                                  ·········
//! ```

use super::{
    model::{Span, Trace},
    rows::{Row, Rows, rows},
};
use crate::output::{
    SERVICES, Screen, Tone,
    number::{count, duration},
    text::{cut, fit, safe, width},
};

/// The column of durations: `59 min 59 s`.
const DURATION: usize = 11;
/// Less of a bar says nothing.
const NARROWEST_BAR: usize = 12;
/// Names that are longer are cut.
const WIDEST_LABEL: usize = 76;
/// A warning is a sentence; so many are enough to see that there are some.
const WARNINGS: usize = 5;

/// How the columns are divided.
struct Columns {
    label: usize,
    bar: usize,
}

/// The whole trace, a line for each span; without those that only wrap another, if they are to be folded.
pub(super) fn waterfall(trace: &Trace, url: &str, fold: bool, screen: &Screen) -> String {
    let columns = Columns::of(screen.width);
    let services = services(trace);
    let mut drawn = head(trace, url, &services, &columns, screen);
    let mut parents: Vec<usize> = Vec::new();
    let Rows { rows, folded } = rows(trace, fold);
    let branches = Branches::of(&rows, columns.label);
    for row in rows {
        match row {
            Row::Span { index, follows } => {
                let Some(span) = trace.spans.get(index) else { continue };
                parents.truncate(follows.len().saturating_sub(1));
                let above = parents.last().and_then(|index| trace.spans.get(*index));
                drawn += &line(trace, span, above, branches.draw(&follows), &services, &columns, screen);
                parents.push(index);
            }
            Row::Gap { start, end, above } => {
                drawn += &gap(trace, (start, end), &branches.draw(&above).1, &columns, screen)
            }
        }
    }
    if folded > 0 {
        let said = format!("without {} around others; --all shows all", count(folded as u64, "span"));
        drawn += &format!("{}\n", screen.paint(Tone::Dim, &cut(&said, screen.width)));
    }
    drawn + &warnings(trace, screen)
}

impl Columns {
    fn of(width: usize) -> Self {
        let label = (width * 9 / 20).min(WIDEST_LABEL);
        let bar = width.saturating_sub(label + DURATION + 4);
        if bar < NARROWEST_BAR {
            return Self { label: width.saturating_sub(DURATION + 2), bar: 0 };
        }
        Self { label, bar }
    }
}

/// Each once, in the order in which they appear.
fn services(trace: &Trace) -> Vec<&str> {
    let mut services: Vec<&str> = Vec::new();
    for span in &trace.spans {
        let service = trace.service(span);
        if !services.contains(&service) {
            services.push(service);
        }
    }
    services
}

fn tone(service: &str, services: &[&str]) -> Tone {
    Tone::Service(services.iter().position(|it| *it == service).unwrap_or(0) % SERVICES)
}

fn head(trace: &Trace, url: &str, services: &[&str], columns: &Columns, screen: &Screen) -> String {
    let errors = trace.spans.iter().filter(|span| span.is_error()).count() as u64;
    let errors_said = match errors {
        0 => String::new(),
        errors => format!(", {}", screen.paint(Tone::Bad, &count(errors, "error"))),
    };
    let (spans, number) = (trace.spans.len() as u64, services.len() as u64);
    let title = format!("{} of {} in {}", count(spans, "span"), count(number, "service"), duration(trace.duration));
    let names: Vec<String> = services.iter().map(|it| screen.paint(tone(it, services), &safe(it))).collect();
    let mut drawn = format!("{}{errors_said}: {}\n", screen.paint(Tone::Strong, &title), names.join(", "));
    drawn += &format!("{}\n", screen.paint(Tone::Dim, &safe(&format!("{url}/trace/{}", trace.trace_id))));
    if columns.bar > 0 {
        let end = duration(trace.duration);
        let between = columns.bar.saturating_sub(1 + width(&end));
        let scale = format!("{}0{}{end}", " ".repeat(columns.label + DURATION + 4), " ".repeat(between));
        drawn += &format!("{}\n", screen.paint(Tone::Dim, &scale));
    }
    drawn
}

fn line(
    trace: &Trace,
    span: &Span,
    above: Option<&Span>,
    (indent, under): (String, String),
    services: &[&str],
    columns: &Columns,
    screen: &Screen,
) -> String {
    let service = trace.service(span);
    let room = columns.label.saturating_sub(width(&indent));
    let mark = if span.is_error() { "✗ " } else { "" };
    // A service is named where it begins.
    let is_new = above.is_none_or(|above| trace.service(above) != service);
    let who = if is_new && !service.is_empty() { cut(&format!("{} · ", safe(service)), room) } else { String::new() };
    let what = fit(&format!("{mark}{}", safe(&span.title())), room.saturating_sub(width(&who)));
    let what = if span.is_error() { screen.paint(Tone::Bad, &what) } else { what };
    let took = format!("{:>DURATION$}", duration(span.duration));
    let bar = bar(trace, span, columns.bar);
    let tone = tone(service, services);
    let painted = screen.paint(if span.is_error() { Tone::Bad } else { tone }, bar.trim_start());
    let spaces = " ".repeat(bar.chars().take_while(|c| *c == ' ').count());
    let line =
        format!("{}{}{what}  {took}  {spaces}{painted}", screen.paint(Tone::Dim, &indent), screen.paint(tone, &who));
    let mut drawn = line.trim_end().to_owned() + "\n";
    if let Some(message) = span.message.as_ref().filter(|message| span.is_error() && !message.is_empty()) {
        let room = screen.width.saturating_sub(width(&under) + 4);
        drawn +=
            &format!("{}  {}\n", screen.paint(Tone::Dim, &under), screen.paint(Tone::Bad, &cut(&safe(message), room)));
    }
    drawn
}

/// How the tree is drawn in front of names.
struct Branches {
    /// Columns for each level: fewer where the tree is deep.
    step: usize,
    /// Levels that are shown. What is deeper stands in the last one's place.
    most: usize,
}

impl Branches {
    /// So that half of the label is left for names.
    fn of(rows: &[Row], label: usize) -> Self {
        let depth = |row: &Row| match row {
            Row::Span { follows, .. } => follows.len(),
            Row::Gap { above, .. } => above.len(),
        };
        let deepest = rows.iter().map(depth).max().unwrap_or(0);
        let step = if deepest * 2 > label / 2 { 1 } else { 2 };
        Self { step, most: (label / 2 / step).max(1) }
    }

    /// In front of a span, and in front of what is said below it. The first level is the root's, which has none.
    fn draw(&self, follows: &[bool]) -> (String, String) {
        let Some((last, before)) = follows.get(1..).and_then(<[bool]>::split_last) else {
            return (String::new(), String::new());
        };
        let piece = |sign: &str| format!("{sign:<width$}", width = self.step);
        let before = before.iter().take(self.most - 1);
        let pass: String = before.map(|more| piece(if *more { "│" } else { "" })).collect();
        match last {
            true => (format!("{pass}{}", piece("├")), format!("{pass}{}", piece("│"))),
            false => (format!("{pass}{}", piece("└")), format!("{pass}{}", piece(""))),
        }
    }
}

/// From its start to its end, as one sees it in so many columns.
fn bar(trace: &Trace, span: &Span, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    let (from, to) = (column(trace, span.start, width), column(trace, span.end(), width));
    let from = from.min(width - 1);
    match to.saturating_sub(from) {
        // Shorter than a column: half of one.
        0 => " ".repeat(from) + "▌",
        long => " ".repeat(from) + &"█".repeat(long.min(width - from)),
    }
}

/// The column of a moment. What is outside of the trace, by a wrong clock, is at its edge.
fn column(trace: &Trace, moment: u64, width: usize) -> usize {
    let offset = moment.saturating_sub(trace.start).min(trace.duration);
    let column = u128::from(offset) * width as u128 / u128::from(trace.duration.max(1));
    usize::try_from(column).unwrap_or(width).min(width)
}

fn gap(trace: &Trace, (start, end): (u64, u64), indent: &str, columns: &Columns, screen: &Screen) -> String {
    let label = fit(&format!("{indent}⋯ {}", duration(end.saturating_sub(start))), columns.label + DURATION + 2);
    let (from, to) = (column(trace, start, columns.bar), column(trace, end, columns.bar));
    let dots = format!("{}{}", " ".repeat(from), "·".repeat(to.saturating_sub(from)));
    screen.paint(Tone::Dim, format!("{label}  {dots}").trim_end()) + "\n"
}

/// In front of what is said of a span.
fn about(trace: &Trace, span: &Span, room: usize) -> String {
    let named = [trace.service(span), &span.title()].map(safe);
    let named: Vec<&str> = named.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    match named.is_empty() {
        true => format!("{}: ", cut(&safe(&span.id), room)),
        false => format!("{}: ", cut(&named.join(" · "), room)),
    }
}

fn warnings(trace: &Trace, screen: &Screen) -> String {
    let mut drawn = String::new();
    for warning in trace.warnings.iter().take(WARNINGS) {
        let of = warning.span_id.as_ref().and_then(|id| trace.spans.iter().find(|span| span.id == *id));
        let of = of.map(|span| about(trace, span, screen.width / 2)).unwrap_or_default();
        let said = cut(&format!("{of}{}", safe(&warning.message)), screen.width.saturating_sub(2));
        drawn += &format!("{} {said}\n", screen.paint(Tone::Warning, "!"));
    }
    match trace.warnings.len().saturating_sub(WARNINGS) {
        0 => drawn,
        rest => drawn + &format!("  and {} more\n", count(rest as u64, "warning")),
    }
}

#[cfg(test)]
mod tests;
