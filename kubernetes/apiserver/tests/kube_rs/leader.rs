//! Leader election by a Lease.

use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};

use crate::support::{World, soon};

async fn candidate(world: &World, identity: &str) -> LeaseManager {
    let builder = LeaseManagerBuilder::new(world.client.clone(), "lock");
    // The crate's minimum is one second.
    builder.with_identity(identity).with_duration(2).with_grace(1).build().await.unwrap()
}

#[tokio::test]
async fn there_is_one_leader_and_another_when_it_resigns() {
    let world = World::new().await;
    let one = candidate(&world, "one").await;
    let two = candidate(&world, "two").await;
    assert!(soon(one.changed()).await.unwrap());
    let mut waiting = std::pin::pin!(two.changed());
    tokio::select! {
        biased;
        won = &mut waiting => panic!("{won:?} although there is a leader"),
        held = one.changed() => panic!("{held:?} although nobody took it"),
        lease = holder(&world) => assert_eq!(lease, "one"),
    }
    one.release().await.unwrap();
    assert!(soon(waiting).await.unwrap());
    assert_eq!(holder(&world).await, "two");
}

async fn holder(world: &World) -> String {
    let leases: kube::Api<k8s_openapi::api::coordination::v1::Lease> =
        kube::Api::default_namespaced(world.client.clone());
    leases.get("lock").await.unwrap().spec.unwrap().holder_identity.unwrap()
}
