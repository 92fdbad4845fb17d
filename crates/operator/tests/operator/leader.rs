//! Leader election between several operators.

use kubewake_operator::LeaseConfig;

use crate::world::{Running, TestCluster, to, until};

fn candidate(world: &TestCluster, identity: &str, seconds: u64) -> Running {
    world.operator_on(|_| {}, LeaseConfig { identity: identity.into(), seconds })
}

async fn until_leads(operator: &Running) {
    until("it leads", async || (operator.figure("kubewake_operator_leader") == 1.0).then_some(())).await;
}

#[tokio::test]
async fn who_is_cut_off_stops_before_another_takes_over_and_stands_again() {
    let world = TestCluster::start().await;
    // The only candidate until it is cut off. If it is too slow to renew so short a Lease, it leads again at
    // once.
    let first = candidate(&world, "first", 3);
    until_leads(&first).await;
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;

    first.cut(true);
    // A lease duration that no machine is too slow to renew.
    let second = candidate(&world, "second", 600);
    // A change for whichever operator leads.
    world.apply("backend", to("other.example.com:4317")).await;
    until_leads(&second).await;
    assert_eq!(first.figure("kubewake_operator_leader"), 0.0, "there is one leader at a time");
    world.until_configured("backend").await;
    assert!(world.document("kubewake-gateway").await.unwrap().0.contains("other.example.com"));
    let writes = first.writes();
    first.cut(false);
    world.apply("backend", to("third.example.com:4317")).await;
    world.until_configured("backend").await;
    assert_eq!(first.writes(), writes, "it does nothing any more");
    assert_eq!(first.figure("kubewake_operator_pipelines"), 0.0, "nor does it count pipelines");

    second.stop().await;
    until_leads(&first).await;
    world.apply("backend", to("fourth.example.com:4317")).await;
    world.until_configured("backend").await;
    first.stop().await;
}
