//! The first pipeline brings collectors, and the last one takes them away.

use kubewake_e2e::{
    Sink,
    operator::{Operated, trace_pipeline},
};

#[test]
fn the_first_pipeline_brings_collectors_and_the_last_takes_them_away() {
    let Some(operated) = Operated::anywhere() else { return };
    let sink = Sink::start();
    assert_eq!(operated.workloads(), "", "without a pipeline there is nothing");

    operated.apply(&trace_pipeline("backend", sink.address()));
    let status = operated.until_state("tracepipeline/backend", "Ready");
    for condition in ["Accepted", "Configured", "CollectorReady"] {
        assert_eq!(Operated::condition(&status, condition)["status"], "True", "{condition} in {status}");
    }
    let report = operated.send(&["--seconds", "1", "--rate", "500"]);
    assert!(report.items("acknowledged") > 0, "{report:?}");
    sink.await_all(&report.acknowledged);

    operated.kubectl.ok("delete tracepipeline backend");
    operated.until_nothing_is_left();
}
