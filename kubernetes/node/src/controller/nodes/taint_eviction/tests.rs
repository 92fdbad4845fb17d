use serde_json::Value;

use super::*;
use crate::testing::TestCluster;

async fn pod(world: &TestCluster, name: &str, node: &str, tolerations: Value) {
    let spec = json!({ "nodeName": node, "containers": [{ "name": "c", "image": "i" }], "tolerations": tolerations });
    world.make::<Pod>(json!({ "metadata": { "name": name }, "spec": spec })).await;
}

fn tolerate(seconds: Option<i64>) -> Value {
    json!([{ "key": "mine", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }])
}

#[tokio::test]
async fn who_does_not_tolerate_a_taint_goes_and_others_stay() {
    let mut world = TestCluster::new().await;
    world.start::<TaintEvictionController>();
    for name in ["one", "two"] {
        world.add_node(name, json!({})).await;
        pod(&world, name, name, json!([])).await;
    }
    pod(&world, "patient", "one", tolerate(None)).await;
    pod(&world, "for-ages", "one", tolerate(Some(i64::MAX))).await;
    pod(&world, "for-a-second", "one", tolerate(Some(1))).await;
    world.patch_node("one", json!({ "spec": { "taints": [{ "key": "mine", "effect": "NoExecute" }] } })).await;
    world.until_gone::<Pod>("one").await;
    world.until_gone::<Pod>("for-a-second").await;
    // A pod that is bound later is evicted, too.
    pod(&world, "late", "one", json!([])).await;
    world.until_gone::<Pod>("late").await;
    for name in ["two", "patient", "for-ages"] {
        let stays = world.api::<Pod>().get(name).await.unwrap();
        assert!(stays.metadata.deletion_timestamp.is_none(), "{name}");
    }
}
