//! Whether pipelines do what they say.

use kube::Resource as _;
use kubewake_api::v1alpha1::Telemetry;
use kubewake_operator::delivery::judge::REJECTED;
use kubewake_trail::in_words;
use serde_json::json;

use super::{
    code::{self, Code},
    line::{Line, Outcome, Section},
};
use crate::survey::pipelines::{Condition, Pipeline};

/// In the order in which one needs the other.
const CONDITIONS: [(&str, Code); 4] = [
    ("Accepted", code::KW502),
    ("Configured", code::KW503),
    ("CollectorReady", code::KW504),
    ("Delivering", code::KW505),
];

pub(super) fn look(pipelines: &[Pipeline], errors: &[kube::Error]) -> Section {
    let mut lines: Vec<Line> = errors
        .iter()
        .map(|error| {
            let mend = "kubectl auth can-i list tracepipelines.telemetry.kubewake.io";
            Line::warned(code::KW501, format!("not all can be seen: {}", in_words(error)), mend)
        })
        .collect();
    if pipelines.is_empty() && errors.is_empty() {
        let mend = "kubectl explain tracepipeline.spec.output.otlp   # docs/pipelines.md has examples";
        lines.push(Line::warned(code::KW501, "without one there are no collectors", mend));
    }
    lines.extend(pipelines.iter().flat_map(pipeline));
    Section { name: "Pipelines", lines }
}

/// Whether it has just been found not to deliver.
pub(super) fn is_stuck(it: &Pipeline) -> bool {
    pipeline(it).iter().any(|line| line.code == code::KW505 && line.outcome == Outcome::Failed)
}

/// The first thing that is wrong with it, or that nothing is; before it what will be wrong one day.
fn pipeline(pipeline: &Pipeline) -> Vec<Line> {
    let title = pipeline.title();
    let conditions = pipeline.conditions();
    // Where nobody says anything, nobody says that it is well.
    if !pipeline.is_observed() || conditions.is_empty() {
        let mend = format!(
            "kubectl describe {} {}\nkubewake check --wait   # it may be about to",
            pipeline.kind.name(),
            pipeline.name
        );
        return vec![Line::failed(code::KW502, format!("{title}: no operator has looked at it as it is"), mend)];
    }
    let mut lines = Vec::new();
    for (name, code) in CONDITIONS {
        // One that is paused need not deliver.
        let asked = conditions.iter().find(|it| it.name == name && (name == "Accepted" || !pipeline.is_paused()));
        let Some(condition) = asked else { continue };
        lines.extend(trouble(pipeline, code, condition));
        // What needs it is not as it should be either.
        if !lines.is_empty() && condition.status != "True" {
            return lines;
        }
    }
    if lines.is_empty() {
        lines.push(Line::passed(code::KW505, format!("{title} ({})", pipeline.status("reason"))));
    }
    lines
}

fn trouble(pipeline: &Pipeline, code: Code, condition: &Condition) -> Option<Line> {
    let warns = match (condition.status.as_str(), condition.reason.as_str()) {
        ("True", "CertificateExpiresSoon") => true,
        ("True", _) => return None,
        // It is so because it is said to be so, or because there is nothing to deliver.
        (_, "Paused" | "CollectorNotNeeded" | "NoData") => return None,
        (
            _,
            "Terminating" | "Pending" | "RolloutInProgress" | "BackendSlow" | "BufferFilling" | "DataDropped"
            | "Unknown",
        ) => true,
        _ => false,
    };
    let detail = format!("{}: {} ({})", pipeline.title(), condition.message, condition.reason);
    let mend = mend(pipeline, &condition.reason, &condition.message);
    let settles = matches!(condition.reason.as_str(), "RolloutInProgress" | "Unknown");
    let line = if warns { Line::warned(code, detail, mend) } else { Line::failed(code, detail, mend) };
    Some(line.settling(settles))
}

/// What to do about it. The message has the names of what is wrong.
fn mend(pipeline: &Pipeline, reason: &str, message: &str) -> String {
    let (kind, name) = (pipeline.kind.name(), &pipeline.name);
    let edit = format!("kubectl edit {kind} {name}");
    match reason {
        "Pending" => more_slots(pipeline),
        "Terminating" => {
            format!("kubectl get {kind} {name} -o jsonpath={{.metadata.finalizers}}   # whoever set them must remove them")
        }
        "SecretMissing" | "SecretInvalid" | "CertificateExpired" | "CertificateExpiresSoon" | "TlsInvalid" => {
            format!("kubectl get {kind} {name} -o jsonpath={{.spec.output}}   # which Secret and key; mend it there, and the pipeline follows")
        }
        "SecretUnreadable" => {
            "kubectl create rolebinding kubewake-operator-references --namespace NAMESPACE --clusterrole kubewake-operator-references --serviceaccount kubewake-system:kubewake-operator".to_owned()
        }
        "CollectorNotReady" | "RolloutInProgress" => {
            "kubectl get pods --namespace kubewake-system --selector app.kubernetes.io/component=collector".to_owned()
        }
        "ApplyFailed" | "DocumentRefused" => {
            format!("kubectl describe {kind} {name}\nkubectl logs --namespace kubewake-system deployment/kubewake-operator --tail 20")
        }
        "BackendRefuses" => format!("{edit}   # credentials, headers, protocol and path"),
        "BackendUnreachable" => format!("{edit}   # endpoint and tls; then what the network lets through"),
        "DataDropped" if message.contains(REJECTED) => {
            "kubectl logs --namespace kubewake-system --selector app.kubernetes.io/component=collector --tail 1000 | grep 'accepted only a part'   # with the backend's reason".to_owned()
        }
        "BackendSlow" | "BufferFilling" | "DataDropped" => {
            format!("{edit}   # sample or filter, or give queue.sizeBytes more; a faster backend is best")
        }
        "Unknown" | "NotAccepted" => format!("kubectl describe {kind} {name}"),
        _ => edit,
    }
}

/// A command that works whether there is a Telemetry or not. What begins with a brace has to be JSON for kubectl.
fn more_slots(pipeline: &Pipeline) -> String {
    let signal = pipeline.id().split('/').next().unwrap_or_default().to_owned();
    let telemetry = json!({
        "apiVersion": Telemetry::api_version(&()), "kind": "Telemetry", "metadata": {"name": "default"},
        "spec": {"slots": {signal: 2}},
    });
    format!(
        "kubectl get telemetry   # who holds the slot\n\
         echo '{telemetry}' | kubectl apply --server-side -f -"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::pipelines::Kind;

    fn example(observed: i64, conditions: &[(&str, &str, &str)]) -> Line {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(name, status, reason)| json!({"type": name, "status": status, "reason": reason, "message": "because"}))
            .collect();
        let object = json!({
            "metadata": {"name": "backend", "generation": 2},
            "status": {"observedGeneration": observed, "reason": "Delivering", "conditions": conditions},
        });
        pipeline(&Pipeline::example(Kind::Traces, object)).pop().unwrap()
    }

    #[test]
    fn a_certificate_that_expires_soon_hides_nothing() {
        let condition = |name, status, reason| json!({"type": name, "status": status, "reason": reason, "message": ""});
        let said = |paused: bool| {
            let pipeline = pipeline(&Pipeline::example(
                Kind::Traces,
                json!({
                    "metadata": {"name": "a", "generation": 1}, "spec": {"paused": paused},
                    "status": {"observedGeneration": 1, "reason": "Paused", "conditions": [
                        condition("Accepted", "True", "CertificateExpiresSoon"),
                        condition("Delivering", "False", "BackendUnreachable"),
                    ]},
                }),
            ));
            pipeline.iter().map(|line| (line.code.id, line.outcome)).collect::<Vec<_>>()
        };
        assert_eq!(said(false), [("KW502", Outcome::Warned), ("KW505", Outcome::Failed)]);
        assert_eq!(said(true), [("KW502", Outcome::Warned)], "nobody is asked to deliver");
    }

    #[test]
    fn the_first_condition_that_does_not_hold_is_said() {
        let line = example(
            2,
            &[
                ("Accepted", "True", "Valid"),
                ("Delivering", "False", "BackendRefuses"),
                ("Configured", "False", "ApplyFailed"),
            ],
        );
        assert_eq!((line.code.id, line.outcome), ("KW503", Outcome::Failed));
        assert_eq!(line.detail, "tracepipeline/backend: because (ApplyFailed)");
        let line = example(2, &[("Accepted", "False", "Pending")]);
        assert_eq!((line.code.id, line.outcome, line.settles), ("KW502", Outcome::Warned, false));
        let line = example(2, &[("Accepted", "True", "Valid"), ("Configured", "False", "RolloutInProgress")]);
        assert_eq!((line.code.id, line.outcome, line.settles), ("KW503", Outcome::Warned, true));
        let line = example(2, &[("Accepted", "False", "Pending")]);
        assert!(line.mend.contains(r#"{"slots":{"traces":2}}}'"#), "{}", line.mend);
        let line = example(2, &[("Accepted", "True", "Valid"), ("Delivering", "Unknown", "NoData")]);
        assert_eq!((line.outcome, line.detail.as_str()), (Outcome::Passed, "tracepipeline/backend (Delivering)"));
        assert_eq!(
            example(1, &[("Accepted", "True", "Valid")]).outcome,
            Outcome::Failed,
            "it speaks of what was before"
        );
        assert_eq!(example(2, &[]).outcome, Outcome::Failed, "nobody says that it is well");
        assert_eq!(look(&[], &[]).lines[0].outcome, Outcome::Warned);
    }

    #[test]
    fn every_reason_that_is_bad_news_has_something_to_do() {
        let object = json!({"metadata": {"name": "a"}});
        let pipeline = Pipeline::example(Kind::Logs, object);
        for reason in kubewake_api::Reason::ALL {
            assert!(mend(&pipeline, reason.as_str(), "").contains("kubectl"), "{reason:?}");
        }
        let full = mend(&pipeline, "DataDropped", "data was dropped lately: the queue was full");
        assert!(full.contains("queue.sizeBytes"), "{full}");
        let rejected = mend(&pipeline, "DataDropped", &format!("data was dropped lately: {REJECTED}"));
        assert!(rejected.starts_with("kubectl logs") && !rejected.contains("queue"), "{rejected}");
    }
}
