use kube::{api::PostParams, runtime::wait::await_condition};
use kubewake_apiserver::server::{ApiServer, Options};

use super::*;

async fn world(quarantine: Duration) -> (ApiServer, Client, JoinSet<()>) {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let (client, views, mut tasks) = (server.client().unwrap(), Views::default(), JoinSet::new());
    views.follow(&client, &mut tasks).await;
    start(&client, &views, quarantine, &mut tasks);
    (server, client, tasks)
}

async fn node(client: &Client, name: &str) {
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
}

async fn pod(client: &Client, name: &str, node: &str) {
    let spec = json!({ "nodeName": node, "containers": [{ "name": "c", "image": "i" }] });
    let pod: Pod = serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap();
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &pod).await.unwrap();
}

async fn goes(client: &Client, name: &str) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    await_condition(pods, name, |pod: Option<&Pod>| pod.is_none()).await.unwrap();
}

#[tokio::test]
async fn pods_of_a_node_that_is_gone_go_and_others_stay() {
    let (_server, client, _tasks) = world(Duration::from_millis(1)).await;
    for name in ["one", "two"] {
        node(&client, name).await;
        pod(&client, name, name).await;
    }
    pod(&client, "lost", "nowhere").await;
    goes(&client, "lost").await;
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.delete("one", &DeleteParams::default()).await.unwrap();
    goes(&client, "one").await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    assert!(pods.get_opt("two").await.unwrap().is_some());
}

#[tokio::test]
async fn a_node_that_comes_late_keeps_its_pods() {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let (client, views, mut tasks) = (server.client().unwrap(), Views::default(), JoinSet::new());
    views.follow(&client, &mut tasks).await;
    pod(&client, "web", "late").await;
    node(&client, "late").await;
    let collector = Collector { client: client.clone(), views: Views::default() };
    collector.views.pods.note(Api::default_namespaced(client.clone()).get("web").await.unwrap());
    // It has not heard of the node; the API server has.
    assert_eq!(collector.collect(&Key::new("", "late")).await.unwrap(), None);
    let pods: Api<Pod> = Api::default_namespaced(client);
    assert!(pods.get_opt("web").await.unwrap().is_some());
}
