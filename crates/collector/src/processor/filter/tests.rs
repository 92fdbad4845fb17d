use kubewake_otlp::Unlimited;
use std::sync::Arc;

use kubewake_config::model::Texts;

use super::*;
use crate::core::{
    Charge,
    testing::{numbers_in, part},
};

#[test]
fn what_is_not_meant_is_not_copied_and_what_is_goes() {
    let request = part(0..3, Charge::free());
    let filter = |spans: Selection| Filter::new(model::Filter { spans, ..model::Filter::default() });
    let named = |name: &str| Match { span_names: Some(Texts::strict(vec![name.into()])), ..Match::default() };
    let nothing = filter(Selection::default()).map(Signal::Traces, &request, &mut Unlimited).unwrap();
    assert_eq!(nothing.bytes.as_ptr(), request.bytes.as_ptr());
    // The spans of these requests have no name.
    let others = filter(Selection { include: Vec::new(), exclude: vec![named("x")] })
        .map(Signal::Traces, &request, &mut Unlimited)
        .unwrap();
    assert_eq!(others.bytes.as_ptr(), request.bytes.as_ptr());
    let all = filter(Selection { include: Vec::new(), exclude: vec![named("x"), named("")] })
        .map(Signal::Traces, &request, &mut Unlimited)
        .unwrap();
    assert_eq!((all.items, all.bytes.len()), (0, 0));
    let included = filter(Selection { include: vec![named("")], exclude: Vec::new() })
        .map(Signal::Traces, &request, &mut Unlimited)
        .unwrap();
    assert_eq!(numbers_in(&included.bytes), [0, 1, 2]);
    assert!(Arc::strong_count(&request.charge) == 1);
}
