//! The first pipeline brings collectors, and the last one takes them away.

use kubewake_e2e::{
    SinkProcess,
    operator::{OperatorCluster, trace_pipeline},
};

#[test]
fn the_first_pipeline_brings_collectors_and_the_last_takes_them_away() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    assert_eq!(operated.workloads(), "", "without a pipeline there is nothing");

    operated.apply(&trace_pipeline("backend", sink.address()));
    let status = operated.wait_for_state("tracepipeline/backend", "Ready");
    for condition in ["Accepted", "Configured", "CollectorReady"] {
        assert_eq!(OperatorCluster::condition(&status, condition)["status"], "True", "{condition} in {status}");
    }
    let report = operated.send(&["--seconds", "1", "--rate", "500"]);
    assert!(report.items("acknowledged") > 0, "{report:?}");
    sink.wait_for_all(&report.acknowledged);

    operated.kubectl.run_ok("delete tracepipeline backend");
    operated.wait_until_cleaned_up();
}
