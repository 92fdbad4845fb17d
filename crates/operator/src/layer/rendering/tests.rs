use std::collections::BTreeSet;

use jiff::Timestamp;
use kubewake_api::{ResolvedReferences, Signal, TelemetryPipeline, v1alpha1::TracePipeline, validate};
use serde_json::json;

use super::*;

fn pipeline(name: &str, endpoint: &str) -> (PipelineKey, Arc<ValidPipeline>) {
    pipeline_of(name, name, endpoint)
}

fn pipeline_of(uid: &str, name: &str, endpoint: &str) -> (PipelineKey, Arc<ValidPipeline>) {
    let spec = json!({"output": {"otlp": {"endpoint": {"value": endpoint}}}});
    let mut object = TracePipeline::new(name, serde_json::from_value(spec).unwrap());
    (object.metadata.uid, object.metadata.generation) = (Some(uid.to_owned()), Some(1));
    let valid = validate(&TelemetryPipeline::from(&object), &ResolvedReferences::new(), Timestamp::UNIX_EPOCH).unwrap();
    (PipelineKey { signal: Signal::Traces, name: name.to_owned() }, Arc::new(valid))
}

fn yaml(layer: &CollectorConfigs) -> &str {
    layer.gateway.as_ref().map(|document| document.yaml.as_str()).unwrap_or_default()
}

/// The collector's errors about a document with an unknown field in the component with this id.
fn complaint(about: &str) -> DocumentErrors {
    let text = format!("exporters: {{\"{about}\": {{endpoint: \"a:1\", nonsense: 1}}}}");
    load(&text, &CollectorConfigs::default().sources()).map(drop).expect_err("it is refused")
}

/// A check that refuses documents with this word.
fn against(word: &'static str, about: &'static str) -> impl Fn(&CollectorConfigs) -> Result<(), DocumentErrors> {
    move |layer| if yaml(layer).contains(word) { Err(complaint(about)) } else { check_with_collector(layer) }
}

fn names(of: impl IntoIterator<Item = PipelineKey>) -> BTreeSet<String> {
    of.into_iter().map(|id| id.name).collect()
}

#[test]
fn a_pipeline_that_the_collector_refuses_is_left_out_and_costs_the_others_nothing() {
    let asked = BTreeMap::from([pipeline("good", "good.test:1"), pipeline("bad", "bad.test:1")]);
    let settings = CollectorSettings::new("default");
    let judge = against("bad.test", "otlp_grpc/traces-bad");
    let rendered = RenderedLayer::render_accepted_by(judge, asked.clone(), settings.clone(), None).unwrap();
    assert_eq!(names(rendered.valid.keys().cloned()), BTreeSet::from(["good".to_owned()]));
    let why = rendered.refused.get(&pipeline("bad", "bad.test:1").0).unwrap();
    assert!(why.contains("otlp_grpc/traces-bad") && why.contains("nonsense"), "{why}");
    assert!(yaml(&rendered.layer).contains("good.test") && !yaml(&rendered.layer).contains("bad.test"));
    assert!(rendered.is_current_for(&asked, &settings), "it is not rendered again for the same");
}

#[test]
fn a_pipeline_that_is_refused_as_it_is_now_goes_on_as_it_was() {
    let settings = CollectorSettings::new("default");
    let before = BTreeMap::from([pipeline("one", "old.test:1")]);
    let before = RenderedLayer::new(before, settings.clone(), None).unwrap();
    let asked = BTreeMap::from([pipeline("one", "new.test:1")]);
    let judge = against("new.test", "otlp_grpc/traces-one");
    let rendered = RenderedLayer::render_accepted_by(judge, asked.clone(), settings.clone(), Some(&before)).unwrap();
    assert!(yaml(&rendered.layer).contains("old.test"), "{}", yaml(&rendered.layer));
    assert_eq!(names(rendered.refused.into_keys()), BTreeSet::from(["one".to_owned()]));
    let another = BTreeMap::from([pipeline_of("another", "one", "new.test:1")]);
    let judge = against("new.test", "otlp_grpc/traces-one");
    let rendered = RenderedLayer::render_accepted_by(judge, another, settings.clone(), Some(&before)).unwrap();
    assert!(rendered.valid.is_empty(), "what had its name before is not what it was");
    // The second refusal leaves it out.
    let rendered =
        RenderedLayer::render_accepted_by(against(".test", "otlp_grpc/traces-one"), asked, settings, Some(&before))
            .unwrap();
    assert!(rendered.layer.gateway.is_none() && rendered.valid.is_empty());
}

#[test]
fn where_nobody_is_to_blame_nothing_is_written() {
    let asked = BTreeMap::from([pipeline("one", "one.test:1")]);
    let judge = against("one.test", "otlp_grpc/somebody-else");
    let refused = RenderedLayer::render_accepted_by(judge, asked, CollectorSettings::new("default"), None).err();
    assert!(matches!(refused, Some(LayerError::Refused(_))), "{refused:?}");
}
