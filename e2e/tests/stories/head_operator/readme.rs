//! Somebody types what the example's README says, and sees the trace that it shows.

use kubewake_e2e::{
    traces::{CallerVisibility, ExpectedTrace, TraceTree},
    wait_for_ok,
};

use super::is_real;
use crate::stories::readme::{blocks, example::Followed};

const EXAMPLE: &str = "examples/head-operator";

/// An event that is published again is counted in the old one, which is no story for a README.
fn with_repeated_events(shown: &str) -> String {
    let mut lines = Vec::new();
    let mut again = Vec::new();
    for line in shown.lines() {
        lines.push(line.to_owned());
        if line.contains("POST /apis/events") {
            again.push(line.replace("POST", "? PATCH").replace("/events [", "/events/{:name} ["));
        }
        // The client's span, and the server's beneath it.
        if again.len() == 2 {
            lines.append(&mut again);
        }
    }
    lines.join("\n")
}

#[test]
fn every_command_works_and_the_trace_is_the_one_that_is_shown() {
    let Some(followed) = Followed::typed(EXAMPLE, "head-operator") else { return };
    let shown = with_repeated_events(&blocks(&format!("{EXAMPLE}/README.md"), "text").remove(0));
    let shown = ExpectedTrace::parse(&shown, CallerVisibility::Trusted);
    wait_for_ok(|| {
        let spans = followed.spans();
        let trace =
            spans.with_name("stamp Head").find(|span| is_real(span)).ok_or("a Head is stamped")?.id.trace.clone();
        shown.differences(&TraceTree::from_trace(&spans, &trace, CallerVisibility::Trusted)).map_or(Ok(()), Err)
    });
}
