//! The collectors on the nodes, and their namespace.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{ConfigMap, Namespace, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy},
};
use kubewake_api::v1alpha1::LogPipeline;
use kubewake_operator::{ObjectKind, names};
use serde_json::{Value, json};

use crate::world::{TestCluster, condition, to, until, with_token};

const AGENTS: &str = names::AGENT_NAMESPACE;

/// A spec that reads logs of containers, and receives nothing else.
fn reading(mut spec: Value) -> Value {
    spec["input"] = json!({"otlp": {"enabled": false}, "runtime": {}});
    spec
}

/// A spec that only receives what is sent.
fn receiving(mut spec: Value) -> Value {
    spec["input"] = json!({"otlp": {"enabled": true}});
    spec
}

async fn apply(world: &TestCluster, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "LogPipeline",
        "metadata": {"name": name}, "spec": spec,
    });
    let params = PatchParams::apply("somebody").force();
    world.of::<LogPipeline>().patch(name, &params, &Patch::Apply(&object)).await.unwrap();
}

async fn delete(world: &TestCluster, name: &str, propagation: PropagationPolicy) {
    let params = DeleteParams { propagation_policy: Some(propagation), ..DeleteParams::default() };
    world.of::<LogPipeline>().delete(name, &params).await.unwrap();
}

/// The objects in the agents' namespace that the operator made.
async fn made(world: &TestCluster) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let managed = ListParams::default().labels(&names::managed_selector());
    for kind in ObjectKind::AGENT_KINDS {
        let api: Api<DynamicObject> = kind.api(&world.client, AGENTS);
        let list = api.list(&managed).await.unwrap().items.into_iter();
        all.extend(list.map(|object| format!("{kind:?}/{}", object.name_any())));
    }
    all
}

async fn until_made(world: &TestCluster) {
    until("the agents are there", async || made(world).await.contains("DaemonSet/kubewake-agent").then_some(())).await;
}

async fn until_gone(world: &TestCluster) {
    until("the agents are gone", async || made(world).await.is_empty().then_some(())).await;
    let roles = world.of::<ClusterRole>();
    until("their rights are gone", async || roles.get_opt(names::AGENT).await.unwrap().is_none().then_some(())).await;
}

async fn document(world: &TestCluster) -> Option<String> {
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), AGENTS);
    maps.get_opt(names::AGENT).await.unwrap()?.data?.remove("collector.yaml")
}

#[tokio::test]
async fn first_pipeline_that_reads_logs_brings_the_agents_and_the_last_takes_them_away() {
    let world = TestCluster::start().await;
    world.telemetry(json!({"slots": {"logs": 3}})).await;
    let operator = world.operator();
    apply(&world, "sent", receiving(to("sent.example.com:4317"))).await;
    until("the gateway is there", async || world.document(names::GATEWAY).await).await;
    assert!(made(&world).await.is_empty(), "nobody reads logs");

    apply(&world, "one", reading(to("one.example.com:4317"))).await;
    until_made(&world).await;
    apply(&world, "two", reading(to("two.example.com:4317"))).await;
    let both = async || {
        document(&world).await.filter(|text| text.contains("one.example.com") && text.contains("two.example.com"))
    };
    let text = until("both are in the document of the agents", both).await;
    assert!(!text.contains("sent.example.com"), "{text}");
    let (gateway, _) = world.document(names::GATEWAY).await.unwrap();
    assert!(gateway.contains("sent.example.com") && !gateway.contains("one.example.com"), "{gateway}");

    delete(&world, "one", PropagationPolicy::Background).await;
    until("it left the document", async || document(&world).await.filter(|text| !text.contains("one.example"))).await;
    assert!(made(&world).await.contains("DaemonSet/kubewake-agent"));
    delete(&world, "two", PropagationPolicy::Background).await;
    until_gone(&world).await;
    assert!(world.document(names::GATEWAY).await.is_some(), "the gateway stays");
    operator.stop().await;
}

#[tokio::test]
async fn agents_go_with_their_last_pipeline_also_while_no_operator_runs() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    apply(&world, "logs", reading(to("backend.example.com:4317"))).await;
    until_made(&world).await;
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), AGENTS);
    let anchor = maps.get(names::LAYER_CONFIG_MAP).await.unwrap();
    let owners: Vec<(&str, &str)> =
        anchor.owner_references().iter().map(|owner| (owner.kind.as_str(), owner.name.as_str())).collect();
    assert_eq!(owners, [("LogPipeline", "logs")]);
    operator.kill().await;
    delete(&world, "logs", PropagationPolicy::Background).await;
    until_gone(&world).await;
    world.until_nothing_is_left().await;
}

#[tokio::test]
async fn agents_of_an_orphaning_deletion_go_when_an_operator_sees_it() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    apply(&world, "logs", reading(to("backend.example.com:4317"))).await;
    until_made(&world).await;
    delete(&world, "logs", PropagationPolicy::Orphan).await;
    until_gone(&world).await;
    world.until_nothing_is_left().await;
    operator.stop().await;
}

#[tokio::test]
async fn secret_of_the_agents_holds_only_values_of_pipelines_that_read_logs() {
    let world = TestCluster::start().await;
    world.telemetry(json!({"slots": {"logs": 2}})).await;
    world.secret("sent", "token-of-the-gateway").await;
    world.secret("read", "token-of-the-agents").await;
    let operator = world.operator();
    apply(&world, "sent", receiving(with_token("sent"))).await;
    apply(&world, "read", reading(with_token("read"))).await;
    until_made(&world).await;
    until("the gateway is there", async || world.document(names::GATEWAY).await).await;
    let values = async |namespace: &str, name: &str| {
        let secrets = Api::<Secret>::namespaced(world.client.clone(), namespace);
        let data = secrets.get(name).await.unwrap().data.unwrap_or_default();
        data.into_values().map(|value| String::from_utf8(value.0).unwrap()).collect::<Vec<_>>().join(" ")
    };
    let of_agents = values(AGENTS, names::AGENT).await;
    assert!(of_agents.contains("token-of-the-agents") && !of_agents.contains("token-of-the-gateway"), "{of_agents}");
    let of_gateway = values(crate::world::NAMESPACE, names::GATEWAY).await;
    assert!(of_gateway.contains("token-of-the-gateway") && !of_gateway.contains("token-of-the-agents"), "{of_gateway}");
    operator.stop().await;
}

#[tokio::test]
async fn cluster_without_the_namespace_lacks_only_the_agents() {
    let world = TestCluster::start().await;
    world.telemetry(json!({"slots": {"logs": 2}})).await;
    let namespaces = world.of::<Namespace>();
    namespaces.delete(AGENTS, &DeleteParams::default()).await.unwrap();
    until("the namespace is gone", async || namespaces.get_opt(AGENTS).await.unwrap().is_none().then_some(())).await;
    let operator = world.operator();
    world.apply("traces", to("backend.example.com:4317")).await;
    world.until_configured("traces").await;
    apply(&world, "logs", reading(to("backend.example.com:4317"))).await;
    let status = until("the pipeline tells of it", async || {
        let status = world.of::<LogPipeline>().get("logs").await.unwrap().status?;
        (condition(&status, "Configured").1 == "ApplyFailed").then_some(status)
    })
    .await;
    let configured = status.conditions.iter().find(|it| it.type_ == "Configured").unwrap();
    assert!(
        configured.message.contains("kubewake-agents") && configured.message.contains("manifests"),
        "{}",
        configured.message
    );
    world.until_configured("traces").await;
    operator.stop().await;
}

#[tokio::test]
async fn what_others_change_of_the_agents_is_mended() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    apply(&world, "logs", reading(to("backend.example.com:4317"))).await;
    until_made(&world).await;
    let sets = Api::<DaemonSet>::namespaced(world.client.clone(), AGENTS);
    let image = |set: DaemonSet| set.spec?.template.spec?.containers.first()?.image.clone();
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "collector", "image": "evil"}]}}}});
    sets.patch(names::AGENT, &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
    until("the image is ours again", async || {
        (image(sets.get(names::AGENT).await.unwrap())? == "kubewake/collector").then_some(())
    })
    .await;
    sets.delete(names::AGENT, &DeleteParams::default()).await.unwrap();
    until("the DaemonSet is there again", async || sets.get_opt(names::AGENT).await.unwrap()).await;
    operator.stop().await;
}
