use serde_json::json;

use super::{pipeline::RECENT_LOSS_SECONDS, *};

#[test]
fn status_of_another_version_is_read() {
    let text = json!({
        "phase": "dreaming", "new": [1],
        "revision": {"hash": "abc", "more": true},
        "refused": {"hash": "def"},
        "pipelines": {"traces/a": {
            "diagnosis": "Haunted", "state": "lost", "last_drop": {"reason": "queue_full"},
            "exporters": {"otlp": {"state": "new"}},
        }},
        "ended": [{"id": "traces/b"}],
        "samplers": {"tail_sampling": {"state": "new"}},
        "clusters": {"k8s_attributes": {}},
    });
    let status: CollectorStatus = serde_json::from_value(text).unwrap();
    assert_eq!(status.phase, CollectorPhase::Unknown);
    assert_eq!(status.revision.unwrap().hash, "abc");
    let pipeline = &status.pipelines["traces/a"];
    assert_eq!((pipeline.diagnosis, pipeline.state), (PipelineDiagnosis::Unknown, SendState::Unknown));
    assert_eq!(pipeline.last_drop.as_ref().unwrap().at, EventTime::default());
    assert!(!pipeline.exporters["otlp"].is_failing());
    assert_eq!(status.samplers["tail_sampling"].state, SamplerState::Unknown);
    assert_eq!(serde_json::from_value::<CollectorStatus>(json!({})).unwrap(), CollectorStatus::default());
}

#[test]
fn status_without_its_essentials_is_refused() {
    for text in [json!({"revision": {"number": 1}}), json!({"refused": {}}), json!({"pipelines": 1}), json!("ready")] {
        assert!(serde_json::from_value::<CollectorStatus>(text.clone()).is_err(), "{text}");
    }
}

#[test]
fn unknown_words_yield_to_all_others() {
    assert!(PipelineDiagnosis::Unknown < PipelineDiagnosis::NoData);
    assert!(SendState::Unknown < SendState::Idle);
}

#[test]
fn phase_has_the_word_of_the_document() {
    use CollectorPhase::{Draining, Ready, Starting};
    for phase in [Starting, Ready, Draining] {
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
    }
}

#[test]
fn losses_elsewhere_are_those_of_carriers_and_of_ended_pipelines() {
    let status: CollectorStatus = serde_json::from_value(json!({
        "pipelines": {"traces/_sticky": {"carries": ["one"], "dropped": {"refused": 2}},
            "traces/a": {"uid": "one", "dropped": {"refused": 1000}}},
        "ended": [{"carries": ["one", "two"], "dropped": {"shutdown": 200}}, {"uid": "one", "dropped": {"shutdown": 30}}],
    }))
    .unwrap();
    assert_eq!(status.dropped_elsewhere("one"), 2 + 200 + 30);
    assert_eq!((status.dropped_elsewhere("two"), status.dropped_elsewhere("three")), (200, 0));
}

#[test]
fn losses_are_attributed_by_uid() {
    let ended = EndedPipelineReport {
        uid: Some("one".into()),
        carries: vec!["two".into()],
        last_drop: Some(DropReport::default()),
        ..EndedPipelineReport::default()
    };
    assert!(ended.concerns_uid("one") && ended.concerns_uid("two") && !ended.concerns_uid("three"));
    assert!(ended.recent_drop(Some("two")).is_some());
    assert!(ended.recent_drop(Some("three")).is_none() && ended.recent_drop(None).is_none());
    let mut old = ended;
    old.last_drop.as_mut().unwrap().at.age_seconds = RECENT_LOSS_SECONDS;
    assert!(old.recent_drop(Some("one")).is_none());
}
