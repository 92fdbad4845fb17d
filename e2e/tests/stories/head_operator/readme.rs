//! Somebody types what the example's README says, and sees the trace that it shows.

use kubewake_e2e::{
    traces::{Callers, Expected, Tree},
    until_ok,
};

use super::is_real;
use crate::stories::readme::{blocks, example::Followed};

const EXAMPLE: &str = "examples/head-operator";

#[test]
fn every_command_works_and_the_trace_is_the_one_that_is_shown() {
    let Some(followed) = Followed::typed(EXAMPLE, "head-operator") else { return };
    let shown = Expected::read(&blocks(&format!("{EXAMPLE}/README.md"), "text").remove(0), Callers::Trusted);
    until_ok(|| {
        let spans = followed.spans();
        let trace = spans.named("stamp Head").find(|span| is_real(span)).ok_or("a Head is stamped")?.id.trace.clone();
        shown.differences(&Tree::of(&spans, &trace, Callers::Trusted)).map_or(Ok(()), Err)
    });
}
