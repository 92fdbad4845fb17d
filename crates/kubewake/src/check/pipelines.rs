//! Checks whether pipelines are accepted and deliver.

use kube::Resource as _;
use kubewake_api::v1alpha1::Telemetry;
use kubewake_operator::PARTIAL_REJECTION_MESSAGE;
use kubewake_trail::error_chain;
use serde_json::json;

use super::{
    codes::{self, CheckCode},
    definitions::INSTALL_COMMAND,
    report::{CheckLine, CheckOutcome, CheckSection},
};
use crate::inventory::pipelines::{InstalledPipeline, PipelineCondition};

/// In order of dependency.
const CONDITION_CODES: [(&str, CheckCode); 4] = [
    ("Accepted", codes::KW502),
    ("Configured", codes::KW503),
    ("CollectorReady", codes::KW504),
    ("Delivering", codes::KW505),
];

pub(super) fn check(pipelines: &[InstalledPipeline], errors: &[kube::Error]) -> CheckSection {
    let mut lines: Vec<CheckLine> = Vec::new();
    for line in errors.iter().map(unlisted_line) {
        // A failure usually affects all kinds alike.
        if !lines.iter().any(|told| told.detail == line.detail) {
            lines.push(line);
        }
    }
    if pipelines.is_empty() && errors.is_empty() {
        let mend = "kubectl explain tracepipeline.spec.output.otlp   # docs/pipelines.md has examples";
        lines.push(CheckLine::warned(codes::KW501, "the cluster has no pipeline, so it needs no collectors", mend));
    }
    lines.extend(pipelines.iter().flat_map(check_pipeline));
    CheckSection { name: "Pipelines", lines }
}

fn unlisted_line(error: &kube::Error) -> CheckLine {
    if matches!(error, kube::Error::Api(status) if status.code == 404) {
        let detail = format!("the CRDs of pipelines are not installed ({})", codes::KW201.id);
        return CheckLine::warned(codes::KW501, detail, INSTALL_COMMAND);
    }
    let mend = "kubectl auth can-i list tracepipelines.telemetry.kubewake.io";
    CheckLine::warned(codes::KW501, format!("failed to list pipelines: {}", error_chain(error)), mend)
}

/// Whether the pipeline currently fails to deliver.
pub(super) fn is_stuck(it: &InstalledPipeline) -> bool {
    delivery_failure(it).is_some()
}

/// Why the pipeline currently fails to deliver.
pub(super) fn delivery_failure(it: &InstalledPipeline) -> Option<CheckLine> {
    check_pipeline(it).into_iter().find(|line| line.code == codes::KW505 && line.outcome == CheckOutcome::Failed)
}

/// Warnings and the first failure, or a passed line if there are neither.
fn check_pipeline(pipeline: &InstalledPipeline) -> Vec<CheckLine> {
    let title = pipeline.display_name();
    let conditions = pipeline.conditions();
    // Without conditions nothing is known about the pipeline.
    if !pipeline.is_observed() || conditions.is_empty() {
        let mend = format!(
            "kubectl describe {} {}\nkubewake check --wait   # waits for the operator",
            pipeline.kind.name(),
            pipeline.name
        );
        return vec![CheckLine::failed(
            codes::KW502,
            format!("{title}: no operator has observed the current generation"),
            mend,
        )];
    }
    let mut lines = Vec::new();
    for (name, code) in CONDITION_CODES {
        // A paused pipeline need not deliver.
        let asked = conditions.iter().find(|it| it.name == name && (name == "Accepted" || !pipeline.is_paused()));
        let Some(condition) = asked else { continue };
        lines.extend(condition_problem(pipeline, code, condition));
        // The remaining conditions depend on this one.
        if !lines.is_empty() && condition.status != "True" {
            return lines;
        }
    }
    if lines.is_empty() {
        lines.push(CheckLine::passed(codes::KW505, format!("{title} ({})", pipeline.status("reason"))));
    }
    lines
}

fn condition_problem(
    pipeline: &InstalledPipeline,
    code: CheckCode,
    condition: &PipelineCondition,
) -> Option<CheckLine> {
    let warns = match (condition.status.as_str(), condition.reason.as_str()) {
        ("True", "CertificateExpiresSoon") => true,
        ("True", _) => return None,
        // Expected states: the pipeline is paused, or there is nothing to deliver.
        (_, "Paused" | "CollectorNotNeeded" | "NoData") => return None,
        (
            _,
            "Terminating" | "Pending" | "RolloutInProgress" | "BackendSlow" | "BufferFilling" | "DataDropped"
            | "Unknown",
        ) => true,
        _ => false,
    };
    let detail = format!("{}: {} ({})", pipeline.display_name(), condition.message, condition.reason);
    let mend = suggest_remedy(pipeline, &condition.reason, &condition.message);
    let settles = matches!(condition.reason.as_str(), "RolloutInProgress" | "Unknown");
    let line = if warns { CheckLine::warned(code, detail, mend) } else { CheckLine::failed(code, detail, mend) };
    Some(line.with_in_progress(settles))
}

/// The remedy for a reason. The message names the objects concerned.
fn suggest_remedy(pipeline: &InstalledPipeline, reason: &str, message: &str) -> String {
    let kind = pipeline.kind.name();
    let name = &pipeline.name;
    let edit = format!("kubectl edit {kind} {name}");
    match reason {
        "Pending" => raise_slots_command(pipeline),
        "Terminating" => {
            format!("kubectl get {kind} {name} -o jsonpath={{.metadata.finalizers}}   # the controllers that set these finalizers have to remove them")
        }
        "SecretMissing" | "SecretInvalid" | "CertificateExpired" | "CertificateExpiresSoon" | "TlsInvalid" => {
            format!("kubectl get {kind} {name} -o jsonpath={{.spec.output}}   # shows the Secret and the key; the pipeline follows when you correct the Secret")
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
        "BackendRefuses" => format!("{edit}   # check credentials, headers, protocol and path"),
        "BackendUnreachable" => format!("{edit}   # check endpoint and tls, then network policies and firewalls"),
        "DataDropped" if message.contains(PARTIAL_REJECTION_MESSAGE) => {
            "kubectl logs --namespace kubewake-system --selector app.kubernetes.io/component=collector --tail 1000 | grep 'rejected a part'   # shows the backend's reason".to_owned()
        }
        "BackendSlow" | "BufferFilling" | "DataDropped" => {
            format!("{edit}   # add sampling or filters, raise queue.sizeBytes, or use a faster backend")
        }
        "Unknown" | "NotAccepted" => format!("kubectl describe {kind} {name}"),
        _ => edit,
    }
}

/// A command that works with or without a Telemetry. kubectl parses an argument that begins with a brace as
/// JSON.
fn raise_slots_command(pipeline: &InstalledPipeline) -> String {
    let signal = pipeline.id().split('/').next().unwrap_or_default().to_owned();
    let telemetry = json!({
        "apiVersion": Telemetry::api_version(&()), "kind": "Telemetry", "metadata": {"name": "default"},
        "spec": {"slots": {signal: 2}},
    });
    format!(
        "kubectl get telemetry   # shows the pipeline that holds the slot\n\
         echo '{telemetry}' | kubectl apply --server-side -f -"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::pipelines::InstalledPipelineKind;

    fn example(observed: i64, conditions: &[(&str, &str, &str)]) -> CheckLine {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(name, status, reason)| json!({"type": name, "status": status, "reason": reason, "message": "because"}))
            .collect();
        let object = json!({
            "metadata": {"name": "backend", "generation": 2},
            "status": {"observedGeneration": observed, "reason": "Delivering", "conditions": conditions},
        });
        check_pipeline(&InstalledPipeline::example(InstalledPipelineKind::Traces, object)).pop().unwrap()
    }

    #[test]
    fn a_certificate_that_expires_soon_hides_nothing() {
        let condition = |name, status, reason| json!({"type": name, "status": status, "reason": reason, "message": ""});
        let said = |paused: bool| {
            let pipeline = check_pipeline(&InstalledPipeline::example(
                InstalledPipelineKind::Traces,
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
        assert_eq!(said(false), [("KW502", CheckOutcome::Warned), ("KW505", CheckOutcome::Failed)]);
        assert_eq!(said(true), [("KW502", CheckOutcome::Warned)], "nobody is asked to deliver");
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
        assert_eq!((line.code.id, line.outcome), ("KW503", CheckOutcome::Failed));
        assert_eq!(line.detail, "tracepipeline/backend: because (ApplyFailed)");
        let line = example(2, &[("Accepted", "False", "Pending")]);
        assert_eq!((line.code.id, line.outcome, line.in_progress), ("KW502", CheckOutcome::Warned, false));
        let line = example(2, &[("Accepted", "True", "Valid"), ("Configured", "False", "RolloutInProgress")]);
        assert_eq!((line.code.id, line.outcome, line.in_progress), ("KW503", CheckOutcome::Warned, true));
        let line = example(2, &[("Accepted", "False", "Pending")]);
        assert!(line.mend.contains(r#"{"slots":{"traces":2}}}'"#), "{}", line.mend);
        let line = example(2, &[("Accepted", "True", "Valid"), ("Delivering", "Unknown", "NoData")]);
        assert_eq!((line.outcome, line.detail.as_str()), (CheckOutcome::Passed, "tracepipeline/backend (Delivering)"));
        assert_eq!(
            example(1, &[("Accepted", "True", "Valid")]).outcome,
            CheckOutcome::Failed,
            "it speaks of what was before"
        );
        assert_eq!(example(2, &[]).outcome, CheckOutcome::Failed, "nobody says that it is well");
        assert_eq!(check(&[], &[]).lines[0].outcome, CheckOutcome::Warned);
    }

    #[test]
    fn pipelines_that_cannot_be_listed_are_told_once_for_each_reason() {
        let refused = |code, message: &str| {
            let status = json!({"status": "Failure", "code": code, "message": message, "reason": ""});
            kube::Error::Api(serde_json::from_value(status).unwrap())
        };
        let absent = || refused(404, "404 page not found\n");
        let section = check(&[], &[absent(), absent(), absent()]);
        let told: Vec<_> = section.lines.iter().map(|line| (line.detail.as_str(), line.mend.as_str())).collect();
        assert_eq!(told, [("the CRDs of pipelines are not installed (KW201)", INSTALL_COMMAND)]);
        let section = check(&[], &[absent(), refused(403, "no"), refused(403, "neither")]);
        assert_eq!(section.lines.len(), 3);
    }

    #[test]
    fn every_reason_that_is_bad_news_has_something_to_do() {
        let object = json!({"metadata": {"name": "a"}});
        let pipeline = InstalledPipeline::example(InstalledPipelineKind::Logs, object);
        for reason in kubewake_api::ConditionReason::ALL {
            assert!(suggest_remedy(&pipeline, reason.as_str(), "").contains("kubectl"), "{reason:?}");
        }
        let full = suggest_remedy(&pipeline, "DataDropped", "data was dropped lately: the queue was full");
        assert!(full.contains("queue.sizeBytes"), "{full}");
        let rejected =
            suggest_remedy(&pipeline, "DataDropped", &format!("data was dropped lately: {PARTIAL_REJECTION_MESSAGE}"));
        assert!(rejected.starts_with("kubectl logs") && !rejected.contains("queue"), "{rejected}");
    }
}
