//! The operator's own work is a trace, and flows through the pipeline that it made.

use kubewake_e2e::{OperatorCluster, SinkProcess, operator::trace_pipeline, wait_until};

#[test]
fn its_own_reconciles_arrive_through_its_own_pipeline() {
    let Some(mut operated) = OperatorCluster::start() else { return };
    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    operated.stop_operator();
    let mut command = operated.command();
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", operated.otlp()))
        .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    operated.start_operator_with(&mut command);
    let mut seconds = 7;
    wait_until("the backend has the spans of the reconcile", || {
        let names = sink.span_names();
        let has = |wanted: &str| names.iter().any(|name| name.starts_with(wanted));
        if has("reconcile TracePipeline") && has("PUT ") && has("status TracePipeline") {
            return true;
        }
        // What it finds when it begins to lead makes no spans, so that one change may come too early.
        seconds += 1;
        let timeout = format!(r#"[{{"op":"add","path":"/spec/output/otlp/timeout","value":"{seconds}s"}}]"#);
        operated.kubectl.run_ok(&format!("patch tracepipeline backend --type=json -p {timeout}"));
        false
    });
}
