use super::*;

fn annotations(pairs: &[(&str, &str)]) -> Annotations {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn wanted(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    annotations(pairs).into_iter().collect()
}

const PARENT: &str = "tracing.k8s.io/traceparent";
const STATE: &str = "tracing.k8s.io/tracestate";

#[test]
fn a_map_is_made_only_where_there_is_none() {
    let made = patch_operations(None, &wanted(&[(PARENT, "x")]), &AnnotationKeys::default()).unwrap();
    assert_eq!(made, [json!({ "op": "add", "path": "/metadata/annotations", "value": { PARENT: "x" } })]);
    let made =
        patch_operations(Some(&annotations(&[])), &wanted(&[(PARENT, "x")]), &AnnotationKeys::default()).unwrap();
    assert_eq!(
        made,
        [json!({ "op": "add", "path": "/metadata/annotations/tracing.k8s.io~1traceparent", "value": "x" })]
    );
}

#[test]
fn others_are_not_touched_and_ours_go_when_they_are_not_wanted() {
    let there = annotations(&[("a~b/c", "x"), (PARENT, "old"), (STATE, "k=v")]);
    let made = patch_operations(Some(&there), &wanted(&[(PARENT, "new")]), &AnnotationKeys::default()).unwrap();
    let expected = [
        json!({ "op": "add", "path": "/metadata/annotations/tracing.k8s.io~1traceparent", "value": "new" }),
        json!({ "op": "remove", "path": "/metadata/annotations/tracing.k8s.io~1tracestate" }),
    ];
    assert_eq!(made, expected);
}

#[test]
fn what_is_there_is_not_written() {
    let there = annotations(&[("a", "x"), (PARENT, "same")]);
    assert_eq!(patch_operations(Some(&there), &wanted(&[(PARENT, "same")]), &AnnotationKeys::default()), Ok(vec![]));
    assert_eq!(patch_operations(None, &[], &AnnotationKeys::default()), Ok(vec![]));
}

#[test]
fn an_object_is_never_made_too_long() {
    let long = "x".repeat(MAX_ANNOTATION_BYTES - 10);
    let there = annotations(&[("a", &long)]);
    assert_eq!(
        patch_operations(Some(&there), &wanted(&[(PARENT, "new")]), &AnnotationKeys::default()),
        Err(AnnotationsTooLarge)
    );
    assert_eq!(patch_operations(Some(&there), &[], &AnnotationKeys::default()), Ok(vec![]));
}
