//! One slot, whoever wants it, and whatever becomes of the operator.

use std::{thread, time::Duration};

use kubewake_e2e::{
    SinkProcess,
    operator::{OperatorCluster, trace_pipeline},
    wait_until,
};
use serde_json::Value;

use super::recorder::Recorder;

/// Moments at which the operator is killed, in milliseconds after it serves: while it looks at what there is,
/// takes a slot, writes, and when it is done.
const MOMENTS: [u64; 8] = [0, 20, 60, 120, 200, 350, 600, 1000];

fn pipelines(operated: &OperatorCluster) -> Vec<Value> {
    operated.kubectl.json("tracepipelines")["items"].as_array().unwrap().clone()
}

/// Waits until one is active and all others wait, and gives its name.
fn until_one_is_active(operated: &OperatorCluster, all: usize) -> String {
    let mut active = Vec::new();
    wait_until("one pipeline is Ready and all others are Pending", || {
        let (ready, others): (Vec<Value>, Vec<Value>) =
            pipelines(operated).into_iter().partition(|it| it["status"]["state"] == "Ready");
        let wait = others.iter().all(|it| it["status"]["reason"] == "Pending" && it["status"]["state"] == "Pending");
        active = ready;
        active.len() == 1 && others.len() == all - 1 && wait
    });
    active[0]["metadata"]["name"].as_str().unwrap().to_owned()
}

fn kill_and_start(operated: &mut OperatorCluster) {
    for moment in MOMENTS {
        thread::sleep(Duration::from_millis(moment));
        operated.kill_operator();
        operated.start_operator();
    }
}

#[test]
fn ten_at_once_are_one_active_and_nine_pending_whatever_becomes_of_the_operator() {
    let Some(mut operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    let recorder = Recorder::start(&operated);
    let names: Vec<String> = (0..10).map(|i| format!("team-{i}")).collect();
    let clients: Vec<_> =
        names.iter().map(|name| operated.kubectl.apply_in_background(&trace_pipeline(name, sink.address()))).collect();
    kill_and_start(&mut operated);
    for client in clients {
        assert!(client.join().unwrap(), "everybody can create a pipeline");
    }
    let first = until_one_is_active(&operated, 10);
    recorder.until_holder(|holder| holder == first);
    assert_eq!(recorder.record().active.len(), 1, "whoever has the slot keeps it: {:?}", recorder.record());

    operated.kubectl.run_ok(&format!("delete tracepipeline {first} --wait=false"));
    kill_and_start(&mut operated);
    let second = until_one_is_active(&operated, 9);
    assert_ne!(first, second);
    recorder.until_holder(|holder| holder == second);
    let record = recorder.record();
    assert_eq!(record.active.len(), 2, "one took over, and no other was active in between: {record:?}");
    assert!(record.locks >= 2 && record.documents >= 2, "it has seen something: {record:?}");

    let report = operated.send_until_delivered(&sink, &["--requests", "10"]);
    assert_eq!(report.items("acknowledged"), 1000);
}

#[test]
fn who_takes_over_has_the_same_address_and_nothing_is_lost() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("first", sink.address()));
    operated.wait_for_pods(2);
    operated.apply(&trace_pipeline("second", sink.address()));
    operated.wait_for_reason("tracepipeline/second", "Pending");
    let address = operated.otlp();
    let pods = operated.pods();
    let load = operated.start_sending(&["--seconds", "600", "--rate", "500", "--spans", "10", "--retry"]);
    sink.wait_for_items(100);
    operated.kubectl.run_ok("delete tracepipeline first");
    operated.wait_for_state("tracepipeline/second", "Ready");
    let after = operated.send(&["--requests", "10", "--retry"]);
    sink.wait_for_all(&after.acknowledged);
    let report = load.stop_early();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    assert_eq!((operated.otlp(), operated.pods()), (address, pods), "everything is the same but who is active");
}
