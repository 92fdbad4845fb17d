//! Checks of the collectors.

use std::collections::BTreeSet;

use kubewake_api::render::HEALTH_PORT;
use kubewake_trail::error_chain;

use super::{
    CheckContext, codes,
    report::{CheckLine, CheckSection},
};
use crate::inventory::{collectors::CollectorInstance, pipelines::InstalledPipeline};

/// Collectors that a line lists by name.
const MAX_NAMED_COLLECTORS: usize = 3;

pub(super) fn check(
    scene: &CheckContext<'_>,
    pipelines: &[InstalledPipeline],
    seen: &Result<Vec<CollectorInstance>, kube::Error>,
) -> CheckSection {
    let namespace = &scene.args.cluster.namespace;
    let lines = match seen {
        Ok(collectors) => check_collectors(namespace, pipelines, collectors),
        Err(error) => vec![CheckLine::warned(
            codes::KW601,
            format!("failed to list the pods of the collectors: {}", error_chain(error)),
            format!("kubectl auth can-i list pods --namespace {namespace}"),
        )],
    };
    CheckSection { name: "Collectors", lines }
}

fn check_collectors(
    namespace: &str,
    pipelines: &[InstalledPipeline],
    collectors: &[CollectorInstance],
) -> Vec<CheckLine> {
    // Collectors that are terminating have delivered their data, or are about to.
    let collectors: Vec<&CollectorInstance> = collectors.iter().filter(|it| it.phase != "Terminating").collect();
    let is_active = |pipeline: &InstalledPipeline| {
        let accepted = pipeline.conditions().into_iter().any(|it| it.name == "Accepted" && it.status == "True");
        accepted && !pipeline.is_paused()
    };
    match (collectors.is_empty(), pipelines.iter().any(is_active)) {
        (true, false) => Vec::new(),
        (true, true) => vec![CheckLine::failed(
            codes::KW601,
            "no collector is running, although a pipeline is accepted",
            format!("kubectl get deployments,events --namespace {namespace}"),
        )],
        (false, _) => {
            let mut lines = vec![check_readiness(&collectors)];
            lines.extend(check_reports(&collectors));
            lines
        }
    }
}

fn check_readiness(collectors: &[&CollectorInstance]) -> CheckLine {
    let unready = || collectors.iter().filter(|it| !it.is_ready);
    let bad: Vec<String> =
        unready().map(|it| format!("{} ({})", it.pod, it.trouble.as_deref().unwrap_or(&it.phase))).collect();
    let ready = collectors.len() - bad.len();
    if bad.is_empty() {
        return CheckLine::passed(codes::KW601, format!("{ready} collectors are ready"));
    }
    let detail = format!("{ready} of {} collectors are ready; not ready: {}", collectors.len(), join_first_names(&bad));
    // Collectors on nodes are in a namespace of their own.
    let namespaces: BTreeSet<&str> = unready().map(|it| it.namespace.as_str()).collect();
    let describe = |namespace: &&str| {
        format!("kubectl describe pods --namespace {namespace} --selector app.kubernetes.io/component=collector")
    };
    let mend = namespaces.iter().map(describe).collect::<Vec<_>>().join("\n");
    match ready {
        0 => CheckLine::failed(codes::KW601, detail, mend),
        _ => CheckLine::warned(codes::KW601, detail, mend).with_in_progress(true),
    }
}

fn check_reports(collectors: &[&CollectorInstance]) -> Vec<CheckLine> {
    let silent = collectors.iter().filter(|it| it.is_ready);
    let silent: Vec<_> = silent.filter_map(|it| it.report.as_ref().err().map(|why| (it, why))).collect();
    let reports: Vec<_> =
        collectors.iter().filter_map(|it| it.report.as_ref().ok().map(|report| (&it.pod, report))).collect();
    let mut lines = Vec::new();
    if let Some((first, _)) = silent.first() {
        let names: Vec<String> = silent.iter().map(|(it, why)| format!("{} ({why})", it.pod)).collect();
        let detail = format!("failed to read the status of {}", join_first_names(&names));
        lines.push(CheckLine::warned(codes::KW602, detail, debug_command(first)));
    } else if !reports.is_empty() {
        lines.push(CheckLine::passed(codes::KW602, ""));
    }
    let refused = reports.iter().filter_map(|(pod, report)| Some((pod, report.refused.as_ref()?.reasons.first())));
    let refused: Vec<String> =
        refused.map(|(pod, why)| format!("{pod}: {}", why.map_or("no reason was reported", |why| why))).collect();
    if let Some(first) = refused.first() {
        let detail = format!(
            "{} of {} collectors refused the configuration and keep the previous one: {first}",
            refused.len(),
            reports.len()
        );
        let mend = "kubectl get telemetry   # shows the pipeline with the reason DocumentRefused";
        lines.push(CheckLine::failed(codes::KW603, detail, mend));
    } else if !reports.is_empty() {
        lines.push(CheckLine::passed(codes::KW603, ""));
    }
    let other =
        reports.iter().find(|(_, report)| !report.version.is_empty() && report.version != env!("CARGO_PKG_VERSION"));
    if let Some((pod, report)) = other {
        let detail =
            format!("{pod} has version {}, this program has version {}", report.version, env!("CARGO_PKG_VERSION"));
        lines.push(CheckLine::warned(
            codes::KW604,
            detail,
            "kubectl get telemetries default -o jsonpath={.spec.image}",
        ));
    } else if !reports.is_empty() {
        lines.push(CheckLine::passed(codes::KW604, env!("CARGO_PKG_VERSION")));
    }
    lines
}

/// How to query a collector where it runs: it listens at its pod's address, which `kubectl port-forward` does
/// not reach.
fn debug_command(collector: &CollectorInstance) -> String {
    // A pod that is a process of this machine supports no ephemeral containers.
    if let Some(address) = collector.address.filter(|address| address.ip().is_loopback()) {
        return format!("curl http://{address}/status   # run this on the machine of the cluster");
    }
    let CollectorInstance { namespace, pod, .. } = collector;
    format!(
        "kubectl debug --namespace {namespace} {pod} --profile restricted --image busybox --attach -- sh -c 'wget -qO- http://$(hostname -i):{HEALTH_PORT}/status'"
    )
}

fn join_first_names(names: &[String]) -> String {
    let rest = names.len().saturating_sub(MAX_NAMED_COLLECTORS);
    let shown = names.iter().take(MAX_NAMED_COLLECTORS).cloned().collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use kubewake_status::{CollectorStatus, RefusalReport};

    use super::*;
    use crate::{
        check::report::CheckOutcome,
        inventory::{
            collectors::tests::{collector, report},
            pipelines::InstalledPipelineKind,
        },
    };

    fn said(pipelines: &[InstalledPipeline], collectors: &[CollectorInstance]) -> Vec<(&'static str, CheckOutcome)> {
        check_collectors("ns", pipelines, collectors).iter().map(|line| (line.code.id, line.outcome)).collect()
    }

    #[test]
    fn collectors_are_asked_for_only_where_a_pipeline_needs_them() {
        let accepted = serde_json::json!({"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Accepted", "status": "True"}]}});
        let pipeline = InstalledPipeline::example(InstalledPipelineKind::Traces, accepted);
        assert_eq!(said(&[], &[]), []);
        assert_eq!(said(&[pipeline], &[]), [("KW601", CheckOutcome::Failed)]);
    }

    #[test]
    fn what_cannot_be_seen_is_never_well() {
        let well = collector(
            "a",
            Ok(CollectorStatus { version: env!("CARGO_PKG_VERSION").into(), ..report("traces/a", 1, 1, 0) }),
        );
        let all = [
            ("KW601", CheckOutcome::Passed),
            ("KW602", CheckOutcome::Passed),
            ("KW603", CheckOutcome::Passed),
            ("KW604", CheckOutcome::Passed),
        ];
        assert_eq!(said(&[], std::slice::from_ref(&well)), all);
        let silent = collector("b", Err("timed out while waiting for a response".to_owned()));
        assert_eq!(
            said(&[], std::slice::from_ref(&silent)),
            [("KW601", CheckOutcome::Passed), ("KW602", CheckOutcome::Warned)]
        );
        let [inside, here] = ["10.1.2.3", "127.201.1.2"].map(|ip| {
            let address = Some(SocketAddr::new(ip.parse().unwrap(), HEALTH_PORT));
            let lines = check_collectors("ns", &[], &[CollectorInstance { address, ..silent.clone() }]);
            lines.last().unwrap().mend.clone()
        });
        // The Pod Security Standard of the installed namespace rejects other containers.
        assert!(inside.starts_with("kubectl debug --namespace kubewake-system b --profile restricted "), "{inside}");
        assert!(here.starts_with("curl http://127.201.1.2:13133/status "), "{here}");
        let refused =
            Some(RefusalReport { hash: "abc".into(), time: String::new(), reasons: vec!["no such field".to_owned()] });
        let refusing =
            collector("c", Ok(CollectorStatus { refused, version: "0.0.1".into(), ..CollectorStatus::default() }));
        let expected = [
            ("KW601", CheckOutcome::Passed),
            ("KW602", CheckOutcome::Passed),
            ("KW603", CheckOutcome::Failed),
            ("KW604", CheckOutcome::Warned),
        ];
        assert_eq!(said(&[], &[refusing]), expected);
        let ending = CollectorInstance { phase: "Terminating".into(), is_ready: false, ..well };
        assert_eq!(said(&[], &[ending]), []);
    }
}
