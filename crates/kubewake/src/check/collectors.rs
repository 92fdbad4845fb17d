//! Whether the collectors are well.

use kubewake_api::render::HEALTH_PORT;
use kubewake_trail::in_words;

use super::{
    Scene, code,
    line::{Line, Section},
};
use crate::survey::{collectors::Collector, pipelines::Pipeline};

/// So many collectors are named, each.
const NAMED: usize = 3;

pub(super) fn look(scene: &Scene<'_>, pipelines: &[Pipeline], seen: &Result<Vec<Collector>, kube::Error>) -> Section {
    let namespace = &scene.args.cluster.namespace;
    let lines = match seen {
        Ok(collectors) => lines(namespace, pipelines, collectors),
        Err(error) => vec![Line::warned(
            code::KW601,
            format!("they cannot be seen: {}", in_words(error)),
            format!("kubectl auth can-i list pods --namespace {namespace}"),
        )],
    };
    Section { name: "Collectors", lines }
}

fn lines(namespace: &str, pipelines: &[Pipeline], collectors: &[Collector]) -> Vec<Line> {
    // Those that end have delivered, or are about to.
    let collectors: Vec<&Collector> = collectors.iter().filter(|it| it.phase != "Terminating").collect();
    let is_active = |pipeline: &Pipeline| {
        let accepted = pipeline.conditions().into_iter().any(|it| it.name == "Accepted" && it.status == "True");
        accepted && !pipeline.is_paused()
    };
    match (collectors.is_empty(), pipelines.iter().any(is_active)) {
        (true, false) => Vec::new(),
        (true, true) => vec![Line::failed(
            code::KW601,
            "there is none",
            format!("kubectl get deployments,events --namespace {namespace}"),
        )],
        (false, _) => {
            let mut lines = vec![run(namespace, &collectors)];
            lines.extend(answer(namespace, &collectors));
            lines
        }
    }
}

fn run(namespace: &str, collectors: &[&Collector]) -> Line {
    let bad: Vec<String> = collectors
        .iter()
        .filter(|it| !it.is_ready)
        .map(|it| format!("{} ({})", it.pod, it.trouble.as_deref().unwrap_or(&it.phase)))
        .collect();
    let ready = collectors.len() - bad.len();
    if bad.is_empty() {
        return Line::passed(code::KW601, format!("{ready} are ready"));
    }
    let detail = format!("{ready} of {} are ready, not {}", collectors.len(), some(&bad));
    let mend =
        format!("kubectl describe pods --namespace {namespace} --selector app.kubernetes.io/component=collector");
    match ready {
        0 => Line::failed(code::KW601, detail, mend),
        _ => Line::warned(code::KW601, detail, mend).settling(true),
    }
}

/// What they say themselves.
fn answer(namespace: &str, collectors: &[&Collector]) -> Vec<Line> {
    let silent = collectors.iter().filter(|it| it.is_ready);
    let silent: Vec<_> = silent.filter_map(|it| it.report.as_ref().err().map(|why| (it, why))).collect();
    let reports: Vec<_> =
        collectors.iter().filter_map(|it| it.report.as_ref().ok().map(|report| (&it.pod, report))).collect();
    let mut lines = Vec::new();
    if let Some((first, _)) = silent.first() {
        let names: Vec<String> = silent.iter().map(|(it, why)| format!("{} ({why})", it.pod)).collect();
        let detail = format!("not seen from here: {}", some(&names));
        lines.push(Line::warned(code::KW602, detail, inside(namespace, first)));
    } else if !reports.is_empty() {
        lines.push(Line::passed(code::KW602, ""));
    }
    let refused = reports.iter().filter_map(|(pod, report)| Some((pod, report.refused.as_ref()?.reasons.first())));
    let refused: Vec<String> =
        refused.map(|(pod, why)| format!("{pod}: {}", why.map_or("it is refused", |why| why))).collect();
    if let Some(first) = refused.first() {
        let detail = format!("{} of {} go on with the one before: {first}", refused.len(), reports.len());
        let mend = "kubectl get telemetry   # the pipeline that is DocumentRefused";
        lines.push(Line::failed(code::KW603, detail, mend));
    } else if !reports.is_empty() {
        lines.push(Line::passed(code::KW603, ""));
    }
    let other =
        reports.iter().find(|(_, report)| !report.version.is_empty() && report.version != env!("CARGO_PKG_VERSION"));
    if let Some((pod, report)) = other {
        let detail = format!("{pod} is {}, this program {}", report.version, env!("CARGO_PKG_VERSION"));
        lines.push(Line::warned(code::KW604, detail, "kubectl get telemetries default -o jsonpath={.spec.image}"));
    } else if !reports.is_empty() {
        lines.push(Line::passed(code::KW604, env!("CARGO_PKG_VERSION")));
    }
    lines
}

/// How one is asked where it runs: it listens on the address of its pod, where `kubectl port-forward` does not lead.
fn inside(namespace: &str, collector: &Collector) -> String {
    // A pod that is a process of one machine takes no ephemeral containers.
    if let Some(address) = collector.address.filter(|address| address.ip().is_loopback()) {
        return format!("curl http://{address}/status   # on the machine of the cluster, whose pods are its processes");
    }
    let pod = &collector.pod;
    format!(
        "kubectl debug --namespace {namespace} {pod} --profile restricted --image busybox --attach -- sh -c 'wget -qO- http://$(hostname -i):{HEALTH_PORT}/status'"
    )
}

fn some(names: &[String]) -> String {
    let rest = names.len().saturating_sub(NAMED);
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::{
        check::line::Outcome,
        survey::{
            collectors::{
                Refused, Report,
                tests::{collector, report},
            },
            pipelines::Kind,
        },
    };

    fn said(pipelines: &[Pipeline], collectors: &[Collector]) -> Vec<(&'static str, Outcome)> {
        lines("ns", pipelines, collectors).iter().map(|line| (line.code.id, line.outcome)).collect()
    }

    #[test]
    fn collectors_are_asked_for_only_where_a_pipeline_needs_them() {
        let accepted = serde_json::json!({"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Accepted", "status": "True"}]}});
        let pipeline = Pipeline::example(Kind::Traces, accepted);
        assert_eq!(said(&[], &[]), []);
        assert_eq!(said(&[pipeline], &[]), [("KW601", Outcome::Failed)]);
    }

    #[test]
    fn what_cannot_be_seen_is_never_well() {
        let well =
            collector("a", Ok(Report { version: env!("CARGO_PKG_VERSION").into(), ..report("traces/a", 1, 1, 0) }));
        let all = [
            ("KW601", Outcome::Passed),
            ("KW602", Outcome::Passed),
            ("KW603", Outcome::Passed),
            ("KW604", Outcome::Passed),
        ];
        assert_eq!(said(&[], std::slice::from_ref(&well)), all);
        let silent = collector("b", Err("it does not answer in time".to_owned()));
        assert_eq!(said(&[], std::slice::from_ref(&silent)), [("KW601", Outcome::Passed), ("KW602", Outcome::Warned)]);
        let [inside, here] = ["10.1.2.3", "127.201.1.2"].map(|ip| {
            let address = Some(SocketAddr::new(ip.parse().unwrap(), HEALTH_PORT));
            let lines = lines("ns", &[], &[Collector { address, ..silent.clone() }]);
            lines.last().unwrap().mend.clone()
        });
        // The namespace that we install takes no other containers.
        assert!(inside.starts_with("kubectl debug --namespace ns b --profile restricted "), "{inside}");
        assert!(here.starts_with("curl http://127.201.1.2:13133/status "), "{here}");
        let refused = Some(Refused { reasons: vec!["no such field".to_owned()] });
        let refusing = collector("c", Ok(Report { refused, version: "0.0.1".into(), ..Report::default() }));
        let expected = [
            ("KW601", Outcome::Passed),
            ("KW602", Outcome::Passed),
            ("KW603", Outcome::Failed),
            ("KW604", Outcome::Warned),
        ];
        assert_eq!(said(&[], &[refusing]), expected);
        let ending = Collector { phase: "Terminating".into(), is_ready: false, ..well };
        assert_eq!(said(&[], &[ending]), []);
    }
}
