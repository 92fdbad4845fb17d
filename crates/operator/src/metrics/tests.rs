use std::fs;

use kubewake_trail::controller::Queue as _;

use super::*;

#[test]
fn what_failed_is_counted_by_step_and_reason() {
    let metrics = Metrics::default();
    metrics.failed(Step::Layer, Cause::Forbidden);
    metrics.failed(Step::Layer, Cause::Forbidden);
    metrics.failed(Step::Status, Cause::Conflict);
    let page = metrics.page();
    assert!(page.contains("kubewake_operator_errors_total{step=\"layer\",reason=\"forbidden\"} 2\n"), "{page}");
    assert!(page.contains("kubewake_operator_errors_total{step=\"status\",reason=\"conflict\"} 1\n"), "{page}");
}

#[test]
fn who_waits_and_how_long_is_counted_by_kind() {
    let metrics = Arc::<Metrics>::default();
    metrics.leads(true);
    let (traces, logs) = (Queue::new(&metrics, Signal::Traces), Queue::new(&metrics, Signal::Logs));
    traces.waits(2);
    logs.waits(1);
    logs.waits(0);
    traces.begins(Duration::from_millis(20));
    let backend = Id { signal: Signal::Traces, name: "backend".into() };
    metrics.state(&backend, Some(State::Ready));
    let page = metrics.page();
    for line in [
        "queue_depth{signal=\"traces\"} 2",
        "queue_depth{signal=\"logs\"} 0",
        "queue_wait_seconds_bucket{signal=\"traces\",le=\"0.005\"} 0",
        "queue_wait_seconds_bucket{signal=\"traces\",le=\"0.025\"} 1",
        "queue_wait_seconds_bucket{signal=\"traces\",le=\"+Inf\"} 1",
        "queue_wait_seconds_count{signal=\"traces\"} 1",
        "pipelines{signal=\"traces\",state=\"Ready\"} 1",
    ] {
        assert!(page.contains(&format!("kubewake_operator_{line}\n")), "{line} is not in {page}");
    }
    metrics.leads(false);
    let page = metrics.page();
    assert!(!page.contains("queue_depth{") && !page.contains("pipelines{"), "another one leads: {page}");
    // Reconciles are not over at once.
    metrics.state(&backend, Some(State::Degraded));
    traces.waits(1);
    assert_eq!(metrics.page(), page);
}

/// docs/running-on-a-cluster.md has every name, and every value of a label.
#[test]
fn every_metric_is_on_the_page() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/running-on-a-cluster.md")).unwrap();
    let page = Metrics::default().page();
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let labels = Step::ALL.iter().map(|it| it.as_str()).chain(Cause::ALL.iter().map(|it| it.as_str()));
    let all = names.map(str::to_owned).chain(labels.map(str::to_owned));
    let missing: Vec<String> = all.filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
