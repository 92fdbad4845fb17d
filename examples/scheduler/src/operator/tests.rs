//! A reconcile that makes no request.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Config;
use serde_json::json;

use super::*;

#[tokio::test]
async fn run_ends_when_the_written_scheduler_is_being_deleted_and_the_watch_lags() {
    let trail = Trail::disabled();
    // Nothing listens there, so that any request fails.
    let client = trail.client(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let operand = OperandSettings {
        image: String::new(),
        command: Vec::new(),
        args: Vec::new(),
        service_account: String::new(),
        telemetry_env: Vec::new(),
    };
    let context = Arc::new(SchedulerContext { client, trail, operand, pending_writes: PendingWrites::new() });
    let mut seen = Scheduler::new("demo", serde_json::from_value(json!({})).unwrap());
    seen.metadata.uid = Some("uid".to_owned());
    seen.metadata.resource_version = Some("1".to_owned());
    let seen = Arc::new(seen);
    assert!(reconcile(Arc::clone(&seen), Arc::clone(&context)).await.is_err(), "the children need requests");
    let mut written = Scheduler::clone(&seen);
    written.metadata.resource_version = Some("2".to_owned());
    written.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    context.pending_writes.record(&written, Arc::new(written.clone()));
    assert_eq!(reconcile(seen, context).await.unwrap(), Action::await_change());
}
