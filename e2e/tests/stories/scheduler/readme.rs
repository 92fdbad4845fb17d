//! Somebody types what the example's README says, and sees the traces that it shows.

use kubewake_e2e::{
    traces::{CallerVisibility, ExpectedTrace, TraceTree},
    wait_for_ok,
};

use super::{CHANGE, shown};
use crate::stories::readme::example::Followed;

#[test]
fn every_command_works_and_the_trace_of_the_change_is_the_one_that_is_shown() {
    let Some(followed) = Followed::typed("examples/scheduler", "demo-scheduler") else { return };
    let shown = ExpectedTrace::parse(&shown(0), CallerVisibility::Trusted);
    wait_for_ok(|| {
        let spans = followed.spans();
        let trace = spans.with_name(CHANGE).last().ok_or("the Scheduler is changed")?.id.trace.clone();
        shown.differences(&TraceTree::from_trace(&spans, &trace, CallerVisibility::Trusted)).map_or(Ok(()), Err)
    });
}
