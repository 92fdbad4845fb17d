use std::fs;

use kubewake_trail::controller::QueueObserver as _;

use super::*;

#[test]
fn what_failed_is_counted_by_step_and_reason() {
    let metrics = OperatorMetrics::default();
    metrics.count_failure(ReconcileStep::Layer, FailureCause::Forbidden);
    metrics.count_failure(ReconcileStep::Layer, FailureCause::Forbidden);
    metrics.count_failure(ReconcileStep::Status, FailureCause::Conflict);
    let page = metrics.render();
    assert!(page.contains("kubewake_operator_errors_total{step=\"layer\",reason=\"forbidden\"} 2\n"), "{page}");
    assert!(page.contains("kubewake_operator_errors_total{step=\"status\",reason=\"conflict\"} 1\n"), "{page}");
}

#[test]
fn who_waits_and_how_long_is_counted_by_kind() {
    let metrics = Arc::<OperatorMetrics>::default();
    metrics.set_leading(true);
    let traces = QueueMetrics::new(&metrics, Signal::Traces);
    let logs = QueueMetrics::new(&metrics, Signal::Logs);
    traces.on_depth_changed(2);
    logs.on_depth_changed(1);
    logs.on_depth_changed(0);
    traces.on_run_started(Duration::from_millis(20));
    let backend = PipelineKey { signal: Signal::Traces, name: "backend".into() };
    metrics.state(&backend, Some(State::Ready));
    let page = metrics.render();
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
    metrics.set_leading(false);
    let page = metrics.render();
    assert!(!page.contains("queue_depth{") && !page.contains("pipelines{"), "another one leads: {page}");
    // Events arrive while reconciles are still running.
    metrics.state(&backend, Some(State::Degraded));
    traces.on_depth_changed(1);
    assert_eq!(metrics.render(), page);
}

/// docs/running-on-a-cluster.md has every name, and every value of a label.
#[test]
fn every_metric_is_on_the_page() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/running-on-a-cluster.md")).unwrap();
    let page = OperatorMetrics::default().render();
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let labels = ReconcileStep::ALL.iter().map(|it| it.name()).chain(FailureCause::ALL.iter().map(|it| it.name()));
    let all = names.map(str::to_owned).chain(labels.map(str::to_owned));
    let missing: Vec<String> = all.filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
