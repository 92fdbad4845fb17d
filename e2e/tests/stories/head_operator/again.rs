//! What happens again and again is told once.

use std::time::{SystemTime, UNIX_EPOCH};

use kubewake_e2e::{process::ChildProcess, wait_until};

use super::{anywhere, head, operator, operator_command, stop, tell_only, wait_ready, webhook};

/// How many times each of two objects is looked at again.
const RESYNCS: usize = 100;

#[test]
fn a_restart_and_a_hundred_resyncs_add_no_span() {
    let Some(traced) = anywhere() else { return };
    let webhook = webhook(&traced);
    let first = operator(&traced, &[]);
    traced.kubectl.run_ok_with("apply -f -", &head("again", "first"));
    wait_ready(&traced, "again");
    stop(first);
    let since = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();

    let mut command = operator_command(&traced, &["--resync-ms", "20"]);
    let second = ChildProcess::start(command.env("RUST_LOG", "info,kubewake_example_head_operator=debug"));
    let runs = |kind: &str| {
        let said = second.stderr();
        said.lines().filter(|line| line.contains("the status is up to date") && line.contains(kind)).count()
    };
    wait_until("both objects are reconciled often enough", || runs("Head") > RESYNCS && runs("ChildA") > RESYNCS);
    stop(second);
    stop(webhook);
    let traces = traced.stop();
    let trace = traces.wait_for_span("converge Head", |_| true).id.trace;
    let late = traces.spans().in_trace(&trace).filter(|span| span.start >= since).count();
    assert_eq!(late, 0, "{}", traces.show(&trace));
    tell_only(&traces, &[&trace]);
}
