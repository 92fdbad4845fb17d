use super::*;
use crate::testing::TestCluster;

async fn pod(world: &TestCluster, name: &str, node: &str) {
    let spec = json!({ "nodeName": node, "containers": [{ "name": "c", "image": "i" }] });
    world.make::<Pod>(json!({ "metadata": { "name": name }, "spec": spec })).await;
}

#[tokio::test]
async fn pods_of_a_node_that_is_gone_go_and_others_stay() {
    let mut world = TestCluster::new().await;
    start(&world.client, &world.informers, Duration::from_millis(1), &mut world.tasks);
    for name in ["one", "two"] {
        world.add_node(name, json!({})).await;
        pod(&world, name, name).await;
    }
    pod(&world, "lost", "nowhere").await;
    world.until_gone::<Pod>("lost").await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    nodes.delete("one", &DeleteParams::default()).await.unwrap();
    world.until_gone::<Pod>("one").await;
    assert!(world.api::<Pod>().get_opt("two").await.unwrap().is_some());
}

#[tokio::test]
async fn a_node_that_comes_late_keeps_its_pods() {
    let world = TestCluster::new().await;
    pod(&world, "web", "late").await;
    world.add_node("late", json!({})).await;
    let collector = PodGarbageCollector { client: world.client.clone(), informers: InformerSet::default() };
    collector.informers.pods.record_write(world.api().get("web").await.unwrap());
    // The informer has not seen the node; the API server has it.
    assert_eq!(collector.collect(&NamespacedKey::new("", "late")).await.unwrap(), None);
    assert!(world.api::<Pod>().get_opt("web").await.unwrap().is_some());
}
