//! Whether the collectors are well.

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
    let silent: Vec<String> = collectors
        .iter()
        .filter(|it| it.is_ready)
        .filter_map(|it| it.report.as_ref().err().map(|why| format!("{} ({why})", it.pod)))
        .collect();
    let reports: Vec<_> =
        collectors.iter().filter_map(|it| it.report.as_ref().ok().map(|report| (&it.pod, report))).collect();
    let mut lines = Vec::new();
    if !silent.is_empty() {
        // They listen on the addresses of their pods, where `kubectl port-forward` does not lead.
        let mend = format!(
            "kubectl debug --namespace {namespace} POD --image busybox --attach -- sh -c 'wget -qO- http://$(hostname -i):13133/status'"
        );
        lines.push(Line::warned(code::KW602, format!("not seen from here: {}", some(&silent)), mend));
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

fn some(names: &[String]) -> String {
    let rest = names.len().saturating_sub(NAMED);
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(said(&[], &[silent]), [("KW601", Outcome::Passed), ("KW602", Outcome::Warned)]);
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
