//! Which of several works.

use kubewake_operator::leader::Terms;

use crate::world::{Running, World, to, until};

fn candidate(world: &World, identity: &str) -> Running {
    world.operator_on(|_| {}, Terms { identity: identity.into(), seconds: 3 })
}

async fn until_leads(operator: &Running) {
    until("it leads", async || (operator.figure("kubewake_operator_leader") == 1.0).then_some(())).await;
}

#[tokio::test]
async fn who_is_cut_off_stops_before_another_takes_over_and_stands_again() {
    let world = World::start().await;
    let first = candidate(&world, "first");
    until_leads(&first).await;
    world.apply("backend", to("backend.example.com:4317")).await;
    world.until_configured("backend").await;
    let second = candidate(&world, "second");

    first.cut(true);
    // Something to do for whoever works.
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

    second.stop().await;
    until_leads(&first).await;
    world.apply("backend", to("fourth.example.com:4317")).await;
    world.until_configured("backend").await;
    first.stop().await;
}
