//! Two hundred pipelines.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use kube::api::PostParams;
use kubewake_api::v1alpha1::{LogPipeline, MetricPipeline, TracePipeline};
use serde_json::json;

use crate::world::{TestCluster, to, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_resync_of_two_hundred_pipelines_sends_nothing() {
    let world = TestCluster::start().await;
    world.telemetry(json!({"slots": {"traces": 100, "logs": 50, "metrics": 50}})).await;
    let operator = world.operator_with(|options| options.resync = Duration::from_secs(2));
    let spec = |n: usize| to(&format!("backend-{n}.example.com:4317"));
    let create = async |n: usize| {
        let name = format!("p{n}");
        let params = PostParams::default();
        match n % 4 {
            0 => drop(
                world
                    .of()
                    .create(&params, &LogPipeline::new(&name, serde_json::from_value(spec(n)).unwrap()))
                    .await
                    .unwrap(),
            ),
            1 => drop(
                world
                    .of()
                    .create(&params, &MetricPipeline::new(&name, serde_json::from_value(spec(n)).unwrap()))
                    .await
                    .unwrap(),
            ),
            _ => drop(
                world
                    .of()
                    .create(&params, &TracePipeline::new(&name, serde_json::from_value(spec(n)).unwrap()))
                    .await
                    .unwrap(),
            ),
        }
    };
    stream::iter(0..200).for_each_concurrent(8, create).await;
    until("all of them are in the document", async || {
        let (text, _) = world.document("kubewake-gateway").await?;
        (text.matches("backend-").count() >= 200).then_some(())
    })
    .await;
    // Statuses and last valid specs are written a moment later.
    let mut quiet = 0;
    until("nothing is sent any more", async || {
        let (before, begun) =
            (operator.writes(), operator.figure("kubewake_operator_reconcile_duration_seconds_count"));
        let started = Instant::now();
        let rounds = || operator.figure("kubewake_operator_reconcile_duration_seconds_count") - begun;
        while rounds() < 400.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        quiet = if operator.writes() == before { quiet + 1 } else { 0 };
        println!("two resyncs in {:?}, {} writes", started.elapsed(), operator.writes() - before);
        (quiet >= 2).then_some(())
    })
    .await;
    operator.stop().await;
}
