use kubewake_otlp::UnlimitedAllowance;
use std::sync::Arc;

use kubewake_config::model::TextMatcher;

use super::*;
use crate::core::{
    Charge,
    testing::{numbers_in, part},
};

#[test]
fn what_is_not_meant_is_not_copied_and_what_is_goes() {
    let request = part(0..3, Charge::exempt());
    let filter = |spans: RecordSelection| {
        FilterTransform::new(model::FilterProcessor { spans, ..model::FilterProcessor::default() })
    };
    let named = |name: &str| MatchProperties {
        span_names: Some(TextMatcher::strict(vec![name.into()])),
        ..MatchProperties::default()
    };
    let nothing =
        filter(RecordSelection::default()).transform(Signal::Traces, &request, &mut UnlimitedAllowance).unwrap();
    assert_eq!(nothing.bytes.as_ptr(), request.bytes.as_ptr());
    // The spans of these requests have no name.
    let others = filter(RecordSelection { include: Vec::new(), exclude: vec![named("x")] })
        .transform(Signal::Traces, &request, &mut UnlimitedAllowance)
        .unwrap();
    assert_eq!(others.bytes.as_ptr(), request.bytes.as_ptr());
    let all = filter(RecordSelection { include: Vec::new(), exclude: vec![named("x"), named("")] })
        .transform(Signal::Traces, &request, &mut UnlimitedAllowance)
        .unwrap();
    assert_eq!((all.items, all.bytes.len()), (0, 0));
    let included = filter(RecordSelection { include: vec![named("")], exclude: Vec::new() })
        .transform(Signal::Traces, &request, &mut UnlimitedAllowance)
        .unwrap();
    assert_eq!(numbers_in(&included.bytes), [0, 1, 2]);
    assert!(Arc::strong_count(&request.charge) == 1);
}
