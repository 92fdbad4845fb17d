use jiff::SignedDuration;
use kubewake_api::{
    ConditionReason, ConditionType, DeliveryOutcome, SpecProblem, State, ValidPipeline, v1alpha1::TracePipeline,
    validate,
};
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

use super::*;
use crate::feedback::delivery_health::{DeliveryHealth, RolloutState};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const DAY: Duration = Duration::from_secs(86_400);

/// A pipeline with a certificate that is valid for this many days.
fn certified(days: u32) -> TelemetryPipeline {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["sender".to_owned()]).unwrap();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    (params.not_before, params.not_after) = (epoch, epoch + DAY * days);
    let tls = json!({
        "cert": {"value": params.self_signed(&key).unwrap().pem()}, "key": {"value": key.serialize_pem()},
    });
    let spec = json!({"output": {"otlp": {"endpoint": {"value": "backend:4317"}, "tls": tls}}});
    let mut object = TracePipeline::new("backend", serde_json::from_value(spec).unwrap());
    (object.metadata.uid, object.metadata.generation) = (Some("uid".to_owned()), Some(1));
    TelemetryPipeline::from(&object)
}

fn looked_at(pipeline: &TelemetryPipeline, now: Timestamp) -> Result<ValidPipeline, Vec<SpecProblem>> {
    validate(pipeline, &ResolvedReferences::new(), now)
}

fn entry(valid: ValidPipeline) -> PipelineState {
    PipelineState {
        owner: OwnerReference::default(),
        valid: Some(Arc::new(valid)),
        problems: Vec::new(),
        slot: Some(Slot::Held),
        checked: None,
    }
}

#[test]
fn a_pipeline_is_looked_at_again_when_its_certificate_is_to_be_warned_about() {
    let pipeline = certified(100);
    let resync = DAY * 1000;
    let entry = entry(looked_at(&pipeline, NOW).unwrap());
    assert_eq!(next_resync(&entry, None, resync, NOW), DAY * 86);
    assert_eq!(next_resync(&entry, None, DAY, NOW), DAY, "and by then anyway");
    let warned = NOW + SignedDuration::from_hours(24 * 90);
    assert_eq!(next_resync(&entry, None, resync, warned), DAY * 10 + Duration::from_secs(1), "and when it has expired");
    let expired = NOW + SignedDuration::from_hours(24 * 101);
    assert_eq!(next_resync(&entry, None, resync, expired), resync);
    assert_eq!(looked_at(&pipeline, expired).unwrap_err()[0].reason, ConditionReason::CertificateExpired);
}

#[test]
fn a_certificate_that_expires_soon_is_said_while_all_is_well() {
    let entry = entry(looked_at(&certified(10), NOW).unwrap());
    let id = PipelineKey::from(&certified(10));
    let outcome =
        LayerOutcome { rendered: [id.clone()].into(), documents: ["new".into()].into(), ..LayerOutcome::default() };
    let facts = PipelineFacts {
        id: &id,
        generation: Some(1),
        backend: "backend:4317".to_owned(),
        pipeline: &entry,
        outcome: &outcome,
        collectors: &CollectorReadiness::example(2, 2),
        health: Some(DeliveryHealth {
            uid: None,
            delivery: DeliveryOutcome::NoData,
            message: String::new(),
            rollout: RolloutState::InForce,
            documents: ["new".to_owned()].into(),
        }),
        slots: 1,
        warnings: Vec::new(),
        losses: Vec::new(),
    };
    let status = status::status(None, &facts, NOW);
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Ready), Some("CertificateExpiresSoon")));
    let accepted = status.conditions.iter().find(|it| it.type_ == ConditionType::Accepted.as_str()).unwrap();
    assert_eq!((accepted.status.as_str(), accepted.reason.as_str()), ("True", "CertificateExpiresSoon"));
    assert!(accepted.message.contains("1970-01-11"), "{}", accepted.message);
}
